import { useEffect, useRef } from "react";
import { ganttPanel } from "./gantt/panel";
import type { Schedule } from "./gantt/schedule";
import type { ViewWindow } from "./gantt/view";

/** The chart of reports, inside the page. When the data changes, what is visible and selected stays. */
export function Gantt({ schedule }: { schedule: Schedule }) {
  const root = useRef<HTMLDivElement>(null);
  const kept = useRef<{ window: ViewWindow | undefined; name: string | undefined }>({ window: undefined, name: undefined });
  useEffect(() => {
    if (root.current === null) return undefined;
    const panel = ganttPanel(root.current, schedule);
    panel.view.restore(kept.current.window);
    const bar = schedule.names.findIndex((name, at) => name === kept.current.name && !schedule.ghost[at]);
    if (bar >= 0) panel.select(bar);
    return () => {
      kept.current = { window: panel.view.window, name: schedule.names[panel.selected] };
      panel.destroy();
    };
  }, [schedule]);
  return <div ref={root} />;
}
