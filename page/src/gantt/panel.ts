/** The chart with its legend, the box that follows the pointer, and the details of the selected bar. */

import { text } from "../text";
import { chainOf, ghostsByName, lateBars, showTime, type Schedule } from "./schedule";
import { GanttView } from "./view";

const MOST_LATE = 12;

export interface Panel {
  view: GanttView;
  data: Schedule;
  /** The selected bar; -1: none. */
  readonly selected: number;
  select(bar: number): void;
  destroy(): void;
}

/** What is done when a task is moved: by dragging its bar, or by the form of the selected bar. */
export type Move = (task: string, host: string, start: number) => void;

/** Build the chart inside an element. */
export function ganttPanel(root: HTMLElement, data: Schedule, onMove?: Move): Panel {
  root.classList.add("gantt");
  const legend = add(root, "div", "legend");
  const frame = add(root, "div", "frame");
  const canvas = add(frame, "canvas", "bars");
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-label", `${data.title}. ${text.chart}`);
  const tip = add(frame, "div", "tip");
  tip.hidden = true;
  add(root, "p", "hint", onMove ? `${text.hint} ${text.moveHint}` : text.hint);
  const details = add(root, "div", "details");
  details.setAttribute("aria-live", "polite");
  const ghosts = ghostsByName(data);
  let selected = -1;
  const select = (bar: number): void => {
    selected = bar;
    view.select(bar, chainOf(data, bar).map((step) => step.bar));
    showDetails(details, data, ghosts, bar, select);
    if (onMove && bar >= 0 && !data.lanes[data.lane[bar]!]![1]) moveForm(details, data, bar, onMove);
  };
  const view = new GanttView(canvas, data, {
    onHover: (bar, x, y) => showTip(tip, data, ghosts, bar, x, y, frame.clientWidth),
    onSelect: select,
    ...(onMove ? { onMove: (bar: number, host: string, start: number) => onMove(data.names[bar]!, host, start) } : {}),
  });
  canvas.style.height = `${Math.min(Math.max(view.fullHeight, 120), 640)}px`;
  buildLegend(legend, data, view);
  showDetails(details, data, ghosts, -1, select);
  view.draw();
  return {
    view,
    data,
    get selected() {
      return selected;
    },
    select,
    destroy: () => {
      view.destroy();
      root.replaceChildren();
    },
  };
}

/** The lines that describe a bar: its times, the plan's, and what it waited for. */
export function describe(data: Schedule, ghosts: Map<string, number>, bar: number): string[] {
  const times = (of: number): string =>
    `${showTime(data.start[of]!)} – ${showTime(data.finish[of]!)} (${data.lanes[data.lane[of]!]![0]})`;
  const lines = [`${data.ghost[bar] ? text.planned : data.kind === "run" ? text.ran : text.planned}: ${times(bar)}`];
  const ghost = ghosts.get(data.names[bar]!);
  if (!data.ghost[bar] && ghost !== undefined) lines.push(`${text.planned}: ${times(ghost)}`);
  const before = data.wait[bar]!;
  if (!data.ghost[bar]) {
    lines.push(
      before < 0
        ? text.waitedForNothing
        : `${text.waitedFor[data.waitKind[bar]!]} ${data.names[before]} (${showTime(data.finish[before]!)}).`,
    );
  }
  const cause = data.causes[String(bar)];
  if (cause !== undefined && cause.late > 0) lines.push(`${showTime(cause.late)} ${text.late}: ${cause.text}`);
  return lines;
}

function showTip(
  tip: HTMLElement, data: Schedule, ghosts: Map<string, number>, bar: number, x: number, y: number, width: number,
): void {
  tip.hidden = bar < 0;
  if (bar < 0) return;
  tip.replaceChildren();
  add(tip, "b", "", data.names[bar]);
  for (const line of describe(data, ghosts, bar)) add(tip, "div", "", line);
  tip.style.left = `${Math.max(0, Math.min(x + 12, width - tip.offsetWidth - 4))}px`;
  tip.style.top = `${y + 16}px`;
}

