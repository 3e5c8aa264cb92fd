import { useEffect, useState } from "react";
import { api, type DeployAnswer, type FileEntry, followStreams, type StreamState } from "../api";
import { Choice, Facts, NumberField } from "../Choice";
import { text } from "../text";
import { Sankey } from "./Sankey";
import { pictureOf, showRate } from "./sankey";

const NONE = "none";
const PLANNED = "planned";

/** Run the application of a pipeline, with measured rates beside the planned ones, and stop it. */
export function StreamPanel({ files, made, app, setApp }: { files: FileEntry[]; made: DeployAnswer | null; app: string; setApp(app: string): void }) {
  const [by, setBy] = useState(made === null ? NONE : PLANNED);
  const [emulate, setEmulate] = useState(false);
  const [slower, setSlower] = useState(1);
  const [speeds, setSpeeds] = useState("");
  const [duration, setDuration] = useState(0);
  const [adapt, setAdapt] = useState(false);
  const [output, setOutput] = useState("results");
  const [stream, setStream] = useState<StreamState | null>(null);
  const [error, setError] = useState("");
  const fail = (problem: Error): void => setError(problem.message);
  useEffect(() => { if (made !== null) setBy(PLANNED); }, [made]);
  useEffect(() => {
    const look = (): void => { api.streams().then(([latest]) => { if (latest) setStream(latest); }).catch(fail); };
    return followStreams(look);
  }, []);
  const running = stream?.status === "running";
  const planned = by === PLANNED && made !== null;
  const start = (): void => {
    setError("");
    api.startStream({
      app, execute: true, duration, output, adapt,
      job: planned ? made.job : 0,
      deployment: by !== NONE && by !== PLANNED ? by : "",
      speeds: planned && emulate ? "" : speeds,
      platform: planned && emulate ? made.request.platform : "",
      pipeline: planned && emulate ? made.request.pipeline : "",
      slower: planned && emulate ? slower : 1,
    }).then(setStream).catch(fail);
  };
  const live = stream?.live ?? null;
  return (
    <section>
      <h2>{text.deploy.run}</h2>
      <form className="choices" onSubmit={(event) => { event.preventDefault(); start(); }}>
        <Choice label={text.deploy.app} value={app} list="apps" set={setApp} placeholder="app.py:app" options={files.filter((file) => file.kind === "program" && /\.(py|toml)$/.test(file.path)).map((file) => (file.path.endsWith(".py") ? `${file.path}:app` : file.path))} />
        <label>{text.deploy.by}
          <select value={by} onChange={(event) => setBy(event.target.value)}>
            {made !== null && <option value={PLANNED}>{text.deploy.asPlanned}</option>}
            <option value={NONE}>{text.deploy.measureFirst}</option>
            {files.filter((file) => file.kind === "deployment").map((file) => <option key={file.path}>{file.path}</option>)}
          </select>
        </label>
        {planned && <label className="check"><input type="checkbox" checked={emulate} onChange={(event) => setEmulate(event.target.checked)} />{text.deploy.emulate}</label>}
        {planned && emulate && <NumberField label={text.deploy.slower} value={slower} set={setSlower} least={0.001} />}
        {!(planned && emulate) && <label>{text.deploy.speeds}<input value={speeds} placeholder="4,2,1" onChange={(event) => setSpeeds(event.target.value)} /></label>}
        <NumberField label={text.deploy.duration} value={duration} set={setDuration} />
        <label>{text.deploy.output}<input value={output} onChange={(event) => setOutput(event.target.value)} spellCheck={false} /></label>
        <label className="check"><input type="checkbox" checked={adapt} onChange={(event) => setAdapt(event.target.checked)} />{text.deploy.adapt}</label>
        <button type="submit" disabled={running || app === ""}>{running ? text.run.running : text.deploy.start}</button>
        {running && <button type="button" onClick={() => { api.stopStream(stream.process).catch(fail); }}>{text.run.stop}</button>}
      </form>
      {app !== "" && <p className="warning">{text.deploy.executes} {app}</p>}
      {error !== "" && <pre className="error" role="alert">{error}</pre>}
      {stream && <p role="status" className="stream-status">{`${stream.app}: ${text.deploy.status[stream.status]}`}{running && live === null ? `; ${text.deploy.starting}` : ""}</p>}
      {stream?.status === "failed" && <pre className="error" role="alert">{stream.said}</pre>}
      {live && (
        <>
          <Facts rows={[
            [text.deploy.rate, showRate(live.rate)], [text.planned, showRate(live.planned)], [text.deploy.units, String(live.units)], [text.deploy.seconds, `${Math.round(live.seconds)} s`],
            ...(stream?.outcome ? [[text.deploy.throughput, showRate(stream.outcome.throughput)], [text.deploy.limit, stream.outcome.limit]] : []),
          ]} />
          <Sankey title={stream!.app} live picture={pictureOf(live.copies, live.flows)} />
        </>
      )}
    </section>
  );
}
