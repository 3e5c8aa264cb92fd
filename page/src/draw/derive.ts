/** The nodes and edges that a drawing is shown as. */

import type { Edge, Node } from "@xyflow/react";
import { text } from "../text";
import { connections, inputId, resultId, taskId } from "./layout";
import { type Drawing, type Functions, missing, outputsOf, ports } from "./model";
import type { EndData, GroupData, TaskData } from "./nodes";

const WIDE = 220;
const PADDING = 24;

export function heightOf(drawing: Drawing, functions: Functions): (id: string) => number {
  return (id) => {
    const task = drawing.tasks.find((one) => taskId(one.name) === id);
    return task === undefined ? 58 : 62 + 24 * Math.max(1, ports(task, functions).length, outputsOf(task).length);
  };
}

export function edgesOf(drawing: Drawing): Edge[] {
  return connections(drawing).map(({ from, to, item, parameter }) => ({
    id: `${item} -> ${to} ${parameter}`,
    source: from,
    sourceHandle: `out:${item}`,
    target: to,
    targetHandle: `in:${parameter}`,
    ariaLabel: `${item} ${text.draw.to} ${to.slice(to.indexOf(":") + 1)} ${parameter}`,
    data: { item, parameter },
  }));
}

/** The nodes; what the canvas knows of earlier ones (selection, measured sizes) is kept. */
export function nodesOf(drawing: Drawing, functions: Functions, search: string, before: Node[], select: (ids: string[]) => void): Node[] {
  const known = new Map(before.map((node) => [node.id, node]));
  const found = (name: string): boolean => search !== "" && name.toLowerCase().includes(search.toLowerCase());
  const put = (id: string, type: string, at: [number, number] | null, data: Record<string, unknown>, label: string): Node => {
    const old = known.get(id);
    return {
      ...(old?.measured ? { measured: old.measured } : {}),
      ...(old?.selected ? { selected: true } : {}),
      id, type, data, position: { x: at?.[0] ?? 0, y: at?.[1] ?? 0 }, ariaLabel: label,
    };
  };
  const made = [
    ...drawing.inputs.map((one) => {
      const data: EndData = { title: one.name, subtitle: one.path ?? one.value ?? "", item: one.name, isInput: true, found: found(one.name) };
      return put(inputId(one.name), "end", one.at, data, `${text.draw.input} ${one.name}`);
    }),
    ...drawing.tasks.map((task) => {
      const data: TaskData = {
        title: task.name,
        subtitle: task.function || task.command.join(" "),
        ports: ports(task, functions),
        outputs: outputsOf(task),
        connected: task.inputs.map(([name]) => name),
        missing: missing(task, functions),
        found: found(task.name) || found(task.function),
      };
      return put(taskId(task.name), "task", task.at, data, `${text.draw.task} ${task.name}`);
    }),
    ...drawing.results.map((one, index) => {
      const data: EndData = { title: one.path ?? one.item, subtitle: one.item === "" ? text.draw.notConnected : one.item, item: "", isInput: false, found: found(one.item) };
      return put(resultId(index), "end", one.at, data, `${text.draw.result} ${one.item}`);
    }),
  ];
  return [...groupsOf(drawing, functions, made, select), ...made];
}

function groupsOf(drawing: Drawing, functions: Functions, nodes: Node[], select: (ids: string[]) => void): Node[] {
  const height = heightOf(drawing, functions);
  const places = new Map(nodes.map((node) => [node.id, node]));
  const names = [...new Set(drawing.tasks.map((task) => task.group).filter((group) => group !== ""))];
  return names.map((name) => {
    const ids = drawing.tasks.filter((task) => task.group === name).map((task) => taskId(task.name));
    const boxes = ids.map((id) => {
      const node = places.get(id)!;
      const { x, y } = node.position;
      return [x, y, x + (node.measured?.width ?? WIDE), y + (node.measured?.height ?? height(id))] as const;
    });
    const x = Math.min(...boxes.map((box) => box[0])) - PADDING;
    const y = Math.min(...boxes.map((box) => box[1])) - PADDING - 18;
    const data: GroupData = {
      title: name,
      width: Math.max(...boxes.map((box) => box[2])) + PADDING - x,
      height: Math.max(...boxes.map((box) => box[3])) + PADDING - y,
      select: () => select(ids),
    };
    return { id: `group:${name}`, type: "group", position: { x, y }, data, draggable: false, selectable: false, focusable: false, zIndex: -1 };
  });
}
