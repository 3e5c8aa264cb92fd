import { Handle, type NodeProps, Position } from "@xyflow/react";
import { text } from "../text";
import type { Port } from "./model";

export interface TaskData extends Record<string, unknown> { title: string; subtitle: string; ports: Port[]; outputs: string[]; connected: string[]; missing: string[]; found: boolean }
export interface EndData extends Record<string, unknown> { title: string; subtitle: string; item: string; isInput: boolean; found: boolean }
export interface GroupData extends Record<string, unknown> { title: string; width: number; height: number; select(): void }

/** A task: its parameters on the left, what it makes on the right. */
export function TaskNode({ data }: NodeProps) {
  const { title, subtitle, ports, outputs, connected, missing, found } = data as TaskData;
  return (
    <div className={found ? "node found" : "node"}>
      <div className="node-title">{title}</div>
      <div className="node-sub">{subtitle}</div>
      <div className="node-ports">
        <ul>
          {ports.map((port) => (
            <li key={port.name} className={missing.includes(port.name) ? "missing" : undefined} title={port.annotation}>
              <Handle type="target" position={Position.Left} id={`in:${port.name}`} />
              {port.name || text.draw.inputs}
              {port.several ? " *" : ""}
              {port.value !== null && !connected.includes(port.name) ? <small>{` = ${port.value}`}</small> : null}
            </li>
          ))}
        </ul>
        <ul className="outs">
          {outputs.map((item) => (
            <li key={item}>
              {item}
              <Handle type="source" position={Position.Right} id={`out:${item}`} />
            </li>
          ))}
        </ul>
      </div>
    </div>
  );
}

/** A file or value that comes in, or a result that goes out. */
export function EndNode({ data }: NodeProps) {
  const { title, subtitle, item, isInput, found } = data as EndData;
  return (
    <div className={`node end ${found ? "found" : ""}`}>
      {!isInput && <Handle type="target" position={Position.Left} id="in:" />}
      <div className="node-title">{title}</div>
      <div className="node-sub">{subtitle}</div>
      {isInput && <Handle type="source" position={Position.Right} id={`out:${item}`} />}
    </div>
  );
}

/** The box around the tasks of a group; pressing its name selects them. */
export function GroupNode({ data }: NodeProps) {
  const { title, width, height, select } = data as GroupData;
  return (
    <div className="group-box" style={{ width, height }}>
      <button type="button" className="nodrag" onClick={select}>{title}</button>
    </div>
  );
}

export const nodeTypes = { task: TaskNode, end: EndNode, group: GroupNode };
