import type { RunLoad } from "./api";
import { text } from "./text";

const KEPT = 60;

/** CPU and memory of each worker, now and over the last minute; who joined and left. */
export function Workers({ loads }: { loads: RunLoad[] }) {
  const now = loads[loads.length - 1];
  if (now === undefined) return null;
  const changes = loads.flatMap((load) => load.changes).slice(-8);
  return (
    <section className="workers">
      <h2>{text.run.workers}</h2>
      <table>
        <thead><tr>{text.run.workerHeaders.map((name) => <th key={name} scope="col">{name}</th>)}</tr></thead>
        <tbody>
          {now.workers.map((one) => (
            <tr key={one.worker}>
              <td>{one.worker}</td>
              <td>{`${Math.round(100 * one.cpu)} %`}</td>
              <td>{showSize(one.memory)}</td>
              <td><Line values={loads.slice(-KEPT).map((load) => load.workers.find((other) => other.worker === one.worker)?.cpu ?? 0)} /></td>
            </tr>
          ))}
        </tbody>
      </table>
      <p role="log">{changes.join(", ")}</p>
    </section>
  );
}

function Line({ values }: { values: number[] }) {
  const most = Math.max(1, ...values);
  const points = values.map((value, at) => `${(at * 180) / (KEPT - 1)},${22 - (20 * value) / most}`).join(" ");
  return <svg viewBox="0 0 180 24" width="180" height="24" aria-hidden="true"><polyline points={points} fill="none" stroke="currentColor" strokeWidth="1.5" /></svg>;
}

/** Bytes as people read them. */
export function showSize(bytes: number): string {
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]] as const) if (bytes >= size) return `${Number((bytes / size).toPrecision(3))} ${unit}`;
  return `${bytes} B`;
}
