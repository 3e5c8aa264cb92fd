import { useEffect, useRef } from "react";
import { ganttPanel } from "./gantt/panel";
import type { Schedule } from "./gantt/schedule";

/** The chart of reports, inside the page. */
export function Gantt({ schedule }: { schedule: Schedule }) {
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (root.current === null) return undefined;
    const panel = ganttPanel(root.current, schedule);
    return () => panel.destroy();
  }, [schedule]);
  return <div ref={root} />;
}
