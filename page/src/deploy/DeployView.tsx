import { useEffect, useState } from "react";
import { api, type DeployAnswer, type FileEntry, followJob } from "../api";
import { Choice, Facts, NumberField } from "../Choice";
import { Grid } from "../Results";
import { text } from "../text";
import { Sankey } from "./Sankey";
import { StreamPanel } from "./StreamPanel";

const PLANNERS = ["lpsched", "trivial", "total"];

export interface DeployState { pipeline: string; platform: string; app: string; made: DeployAnswer | null }

/** Plan the deployment of a pipeline, see its flows on its hosts, and run it. */
export function DeployView({ state, change }: { state: DeployState; change(state: DeployState): void }) {
  const [files, setFiles] = useState<FileEntry[]>([]);
  const [planner, setPlanner] = useState(PLANNERS[0]!);
  const [source, setSource] = useState("");
  const [several, setSeveral] = useState(false);
  const [seconds, setSeconds] = useState(30);
  const [waiting, setWaiting] = useState<number | null>(null);
  const [said, setSaid] = useState("");
  const [file, setFile] = useState("deployment.ini");
  const [message, setMessage] = useState("");
  const [error, setError] = useState("");
  const fail = (problem: Error): void => setError(problem.message);
  const list = (): void => { api.files().then((found) => setFiles(found.files)).catch(fail); };
  useEffect(list, []);
  useEffect(() => {
    if (waiting === null) return undefined;
    return followJob<DeployAnswer>(waiting, setSaid, (answer) => {
      setWaiting(null);
      setSaid("");
      if (answer.status === "done") change({ ...state, made: answer });
      else if (answer.status === "failed") setError(answer.error ?? text.failed);
    }, fail);
  }, [waiting]);
  const start = (): void => {
    setError("");
    setMessage("");
    api.deploy({ pipeline: state.pipeline, platform: state.platform, planner, source, several_per_host: several, seconds })
      .then((job) => setWaiting(job.job)).catch(fail);
  };
  const { made } = state;
  return (
    <section>
      <form className="choices" onSubmit={(event) => { event.preventDefault(); start(); }}>
        <Choice label={text.deploy.pipeline} value={state.pipeline} list="pipelines" set={(pipeline) => change({ ...state, pipeline })}
          options={files.filter((one) => one.kind === "pipeline").map((one) => one.path)} />
        <Choice label={text.plan.platform} value={state.platform} list="deploy-platforms" set={(platform) => change({ ...state, platform })}
          options={["local", ...files.filter((one) => one.kind === "platform").map((one) => one.path)]} />
        <label>{text.deploy.planner}<select value={planner} onChange={(event) => setPlanner(event.target.value)}>{PLANNERS.map((name) => <option key={name}>{name}</option>)}</select></label>
        <label>{text.deploy.source}<input value={source} placeholder={text.deploy.sourceHint} onChange={(event) => setSource(event.target.value)} spellCheck={false} /></label>
        <NumberField label={text.plan.seconds} value={seconds} set={setSeconds} least={1} most={3600} />
        <label className="check"><input type="checkbox" checked={several} onChange={(event) => setSeveral(event.target.checked)} />{text.deploy.several}</label>
        <button type="submit" disabled={waiting !== null || state.pipeline === "" || state.platform === ""}>{waiting === null ? text.deploy.make : text.plan.making}</button>
        {waiting !== null && <button type="button" onClick={() => { api.stopJob(waiting).catch(fail); }}>{text.run.stop}</button>}
      </form>
      {said !== "" && <p role="status">{said}</p>}
      {error !== "" && <p className="error" role="alert">{error}</p>}
      {made && (
        <article>
          <h2>{made.title}</h2>
          <Facts rows={made.summary} />
          <Sankey title={made.title} picture={made.picture} live={false} />
          <div className="scroll" tabIndex={0} role="region" aria-label={text.deploy.filters}><Grid headers={made.filters.headers} rows={made.filters.rows} /></div>
          <form className="choices" onSubmit={(event) => { event.preventDefault(); setError(""); api.saveDeployment(made.job, file).then((saved) => { setMessage(`${text.draw.saved} ${saved.file}`); list(); }).catch(fail); }}>
            <label>{text.draw.file}<input value={file} onChange={(event) => setFile(event.target.value)} spellCheck={false} /></label>
            <button type="submit">{text.draw.save}</button>
            <p role="status">{message}</p>
          </form>
        </article>
      )}
      <StreamPanel files={files} made={made} app={state.app} setApp={(app) => change({ ...state, app })} />
    </section>
  );
}
