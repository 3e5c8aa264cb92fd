import { useEffect, useState } from "react";
import { api } from "./api";
import { text } from "./text";

const PAUSE = 1000;
const MOST = 400_000;

/** What the chosen task of a run has printed, as it comes. */
export function TaskLog({ run, tasks }: { run: string; tasks: string[] }) {
  const [task, setTask] = useState("");
  const [shown, setShown] = useState("");
  const [error, setError] = useState("");
  useEffect(() => {
    setShown("");
    setError("");
    if (task === "" || !tasks.includes(task)) return undefined;
    const seen: Record<string, number> = {};
    let timer = 0;
    let live = true;
    let last = -1;
    const look = (): void => {
      api.log(run, task, seen).then((answer) => {
        if (!live) return;
        let more = "";
        for (const piece of answer.pieces) {
          if (piece.text !== "" && piece.attempt !== last) {
            last = piece.attempt;
            more += `── ${text.run.attempt} ${piece.attempt} ${text.run.on} ${piece.host}\n`;
          }
          more += piece.text;
          seen[String(piece.attempt)] = piece.end;
        }
        if (more !== "") setShown((before) => (before + more).slice(-MOST));
        if (answer.status === "running" || more !== "") timer = window.setTimeout(look, PAUSE);
      }).catch((problem: Error) => { if (live) setError(problem.message); });
    };
    look();
    return () => { live = false; clearTimeout(timer); };
  }, [run, task, tasks.includes(task)]);
  return (
    <section className="log">
      <h2>{text.run.log}</h2>
      <label>{text.run.task} <input value={task} list="logged" onChange={(event) => setTask(event.target.value)} spellCheck={false} /></label>
      <datalist id="logged">{tasks.slice(0, 2000).map((name) => <option key={name} value={name} />)}</datalist>
      {error !== "" && <p className="error" role="alert">{error}</p>}
      {task !== "" && <pre tabIndex={0} role="log" aria-label={text.run.log}>{shown || text.run.printedNothing}</pre>}
    </section>
  );
}
