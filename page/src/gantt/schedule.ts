/** A plan or a run as `headrace.report.schedule_data` writes it: parallel lists over bars. */

export interface Cause {
  late: number;
  reason: string;
  seconds: number;
  text: string;
  next: number;
}

export interface Schedule {
  format: string;
  kind: "plan" | "run";
  title: string;
  end: number;
  marks: [number, string, boolean][];
  notes: string[];
  lanes: [string, boolean][];
  /** Lanes of links, below those of hosts: the transfers that each carried, and when the link was free again. */
  links?: [string, number[], number[]][];
  /** The share of the core-seconds of each host in use that tasks took. */
  busy?: Record<string, number>;
  /** The same of all hosts in use together. */
  utilisation?: number;
  colours: [string, string][];
  names: string[];
  lane: number[];
  start: number[];
  finish: number[];
  colour: number[];
  ghost: number[];
  wait: number[];
  waitKind: string[];
  critical: number[];
  causes: Record<string, Cause>;
}

/** The causes from a late bar to the root of its delay. */
export function chainOf(schedule: Schedule, bar: number): { bar: number; cause: Cause }[] {
  const chain: { bar: number; cause: Cause }[] = [];
  const seen = new Set<number>();
  for (let at = bar; at >= 0 && !seen.has(at); ) {
    const cause = schedule.causes[String(at)];
    if (cause === undefined) break;
    seen.add(at);
    chain.push({ bar: at, cause });
    at = cause.next;
  }
  return chain;
}

/** A schedule with further executions [task, host, start, finish]; null if one ran where the schedule has no lane.

What they waited for and why they were late is not known until the whole run is loaded again. */
export function appended(schedule: Schedule, rows: [string, string, number, number][]): Schedule | null {
  const lanes = new Map<string, number[]>();
  schedule.lanes.forEach(([host, thin], lane) => { if (!thin) lanes.set(host, [...(lanes.get(host) ?? []), lane]); });
  const busy: number[] = schedule.lanes.map(() => 0);
  const known = new Set<string>();
  const colours = new Map<string, number>();
  schedule.lane.forEach((lane, bar) => {
    if (schedule.ghost[bar]) colours.set(schedule.names[bar]!, schedule.colour[bar]!);
    else { busy[lane] = Math.max(busy[lane]!, schedule.finish[bar]!); known.add(`${schedule.names[bar]} ${schedule.finish[bar]!.toPrecision(6)}`); }
  });
  const more = { ...schedule, names: [...schedule.names], lane: [...schedule.lane], start: [...schedule.start], finish: [...schedule.finish], colour: [...schedule.colour], ghost: [...schedule.ghost], wait: [...schedule.wait], waitKind: [...schedule.waitKind] };
  for (const [name, host, start, finish] of rows) {
    if (known.has(`${name} ${finish.toPrecision(6)}`)) continue;
    const own = lanes.get(host);
    if (own === undefined) return null;
    const lane = own.find((one) => busy[one]! <= start + 1e-6) ?? own[0]!;
    busy[lane] = finish;
    more.names.push(name);
    more.lane.push(lane);
    more.start.push(start);
    more.finish.push(finish);
    more.colour.push(colours.get(name) ?? 0);
    more.ghost.push(0);
    more.wait.push(-1);
    more.waitKind.push("");
    more.end = Math.max(more.end, finish);
  }
  return more;
}

/** Late bars, the latest first. */
export function lateBars(schedule: Schedule): number[] {
  const late = Object.keys(schedule.causes).map(Number);
  return late.sort((a, b) => schedule.causes[b]!.late - schedule.causes[a]!.late || a - b);
}

/** The planned outline of each name; a transfer has none. */
export function ghostsByName(schedule: Schedule): Map<string, number> {
  const found = new Map<string, number>();
  schedule.ghost.forEach((ghost, bar) => {
    if (ghost) found.set(schedule.names[bar]!, bar);
  });
  return found;
}

/** Seconds as the command shows them (headrace.model.units.show_time). */
export function showTime(seconds: number): string {
  const size = Math.abs(seconds);
  if (size >= 36_000) {
    const minutes = Math.round(size / 60);
    return `${seconds < 0 ? "-" : ""}${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  }
  if (size >= 999.5) return `${Math.round(seconds)} s`;
  if (size >= 0.9995 || size === 0) return `${digits(seconds)} s`;
  if (size >= 1e-3) return `${digits(seconds * 1e3)} ms`;
  return `${digits(seconds * 1e6)} µs`;
}

/** A time of an axis that ends at `end`: all of them in one unit. */
export function axisLabel(seconds: number, end: number): string {
  const [unit, name] = end >= 36_000 ? [3600, "h"] : end >= 1 ? [1, "s"] : [1e-3, "ms"];
  return `${Number((seconds / unit).toPrecision(6))} ${name}`;
}

/** Round steps of a time axis in seconds, so that they are round in the unit of `axisLabel` as well. */
export function axisSteps(span: number, end: number, most: number): number {
  const unit = end >= 36_000 ? 3600 : 1;
  return axisStep(span / unit, most) * unit;
}

function digits(value: number): string {
  return String(Number(value.toPrecision(3)));
}

/** Round steps of a time axis: at most `most` of them over a span. */
export function axisStep(span: number, most: number): number {
  const rough = span / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  for (const factor of [1, 2, 5, 10]) if (factor * power >= rough) return factor * power;
  return 10 * power;
}
