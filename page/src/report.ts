/** The script of `headrace report`: turns the data in the page into charts. */

import css from "./gantt/gantt.css?inline";
import { ganttPanel } from "./gantt/panel";
import type { Schedule } from "./gantt/schedule";

const style = new CSSStyleSheet();
style.replaceSync(css);
document.adoptedStyleSheets = [...document.adoptedStyleSheets, style];
for (const block of document.querySelectorAll<HTMLScriptElement>("script[type='application/json']")) {
  const root = document.createElement("div");
  block.after(root);
  const panel = ganttPanel(root, JSON.parse(block.textContent ?? "null") as Schedule);
  (root as HTMLElement & { panel?: unknown }).panel = panel;
}
document.documentElement.dataset.ready = "1";
