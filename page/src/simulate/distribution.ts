/** The distribution of makespans: bins of a histogram, and faults as `headrace simulate --faults` takes them. */

export interface Fault { kind: "kill" | "slow" | "join" | "cluster" | "link"; who: string; factor: number; at: string; lasts: string }
export const KINDS: Fault["kind"][] = ["kill", "slow", "join", "cluster", "link"];
export const NEW_FAULT: Fault = { kind: "kill", who: "1", factor: 0.5, at: "30%", lasts: "" };

/** Faults as text. */
export function faultsText(faults: Fault[]): string {
  return faults.map((one) => `${one.kind}=${one.who}${one.kind === "slow" ? `*${one.factor}` : ""}@${one.at}${one.lasts.trim() === "" ? "" : `+${one.lasts.trim()}`}`).join(",");
}

export interface Bin { from: number; to: number; count: number }

/** Equal bins over the makespans; runs that never ended are left out. */
export function binsOf(values: (number | null)[], most = 40): Bin[] {
  const ended = values.filter((one): one is number => one !== null);
  if (ended.length === 0) return [];
  const least = ended.reduce((a, b) => Math.min(a, b));
  const worst = ended.reduce((a, b) => Math.max(a, b));
  if (worst - least <= 1e-12 * worst) return [{ from: least, to: worst, count: ended.length }];
  const count = Math.max(1, Math.min(most, Math.ceil(Math.sqrt(ended.length)) * 2));
  const wide = (worst - least) / count;
  const bins = Array.from({ length: count }, (_, at) => ({ from: least + at * wide, to: least + (at + 1) * wide, count: 0 }));
  for (const one of ended) bins[Math.min(count - 1, Math.floor((one - least) / wide))]!.count++;
  return bins;
}
