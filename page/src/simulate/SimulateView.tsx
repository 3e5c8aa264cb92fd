import { useEffect, useState } from "react";
import { api, type FileEntry, followJob, type Scheduler, type SimulateAnswer } from "../api";
import { Choice, Facts, NumberField } from "../Choice";
import { text } from "../text";
import { type Fault, faultsText, KINDS, NEW_FAULT } from "./distribution";
import { Histogram } from "./Histogram";

export interface SimulateState { platform: string; scheduler: string; runs: number; seed: number; error: number; estimates: string; faults: Fault[]; made: SimulateAnswer | null }
export const FRESH: SimulateState = { platform: "local", scheduler: "auto", runs: 100, seed: 0, error: 0.2, estimates: "user", faults: [], made: null };

/** Simulate a program many times, with wrong estimates and faults, and see how long it takes. */
export function SimulateView({ program, choose, state, change }: { program: string; choose(program: string): void; state: SimulateState; change(state: SimulateState): void }) {
  const [files, setFiles] = useState<FileEntry[]>([]);
  const [schedulers, setSchedulers] = useState<Scheduler[]>([]);
  const [hosts, setHosts] = useState<string[]>([]);
  const [waiting, setWaiting] = useState<number | null>(null);
  const [said, setSaid] = useState("");
  const [error, setError] = useState("");
  const fail = (problem: Error): void => setError(problem.message);
  useEffect(() => {
    Promise.all([api.files(), api.schedulers()]).then(([found, known]) => { setFiles(found.files); setSchedulers(known); }).catch(fail);
  }, []);
  const platforms = files.filter((one) => one.kind === "platform").map((one) => one.path);
  const known = state.platform === "local" || platforms.includes(state.platform);
  useEffect(() => {
    setHosts([]);
    if (known) api.hosts(state.platform).then((found) => setHosts([...found.hosts, ...found.sites])).catch(() => undefined);
  }, [state.platform, known]);
  useEffect(() => {
    if (waiting === null) return undefined;
    return followJob<SimulateAnswer>(waiting, setSaid, (answer) => {
      setWaiting(null);
      setSaid("");
      if (answer.status === "done") change({ ...state, made: answer });
      else if (answer.status === "failed") setError(answer.error ?? text.failed);
    }, fail);
  }, [waiting]);
  const isPython = program.split(":")[0]!.endsWith(".py");
  const start = (): void => {
    setError("");
    api.simulate({ program, platform: state.platform, scheduler: state.scheduler, runs: state.runs, seed: state.seed, error: state.error, estimates: state.estimates, faults: faultsText(state.faults), execute: isPython })
      .then((job) => setWaiting(job.job)).catch(fail);
  };
  const edit = (at: number, fault: Partial<Fault>): void => change({ ...state, faults: state.faults.map((one, row) => (row === at ? { ...one, ...fault } : one)) });
  return (
    <section>
      <form className="choices" onSubmit={(event) => { event.preventDefault(); start(); }}>
        <Choice label={text.plan.program} value={program} list="simulated" set={choose} options={files.filter((one) => one.kind === "program").map((one) => one.path)} />
        <Choice label={text.plan.platform} value={state.platform} list="simulated-platforms" set={(platform) => change({ ...state, platform })} options={["local", ...platforms]} />
        <label>{text.plan.scheduler}
          <select value={state.scheduler} onChange={(event) => change({ ...state, scheduler: event.target.value })}>
            {schedulers.map((one) => <option key={one.name} value={one.name} title={one.line}>{one.name}</option>)}
          </select>
        </label>
        <NumberField label={text.simulate.runs} value={state.runs} set={(runs) => change({ ...state, runs })} least={1} most={10000} step="1" />
        <NumberField label={text.simulate.seed} value={state.seed} set={(seed) => change({ ...state, seed })} step="1" />
        <NumberField label={text.simulate.error} value={state.error} set={(wrong) => change({ ...state, error: wrong })} most={0.99} />
        <Choice label={text.simulate.estimates} value={state.estimates} list="estimates" set={(estimates) => change({ ...state, estimates })} options={["user", "history", "perfect", "bounded:0.3", "sampled", "forecast", "history+sampled", "history+forecast"]} />
        <fieldset className="faults">
          <legend>{text.simulate.faults}</legend>
          {state.faults.map((fault, at) => (
            <div key={at} className="fault" role="group" aria-label={`${text.simulate.fault} ${at + 1}`}>
              <label>{text.simulate.kind}<select value={fault.kind} onChange={(event) => edit(at, { kind: event.target.value as Fault["kind"] })}>{KINDS.map((kind) => <option key={kind} value={kind}>{text.simulate.kinds[kind]}</option>)}</select></label>
              <label>{text.simulate.who}<input value={fault.who} list="hosts" onChange={(event) => edit(at, { who: event.target.value })} /></label>
              {fault.kind === "slow" && <NumberField label={text.simulate.factor} value={fault.factor} set={(factor) => edit(at, { factor })} most={1} />}
              <label>{text.simulate.at}<input value={fault.at} onChange={(event) => edit(at, { at: event.target.value })} /></label>
              <label>{text.simulate.lasts}<input value={fault.lasts} placeholder={text.simulate.forever} onChange={(event) => edit(at, { lasts: event.target.value })} /></label>
              <button type="button" onClick={() => change({ ...state, faults: state.faults.filter((_, row) => row !== at) })}>{text.simulate.remove}</button>
            </div>
          ))}
          <datalist id="hosts">{hosts.map((name) => <option key={name} value={name} />)}</datalist>
          <button type="button" onClick={() => change({ ...state, faults: [...state.faults, NEW_FAULT] })}>{text.simulate.add}</button>
        </fieldset>
        <button type="submit" disabled={waiting !== null || program === ""}>{waiting === null ? text.simulate.start : text.simulate.running}</button>
        {waiting !== null && <button type="button" onClick={() => { api.stopJob(waiting).catch(fail); }}>{text.run.stop}</button>}
      </form>
      {isPython && <p className="warning">{text.plan.executes} {program}</p>}
      {said !== "" && <p role="status">{said}</p>}
      {error !== "" && <p className="error" role="alert">{error}</p>}
      {state.made && (
        <article>
          <h2>{state.made.title}</h2>
          <Facts rows={state.made.summary} />
          <Histogram answer={state.made} />
          <p>{text.simulate.same} <code>{state.made.command}</code></p>
        </article>
      )}
    </section>
  );
}
