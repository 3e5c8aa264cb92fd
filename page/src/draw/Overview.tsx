import { Background, Controls, type Edge, Handle, MiniMap, type Node, type NodeProps, Position, ReactFlow, ReactFlowProvider } from "@xyflow/react";
import { useEffect, useMemo, useState } from "react";
import { api, type OverviewAnswer } from "../api";
import { text } from "../text";
import { columns } from "./layout";

interface BoxData extends Record<string, unknown> { title: string; subtitle: string; isTask: boolean; toggle(): void }

function BoxNode({ data }: NodeProps) {
  const { title, subtitle, isTask, toggle } = data as BoxData;
  return (
    <div className={isTask ? "node small" : "node"}>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <button type="button" className="nodrag nopan" onClick={toggle}>{title}</button>
      {subtitle !== "" && <div className="node-sub">{subtitle}</div>}
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </div>
  );
}

const nodeTypes = { box: BoxNode };

/** A program that is not drawn here, by levels; boxes open in place. */
export function Overview({ program }: { program: string }) {
  const [opened, setOpened] = useState<string[]>(["small"]);
  const [answer, setAnswer] = useState<OverviewAnswer | null>(null);
  const [error, setError] = useState("");
  useEffect(() => { setOpened(["small"]); setAnswer(null); }, [program]);
  useEffect(() => {
    let live = true;
    api.overview(program, opened)
      .then((found) => { if (live) { setAnswer(found); setError(""); } })
      .catch((problem: Error) => { if (live) setError(problem.message); });
    return () => { live = false; };
  }, [program, opened]);
  const [nodes, edges] = useMemo((): [Node[], Edge[]] => (answer === null ? [[], []] : shown(answer, (box) => {
    const now = answer.opened.map(String);
    setOpened(now.includes(box) ? now.filter((one) => one !== box) : [...now, box]);
  })), [answer]);
  return (
    <>
      {error !== "" && <p className="error" role="alert">{error}</p>}
      {answer && <p role="status">{`${answer.name}: ${answer.tasks.toLocaleString("en")} ${text.draw.tasks}. ${text.draw.overview}`}</p>}
      <div className="canvas">
        {answer && <ReactFlowProvider key={program}>
          <ReactFlow nodes={nodes} edges={edges} nodeTypes={nodeTypes} nodesDraggable={false} nodesConnectable={false} onlyRenderVisibleElements={nodes.length > 1500} minZoom={0.02} fitView aria-label={text.draw.canvas}>
            <Background />
            <Controls showInteractive={false} />
            <MiniMap pannable zoomable ariaLabel={text.draw.minimap} />
          </ReactFlow>
        </ReactFlowProvider>}
      </div>
    </>
  );
}

function shown(answer: OverviewAnswer, toggle: (box: string) => void): [Node[], Edge[]] {
  const places = columns(answer.nodes.map((node) => ({ id: node.id, height: node.name === undefined ? 64 : 30 })), answer.edges.map(([from, to]): [string, string] => [from, to]), 260);
  const nodes = answer.nodes.map((node): Node => {
    const [x, y] = places.get(node.id)!;
    const isTask = node.name !== undefined;
    const title = node.name ?? `${node.kind || text.draw.task}${node.rest ? ` ${text.draw.more}` : ""}`;
    const data: BoxData = { title, subtitle: isTask ? "" : `${(node.tasks ?? 0).toLocaleString("en")} ${text.draw.tasks}, ${text.draw.level} ${node.level + 1}`, isTask, toggle: () => toggle(String(node.box)) };
    return { id: node.id, type: "box", position: { x, y }, data, ariaLabel: title, initialWidth: 180, initialHeight: isTask ? 30 : 64 };
  });
  const edges = answer.edges.map(([source, target, count]): Edge => ({
    id: `${source}-${target}`, source, target, style: { strokeWidth: 1 + Math.log2(count) / 3 }, ...(count > 1 ? { label: count.toLocaleString("en") } : {}),
  }));
  return [nodes, edges];
}
