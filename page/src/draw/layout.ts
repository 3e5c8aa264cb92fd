/** Places of nodes in columns by level, with few crossings. */

import { type Drawing, outputsOf, type Place } from "./model";

const COLUMN = 300;
const GAP = 28;

export interface Box { id: string; height: number }

/** Columns by the longest path from an entry; within a column, boxes near those they are connected to. O((n + m) log n). */
export function columns(boxes: Box[], edges: [string, string][], width: number = COLUMN): Map<string, Place> {
  const after = new Map<string, string[]>(boxes.map((box) => [box.id, []]));
  const before = new Map<string, string[]>(boxes.map((box) => [box.id, []]));
  for (const [from, to] of edges) {
    if (from === to || !after.has(from) || !after.has(to)) continue;
    after.get(from)!.push(to);
    before.get(to)!.push(from);
  }
  const level = levels(boxes, after, before);
  const rows: Box[][] = [];
  for (const box of boxes) (rows[level.get(box.id)!] ??= []).push(box);
  const middle = new Map<string, number>();
  const put = (row: Box[]): void => {
    let y = 0;
    for (const box of row) { middle.set(box.id, y + box.height / 2); y += box.height + GAP; }
  };
  rows.forEach(put);
  for (let sweep = 0; sweep < 4; sweep++) {
    const near = sweep % 2 === 0 ? before : after;
    for (const row of sweep % 2 === 0 ? rows : [...rows].reverse()) {
      const wish = new Map(row.map((box) => [box.id, mean(near.get(box.id)!.map((one) => middle.get(one)!), middle.get(box.id)!)]));
      row.sort((a, b) => wish.get(a.id)! - wish.get(b.id)!);
      put(row);
    }
  }
  const tallest = Math.max(0, ...rows.map(heightOf));
  const places = new Map<string, Place>();
  rows.forEach((row, column) => {
    let y = (tallest - heightOf(row)) / 2;
    for (const box of row) { places.set(box.id, [column * width, Math.round(y)]); y += box.height + GAP; }
  });
  return places;
}

function levels(boxes: Box[], after: Map<string, string[]>, before: Map<string, string[]>): Map<string, number> {
  const level = new Map(boxes.map((box) => [box.id, 0]));
  const waiting = new Map(boxes.map((box) => [box.id, before.get(box.id)!.length]));
  const ready = boxes.filter((box) => waiting.get(box.id) === 0).map((box) => box.id);
  while (ready.length > 0) {
    const at = ready.pop()!;
    for (const next of after.get(at)!) {
      level.set(next, Math.max(level.get(next)!, level.get(at)! + 1));
      waiting.set(next, waiting.get(next)! - 1);
      if (waiting.get(next) === 0) ready.push(next);
    }
  }
  return level;
}

function mean(values: number[], otherwise: number): number {
  return values.length === 0 ? otherwise : values.reduce((sum, value) => sum + value, 0) / values.length;
}

function heightOf(row: Box[]): number {
  return row.reduce((sum, box) => sum + box.height + GAP, -GAP);
}

export const inputId = (name: string): string => `input:${name}`;
export const taskId = (name: string): string => `task:${name}`;
export const resultId = (index: number): string => `result:${index}`;

/** Connections between nodes, each with its item and the parameter that it is given for. */
export function connections(drawing: Drawing): { from: string; to: string; item: string; parameter: string }[] {
  const source = new Map<string, string>(drawing.inputs.map((one) => [one.name, inputId(one.name)]));
  for (const task of drawing.tasks) for (const item of outputsOf(task)) source.set(item, taskId(task.name));
  const found: { from: string; to: string; item: string; parameter: string }[] = [];
  for (const task of drawing.tasks) {
    for (const [parameter, item] of task.inputs) {
      const from = source.get(item);
      if (from !== undefined) found.push({ from, to: taskId(task.name), item, parameter });
    }
  }
  drawing.results.forEach((one, index) => {
    const from = source.get(one.item);
    if (from !== undefined) found.push({ from, to: resultId(index), item: one.item, parameter: "" });
  });
  return found;
}

/** The drawing with all nodes in columns. */
export function laidOut(drawing: Drawing, height: (id: string) => number): Drawing {
  const ids = [...drawing.inputs.map((one) => inputId(one.name)), ...drawing.tasks.map((one) => taskId(one.name)), ...drawing.results.map((_, index) => resultId(index))];
  const order: [string, string][] = drawing.tasks.flatMap((task) => task.after.map((one): [string, string] => [taskId(one), taskId(task.name)]));
  const edges = connections(drawing).map(({ from, to }): [string, string] => [from, to]);
  const places = columns(ids.map((id) => ({ id, height: height(id) })), [...edges, ...order]);
  return {
    ...drawing,
    inputs: drawing.inputs.map((one) => ({ ...one, at: places.get(inputId(one.name))! })),
    tasks: drawing.tasks.map((one) => ({ ...one, at: places.get(taskId(one.name))! })),
    results: drawing.results.map((one, index) => ({ ...one, at: places.get(resultId(index))! })),
  };
}
