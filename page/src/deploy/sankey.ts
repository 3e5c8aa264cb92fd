/** Where the boxes and bands of a Sankey diagram go: a column for each filter, a box for each of its hosts. */

export interface FlowNode { filter: string; host: string; site: string; copies: number; busy: number }
export interface Flow { source_filter: string; target_filter: string; source: string; target: string; planned: number | null; measured?: number }
export interface Picture { filters: string[]; nodes: FlowNode[]; flows: Flow[]; limits: string[]; merged: boolean }
export interface Box extends FlowNode { x: number; y: number; height: number; column: number; rate: number }
export interface Band { flow: Flow; from: { x: number; y: number }; to: { x: number; y: number }; width: number; measured: number }
export interface Laid { boxes: Box[]; bands: Band[]; width: number; height: number }

const WIDE = 14;
const GAP = 12;
const HEIGHT = 380;
const LEAST = 3;
const TOP = 44;

/** Heights are in proportion to planned MB/s; where nothing was planned, to what is measured. */
export function laidOut(picture: Picture, width: number): Laid {
  const rate = (flow: Flow): number => flow.planned ?? flow.measured ?? 0;
  const key = (filter: string, host: string): string => `${filter}\n${host}`;
  const into = new Map<string, number>();
  const outOf = new Map<string, number>();
  for (const flow of picture.flows) {
    const source = key(flow.source_filter, flow.source);
    const target = key(flow.target_filter, flow.target);
    outOf.set(source, (outOf.get(source) ?? 0) + rate(flow));
    into.set(target, (into.get(target) ?? 0) + rate(flow));
  }
  const columns = picture.filters.map((filter) => picture.nodes.filter((node) => node.filter === filter).sort((a, b) => a.site.localeCompare(b.site)));
  const size = (node: FlowNode): number => Math.max(into.get(key(node.filter, node.host)) ?? 0, outOf.get(key(node.filter, node.host)) ?? 0);
  const most = Math.max(1, ...columns.map((column) => column.length));
  const height = Math.max(HEIGHT, most * (GAP + 8));
  const room = height - GAP * (most - 1);
  const total = Math.max(1e-12, ...columns.map((column) => column.reduce((sum, node) => sum + size(node), 0)));
  const scale = room / total;
  const step = (width - WIDE - 150) / Math.max(1, columns.length - 1);
  const boxes: Box[] = [];
  columns.forEach((column, at) => {
    const tall = column.map((node) => Math.max(LEAST, size(node) * scale));
    let y = TOP + (height - tall.reduce((sum, one) => sum + one, 0) - GAP * (column.length - 1)) / 2;
    column.forEach((node, row) => {
      boxes.push({ ...node, x: at * step, y, height: tall[row]!, column: at, rate: size(node) });
      y += tall[row]! + GAP;
    });
  });
  return { boxes, bands: bandsOf(picture.flows, boxes, scale, rate), width, height: height + TOP + GAP };
}

function bandsOf(flows: Flow[], boxes: Box[], scale: number, rate: (flow: Flow) => number): Band[] {
  const byKey = new Map(boxes.map((box) => [`${box.filter}\n${box.host}`, box]));
  const left = new Map<Box, number>();
  const right = new Map<Box, number>();
  const ordered = [...flows].sort((a, b) => (byKey.get(`${a.source_filter}\n${a.source}`)?.y ?? 0) - (byKey.get(`${b.source_filter}\n${b.source}`)?.y ?? 0) || (byKey.get(`${a.target_filter}\n${a.target}`)?.y ?? 0) - (byKey.get(`${b.target_filter}\n${b.target}`)?.y ?? 0));
  return ordered.flatMap((flow) => {
    const source = byKey.get(`${flow.source_filter}\n${flow.source}`);
    const target = byKey.get(`${flow.target_filter}\n${flow.target}`);
    if (source === undefined || target === undefined) return [];
    const width = Math.max(1, rate(flow) * scale);
    const begin = right.get(source) ?? 0;
    const end = left.get(target) ?? 0;
    right.set(source, begin + width);
    left.set(target, end + width);
    return [{
      flow,
      from: { x: source.x + WIDE, y: source.y + begin + width / 2 },
      to: { x: target.x, y: target.y + end + width / 2 },
      width,
      measured: (flow.measured ?? 0) * scale,
    }];
  });
}

/** A picture of a run that was not planned here, from what it reports. */
export function pictureOf(copies: { filter: string; host: string; busy: number }[], flows: Flow[]): Picture {
  const nodes = new Map<string, FlowNode>();
  for (const copy of copies) {
    const key = `${copy.filter}\n${copy.host}`;
    const node = nodes.get(key) ?? { filter: copy.filter, host: copy.host, site: "", copies: 0, busy: 0 };
    nodes.set(key, { ...node, copies: node.copies + 1, busy: (node.busy * node.copies + copy.busy) / (node.copies + 1) });
  }
  return { filters: [...new Set(copies.map((copy) => copy.filter))], nodes: [...nodes.values()], flows, limits: [], merged: false };
}

/** MB/s with three digits. */
export function showRate(rate: number | null | undefined): string {
  return rate === null || rate === undefined ? "" : `${Number(rate.toPrecision(3))} MB/s`;
}
