/** The chart on a canvas: it draws only what is visible, and merges bars that are narrower than a pixel. */

import { axisLabel, axisSteps, type Schedule } from "./schedule";

const AXIS = 26;
const TALL = 22;
const THIN = 9;
const LINK = 13;
const LABELS = 120;

export interface ViewEvents {
  onHover(bar: number, x: number, y: number): void;
  onSelect(bar: number): void;
  /** A selected bar was dragged to another lane or time; without this, dragging always moves the view. */
  onMove?(bar: number, host: string, start: number): void;
}

export interface ViewWindow {
  from: number;
  to: number;
  top: number;
}

export class GanttView {
  private from = 0;
  private to: number;
  private top = 0;
  private readonly tops: number[] = [];
  private height = 0;
  /** Those of hosts, then those of links. */
  private readonly lanes: [string, boolean][];
  private linksShown = true;
  private readonly byLane: LaneBars[];
  private readonly critical: Set<number>;
  private selected = -1;
  private chain = new Set<number>();
  private frame = 0;
  private drag: { x: number; y: number; from: number; to: number; top: number } | null = null;
  /** The selected bar while it is dragged: where it would begin, and the lane it is over. */
  private carried: { bar: number; grip: number; start: number; lane: number } | null = null;
  private readonly observer: ResizeObserver;
  showCritical = true;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly data: Schedule,
    private readonly events: ViewEvents,
  ) {
    this.to = data.end || 1;
    this.lanes = [...data.lanes, ...(data.links ?? []).map(([name]): [string, boolean] => [name, true])];
    this.place();
    this.critical = new Set(data.critical);
    this.byLane = indexLanes(data);
    this.listen();
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(canvas);
  }

  private place(): void {
    this.tops.length = 0;
    let y = 0;
    for (let lane = 0; lane < (this.linksShown ? this.lanes.length : this.data.lanes.length); lane++) {
      if (lane === this.data.lanes.length) y += LINK / 2;
      this.tops.push(y);
      y += this.tallness(lane);
    }
    this.height = y;
  }

  private tallness(lane: number): number {
    return lane >= this.data.lanes.length ? LINK : this.lanes[lane]![1] ? THIN : TALL;
  }

  get showLinks(): boolean {
    return this.linksShown;
  }

  set showLinks(shown: boolean) {
    this.linksShown = shown;
    this.place();
    this.clamp();
  }

  /** What is visible, to be restored when the data has grown; undefined: everything. */
  get window(): ViewWindow | undefined {
    const whole = this.from === 0 && this.to === (this.data.end || 1) && this.top === 0;
    return whole ? undefined : { from: this.from, to: this.to, top: this.top };
  }

  restore(window: ViewWindow | undefined): void {
    if (window === undefined) return;
    ({ from: this.from, to: this.to, top: this.top } = window);
    this.clamp();
  }

  /** Height that shows all lanes. */
  get fullHeight(): number {
    return this.height + AXIS;
  }

  select(bar: number, chain: number[] = []): void {
    this.selected = bar;
    this.chain = new Set(chain);
    if (bar >= 0) this.reveal(bar);
    this.draw();
  }

  showAll(): void {
    this.from = 0;
    this.to = this.data.end || 1;
    this.top = 0;
    this.draw();
  }

  destroy(): void {
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
  }

  /** Draw in the next frame, once. */
  draw(): void {
    if (this.frame === 0) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.paint();
      });
    }
  }

  zoom(factor: number, x: number): void {
    const at = this.timeAt(x);
    const span = Math.min(Math.max((this.to - this.from) * factor, (this.data.end || 1) * 1e-6), this.data.end * 1.2 || 1);
    this.from = at - ((at - this.from) * span) / (this.to - this.from);
    this.to = this.from + span;
    this.clamp();
  }

  pan(seconds: number, pixels: number): void {
    this.from += seconds;
    this.to += seconds;
    this.top += pixels;
    this.clamp();
  }

  private clamp(): void {
    const span = this.to - this.from;
    const margin = span * 0.1;
    this.from = Math.min(Math.max(this.from, -margin), this.data.end + margin - span < -margin ? -margin : this.data.end + margin - span);
    this.to = this.from + span;
    const room = this.canvas.clientHeight - AXIS;
    this.top = Math.max(0, Math.min(this.top, this.height - room));
    this.draw();
  }

  private reveal(bar: number): void {
    const span = this.to - this.from;
    const start = this.data.start[bar]!;
    if (start < this.from || start > this.to) {
      this.from = start - span / 3;
      this.to = this.from + span;
    }
    const y = this.tops[this.data.lane[bar]!]!;
    const room = this.canvas.clientHeight - AXIS;
    if (y < this.top || y + TALL > this.top + room) this.top = y - room / 2;
    this.clamp();
  }

  private get labelWidth(): number {
    return Math.min(LABELS, this.canvas.clientWidth / 4);
  }

  private timeAt(x: number): number {
    const left = this.labelWidth;
    return this.from + ((x - left) * (this.to - this.from)) / Math.max(1, this.canvas.clientWidth - left);
  }

  private paint(): void {
    const ratio = window.devicePixelRatio || 1;
    const width = this.canvas.clientWidth;
    const height = this.canvas.clientHeight;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    const pen = this.canvas.getContext("2d");
    if (pen === null) return;
    const style = getComputedStyle(this.canvas);
    const colour = (name: string): string => style.getPropertyValue(name).trim();
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = colour("--surface");
    pen.fillRect(0, 0, width, height);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    this.paintAxis(pen, width, height, colour);
    pen.save();
    pen.beginPath();
    pen.rect(this.labelWidth, AXIS, width, height);
    pen.clip();
    this.tops.forEach((_, lane) => this.paintLane(pen, lane, width, height, colour));
    this.paintMarks(pen, width, height, colour);
    this.paintCarried(pen, width, colour);
    pen.restore();
    this.paintLabels(pen, height, colour);
  }

  private paintAxis(pen: CanvasRenderingContext2D, width: number, height: number, colour: (name: string) => string): void {
    const left = this.labelWidth;
    const step = axisSteps(this.to - this.from, this.data.end, (width - left) / 90);
    const scale = (width - left) / (this.to - this.from);
    pen.strokeStyle = colour("--line");
    pen.fillStyle = colour("--muted");
    pen.lineWidth = 1;
    for (let t = Math.max(0, Math.ceil(this.from / step) * step); t <= this.to; t += step) {
      const x = Math.round(left + (t - this.from) * scale) + 0.5;
      pen.beginPath();
      pen.moveTo(x, AXIS - 5);
      pen.lineTo(x, height);
      pen.stroke();
      pen.fillText(axisLabel(t, this.data.end), x + 3, AXIS / 2);
    }
  }

  private paintLane(
    pen: CanvasRenderingContext2D,
    lane: number,
    width: number,
    height: number,
    colour: (name: string) => string,
  ): void {
    const y = AXIS + this.tops[lane]! - this.top;
    const tall = this.tallness(lane);
    if (y + tall < AXIS || y > height) return;
    const left = this.labelWidth;
    const scale = (width - left) / (this.to - this.from);
    const { ghosts, bars, longest, until } = this.byLane[lane]!;
    pen.strokeStyle = colour("--ghost");
    pen.setLineDash([3, 2]);
    this.visible(ghosts, longest, (bar) => {
      const x = left + (this.data.start[bar]! - this.from) * scale;
      const wide = (this.data.finish[bar]! - this.data.start[bar]!) * scale;
      if (wide > 3) pen.strokeRect(x + 0.5, y + 1.5, wide - 1, tall - 3);
    });
    pen.setLineDash([]);
    let drawn = -Infinity;
    this.visible(bars, longest, (bar) => {
      const x = left + (this.data.start[bar]! - this.from) * scale;
      const end = until?.get(bar) ?? this.data.finish[bar]!;
      const wide = Math.max(1, (end - this.data.start[bar]!) * scale);
      if (x + wide < drawn + 0.5 && !this.marked(bar)) return;
      drawn = x + wide;
      this.paintBar(pen, bar, x, y + tall * 0.16, wide, tall * 0.68, colour);
    });
  }

  private marked(bar: number): boolean {
    return bar === this.selected || this.chain.has(bar);
  }

  private paintBar(
    pen: CanvasRenderingContext2D,
    bar: number,
    x: number,
    y: number,
    wide: number,
    tall: number,
    colour: (name: string) => string,
  ): void {
    const fill = this.data.colours[this.data.colour[bar]!]![1];
    pen.fillStyle = fill;
    pen.fillRect(x, y, wide > 4 ? wide - 1 : wide, tall); // a gap between bars of one colour
    if (this.showCritical && this.critical.has(bar)) {
      pen.fillStyle = colour("--strong");
      pen.fillRect(x, y + tall - 2, wide, 2);
    }
    if (this.marked(bar)) {
      pen.strokeStyle = colour("--strong");
      pen.lineWidth = bar === this.selected ? 2.5 : 1.5;
      pen.strokeRect(x, y, wide, tall);
      pen.lineWidth = 1;
    }
    if (wide > 40 && tall > 10) {
      pen.save();
      pen.beginPath();
      pen.rect(x, y, wide - 3, tall);
      pen.clip();
      pen.fillStyle = textOn(fill);
      pen.fillText(this.data.names[bar]!, Math.max(x, this.labelWidth) + 4, y + tall / 2 + 0.5);
      pen.restore();
    }
  }

  private paintCarried(pen: CanvasRenderingContext2D, width: number, colour: (name: string) => string): void {
    if (this.carried === null) return;
    const { bar, start, lane } = this.carried;
    const scale = (width - this.labelWidth) / (this.to - this.from);
    const x = this.labelWidth + (start - this.from) * scale;
    const wide = Math.max(3, (this.data.finish[bar]! - this.data.start[bar]!) * scale);
    const y = AXIS + this.tops[lane]! - this.top;
    pen.globalAlpha = 0.6;
    pen.fillStyle = this.data.colours[this.data.colour[bar]!]![1];
    pen.fillRect(x, y + 2, wide, TALL - 4);
    pen.globalAlpha = 1;
    pen.strokeStyle = colour("--strong");
    pen.lineWidth = 2;
    pen.strokeRect(x, y + 2, wide, TALL - 4);
    pen.lineWidth = 1;
  }

  private paintMarks(pen: CanvasRenderingContext2D, width: number, height: number, colour: (name: string) => string): void {
    const left = this.labelWidth;
    const scale = (width - left) / (this.to - this.from);
    pen.strokeStyle = colour("--strong");
    for (const [time, , dashed] of this.data.marks) {
      const x = Math.round(left + (time - this.from) * scale) + 0.5;
      pen.setLineDash(dashed ? [5, 4] : []);
      pen.beginPath();
      pen.moveTo(x, AXIS);
      pen.lineTo(x, height);
      pen.stroke();
    }
    pen.setLineDash([]);
  }

  private paintLabels(pen: CanvasRenderingContext2D, height: number, colour: (name: string) => string): void {
    pen.fillStyle = colour("--text");
    let last = -Infinity;
    this.tops.forEach((top, lane) => {
      const [group] = this.lanes[lane]!;
      const isLink = lane >= this.data.lanes.length;
      if (lane > 0 && lane !== this.data.lanes.length && this.lanes[lane - 1]![0] === group) return;
      const y = AXIS + top - this.top + (isLink ? LINK : TALL) / 2;
      if (y < AXIS || y > height || y - last < 12) return;
      last = y;
      const share = isLink ? undefined : this.data.busy?.[group];
      const used = share === undefined ? "" : ` ${Math.round(100 * share)} %`;
      pen.fillText(shortened(pen, group, this.labelWidth - 8 - pen.measureText(used).width) + used, 4, y);
    });
  }

  /** Call for each bar of a sorted list that may be within the window. */
  private visible(bars: number[], longest: number, call: (bar: number) => void): void {
    let low = 0;
    let high = bars.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.data.start[bars[middle]!]! < this.from - longest) low = middle + 1;
      else high = middle;
    }
    for (let i = low; i < bars.length && this.data.start[bars[i]!]! <= this.to; i++) {
      if (this.data.finish[bars[i]!]! >= this.from) call(bars[i]!);
    }
  }

  /** The middle of a bar on the canvas, in pixels. */
  placeOf(bar: number): { x: number; y: number } {
    const scale = (this.canvas.clientWidth - this.labelWidth) / (this.to - this.from);
    const middle = (this.data.start[bar]! + this.data.finish[bar]!) / 2;
    return { x: this.labelWidth + (middle - this.from) * scale, y: AXIS + this.tops[this.data.lane[bar]!]! - this.top + TALL / 2 };
  }

  private laneAt(y: number): number {
    const at = y - AXIS + this.top;
    const lane = this.tops.findIndex((top) => top > at) - 1;
    return lane === -2 ? this.tops.length - 1 : lane;
  }

  /** The bar at a point; -1: none. A planned outline is found where no real bar is. */
  barAt(x: number, y: number): number {
    if (x < this.labelWidth || y < AXIS) return -1;
    const within = this.byLane[this.laneAt(y)];
    if (within === undefined || y - AXIS + this.top > this.height) return -1;
    const time = this.timeAt(x);
    const near = 2 * ((this.to - this.from) / Math.max(1, this.canvas.clientWidth));
    let found = -1;
    for (const list of [within.ghosts, within.bars]) {
      this.visible(list, within.longest, (bar) => {
        const end = within.until?.get(bar) ?? this.data.finish[bar]!;
        if (this.data.start[bar]! - near <= time && time <= end + near) found = bar;
      });
    }
    return found;
  }

  private listen(): void {
    const canvas = this.canvas;
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.shiftKey) this.pan(0, event.deltaY);
      else this.zoom(1.0015 ** event.deltaY, event.offsetX);
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      const bar = this.barAt(event.offsetX, event.offsetY);
      if (bar >= 0 && bar === this.selected && this.events.onMove && !this.lanes[this.data.lane[bar]!]![1]) {
        const start = this.data.start[bar]!;
        this.carried = { bar, grip: this.timeAt(event.offsetX) - start, start, lane: this.data.lane[bar]! };
      }
      this.drag = { x: event.offsetX, y: event.offsetY, from: this.from, to: this.to, top: this.top };
    });
    canvas.addEventListener("pointermove", (event) => this.moved(event));
    canvas.addEventListener("pointerup", (event) => {
      const still = this.drag !== null && Math.hypot(event.offsetX - this.drag.x, event.offsetY - this.drag.y) < 4;
      const { carried } = this;
      this.drag = null;
      this.carried = null;
      if (carried !== null && !still) {
        this.draw();
        this.events.onMove?.(carried.bar, this.lanes[carried.lane]![0], carried.start);
      } else if (still) this.events.onSelect(this.barAt(event.offsetX, event.offsetY));
    });
    canvas.addEventListener("pointerleave", () => this.events.onHover(-1, 0, 0));
    canvas.addEventListener("dblclick", () => this.showAll());
    canvas.addEventListener("keydown", (event) => this.pressed(event));
  }

  private moved(event: PointerEvent): void {
    if (this.drag === null) {
      this.events.onHover(this.barAt(event.offsetX, event.offsetY), event.offsetX, event.offsetY);
      return;
    }
    if (this.carried !== null) {
      const lane = this.laneAt(event.offsetY);
      if (lane >= 0 && !this.lanes[lane]![1]) this.carried.lane = lane;
      this.carried.start = Math.max(0, this.timeAt(event.offsetX) - this.carried.grip);
      this.draw();
      return;
    }
    const scale = (this.drag.to - this.drag.from) / Math.max(1, this.canvas.clientWidth - this.labelWidth);
    this.from = this.drag.from - (event.offsetX - this.drag.x) * scale;
    this.to = this.from + (this.drag.to - this.drag.from);
    this.top = this.drag.top - (event.offsetY - this.drag.y);
    this.clamp();
  }

  private pressed(event: KeyboardEvent): void {
    const span = this.to - this.from;
    const middle = this.labelWidth + (this.canvas.clientWidth - this.labelWidth) / 2;
    const actions: Record<string, () => void> = {
      ArrowLeft: () => this.pan(-span / 10, 0),
      ArrowRight: () => this.pan(span / 10, 0),
      ArrowUp: () => this.pan(0, -TALL),
      ArrowDown: () => this.pan(0, TALL),
      "+": () => this.zoom(0.8, middle),
      "-": () => this.zoom(1.25, middle),
      "0": () => this.showAll(),
      n: () => this.step(1),
      p: () => this.step(-1),
    };
    const action = actions[event.key];
    if (action === undefined || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    action();
  }

  private step(by: number): void {
    const real = this.data.ghost.flatMap((ghost, bar) => (ghost ? [] : [bar]));
    real.sort((a, b) => this.data.start[a]! - this.data.start[b]! || a - b);
    if (real.length === 0) return;
    const at = real.indexOf(this.selected);
    this.events.onSelect(real[(at + by + real.length) % real.length]!);
  }
}

