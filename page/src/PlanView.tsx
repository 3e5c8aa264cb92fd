import { useEffect, useState } from "react";
import { api, type FileEntry, followPlans, type PlanAnswer, type PlanProgress, type Scheduler } from "./api";
import { Gantt } from "./Gantt";
import { showTime } from "./gantt/schedule";
import { text } from "./text";

export interface PlanState {
  program: string;
  platform: string;
  scheduler: string;
  made: PlanAnswer[];
}

interface Props {
  state: PlanState;
  change(state: PlanState): void;
  rules: string;
}

/** Choose files and a scheduler, see the plan, and compare it with an earlier one. */
export function PlanView({ state, change, rules }: Props) {
  const [files, setFiles] = useState<FileEntry[]>([]);
  const [schedulers, setSchedulers] = useState<Scheduler[]>([]);
  const [waiting, setWaiting] = useState<number | null>(null);
  const [progress, setProgress] = useState<PlanProgress | null>(null);
  const [error, setError] = useState("");
  const [other, setOther] = useState(-1);
  useEffect(() => {
    Promise.all([api.files(), api.schedulers()])
      .then(([found, known]) => {
        setFiles(found.files);
        setSchedulers(known);
      })
      .catch((problem: Error) => setError(problem.message));
  }, []);
  useEffect(() => {
    if (waiting === null) return undefined;
    const look = (): void => {
      api
        .job(waiting)
        .then((answer) => {
          if (answer.status === "running") return;
          setWaiting(null);
          setProgress(null);
          if (answer.status === "failed") setError(answer.error ?? text.failed);
          else change({ ...state, made: [answer, ...state.made].slice(0, 10) });
        })
        .catch((problem: Error) => setError(problem.message));
    };
    look();
    return followPlans((told) => {
      if (told.job !== waiting) return;
      if (told.status === "running") setProgress(told);
      else look();
    }, look);
  }, [waiting]);
  const isPython = state.program.split(":")[0]!.endsWith(".py");
  const start = (): void => {
    setError("");
    const request = { program: state.program, platform: state.platform, scheduler: state.scheduler, rules, execute: isPython };
    api.plan(request).then((job) => setWaiting(job.job)).catch((problem: Error) => setError(problem.message));
  };
  const [latest] = state.made;
  return (
    <section>
      <form className="choices" onSubmit={(event) => { event.preventDefault(); start(); }}>
        <Choice label={text.plan.program} value={state.program} list="programs" set={(program) => change({ ...state, program })}
          options={files.filter((file) => file.kind === "program").map((file) => [file.path, file.path])} />
        <Choice label={text.plan.platform} value={state.platform} list="platforms" set={(platform) => change({ ...state, platform })}
          options={[["local", "local"], ...files.filter((file) => file.kind === "platform").map((file): [string, string] => [file.path, file.path])]} />
        <label>
          {text.plan.scheduler}
          <select value={state.scheduler} onChange={(event) => change({ ...state, scheduler: event.target.value })}>
            {schedulers.map((one) => <option key={one.name} value={one.name} title={one.line}>{one.name}</option>)}
          </select>
        </label>
        <button type="submit" disabled={waiting !== null || state.program === ""}>
          {waiting === null ? text.plan.make : text.plan.making}
        </button>
      </form>
      {isPython && <p className="warning">{text.plan.executes} {state.program}</p>}
      {progress?.makespan !== undefined && (
        <p role="status">{`${showTime(progress.seconds ?? 0)}: ${showTime(progress.makespan)}, ≥ ${showTime(progress.bound ?? 0)}`}</p>
      )}
      {error !== "" && <p className="error" role="alert">{error}</p>}
      {latest?.schedule && (
        <>
          <Made answer={latest} />
          <label className="compare">
            {text.plan.compare}{" "}
            <select value={other} onChange={(event) => setOther(Number(event.target.value))}>
              <option value={-1}>{text.plan.none}</option>
              {state.made.slice(1).map((one) => (
                <option key={one.job} value={one.job}>
                  {`${one.request.scheduler}: ${showTime(one.makespan ?? 0)} (${one.request.program})`}
                </option>
              ))}
            </select>
          </label>
          {state.made.slice(1).filter((one) => one.job === other).map((one) => <Made key={one.job} answer={one} />)}
        </>
      )}
    </section>
  );
}

function Choice({ label, value, list, options, set }: {
  label: string; value: string; list: string; options: [string, string][]; set(value: string): void;
}) {
  return (
    <label>
      {label}
      <input value={value} list={list} onChange={(event) => set(event.target.value)} spellCheck={false} />
      <datalist id={list}>{options.map(([name]) => <option key={name} value={name} />)}</datalist>
    </label>
  );
}

function Made({ answer }: { answer: PlanAnswer }) {
  return (
    <article>
      <h2>{answer.schedule!.title}</h2>
      <dl className="summary">
        {answer.summary?.map(([name, value], row) => <div key={row}><dt>{name}</dt><dd>{value}</dd></div>)}
      </dl>
      <Gantt schedule={answer.schedule!} />
      {answer.rules && <RuleTable rules={answer.rules} />}
    </article>
  );
}

function RuleTable({ rules }: { rules: NonNullable<PlanAnswer["rules"]> }) {
  return (
    <table>
      <thead><tr>{text.plan.ruleHeaders.map((name) => <th key={name} scope="col">{name}</th>)}</tr></thead>
      <tbody>
        {rules.map((rule) => (
          <tr key={rule.name}>
            <td>{rule.name}</td>
            <td>{rule.line}</td>
            <td>{`${rule.kind} ${rule.importance}`}</td>
            <td>{rule.kept ? text.plan.kept : `${text.plan.missed}: ${rule.first_miss}`}</td>
            <td>{rule.cost === null ? "" : showTime(rule.cost)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
