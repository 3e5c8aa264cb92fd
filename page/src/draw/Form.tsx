import { useEffect, useState } from "react";
import { text } from "../text";
import { type Change, connect, disconnect, type Drawing, type DrawnTask, items, type Known, ports, refusal, renameItem, renameTask, setValue, withTask } from "./model";

interface Props { drawing: Drawing; known: Known; selected: string; apply(change: Change): void; rename(from: string, to: string): void }

/** The form of the selected node. */
export function Form({ drawing, known, selected, apply, rename }: Props) {
  const colon = selected.indexOf(":");
  const [kind, name] = [selected.slice(0, colon), selected.slice(colon + 1)];
  const task = kind === "task" ? drawing.tasks.find((one) => one.name === name) : undefined;
  const input = kind === "input" ? drawing.inputs.find((one) => one.name === name) : undefined;
  const result = kind === "result" ? drawing.results[Number(name)] : undefined;
  const renamed = (change: Change, to: string): void => { apply(change); if ("drawing" in change) rename(selected, `${kind}:${to}`); };
  if (task !== undefined) {
    return <TaskForm key={selected} drawing={drawing} known={known} task={task} apply={apply} renamed={(to) => renamed(renameTask(drawing, task.name, to), to)} />;
  }
  if (input !== undefined) {
    const set = (change: Partial<typeof input>): void => apply({ drawing: { ...drawing, inputs: drawing.inputs.map((one) => (one.name === name ? { ...one, ...change } : one)) } });
    return (
      <div className="form" key={selected}>
        <h3>{text.draw.input}</h3>
        <Field label={text.draw.name} value={input.name} set={(to) => renamed(renameItem(drawing, input.name, to), to)} />
        {input.path !== null
          ? <Field label={text.draw.path} value={input.path} set={(path) => set({ path })} />
          : <Field label={text.draw.value} value={input.value ?? ""} set={(value) => set({ value: value === "" ? null : value })} />}
        <Field label={text.draw.size} value={input.size ?? ""} set={(size) => set({ size: size === "" ? null : size })} />
      </div>
    );
  }
  if (result !== undefined) {
    const set = (change: Partial<typeof result>): void => apply({ drawing: { ...drawing, results: drawing.results.map((one) => (one === result ? { ...one, ...change } : one)) } });
    const taken = new Set(drawing.results.filter((one) => one !== result).map((one) => one.item));
    return (
      <div className="form" key={selected}>
        <h3>{text.draw.result}</h3>
        <label>{text.draw.item}
          <select value={result.item} onChange={(event) => set({ item: event.target.value })}>
            <option value="">{text.draw.notConnected}</option>
            {items(drawing).filter((one) => !taken.has(one)).map((one) => <option key={one}>{one}</option>)}
          </select>
        </label>
        <Field label={text.draw.resultPath} value={result.path ?? ""} set={(path) => set({ path: path === "" ? null : path })} />
      </div>
    );
  }
  return <p className="hint">{text.draw.nothingSelected}</p>;
}

function TaskForm({ drawing, known, task, apply, renamed }: { drawing: Drawing; known: Known; task: DrawnTask; apply(change: Change): void; renamed(to: string): void }) {
  const set = (change: Partial<DrawnTask>): void => apply({ drawing: withTask(drawing, task.name, change) });
  const source = known.functions.get(task.function);
  const output = (at: number, to: string): void => {
    const from = task.outputs[at]![0];
    if (to === "") apply({ drawing: withTask(drawing, task.name, { outputs: task.outputs.filter((_, index) => index !== at), stdout: task.stdout === from ? null : task.stdout }) });
    else apply(renameItem(drawing, from, to));
  };
  const taken = items(drawing);
  let next = `${task.name}_out`;
  for (let i = 2; taken.includes(next); i++) next = `${task.name}_out${i}`;
  return (
    <div className="form">
      <h3>{task.function || text.draw.builtIn.command}</h3>
      {source?.doc && <p className="doc">{source.doc}</p>}
      <Field label={text.draw.name} value={task.name} set={renamed} />
      {task.command.length > 0 && (
        <>
          <Lines label={text.draw.arguments} value={task.command} set={(command) => { if (command.length > 0 && command[0] !== "") set({ command }); }} />
          <label>{text.draw.stdout}
            <select value={task.stdout ?? ""} onChange={(event) => set({ stdout: event.target.value || null })}>
              <option value="">{text.draw.noStdout}</option>
              {task.outputs.map(([name]) => <option key={name}>{name}</option>)}
            </select>
          </label>
        </>
      )}
      <fieldset>
        <legend>{task.command.length > 0 ? text.draw.inputs : text.draw.parameters}</legend>
        {ports(task, known.functions).map((port) => (
          <Parameter key={port.name} drawing={drawing} known={known} task={task} port={port} apply={apply} />
        ))}
      </fieldset>
      <fieldset>
        <legend>{text.draw.outputs}</legend>
        {task.outputs.map(([name], at) => <Field key={name} label={`${text.draw.output} ${at + 1}`} value={name} set={(to) => output(at, to)} />)}
        <button type="button" onClick={() => set({ outputs: [...task.outputs, [next, null]] })}>{text.draw.addOutput}</button>
      </fieldset>
      <Field label={text.draw.work} value={task.work} set={(work) => set({ work: work || "1" })} />
      <Field label={text.draw.cores} value={String(task.cores)} set={(cores) => { if (/^[1-9]\d{0,3}$/.test(cores)) set({ cores: Number(cores) }); }} />
      <Field label={text.draw.group} value={task.group} set={(group) => set({ group })} />
    </div>
  );
}

