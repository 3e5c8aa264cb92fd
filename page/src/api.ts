/** Requests to the server, and its events. */

import type { Flow, Picture } from "./deploy/sankey";
import type { LibraryEntry } from "./draw/Library";
import type { Drawing, FunctionSource } from "./draw/model";
import type { Schedule } from "./gantt/schedule";

export interface DrawingAnswer { file: string; python: string; functions: FunctionSource[]; problems: { task: string; problem: string }[] }
export interface OverviewNode { id: string; level: number; kind: string; box: number; tasks?: number; name?: string; rest?: boolean }
export interface OverviewAnswer { name: string; tasks: number; nodes: OverviewNode[]; edges: [string, string, number][]; opened: number[] }

export interface FileEntry { path: string; kind: "program" | "platform" | "pipeline" | "deployment" | "rules" }
export interface Scheduler { name: string; programs: string; line: string }
export interface RuleVerdict {
  name: string;
  importance: string;
  kind: string;
  line: number;
  kept: boolean;
  rows: number;
  failed: number;
  first_miss: string;
  share: number | null;
  cost: number | null;
}
export interface PlanRequest { program: string; platform: string; scheduler: string; rules: string; execute: boolean; seconds?: number }
export interface PlanAnswer {
  job: number;
  status: "running" | "done" | "failed";
  request: PlanRequest;
  schedule?: Schedule;
  summary?: [string, string][];
  makespan?: number;
  rules?: RuleVerdict[];
  error?: string;
}
export interface RuleOffer { says: string; text: string; rules: string }
export interface RuleError { problem: string; hint: string; line: number; column: number }
export interface RunRow {
  id: string;
  program: string;
  platform: string;
  scheduler: string;
  status: string;
  started: number;
  makespan: number | null;
}
export type LoadedRun = RunAnswer & { schedule: Schedule };
export interface RunAnswer { schedule: Schedule | null; rules: { headers: string[]; rows: string[][] } | null }
export interface PlanProgress { job: number; status: string; seconds?: number; makespan?: number; bound?: number }

async function ask<T>(path: string, body?: unknown): Promise<T> {
  const options: RequestInit =
    body === undefined
      ? {}
      : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(path, { ...options, credentials: "same-origin" });
  const read: unknown = await answer.json().catch(() => ({ error: `${answer.status} ${answer.statusText}` }));
  if (!answer.ok) throw new Error((read as { error?: string }).error ?? answer.statusText);
  return read as T;
}

