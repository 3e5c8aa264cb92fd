import { ReactFlowProvider } from "@xyflow/react";
import { type Dispatch, type SetStateAction, useCallback, useEffect, useMemo, useState } from "react";
import { api, type DrawingAnswer, type FileEntry } from "../api";
import { text } from "../text";
import { Canvas } from "./Canvas";
import { heightOf } from "./derive";
import { Form } from "./Form";
import { laidOut, taskId } from "./layout";
import { Library, type LibraryEntry } from "./Library";
import { addCommand, addFunction, addInput, addResult, changed, complete, type Change, type Drawing, EMPTY, type FunctionSource, type History, isPipeline, type Known, redone, undone } from "./model";
import { Overview } from "./Overview";

export interface DrawState { file: string; version: string; history: History; saved: Drawing; places: string[]; structure: string }
export const NEW: DrawState = { file: "program.toml", version: "", history: { past: [], now: EMPTY, future: [] }, saved: EMPTY, places: [], structure: "" };
const PAUSE = 400;

/** Draw a program, see its file and its Python beside it, save it. Programs in other formats are shown by levels. */
export function DrawView({ state, change, use }: { state: DrawState; change: Dispatch<SetStateAction<DrawState>>; use(file: string, view: "plan" | "run" | "deploy"): void }) {
  const drawing = state.history.now;
  const [files, setFiles] = useState<FileEntry[]>([]);
  const [entries, setEntries] = useState<LibraryEntry[]>([]);
  const [described, setDescribed] = useState<DrawingAnswer | null>(null);
  const [named, setNamed] = useState<FunctionSource[]>([]);
  const [selected, setSelected] = useState<string[]>([]);
  const [search, setSearch] = useState("");
  const [message, setMessage] = useState("");
  const [shown, setShown] = useState<"python" | "file">("python");
  const known = useMemo((): Known => ({
    functions: new Map([...named, ...entries.flatMap((entry) => [...entry.functions, ...entry.filters])].map((one) => [one.reference, one])),
    classes: new Map(entries.flatMap((entry) => entry.classes.map((one): [string, string[]] => [one.name, one.bases]))),
  }), [entries, named]);
  const fail = (problem: Error): void => setMessage(problem.message);
  const look = (): void => { api.files().then((found) => setFiles(found.files)).catch(fail); };
  useEffect(look, []);
  useEffect(() => { api.library(state.places).then(setEntries).catch(fail); }, [state.places]);
  useEffect(() => {
    if (state.structure !== "") return undefined;
    const timer = setTimeout(() => {
      api.checkDrawing(complete(drawing), state.file).then((answer) => { setDescribed(answer); setNamed(answer.functions); }).catch(fail);
    }, PAUSE);
    return () => clearTimeout(timer);
  }, [drawing, state.file, state.structure]);
  const apply = useCallback((made: Change): void => {
    if ("reason" in made) { setMessage(made.reason); return; }
    setMessage("");
    change((before) => ({ ...before, history: changed(before.history, made.drawing) }));
  }, [change]);
  const step = (by: (history: History) => History): void => change((before) => ({ ...before, history: by(before.history) }));
  const add = (what: string, at: [number, number] | null): void => {
    const spot = at ?? freeSpot(drawing);
    const source = known.functions.get(what);
    if (source !== undefined) {
      const [now, name] = addFunction(drawing, source, spot);
      apply({ drawing: now });
      setSelected([taskId(name)]);
    } else if (what === "command") {
      const [now, name] = addCommand(drawing, spot);
      apply({ drawing: now });
      setSelected([taskId(name)]);
    } else if (what === "result") {
      apply({ drawing: addResult(drawing, "", spot) });
      setSelected([`result:${drawing.results.length}`]);
    } else {
      const [now, name] = addInput(drawing, what === "file", spot);
      apply({ drawing: now });
      setSelected([`input:${name}`]);
    }
  };
  const open = (file: string): void => {
    setMessage("");
    setSelected([]);
    if (!file.endsWith(".toml")) { change({ ...state, structure: file }); return; }
    api.openDrawing(file).then((answer) => {
      const bare = [...answer.drawing.inputs, ...answer.drawing.tasks, ...answer.drawing.results].some((one) => one.at === null);
      const functions = new Map(answer.functions.map((one) => [one.reference, one]));
      const now = bare ? laidOut(answer.drawing, heightOf(answer.drawing, functions)) : answer.drawing;
      setNamed(answer.functions);
      const places = [...new Set([...state.places, ...answer.functions.map((one) => one.reference.slice(0, one.reference.lastIndexOf(":")))])];
      change({ file, version: answer.version, history: { past: [], now, future: [] }, saved: now, places, structure: "" });
    }).catch(fail);
  };
  const save = async (): Promise<boolean> => {
    try {
      const answer = await api.saveDrawing(complete(drawing), state.file, state.version);
      change((before) => ({ ...before, version: answer.version, saved: drawing }));
      setMessage(`${text.draw.saved} ${state.file}`);
      look();
      return true;
    } catch (problem) {
      fail(problem as Error);
      return false;
    }
  };
  const group = (): void => {
    const names = new Set(selected.filter((id) => id.startsWith("task:")).map((id) => id.slice(5)));
    if (names.size === 0) { setMessage(text.draw.selectToGroup); return; }
    const used = new Set(drawing.tasks.map((task) => task.group));
    let number = 1;
    while (used.has(`group ${number}`)) number++;
    const inside = drawing.tasks.filter((task) => names.has(task.name)).every((task) => task.group !== "");
    apply({ drawing: { ...drawing, tasks: drawing.tasks.map((task) => (names.has(task.name) ? { ...task, group: inside ? "" : `group ${number}` } : task)) } });
  };
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (!(event.ctrlKey || event.metaKey)) return;
      const editing = event.target instanceof HTMLElement && event.target.matches("input, textarea, select");
      const key = event.key.toLowerCase();
      if (key === "s") { event.preventDefault(); void save(); }
      else if (editing) return;
      else if (key === "z") { event.preventDefault(); step(event.shiftKey ? redone : undone); }
      else if (key === "y") { event.preventDefault(); step(redone); }
      else if (key === "g") { event.preventDefault(); group(); }
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  });
  const select = useCallback((ids: string[]): void => setSelected((before) => (before.length === ids.length && ids.every((id) => before.includes(id)) ? before : ids)), []);
  const toolbar = (
    <div className="toolbar">
      <label>{text.draw.open}
        <select value="" onChange={(event) => open(event.target.value)}>
          <option value="">…</option>
          {files.filter((file) => file.kind === "program" && !file.path.endsWith(".py")).map((file) => <option key={file.path}>{file.path}</option>)}
        </select>
      </label>
      <button type="button" onClick={() => { change({ ...NEW, places: state.places }); setSelected([]); }}>{text.draw.new}</button>
    </div>
  );
  if (state.structure !== "") return <section className="draw">{toolbar}<Overview program={state.structure} /></section>;
  const unsaved = drawing !== state.saved;
  const pipeline = isPipeline(drawing, known.functions);
  return (
    <section className="draw">
      {toolbar}
      <div className="toolbar">
        <label>{text.draw.file} <input value={state.file} spellCheck={false} onChange={(event) => change({ ...state, file: event.target.value, version: "" })} /></label>
        <label>{text.draw.program} <input value={drawing.name} onChange={(event) => apply({ drawing: { ...drawing, name: event.target.value } })} /></label>
        <button type="button" onClick={() => void save()}>{`${text.draw.save}${unsaved ? " *" : ""}`}</button>
        <button type="button" disabled={state.history.past.length === 0} onClick={() => step(undone)}>{text.draw.undo}</button>
        <button type="button" disabled={state.history.future.length === 0} onClick={() => step(redone)}>{text.draw.redo}</button>
        <button type="button" onClick={() => apply({ drawing: laidOut(drawing, heightOf(drawing, known.functions)) })}>{text.draw.arrange}</button>
        <button type="button" onClick={group}>{text.draw.groupSelected}</button>
        {!pipeline && <button type="button" onClick={() => { void save().then((good) => { if (good) use(state.file, "plan"); }); }}>{text.draw.plan}</button>}
        <button type="button" onClick={() => { void save().then((good) => { if (good) use(state.file, pipeline ? "deploy" : "run"); }); }}>{text.draw.run}</button>
        <label>{text.draw.find} <input type="search" value={search} onChange={(event) => setSearch(event.target.value)} /></label>
      </div>
      <p className="message" role="status">{message}</p>
      <div className="drawing">
        <Library entries={entries} offered={files.map((file) => file.path).filter((path) => path.endsWith(".py"))} add={(what) => add(what, null)}
          name={(place) => change({ ...state, places: [...new Set([...state.places, place])] })}
          forget={(place) => change({ ...state, places: state.places.filter((one) => one !== place) })} />
        <div className="canvas">
          <ReactFlowProvider>
            <Canvas key={state.version === "" ? "new" : state.file} drawing={drawing} known={known} search={search} apply={apply} add={add} selected={selected} select={select} />
          </ReactFlowProvider>
        </div>
        <aside className="properties" aria-label={text.draw.properties}>
          {selected.length === 1 ? <Form drawing={drawing} known={known} selected={selected[0]!} apply={apply} rename={(_, to) => setSelected([to])} /> : <p className="hint">{text.draw.nothingSelected}</p>}
          {described && described.problems.length > 0 && (
            <>
              <h3>{text.draw.problems}</h3>
              <ul>{described.problems.map((one) => <li key={one.task + one.problem}><button type="button" className="bar" onClick={() => setSelected([taskId(one.task)])}>{one.task}</button> {one.problem}</li>)}</ul>
            </>
          )}
        </aside>
      </div>
      {described && (
        <details open className="source">
          <summary>{text.draw.source}</summary>
          <div className="toolbar">
            {(["python", "file"] as const).map((one) => <button key={one} type="button" aria-pressed={shown === one} onClick={() => setShown(one)}>{text.draw.sources[one]}</button>)}
            <button type="button" onClick={() => { navigator.clipboard.writeText(described[shown]).then(() => setMessage(text.draw.copied), fail); }}>{text.draw.copy}</button>
          </div>
          <pre tabIndex={0} aria-label={text.draw.sources[shown]}>{described[shown]}</pre>
        </details>
      )}
    </section>
  );
}

/** A place to the right of what is there. */
function freeSpot(drawing: Drawing): [number, number] {
  const all = [...drawing.inputs, ...drawing.tasks, ...drawing.results];
  const last = all[all.length - 1]?.at;
  if (!last) return [0, 0];
  return all.length % 4 === 0 ? [Math.max(...all.map((one) => one.at?.[0] ?? 0)) + 280, 0] : [last[0], last[1] + 170];
}