function Parameter({ drawing, known, task, port, apply }: { drawing: Drawing; known: Known; task: DrawnTask; port: ReturnType<typeof ports>[number]; apply(change: Change): void }) {
  const source = known.functions.get(task.function)?.parameters.find((one) => one.name === port.name);
  const given = task.inputs.filter(([name]) => name === port.name).map(([, item]) => item);
  const fitting = items(drawing).filter((item) => given.includes(item) || refusal(drawing, item, task.name, port.name, known) === null);
  const label = `${port.name || text.draw.inputs}${port.annotation ? `: ${port.annotation}` : ""}`;
  const choose = (item: string): void => apply(item === "" ? { drawing: given.reduce((now, one) => disconnect(now, one, task.name, port.name), drawing) } : connect(drawing, item, task.name, port.name, known));
  return (
    <div className="parameter">
      <label>{label}
        <select value={port.several ? "" : given[0] ?? ""} onChange={(event) => choose(event.target.value)}>
          <option value="">{port.several ? text.draw.connectMore : text.draw.notConnected}</option>
          {fitting.filter((item) => !port.several || !given.includes(item)).map((item) => <option key={item}>{item}</option>)}
        </select>
      </label>
      {port.several && given.map((item) => (
        <span key={item} className="chip">{item} <button type="button" aria-label={`${text.draw.disconnect} ${item}`} onClick={() => apply({ drawing: disconnect(drawing, item, task.name, port.name) })}>×</button></span>
      ))}
      {port.name !== "" && !port.several && given.length === 0 && (
        <ValueField annotation={port.annotation} placeholder={source?.default ?? ""} label={`${text.draw.value} ${port.name}`} value={port.value}
          set={(value) => apply({ drawing: setValue(drawing, task.name, port.name, value) })} />
      )}
    </div>
  );
}

/** A value as a Python literal; texts are written without quotes. */
function ValueField({ annotation, placeholder, label, value, set }: { annotation: string; placeholder: string; label: string; value: string | null; set(value: string | null): void }) {
  if (annotation === "bool") {
    return (
      <select aria-label={label} value={value ?? ""} onChange={(event) => set(event.target.value || null)}>
        <option value="">{placeholder}</option><option>True</option><option>False</option>
      </select>
    );
  }
  const isText = annotation === "str";
  const shown = value === null ? "" : isText ? unquoted(value) : value;
  return <Field label="" name={label} placeholder={placeholder} value={shown} set={(now) => set(now === "" ? null : isText ? JSON.stringify(now) : now)} />;
}

/** The text of a quoted literal, as far as it is plain. */
export function unquoted(literal: string): string {
  if (/^"([^"\\]|\\.)*"$/s.test(literal)) {
    try {
      return JSON.parse(literal) as string;
    } catch {
      return literal;
    }
  }
  const plain = /^'([^'\\]*)'$/s.exec(literal);
  return plain === null ? literal : plain[1]!;
}

/** A field that is applied when it is left or Enter is pressed, so that each change can be undone at once. */
function Field({ label, name, value, placeholder, set }: { label: string; name?: string; value: string; placeholder?: string; set(value: string): void }) {
  const [now, setNow] = useState(value);
  useEffect(() => setNow(value), [value]);
  const done = (): void => { if (now !== value) { set(now); setNow(value); } };
  return (
    <label>{label}
      <input aria-label={name} value={now} placeholder={placeholder} spellCheck={false} onChange={(event) => setNow(event.target.value)} onBlur={done}
        onKeyDown={(event) => { if (event.key === "Enter") done(); }} />
    </label>
  );
}

function Lines({ label, value, set }: { label: string; value: string[]; set(value: string[]): void }) {
  const [now, setNow] = useState(value.join("\n"));
  useEffect(() => setNow(value.join("\n")), [value]);
  return (
    <label>{label}
      <textarea rows={Math.max(2, value.length + 1)} value={now} spellCheck={false} onChange={(event) => setNow(event.target.value)} onBlur={() => set(now.split("\n").filter((line, at) => at === 0 || line !== ""))} />
    </label>
  );
}