export const api = {
  library: (places: string[]) => ask<LibraryEntry[]>("/api/library", { places }),
  openDrawing: (file: string) => ask<DrawingAnswer & { drawing: Drawing; version: string }>("/api/drawings/open", { file }),
  checkDrawing: (drawing: Drawing, file: string) => ask<DrawingAnswer>("/api/drawings/check", { drawing, file }),
  saveDrawing: (drawing: Drawing, file: string, version: string) => ask<DrawingAnswer & { version: string }>("/api/drawings/save", { drawing, file, version }),
  executes: (program: string) => ask<{ executes: string[] }>("/api/programs/executes", { program }),
  overview: (program: string, opened: string[]) => ask<OverviewAnswer>("/api/programs/overview", { program, opened }),
  files: () => ask<{ root: string; files: FileEntry[] }>("/api/files"),
  schedulers: () => ask<Scheduler[]>("/api/schedulers"),
  plan: (request: PlanRequest) => ask<PlanAnswer>("/api/plans", request),
  job: (job: number) => ask<PlanAnswer>(`/api/plans/${job}`),
  offers: (job: number, move: { task: string; host: string; start: number }, rules: string) => ask<{ offers: RuleOffer[] }>(`/api/plans/${job}/offers`, { ...move, rules }),
  stopPlan: (job: number) => ask<{ job: number }>(`/api/plans/${job}/stop`, {}),
  checkRules: (text: string) => ask<{ errors: RuleError[] }>("/api/rules/check", { text }),
  attributes: () => ask<{ relation: string; name: string }[]>("/api/rules/attributes"),
  runs: () => ask<RunRow[]>("/api/runs"),
  start: (request: RunRequest) => ask<{ process: number; command: string[] }>("/api/runs", request),
  stop: (run: string) => ask<{ run: string }>(`/api/runs/${encodeURIComponent(run)}/stop`, {}),
  since: (run: string, after: number) => ask<{ status: string; last: number; rows: [string, string, number, number][] }>(`/api/runs/${encodeURIComponent(run)}/since`, { after }),
  log: (run: string, task: string, seen: Record<string, number>) => ask<LogAnswer>(`/api/runs/${encodeURIComponent(run)}/log`, { task, seen }),
  compare: (first: string, second: string) => ask<Comparison>("/api/compare", { first, second }),
  results: (run: string) => ask<ResultEntry[]>(`/api/runs/${encodeURIComponent(run)}/results`),
  preview: (run: string, item: string) => ask<Preview>(`/api/runs/${encodeURIComponent(run)}/preview`, { item }),
  report: (run: string) => ask<{ name: string; html: string }>(`/api/runs/${encodeURIComponent(run)}/report`),
  experiments: () => ask<Experiment[]>("/api/experiments"),
  experimentTable: (name: string, where: string) => ask<ExperimentTable>("/api/experiments/table", { name, where }),
  experimentPlot: (name: string, where: string, x: string, y: string, by: string) => ask<{ svg: string }>("/api/experiments/plot", { name, where, x, y, by }),
  deploy: (request: DeployRequest) => ask<JobAnswer>("/api/deployments", request),
  saveDeployment: (job: number, file: string) => ask<{ file: string }>(`/api/deployments/${job}/save`, { file }),
  streams: () => ask<StreamState[]>("/api/streams"),
  startStream: (request: StreamRequest) => ask<StreamState>("/api/streams", request),
  stopStream: (process: number) => ask<StreamState>(`/api/streams/${process}/stop`, {}),
  simulate: (request: SimulateRequest) => ask<JobAnswer>("/api/simulations", request),
  hosts: (platform: string) => ask<{ hosts: string[]; sites: string[] }>("/api/platforms/hosts", { platform }),
  workJob: <T extends JobAnswer>(job: number) => ask<T>(`/api/jobs/${job}`),
  stopJob: (job: number) => ask<JobAnswer>(`/api/jobs/${job}/stop`, {}),
  run: (run: string) => ask<RunAnswer>(`/api/runs/${encodeURIComponent(run)}`),
};

export interface JobAnswer { job: number; kind: string; status: "running" | "done" | "failed" | "stopped"; error?: string }
export interface DeployRequest { pipeline: string; platform: string; planner: string; source: string; several_per_host: boolean; seconds: number }
export interface DeployAnswer extends JobAnswer {
  request: { pipeline: string; platform: string };
  title: string;
  throughput: number;
  summary: string[][];
  filters: { headers: string[]; rows: string[][] };
  picture: Picture;
}
export interface StreamRequest {
  app: string; execute: boolean; job: number; deployment: string; platform: string; pipeline: string;
  slower: number; speeds: string; duration: number; adapt: boolean; output: string;
}
export interface StreamLive { seconds: number; units: number; rate: number; planned: number | null; flows: Flow[]; copies: { name: string; filter: string; host: string; busy: number }[] }
export interface StreamState {
  process: number;
  app: string;
  status: "running" | "done" | "stopped" | "failed";
  live: StreamLive | null;
  outcome: { throughput: number | null; planned: number | null; limit: string } | null;
  said: string;
}
export interface SimulateRequest { program: string; platform: string; scheduler: string; runs: number; seed: number; error: number; estimates: string; faults: string; execute: boolean }
export interface SimulateAnswer extends JobAnswer {
  title: string;
  summary: string[][];
  command: string;
  planned?: number;
  runs: number;
  failed: number;
  makespan: { least: number | null; mean: number | null; median: number | null; p95: number | null; worst: number | null };
  confidence_interval: (number | null)[];
  seeds: { first: number };
  makespans: (number | null)[];
}
export interface RunRequest { program: string; scheduler: string; execute: boolean; emulate: boolean; time_scale: number }
export interface RunProgress { run: string; status: string; tasks: number; transfers: number }
export interface RunEnd { process: number; code: number; said: string }

