/** A drawn program and what can be done to it: plain values, and functions that return a changed copy. */

import { clash, type Classes } from "./annotations";

export type Place = [number, number];
export interface DrawnInput { name: string; path: string | null; value: string | null; size: string | null; at: Place | null }
export interface DrawnTask {
  name: string;
  function: string;
  command: string[];
  inputs: [string, string][];
  set: [string, string][];
  outputs: [string, string | null][];
  stdout: string | null;
  work: string;
  cores: number;
  after: string[];
  group: string;
  at: Place | null;
}
export interface DrawnResult { item: string; path: string | null; at: Place | null }
export interface Drawing { name: string; inputs: DrawnInput[]; tasks: DrawnTask[]; results: DrawnResult[] }

export type ParameterKind = "positional" | "several" | "keyword" | "keywords";
export interface Parameter { name: string; annotation: string; default: string | null; kind: ParameterKind }
export interface FunctionSource {
  reference: string;
  name: string;
  parameters: Parameter[];
  returns: string;
  doc: string;
  line: number;
  executable: string;
  /** Whether it is a class of filters. */
  filter?: boolean;
}
export type Functions = ReadonlyMap<string, FunctionSource>;
export interface Known { functions: Functions; classes: Classes }

/** Whether a drawing is a pipeline: it has filters, and is streamed, not run. */
export function isPipeline(drawing: Drawing, functions: Functions): boolean {
  return drawing.tasks.some((task) => functions.get(task.function)?.filter === true);
}

export const EMPTY: Drawing = { name: "program", inputs: [], tasks: [], results: [] };

export interface Port { name: string; annotation: string; several: boolean; needed: boolean; value: string | null }

/** Where a task can be connected: the parameters of its function; a command, or an unknown function, has one place for all. */
export function ports(task: DrawnTask, functions: Functions): Port[] {
  const source = functions.get(task.function);
  const values = new Map(task.set);
  if (source === undefined) {
    const names = [...new Set([...task.inputs.map(([name]) => name), ...values.keys(), ""])];
    return names.map((name) => ({ name, annotation: "", several: name === "", needed: false, value: values.get(name) ?? null }));
  }
  const known = source.parameters.filter((one) => one.kind !== "keywords").map((one) => ({
    name: one.name,
    annotation: one.annotation,
    several: one.kind === "several",
    needed: one.default === null && one.kind !== "several",
    value: values.get(one.name) ?? null,
  }));
  const extra = [...new Set([...task.inputs.map(([name]) => name), ...values.keys()])].filter((name) => !known.some((one) => one.name === name));
  return [...known, ...extra.map((name) => ({ name, annotation: "", several: name === "", needed: false, value: values.get(name) ?? null }))];
}

/** Ports that must have a value and have none. */
export function missing(task: DrawnTask, functions: Functions): string[] {
  const given = new Set([...task.inputs.map(([name]) => name), ...task.set.map(([name]) => name)]);
  if (given.has("")) return [];
  return ports(task, functions).filter((port) => port.needed && !given.has(port.name)).map((port) => port.name);
}

/** All items, in order: inputs, then what tasks make. */
export function items(drawing: Drawing): string[] {
  return [...drawing.inputs.map((one) => one.name), ...drawing.tasks.flatMap((task) => outputsOf(task))];
}

/** What a task makes; one without outputs makes an empty item that others can wait for. */
export function outputsOf(task: DrawnTask): string[] {
  return task.outputs.length === 0 ? [`${task.name}.done`] : task.outputs.map(([name]) => name);
}

export function producerOf(drawing: Drawing, item: string): DrawnTask | undefined {
  return drawing.tasks.find((task) => outputsOf(task).includes(item));
}

/** The annotation of an item; "" if it is not known. */
export function annotationOf(drawing: Drawing, item: string, functions: Functions): string {
  const input = drawing.inputs.find((one) => one.name === item);
  if (input !== undefined) return input.path !== null ? "Path" : literalType(input.value);
  const task = producerOf(drawing, item);
  if (task === undefined) return "";
  if (task.command.length > 0) return "Path";
  const returns = functions.get(task.function)?.returns ?? "";
  if (task.outputs.length <= 1) return returns;
  const parts = /^[Tt]uple\[(.*)\]$/s.exec(returns)?.[1];
  if (parts === undefined) return "";
  const each = splitTop(parts);
  return each.length === task.outputs.length ? each[task.outputs.findIndex(([name]) => name === item)]! : "";
}

