import { applyNodeChanges, Background, type Connection, Controls, type Edge, MiniMap, type Node, type NodeChange, ReactFlow, useReactFlow } from "@xyflow/react";
import { useEffect, useMemo, useState } from "react";
import { text } from "../text";
import { edgesOf, nodesOf } from "./derive";
import { resultId, taskId, inputId } from "./layout";
import { DRAGGED } from "./Library";
import { type Change, connect, disconnect, type Drawing, items, type Known, refusal, remove } from "./model";
import { nodeTypes } from "./nodes";

interface Props {
  drawing: Drawing;
  known: Known;
  search: string;
  apply(change: Change): void;
  add(what: string, at: [number, number] | null): void;
  selected: string[];
  select(ids: string[]): void;
}

const nameOf = (id: string): string => id.slice(id.indexOf(":") + 1);

/** The graph: drag nodes, connect ports, delete. */
export function Canvas({ drawing, known, search, apply, add, selected, select }: Props) {
  const flow = useReactFlow();
  const [nodes, setNodes] = useState<Node[]>([]);
  const edges = useMemo(() => edgesOf(drawing), [drawing]);
  useEffect(() => {
    setNodes((before) => nodesOf(drawing, known.functions, search, before, select).map((node) => ({ ...node, selected: selected.includes(node.id) })));
  }, [drawing, known, search, selected, select]);
  useEffect(() => {
    const found = search === "" ? [] : nodes.filter((node) => (node.data as { found?: boolean }).found === true);
    if (found.length > 0) void flow.fitView({ nodes: found.slice(0, 20), maxZoom: 1, duration: 200 });
  }, [search]);
  const changed = (changes: NodeChange[]): void => {
    const kept = changes.filter((change) => change.type !== "select" && change.type !== "remove");
    setNodes((before) => applyNodeChanges(kept, before));
    const picked = new Set(selected);
    for (const change of changes) if (change.type === "select") { if (change.selected) picked.add(change.id); else picked.delete(change.id); }
    if (changes.some((change) => change.type === "select")) select([...picked].filter((id) => !id.startsWith("group:")));
    const moved = new Map<string, [number, number]>();
    for (const change of changes) {
      if (change.type === "position" && change.dragging === false && change.position) moved.set(change.id, [Math.round(change.position.x), Math.round(change.position.y)]);
    }
    if (moved.size > 0) apply({ drawing: placed(drawing, moved) });
  };
  const removed = (gone: { nodes: Node[]; edges: Edge[] }): void => {
    const of = (kind: string): string[] => gone.nodes.filter((node) => node.id.startsWith(kind)).map((node) => nameOf(node.id));
    let now = drawing;
    for (const edge of gone.edges) {
      const { item, parameter } = edge.data as { item: string; parameter: string };
      if (edge.target.startsWith("task:")) now = disconnect(now, item, nameOf(edge.target), parameter);
      else now = { ...now, results: now.results.map((one, at) => (resultId(at) === edge.target ? { ...one, item: "" } : one)) };
    }
    now = remove(now, new Set(of("task:")), new Set(of("input:")), new Set(of("result:").map(Number)));
    select([]);
    apply({ drawing: now });
  };
  return (
    <ReactFlow nodes={nodes} edges={edges} nodeTypes={nodeTypes} onNodesChange={changed} onDelete={removed} deleteKeyCode={["Delete", "Backspace"]}
      multiSelectionKeyCode={["Shift", "Control", "Meta"]} minZoom={0.05} fitView fitViewOptions={{ maxZoom: 1 }} aria-label={text.draw.canvas}
      isValidConnection={(given) => reasonOf(drawing, given, known) === null}
      onConnect={(given) => apply(connected(drawing, given, known))}
      onConnectEnd={(_, state) => {
        if (state.isValid !== false || !state.fromHandle || !state.toHandle || !state.fromNode || !state.toNode) return;
        const forward = state.fromHandle.type === "source";
        const [from, to] = forward ? [state.fromHandle, state.toHandle] : [state.toHandle, state.fromHandle];
        const reason = reasonOf(drawing, { source: from.nodeId, target: to.nodeId, sourceHandle: from.id ?? null, targetHandle: to.id ?? null }, known);
        if (reason !== null) apply({ reason });
      }}
      onDragOver={(event) => { event.preventDefault(); event.dataTransfer.dropEffect = "copy"; }}
      onDrop={(event) => {
        const what = event.dataTransfer.getData(DRAGGED);
        if (what === "") return;
        event.preventDefault();
        const { x, y } = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY });
        add(what, [Math.round(x), Math.round(y)]);
      }}>
      <Background />
      <Controls showInteractive={false} />
      <MiniMap pannable zoomable ariaLabel={text.draw.minimap} />
    </ReactFlow>
  );
}

type Ends = Pick<Connection, "source" | "target" | "sourceHandle" | "targetHandle">;

function reasonOf(drawing: Drawing, given: Ends | Edge, known: Known): string | null {
  const item = (given.sourceHandle ?? "").replace(/^out:/, "");
  const parameter = (given.targetHandle ?? "").replace(/^in:/, "");
  if (!items(drawing).includes(item)) return text.draw.outputsOnly;
  if (given.target.startsWith("result:")) {
    return drawing.results.some((one, at) => one.item === item && resultId(at) !== given.target) ? `${item}: ${text.draw.resultAlready}` : null;
  }
  if (!given.target.startsWith("task:")) return text.draw.outputsOnly;
  return refusal(drawing, item, nameOf(given.target), parameter, known);
}

function connected(drawing: Drawing, given: Connection, known: Known): Change {
  const item = (given.sourceHandle ?? "").replace(/^out:/, "");
  if (given.target.startsWith("result:")) {
    return { drawing: { ...drawing, results: drawing.results.map((one, at) => (resultId(at) === given.target ? { ...one, item } : one)) } };
  }
  return connect(drawing, item, nameOf(given.target), (given.targetHandle ?? "").replace(/^in:/, ""), known);
}

function placed(drawing: Drawing, moved: Map<string, [number, number]>): Drawing {
  return {
    ...drawing,
    inputs: drawing.inputs.map((one) => ({ ...one, at: moved.get(inputId(one.name)) ?? one.at })),
    tasks: drawing.tasks.map((one) => ({ ...one, at: moved.get(taskId(one.name)) ?? one.at })),
    results: drawing.results.map((one, at) => ({ ...one, at: moved.get(resultId(at)) ?? one.at })),
  };
}