export interface CompareRow { task: string; hosts: (string | null)[]; starts: (number | null)[]; seconds: (number | null)[]; difference: number | null }
export interface Comparison { runs: RunRow[]; rows: CompareRow[]; tasks: number }
export interface ResultEntry { item: string; task: string; size: number; name: string }
export interface Preview {
  item: string;
  location: string;
  kind: "image" | "array" | "table" | "text" | "bytes" | "folder";
  size: string;
  source?: string;
  text?: string;
  facts?: [string, string][];
  headers?: string[];
  rows?: string[][];
  cut?: boolean;
}
export interface Experiment { id: number; name: string; run: string; points: number; tasks: number; reused: number }
export interface ExperimentTable { columns: string[]; parameters: string[]; rows: (string | number | null)[][]; total: number; csv: string }
export interface LogAnswer { status: string; pieces: { attempt: number; host: string; text: string; end: number }[] }
export interface WorkerSample { worker: number; cpu: number; memory: number }
export interface RunLoad { process: number; workers: WorkerSample[]; changes: string[] }

/** Follow runs of the record, and the loads and ends of those that were started here. */
export function followRuns(told: (progress: RunProgress) => void, ended: (end: RunEnd) => void, loaded: (load: RunLoad) => void, reset: () => void): () => void {
  const source = new EventSource("/api/events");
  source.addEventListener("load", (event) => loaded(JSON.parse((event as MessageEvent<string>).data) as RunLoad));
  source.addEventListener("run", (event) => told(JSON.parse((event as MessageEvent<string>).data) as RunProgress));
  source.addEventListener("ended", (event) => ended(JSON.parse((event as MessageEvent<string>).data) as RunEnd));
  source.addEventListener("reset", reset);
  return () => source.close();
}

/** Follow the progress of plans. The browser reconnects by itself and says what it has seen last. */
export function followPlans(told: (progress: PlanProgress) => void, reset: () => void): () => void {
  const source = new EventSource("/api/events");
  source.addEventListener("plan", (event) => told(JSON.parse((event as MessageEvent<string>).data) as PlanProgress));
  source.addEventListener("reset", reset);
  source.addEventListener("open", reset); // what ended before the events came is found by asking
  return () => source.close();
}

/** Follow pipelines that were started here; `look` is called when there is something new, or may have been. */
export function followStreams(look: () => void): () => void {
  const source = new EventSource("/api/events");
  for (const kind of ["stream", "reset", "open"]) source.addEventListener(kind, look);
  return () => source.close();
}

/** Follow one job until it is done. */
export function followJob<T extends JobAnswer>(job: number, said: (text: string) => void, done: (answer: T) => void, failed: (problem: Error) => void): () => void {
  const source = new EventSource("/api/events");
  let over = false;
  const look = (): void => {
    api.workJob<T>(job).then((answer) => {
      if (answer.status === "running" || over) return;
      over = true;
      source.close();
      done(answer);
    }).catch(failed);
  };
  source.addEventListener("job", (event) => {
    const told = JSON.parse((event as MessageEvent<string>).data) as { job: number; status: string; said?: string };
    if (told.job !== job) return;
    if (told.status === "running") said(told.said ?? "");
    else look();
  });
  source.addEventListener("reset", look);
  source.addEventListener("open", look);
  return () => { over = true; source.close(); };
}