function literalType(value: string | null): string {
  if (value === null) return "";
  if (/^(True|False)$/.test(value)) return "bool";
  if (/^[+-]?\d+$/.test(value)) return "int";
  if (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(value)) return "float";
  if (/^['"]/.test(value)) return "str";
  return value.startsWith("[") ? "list" : value.startsWith("{") ? "dict" : "";
}

/** Split at commas that are not inside brackets. */
export function splitTop(content: string): string[] {
  const found: string[] = [];
  let depth = 0;
  let start = 0;
  for (let i = 0; i < content.length; i++) {
    if ("[({".includes(content[i]!)) depth++;
    else if ("])}".includes(content[i]!)) depth--;
    else if (content[i] === "," && depth === 0) {
      found.push(content.slice(start, i).trim());
      start = i + 1;
    }
  }
  const last = content.slice(start).trim();
  return last === "" ? found : [...found, last];
}

export type Change = { drawing: Drawing } | { reason: string };

/** Whether an item can be given for a parameter; the reason if not. */
export function refusal(drawing: Drawing, item: string, target: string, parameter: string, known: Known): string | null {
  const task = drawing.tasks.find((one) => one.name === target);
  if (task === undefined) return `There is no task ${target}.`;
  const from = producerOf(drawing, item);
  if (from !== undefined && reaches(drawing, target, from.name)) return `${target} would wait for itself.`;
  const port = ports(task, known.functions).find((one) => one.name === parameter);
  if (port === undefined) return `${target} has no parameter ${parameter}.`;
  const wrong = clash(annotationOf(drawing, item, known.functions), port.annotation, known.classes);
  return wrong === null ? null : `${item} → ${target}.${parameter}: ${wrong}`;
}

export function connect(drawing: Drawing, item: string, target: string, parameter: string, known: Known): Change {
  const reason = refusal(drawing, item, target, parameter, known);
  if (reason !== null) return { reason };
  const task = drawing.tasks.find((one) => one.name === target)!;
  const order = ports(task, known.functions);
  const several = order.find((one) => one.name === parameter)?.several ?? false;
  const kept = task.inputs.filter(([name, other]) => (several ? name !== parameter || other !== item : name !== parameter));
  const rank = (name: string): number => order.findIndex((one) => one.name === name);
  const inputs = [...kept, [parameter, item] as [string, string]].sort((a, b) => rank(a[0]) - rank(b[0]));
  return { drawing: withTask(drawing, target, { inputs, set: task.set.filter(([name]) => name !== parameter) }) };
}

export function disconnect(drawing: Drawing, item: string, target: string, parameter: string): Drawing {
  const task = drawing.tasks.find((one) => one.name === target);
  if (task === undefined) return drawing;
  return withTask(drawing, target, { inputs: task.inputs.filter(([name, other]) => name !== parameter || other !== item) });
}

/** Set a parameter, or take its value away. What was connected to it is disconnected. */
export function setValue(drawing: Drawing, target: string, parameter: string, value: string | null): Drawing {
  const task = drawing.tasks.find((one) => one.name === target)!;
  const others = task.set.filter(([name]) => name !== parameter);
  const at = task.set.findIndex(([name]) => name === parameter);
  if (value !== null) others.splice(at < 0 ? others.length : at, 0, [parameter, value]);
  const inputs = value === null ? task.inputs : task.inputs.filter(([name]) => name !== parameter);
  return withTask(drawing, target, { set: others, inputs });
}

export function withTask(drawing: Drawing, name: string, change: Partial<DrawnTask>): Drawing {
  return { ...drawing, tasks: drawing.tasks.map((task) => (task.name === name ? { ...task, ...change } : task)) };
}

/** Whether a path leads from one task to another (or they are the same). */
export function reaches(drawing: Drawing, from: string, to: string): boolean {
  const readers = new Map<string, string[]>();
  const follow = (item: string, task: string): void => { readers.set(item, [...(readers.get(item) ?? []), task]); };
  for (const task of drawing.tasks) {
    for (const [, item] of task.inputs) follow(item, task.name);
    for (const before of task.after) follow(`after ${before}`, task.name);
  }
  const tasks = new Map(drawing.tasks.map((task) => [task.name, task]));
  const waiting = [from];
  const seen = new Set<string>();
  while (waiting.length > 0) {
    const at = waiting.pop()!;
    if (at === to) return true;
    if (seen.has(at)) continue;
    seen.add(at);
    const task = tasks.get(at);
    if (task === undefined) continue;
    for (const item of [...outputsOf(task), `after ${at}`]) waiting.push(...(readers.get(item) ?? []));
  }
  return false;
}

export function freeName(stem: string, taken: Iterable<string>): string {
  const used = new Set(taken);
  if (!used.has(stem)) return stem;
  let number = 2;
  while (used.has(`${stem}_${number}`)) number++;
  return `${stem}_${number}`;
}

/** A task for a function; one output, or one for each part of a returned tuple. */
export function addFunction(drawing: Drawing, source: FunctionSource, at: Place | null): [Drawing, string] {
  const name = freeName(source.name, drawing.tasks.map((task) => task.name));
  const parts = /^[Tt]uple\[(.*)\]$/s.exec(source.returns)?.[1];
  const count = parts === undefined || parts.includes("...") ? 1 : Math.max(1, splitTop(parts).length);
  const taken = items(drawing);
  const outputs: [string, string | null][] = [];
  for (let i = 0; i < count; i++) {
    const item = freeName(count === 1 ? `${name}_out` : `${name}_${i + 1}`, [...taken, ...outputs.map(([one]) => one)]);
    outputs.push([item, null]);
  }
  const none = source.returns === "None";
  return [addTask(drawing, { ...blank(name, at), function: source.reference, outputs: none ? [] : outputs }), name];
}

export function addCommand(drawing: Drawing, at: Place | null): [Drawing, string] {
  const name = freeName("command", drawing.tasks.map((task) => task.name));
  const output = freeName(`${name}_out`, items(drawing));
  return [addTask(drawing, { ...blank(name, at), command: ["echo", "hello"], outputs: [[output, null]], stdout: output }), name];
}

export function addInput(drawing: Drawing, file: boolean, at: Place | null): [Drawing, string] {
  const name = freeName(file ? "file" : "value", items(drawing));
  const input: DrawnInput = { name, path: file ? `${name}.txt` : null, value: file ? null : "0", size: null, at };
  return [{ ...drawing, inputs: [...drawing.inputs, input] }, name];
}

export function addResult(drawing: Drawing, item: string, at: Place | null): Drawing {
  return { ...drawing, results: [...drawing.results, { item, path: null, at }] };
}

function blank(name: string, at: Place | null): DrawnTask {
  return { name, function: "", command: [], inputs: [], set: [], outputs: [], stdout: null, work: "1", cores: 1, after: [], group: "", at };
}

function addTask(drawing: Drawing, task: DrawnTask): Drawing {
  return { ...drawing, tasks: [...drawing.tasks, task] };
}

/** Rename a task, and where others wait for it; its `done` item follows. */
export function renameTask(drawing: Drawing, from: string, to: string): Change {
  if (to === "") return { reason: "A task needs a name." };
  if (drawing.tasks.some((task) => task.name === to)) return { reason: `There is a task ${to} already.` };
  const renamed = withTask(drawing, from, { name: to });
  const tasks = renamed.tasks.map((task) => ({ ...task, after: task.after.map((one) => (one === from ? to : one)) }));
  return { drawing: replaceItem({ ...renamed, tasks }, `${from}.done`, `${to}.done`) };
}

/** Rename an item everywhere, also in the arguments of commands. */
export function renameItem(drawing: Drawing, from: string, to: string): Change {
  if (to === "") return { reason: "An item needs a name." };
  if (items(drawing).includes(to)) return { reason: `There is an item ${to} already.` };
  const made = {
    ...drawing,
    inputs: drawing.inputs.map((one) => (one.name === from ? { ...one, name: to } : one)),
    tasks: drawing.tasks.map((task) => ({
      ...task,
      outputs: task.outputs.map(([name, size]): [string, string | null] => [name === from ? to : name, size]),
      stdout: task.stdout === from ? to : task.stdout,
    })),
  };
  return { drawing: replaceItem(made, from, to) };
}

function replaceItem(drawing: Drawing, from: string, to: string): Drawing {
  return {
    ...drawing,
    tasks: drawing.tasks.map((task) => {
      const reads = task.inputs.some(([, item]) => item === from) || task.outputs.some(([item]) => item === to);
      return {
        ...task,
        inputs: task.inputs.map(([name, item]): [string, string] => [name, item === from ? to : item]),
        command: reads ? task.command.map((part) => part.replaceAll(`{${from}}`, `{${to}}`)) : task.command,
      };
    }),
    results: drawing.results.map((one) => (one.item === from ? { ...one, item: to } : one)),
  };
}

/** Without these tasks, inputs (by name) and results (by index); what they made is disconnected. */
export function remove(drawing: Drawing, tasks: Set<string>, inputs: Set<string>, results: Set<number>): Drawing {
  const left: Drawing = {
    ...drawing,
    inputs: drawing.inputs.filter((one) => !inputs.has(one.name)),
    tasks: drawing.tasks.filter((one) => !tasks.has(one.name)),
    results: drawing.results.filter((_, index) => !results.has(index)),
  };
  const there = new Set(items(left));
  return {
    ...left,
    tasks: left.tasks.map((task) => ({
      ...task,
      inputs: task.inputs.filter(([, item]) => there.has(item)),
      after: task.after.filter((one) => !tasks.has(one)),
    })),
    results: left.results.filter((one) => one.item === "" || there.has(one.item)),
  };
}

/** What the server is sent: results that are not connected yet are left out. */
export function complete(drawing: Drawing): Drawing {
  return { ...drawing, results: drawing.results.filter((one) => one.item !== "") };
}

export interface History { past: Drawing[]; now: Drawing; future: Drawing[] }
const MOST = 200;

export function changed(history: History, now: Drawing): History {
  return now === history.now ? history : { past: [...history.past.slice(-MOST), history.now], now, future: [] };
}

export function undone({ past, now, future }: History): History {
  return past.length === 0 ? { past, now, future } : { past: past.slice(0, -1), now: past[past.length - 1]!, future: [now, ...future] };
}

export function redone({ past, now, future }: History): History {
  return future.length === 0 ? { past, now, future } : { past: [...past, now], now: future[0]!, future: future.slice(1) };
}
