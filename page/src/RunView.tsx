import { useEffect, useRef, useState } from "react";
import { api, type FileEntry, followRuns, type LoadedRun, type RunLoad, type Scheduler } from "./api";
import { Gantt } from "./Gantt";
import { appended, type Schedule } from "./gantt/schedule";
import { TaskLog } from "./TaskLog";
import { text } from "./text";
import { Workers } from "./Workers";

const PAUSE = 200;
const WHOLE = 15_000;

/** Start a program, watch it over its plan, and stop it; runs that were started elsewhere are shown too. */
export function RunView({ program, choose }: { program: string; choose(program: string): void }) {
  const [files, setFiles] = useState<FileEntry[]>([]);
  const [schedulers, setSchedulers] = useState<Scheduler[]>([]);
  const [scheduler, setScheduler] = useState("auto");
  const [emulate, setEmulate] = useState(false);
  const [scale, setScale] = useState(1);
  const [run, setRun] = useState<{ id: string; status: string } | null>(null);
  const [shown, setShown] = useState<LoadedRun | null>(null);
  const [process, setProcess] = useState<number | null>(null);
  const [error, setError] = useState("");
  const [loads, setLoads] = useState<RunLoad[]>([]);
  const [executes, setExecutes] = useState<string[]>([]);
  const asked = useRef({ busy: false, again: false, whole: 0, run: "", last: 0, ended: false });
  /** Everything at first, at the end and now and then; in between only what is new. */
  const load = (id: string, ended: boolean): void => {
    const state = asked.current;
    state.ended = ended || (state.run === id && state.ended);
    if (state.busy) {
      state.again = true;
      return;
    }
    state.busy = true;
    state.again = false;
    const isNew = state.run !== id;
    const whole = isNew || state.ended || Date.now() - state.whole > WHOLE;
    if (isNew) Object.assign(state, { run: id, last: 0 });
    const fail = (problem: Error): void => setError(problem.message);
    const everything = async (): Promise<void> => {
      const { last } = await api.since(id, state.last);
      const answer = await api.run(id);
      if (answer.schedule === null) { state.again = true; return; }
      Object.assign(state, { last, whole: Date.now() });
      setShown({ ...answer, schedule: answer.schedule });
    };
    const news = async (): Promise<void> => {
      const { last, rows } = await api.since(id, state.last);
      state.last = last;
      if (rows.length > 0) {
        setShown((before) => {
          const schedule = before === null ? null : appended(before.schedule, rows);
          if (schedule === null || before === null) { state.whole = 0; return before; }
          return { ...before, schedule };
        });
      }
    };
    (whole ? everything() : news()).catch(fail).finally(() => {
      setTimeout(() => {
        state.busy = false;
        if (state.again) load(id, state.ended);
      }, PAUSE);
    });
  };
  useEffect(() => {
    Promise.all([api.files(), api.schedulers()])
      .then(([found, known]) => { setFiles(found.files); setSchedulers(known); })
      .catch((problem: Error) => setError(problem.message));
    return followRuns(
      (told) => { setRun({ id: told.run, status: told.status }); load(told.run, told.status !== "running"); },
      (end) => { setProcess(null); if (end.code !== 0) setError(end.said); },
      (load) => setLoads((before) => [...before.slice(-120), load]),
      () => { api.runs().then(([latest]) => { if (latest) { setRun(latest); asked.current.run = ""; load(latest.id, latest.status !== "running"); } }).catch(() => undefined); },
    );
  }, []);
  useEffect(() => {
    setExecutes([]);
    if (program === "") return undefined;
    const timer = setTimeout(() => { api.executes(program).then((answer) => setExecutes(answer.executes)).catch(() => undefined); }, 300);
    return () => clearTimeout(timer);
  }, [program]);
  const start = (): void => {
    setError("");
    setLoads([]);
    setShown(null);
    setRun(null);
    api.start({ program, scheduler, execute: true, emulate, time_scale: scale })
      .then((begun) => setProcess(begun.process))
      .catch((problem: Error) => setError(problem.message));
  };
  return (
    <section>
      <form className="choices" onSubmit={(event) => { event.preventDefault(); start(); }}>
        <label>{text.plan.program}
          <input value={program} list="runnable" onChange={(event) => choose(event.target.value)} spellCheck={false} />
          <datalist id="runnable">{files.filter((file) => file.kind === "program").map((file) => <option key={file.path} value={file.path} />)}</datalist>
        </label>
        <label>{text.plan.scheduler}
          <select value={scheduler} onChange={(event) => setScheduler(event.target.value)}>
            {schedulers.map((one) => <option key={one.name} value={one.name} title={one.line}>{one.name}</option>)}
          </select>
        </label>
        <label className="check"><input type="checkbox" checked={emulate} onChange={(event) => setEmulate(event.target.checked)} />{text.run.emulate}</label>
        {emulate && <label>{text.run.scale}<input type="number" min="0.0001" step="any" value={scale} onChange={(event) => setScale(Number(event.target.value))} /></label>}
        <button type="submit" disabled={program === "" || process !== null}>{process === null ? text.run.start : text.run.running}</button>
        {run?.status === "running" && (
          <button type="button" onClick={() => { api.stop(run.id).catch((problem: Error) => setError(problem.message)); }}>{text.run.stop}</button>
        )}
      </form>
      {program !== "" && <p className="warning">{emulate ? text.run.emulates : text.run.executes} {program}</p>}
      {!emulate && executes.length > 0 && (
        <details><summary>{text.run.willExecute} {executes.length}</summary><ul>{executes.map((one) => <li key={one}><code>{one}</code></li>)}</ul></details>
      )}
      {error !== "" && <pre className="error" role="alert">{error}</pre>}
      {run && <p role="status">{`${run.id}: ${run.status}`}</p>}
      {process !== null && <Workers loads={loads} />}
      {shown && <article><h2>{shown.schedule.title}</h2><Gantt schedule={shown.schedule} /></article>}
      {run && shown && <TaskLog run={run.id} tasks={tasksOf(shown.schedule)} />}
    </section>
  );
}

/** Names of tasks, planned or executed, without transfers. */
export function tasksOf(schedule: Schedule): string[] {
  return [...new Set(schedule.names.filter((_, bar) => !schedule.lanes[schedule.lane[bar]!]![1]))];
}
