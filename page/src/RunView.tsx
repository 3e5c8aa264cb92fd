import { useEffect, useRef, useState } from "react";
import { api, type FileEntry, followRuns, type RunAnswer, type Scheduler } from "./api";
import { Gantt } from "./Gantt";
import { text } from "./text";

const PAUSE = 700;

/** Start a program, watch it over its plan, and stop it; runs that were started elsewhere are shown too. */
export function RunView({ program, choose }: { program: string; choose(program: string): void }) {
  const [files, setFiles] = useState<FileEntry[]>([]);
  const [schedulers, setSchedulers] = useState<Scheduler[]>([]);
  const [scheduler, setScheduler] = useState("auto");
  const [emulate, setEmulate] = useState(false);
  const [scale, setScale] = useState(1);
  const [run, setRun] = useState<{ id: string; status: string } | null>(null);
  const [shown, setShown] = useState<RunAnswer | null>(null);
  const [process, setProcess] = useState<number | null>(null);
  const [error, setError] = useState("");
  const asked = useRef({ busy: false, again: false });
  const load = (id: string): void => {
    if (asked.current.busy) {
      asked.current.again = true;
      return;
    }
    asked.current = { busy: true, again: false };
    api.run(id).then(setShown).catch((problem: Error) => setError(problem.message)).finally(() => {
      setTimeout(() => {
        const { again } = asked.current;
        asked.current.busy = false;
        if (again) load(id);
      }, PAUSE);
    });
  };
  useEffect(() => {
    Promise.all([api.files(), api.schedulers()])
      .then(([found, known]) => { setFiles(found.files); setSchedulers(known); })
      .catch((problem: Error) => setError(problem.message));
    return followRuns(
      (told) => { setRun({ id: told.run, status: told.status }); load(told.run); },
      (end) => { setProcess(null); if (end.code !== 0) setError(end.said); },
      () => { api.runs().then(([latest]) => { if (latest) { setRun(latest); load(latest.id); } }).catch(() => undefined); },
    );
  }, []);
  const start = (): void => {
    setError("");
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
      {error !== "" && <pre className="error" role="alert">{error}</pre>}
      {run && <p role="status">{`${run.id}: ${run.status}`}</p>}
      {shown && <article><h2>{shown.schedule.title}</h2><Gantt schedule={shown.schedule} /></article>}
    </section>
  );
}
