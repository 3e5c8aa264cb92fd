import type { PlanProgress } from "./api";
import { showTime } from "./gantt/schedule";
import { text } from "./text";

const WIDTH = 360;
const HEIGHT = 90;

/** The best makespan and the lower bound since the search began: the gap closes between them. */
export function GapChart({ history }: { history: PlanProgress[] }) {
  const known = history.filter((one) => one.seconds !== undefined && one.makespan !== undefined && one.bound !== undefined);
  const last = known[known.length - 1];
  if (last === undefined) return null;
  const low = Math.min(...known.map((one) => one.bound!));
  const high = Math.max(...known.map((one) => one.makespan!), low * 1.0001 + 1e-12);
  const x = (seconds: number): number => (seconds / Math.max(last.seconds!, 1e-9)) * WIDTH;
  const y = (value: number): number => 6 + (1 - (value - low) / (high - low)) * (HEIGHT - 12);
  /** Values hold until they change. */
  const line = (value: (one: PlanProgress) => number): string => known.flatMap((one, at) => {
    const before = known[at - 1];
    return [...(before ? [`${x(one.seconds!)},${y(value(before))}`] : []), `${x(one.seconds!)},${y(value(one))}`];
  }).join(" ");
  return (
    <svg className="gap-chart" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${text.plan.gapChart} ${showTime(last.makespan!)}, ${showTime(last.bound!)}`}>
      <polyline points={line((one) => one.makespan!)} fill="none" stroke="#4477aa" strokeWidth="2.5" />
      <polyline points={line((one) => one.bound!)} fill="none" stroke="#228833" strokeWidth="2.5" strokeDasharray="5 3" />
    </svg>
  );
}
