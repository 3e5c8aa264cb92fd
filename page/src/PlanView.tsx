import { useEffect, useMemo, useState } from "react";
import { api, type FileEntry, followPlans, type PlanAnswer, type PlanProgress, type RuleOffer, type Scheduler } from "./api";
import { Choice } from "./Choice";
import { Gantt } from "./Gantt";
import { GapChart } from "./GapChart";
import type { Move } from "./gantt/panel";
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
  setRules(rules: string): void;
}

/** Choose files and a scheduler, see the plan, and compare it with an earlier one. */
export function PlanView({ state, change, rules, setRules }: Props) {
  const [files, setFiles] = useState<FileEntry[]>([]);
  const [schedulers, setSchedulers] = useState<Scheduler[]>([]);
  const [waiting, setWaiting] = useState<number | null>(null);
  const [progress, setProgress] = useState<PlanProgress | null>(null);
  const [history, setHistory] = useState<PlanProgress[]>([]);
  const [error, setError] = useState("");
  const [other, setOther] = useState(-1);
  const [seconds, setSeconds] = useState(30);
  const [offers, setOffers] = useState<RuleOffer[] | null>(null);
  const [taken, setTaken] = useState<{ says: string; before: number } | null>(null);
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
      if (told.status === "running") {
        setProgress(told);
        setHistory((before) => [...before.slice(-2000), told]);
      }
      else look();
    }, look);
  }, [waiting]);
  const isPython = state.program.split(":")[0]!.endsWith(".py");
  const start = (rules_: string = rules): void => {
    setError("");
    setOffers(null);
    setHistory([]);
    const request = { program: state.program, platform: state.platform, scheduler: state.scheduler, rules: rules_, execute: isPython, seconds };
    api.plan(request).then((job) => setWaiting(job.job)).catch((problem: Error) => setError(problem.message));
  };
  const [latest] = state.made;
  const beside = state.made.slice(1).find((one) => one.job === other);
  const end = Math.max(latest?.schedule?.end ?? 0, beside?.schedule?.end ?? 0);
  const move = (task: string, host: string, begin: number): void => {
    setError("");
    api.offers(latest!.job, { task, host, start: begin }, rules)
      .then((answer) => setOffers(answer.offers))
      .catch((problem: Error) => setError(problem.message));
  };
  const take = (offer: RuleOffer): void => {
    setTaken({ says: offer.says, before: latest?.makespan ?? 0 });
    setRules(offer.rules);
    start(offer.rules);
  };
  return (
    <section>
      <form className="choices" onSubmit={(event) => { event.preventDefault(); setTaken(null); start(); }}>
        <Choice label={text.plan.program} value={state.program} list="programs" set={(program) => change({ ...state, program })}
          options={files.filter((file) => file.kind === "program").map((file) => file.path)} />
        <Choice label={text.plan.platform} value={state.platform} list="platforms" set={(platform) => change({ ...state, platform })}
          options={["local", ...files.filter((file) => file.kind === "platform").map((file) => file.path)]} />
        <label>
          {text.plan.scheduler}
          <select value={state.scheduler} onChange={(event) => change({ ...state, scheduler: event.target.value })}>
            {schedulers.map((one) => <option key={one.name} value={one.name} title={one.line}>{one.name}</option>)}
          </select>
        </label>
        {state.scheduler === "best" && (
          <label>{text.plan.seconds}<input type="number" min="1" max="3600" value={seconds} onChange={(event) => setSeconds(Number(event.target.value))} /></label>
        )}
        <button type="submit" disabled={waiting !== null || state.program === ""}>
          {waiting === null ? text.plan.make : text.plan.making}
        </button>
      </form>
      {isPython && <p className="warning">{text.plan.executes} {state.program}</p>}
      {progress?.makespan !== undefined && (
        <div className="gap">
          <p role="status">{gapText(progress)}</p>
          <GapChart history={history} />
          <button type="button" onClick={() => { if (waiting !== null) api.stopPlan(waiting).catch((problem: Error) => setError(problem.message)); }}>{text.plan.enough}</button>
        </div>
      )}
      {error !== "" && <p className="error" role="alert">{error}</p>}
      {latest?.schedule && (
        <>
          {offers !== null && (
            <section className="offers" role="region" aria-label={text.move.title} ref={(shown) => shown?.scrollIntoView({ block: "nearest" })}>
              <h2>{text.move.title}</h2>
              {offers.length === 0 && <p>{text.move.none}</p>}
              {offers.map((offer) => (
                <div key={offer.text}>
                  <b>{offer.says}</b>
                  <pre>{offer.text}</pre>
                  <button type="button" disabled={waiting !== null} onClick={() => take(offer)}>{text.move.take}</button>
                </div>
              ))}
              <button type="button" onClick={() => setOffers(null)}>{text.move.dismiss}</button>
            </section>
          )}
          {taken !== null && waiting === null && error === "" && (
            <p role="status">{`${text.move.result} ${taken.says}: ${difference(latest.makespan ?? 0, taken.before)}`}</p>
          )}
          <div className={beside === undefined ? "" : "pair"}>
            <Made answer={latest} end={end} onMove={move} />
            {beside && <Made key={beside.job} answer={beside} end={end} />}
          </div>
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
        </>
      )}
    </section>
  );
}

/** A plan; charts that are compared have one time axis. */
function Made({ answer, end, onMove }: { answer: PlanAnswer; end: number; onMove?: Move }) {
  const { schedule } = answer;
  const drawn = useMemo(() => (schedule && { ...schedule, end }), [schedule, end]);
  return (
    <article>
      <h2>{answer.schedule!.title}</h2>
      <dl className="summary">
        {answer.summary?.map(([name, value], row) => <div key={row}><dt>{name}</dt><dd>{value}</dd></div>)}
      </dl>
      <Gantt schedule={drawn!} onMove={onMove} />
      {answer.rules && <RuleTable rules={answer.rules} />}
    </article>
  );
}

/** How much longer than the lower bound the plan is, as a share of the bound. */
export function gapOf(progress: PlanProgress): number {
  return progress.bound ? Math.max(0, (progress.makespan ?? 0) / progress.bound - 1) : 1;
}

function gapText(progress: PlanProgress): string {
  return `${showTime(progress.seconds ?? 0)}: ${showTime(progress.makespan ?? 0)}, ≥ ${showTime(progress.bound ?? 0)}, ${text.plan.gap} ${(100 * gapOf(progress)).toFixed(1)} %`;
}

/** What a rule does to the makespan, in words. */
export function difference(now: number, before: number): string {
  const more = now - before;
  if (Math.abs(more) < 1e-9 * Math.max(now, before)) return text.move.same;
  return `${showTime(before)} → ${showTime(now)} (${more > 0 ? text.move.costs : text.move.gains} ${showTime(Math.abs(more))})`;
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