/** The bars of one lane; `until`: when a link was free again after each transfer, where that is not its finish. */
interface LaneBars {
  ghosts: number[];
  bars: number[];
  longest: number;
  until?: Map<number, number>;
}

function indexLanes(data: Schedule): LaneBars[] {
  const lanes: LaneBars[] = data.lanes.map(() => ({ ghosts: [], bars: [], longest: 0 }));
  for (const [, bars, ends] of data.links ?? []) {
    const until = new Map(bars.map((bar, k) => [bar, ends[k]!]));
    const longest = bars.reduce((most, bar) => Math.max(most, until.get(bar)! - data.start[bar]!), 0);
    lanes.push({ ghosts: [], bars: [...bars], longest, until });
  }
  data.lane.forEach((lane, bar) => {
    const within = lanes[lane]!;
    (data.ghost[bar] ? within.ghosts : within.bars).push(bar);
    within.longest = Math.max(within.longest, data.finish[bar]! - data.start[bar]!);
  });
  const order = (a: number, b: number): number => data.start[a]! - data.start[b]! || a - b;
  for (const { ghosts, bars } of lanes) {
    ghosts.sort(order);
    bars.sort(order);
  }
  return lanes;
}

function textOn(background: string): string {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(background.slice(at, at + 2), 16)) as [number, number, number];
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#111" : "#fff";
}

function shortened(pen: CanvasRenderingContext2D, label: string, room: number): string {
  if (pen.measureText(label).width <= room) return label;
  let keep = label.length;
  while (keep > 1 && pen.measureText(`${label.slice(0, keep)}…`).width > room) keep--;
  return `${label.slice(0, keep)}…`;
}
