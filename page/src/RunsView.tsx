import { useEffect, useState } from "react";
import { api, type Comparison, type LoadedRun, type RunRow } from "./api";
import { Gantt } from "./Gantt";
import { showTime } from "./gantt/schedule";
import { Grid, Results, saveAs } from "./Results";
import { tasksOf } from "./RunView";
import { TaskLog } from "./TaskLog";
import { text } from "./text";

/** The runs of the record; an opened one is drawn over its plan, with the causes of late bars. */
export function RunsView() {
  const [runs, setRuns] = useState<RunRow[] | null>(null);
  const [filter, setFilter] = useState("");
  const [opened, setOpened] = useState<LoadedRun | null>(null);
  const [name, setName] = useState("");
  const [comparison, setComparison] = useState<Comparison | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    api.runs().then(setRuns).catch((problem: Error) => setError(problem.message));
  }, []);
  const open = (run: string): void => {
    setError("");
    setName(run);
    setComparison(null);
    api.run(run).then((answer) => setOpened(answer.schedule === null ? null : { ...answer, schedule: answer.schedule })).catch((problem: Error) => { setOpened(null); setError(problem.message); });
  };
  const compare = (other: string): void => {
    setComparison(null);
    if (other === "") return;
    api.compare(name, other).then(setComparison).catch((problem: Error) => setError(problem.message));
  };
  const time = (seconds: number | null): string => (seconds === null ? "" : showTime(seconds));
  const shown = (runs ?? []).filter((run) => matches(run, filter));
  return (
    <section>
      <label>{text.runs.filter} <input value={filter} onChange={(event) => setFilter(event.target.value)} /></label>
      {runs?.length === 0 && <p>{text.runs.none}</p>}
      {shown.length > 0 && (
        <div className="scroll" tabIndex={0} role="region" aria-label={text.runs.title}>
          <table>
            <thead><tr>{text.runs.headers.map((name) => <th key={name} scope="col">{name}</th>)}</tr></thead>
            <tbody>
              {shown.slice(0, 200).map((run) => (
                <tr key={run.id}>
                  <td><button type="button" onClick={() => open(run.id)}>{run.id}</button></td>
                  <td>{run.program}</td>
                  <td>{run.platform}</td>
                  <td>{run.scheduler}</td>
                  <td>{run.status}</td>
                  <td>{run.makespan === null ? "" : showTime(run.makespan)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {error !== "" && <p className="error" role="alert">{error}</p>}
      {opened && (
        <article>
          <h2>{opened.schedule.title}</h2>
          <Gantt schedule={opened.schedule} />
          <div className="choices">
            <label>{text.runs.compare}
              <select value={comparison?.runs[1]?.id ?? ""} onChange={(event) => compare(event.target.value)}>
                <option value="">{text.runs.choose}</option>
                {(runs ?? []).filter((run) => run.id !== name).slice(0, 200).map((run) => <option key={run.id} value={run.id}>{`${run.id} ${run.program} ${run.scheduler}`}</option>)}
              </select>
            </label>
            <button type="button" onClick={() => { api.report(name).then((made) => saveAs(made.name, made.html, "text/html")).catch((problem: Error) => setError(problem.message)); }}>{text.runs.export}</button>
          </div>
          {comparison && (
            <section>
              <h2>{text.runs.comparison}</h2>
              <p>{`${comparison.runs.map((run) => `${run.id}: ${time(run.makespan)}`).join(", ")}; ${comparison.tasks} ${text.runs.tasks}, ${text.runs.onlyFirst}`}</p>
              <div className="scroll" tabIndex={0} role="region" aria-label={text.runs.comparison}>
                <Grid headers={text.runs.compareHeaders} rows={comparison.rows.slice(0, 300).map((row) => [row.task, row.hosts[0], row.hosts[1], time(row.seconds[0] ?? null), time(row.seconds[1] ?? null), row.difference === null ? "" : `${row.difference > 0 ? "+" : ""}${time(row.difference)}`])} />
              </div>
            </section>
          )}
          <Results run={name} />
          <TaskLog run={name} tasks={tasksOf(opened.schedule)} />
          {opened.rules && (
            <table>
              <thead><tr>{opened.rules.headers.map((name) => <th key={name} scope="col">{name}</th>)}</tr></thead>
              <tbody>{opened.rules.rows.map((row, at) => <tr key={at}>{row.map((cell, column) => <td key={column}>{cell}</td>)}</tr>)}</tbody>
            </table>
          )}
        </article>
      )}
    </section>
  );
}

/** Whether every word of a filter occurs in a run. */
export function matches(run: RunRow, filter: string): boolean {
  const content = `${run.id} ${run.program} ${run.platform} ${run.scheduler} ${run.status}`.toLowerCase();
  return filter.toLowerCase().split(/\s+/).every((word) => content.includes(word));
}