function buildLegend(legend: HTMLElement, data: Schedule, view: GanttView): void {
  for (const [name, colour] of data.colours) {
    const entry = add(legend, "span", "key");
    add(entry, "i", "").style.background = colour;
    entry.append(name);
  }
  toggle(legend, text.critical, view.showCritical, (on) => { view.showCritical = on; view.draw(); });
  if ((data.links ?? []).length > 0) toggle(legend, text.links, view.showLinks, (on) => { view.showLinks = on; });
  const used = Object.keys(data.busy ?? {}).length;
  if (used > 0 && data.utilisation !== undefined) {
    add(legend, "span", "", `${text.utilisation} ${Math.round(100 * data.utilisation)} % (${used} ${used === 1 ? text.host : text.hosts})`);
  }
  for (const [, mark, dashed] of data.marks) add(legend, "span", dashed ? "mark dashed" : "mark", mark);
}

function toggle(legend: HTMLElement, name: string, on: boolean, set: (on: boolean) => void): void {
  const label = add(legend, "label", "key");
  const box = add(label, "input", "");
  box.type = "checkbox";
  box.checked = on;
  box.addEventListener("change", () => set(box.checked));
  label.append(name);
}

function showDetails(
  details: HTMLElement, data: Schedule, ghosts: Map<string, number>, bar: number, select: (bar: number) => void,
): void {
  details.replaceChildren();
  if (bar < 0) {
    const late = lateBars(data).filter((one) => data.causes[one]!.late > 0).slice(0, MOST_LATE);
    add(details, "p", "", text.selectBar);
    if (late.length === 0) return;
    add(details, "h3", "", text.latest);
    const list = add(details, "ul", "late");
    for (const one of late) {
      const entry = add(list, "li", "");
      barButton(entry, data, one, select);
      entry.append(` ${showTime(data.causes[one]!.late)} ${text.late}`);
    }
    return;
  }
  add(details, "h3", "", data.names[bar]);
  for (const line of describe(data, ghosts, bar)) add(details, "p", "", line);
  if (data.kind !== "run" || data.ghost[bar]) return;
  const chain = chainOf(data, bar);
  add(details, "h3", "", text.causes);
  if (chain.length === 0) add(details, "p", "", text.notLate);
  const list = add(details, "ol", "chain");
  chain.forEach(({ bar: at, cause }, step) => {
    const entry = add(list, "li", step === chain.length - 1 ? "root" : "");
    barButton(entry, data, at, select);
    const name = data.names[at]!;
    entry.append(cause.text.startsWith(`${name} `) ? cause.text.slice(name.length) : ` ${cause.text}`);
  });
}

/** The same as dragging, with the keyboard. */
function moveForm(details: HTMLElement, data: Schedule, bar: number, onMove: Move): void {
  const form = add(details, "form", "move");
  const host = add(add(form, "label", "", `${text.move.host} `), "select", "");
  for (const name of new Set(data.lanes.filter(([, thin]) => !thin).map(([group]) => group))) add(host, "option", "", name);
  host.value = data.lanes[data.lane[bar]!]![0];
  const start = add(add(form, "label", "", `${text.move.start} `), "input", "");
  start.type = "number";
  start.step = "any";
  start.min = "0";
  start.value = String(data.start[bar]);
  add(form, "button", "", text.move.ask).type = "submit";
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    onMove(data.names[bar]!, host.value, Number(start.value));
  });
}

function barButton(parent: HTMLElement, data: Schedule, bar: number, select: (bar: number) => void): void {
  const button = add(parent, "button", "bar", data.names[bar]);
  button.type = "button";
  button.addEventListener("click", () => select(bar));
}

function add<K extends keyof HTMLElementTagNameMap>(
  parent: HTMLElement, tag: K, name: string, content?: string,
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (content !== undefined) made.textContent = content;
  parent.append(made);
  return made;
}
