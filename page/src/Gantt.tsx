import { useEffect, useRef } from "react";
import { ganttPanel, type Move } from "./gantt/panel";
import type { Schedule } from "./gantt/schedule";
import type { ViewWindow } from "./gantt/view";

/** The chart of reports, inside the page. When the data changes, what is visible and selected stays. */
export function Gantt({ schedule, onMove }: { schedule: Schedule; onMove?: Move | undefined }) {
  const root = useRef<HTMLDivElement>(null);
  const kept = useRef<{ window: ViewWindow | undefined; name: string | undefined }>({ window: undefined, name: undefined });
  const moved = useRef(onMove);
  moved.current = onMove;
  const movable = onMove !== undefined;
  useEffect(() => {
    if (root.current === null) return undefined;
    const panel = ganttPanel(root.current, schedule, movable ? (task, host, start) => moved.current?.(task, host, start) : undefined);
    (root.current as HTMLElement & { panel?: unknown }).panel = panel;
    panel.view.restore(kept.current.window);
    const bar = schedule.names.findIndex((name, at) => name === kept.current.name && !schedule.ghost[at]);
    if (bar >= 0) panel.select(bar);
    return () => {
      kept.current = { window: panel.view.window, name: schedule.names[panel.selected] };
      panel.destroy();
    };
  }, [schedule, movable]);
  return <div ref={root} />;
}
