// Which calls of one answer may run side by side. The order of side effects is kept: what is not provably independent waits.
import { isAbsolute, join, normalize, sep } from "node:path";
import { pathsInPatch } from "../../kit/patch-headers.ts";

export type Segment = readonly [kind: "parallel" | "sequential", indexes: readonly number[]];

interface PlannedCall {
  readonly name: string;
  /** JSON text, as the model wrote it. */
  readonly arguments: string;
}

/** What the plan cannot know by itself. */
interface PlanFacts {
  readonly home?: string;
  /** Where an absolute path leads once links are followed. */
  readonly realPath?: (path: string) => string;
  readonly isReadOnlyCommand?: (command: string) => boolean;
  /** Tools of MCP servers that declare parallel calls safe. */
  readonly isParallelTool?: (name: string) => boolean;
}

const FREE = new Set([
  "ha_get_state",
  "ha_list_entities",
  "ha_list_services",
  "session_search",
  "skill_view",
  "skills_list",
  "vision_analyze",
  "web_extract",
  "web_search",
]);

type Demand =
  | { readonly type: "barrier" }
  | { readonly type: "free" }
  | { readonly type: "delegate" }
  | { readonly type: "paths"; readonly paths: readonly string[]; readonly writes: boolean };

interface Run {
  readonly kind: "delegate" | "mixed";
  readonly indexes: number[];
  readonly reserved: { readonly path: string; readonly writes: boolean }[];
}

/** The batch as segments to run one after the other; the calls of a parallel segment run together. */
export function planToolBatch(calls: readonly PlannedCall[], cwd: string, facts: PlanFacts = {}): Segment[] {
  const all = calls.map((_, index) => index);
  if (calls.length === 0) return [];
  if (calls.some((call) => call.name === "clarify")) return [["sequential", all]];
  const segments: Segment[] = [];
  let run: Run | null = null;
  const close = () => {
    if (run) segments.push([run.indexes.length > 1 ? "parallel" : "sequential", run.indexes]);
    run = null;
  };
  calls.forEach((call, index) => {
    const demand = demandOf(call, cwd, facts);
    if (demand.type === "barrier") {
      close();
      segments.push(["sequential", [index]]);
      return;
    }
    const kind = demand.type === "delegate" ? "delegate" : "mixed";
    if (run && (run.kind !== kind || conflicts(run, demand))) close();
    run ??= { kind, indexes: [], reserved: [] };
    run.indexes.push(index);
    if (demand.type === "paths") run.reserved.push(...demand.paths.map((path) => ({ path, writes: demand.writes })));
  });
  close();
  return mergeSequential(segments);
}

/** The paths a batch touches, before links are followed; whoever plans resolves them first. */
export function pathsOfBatch(calls: readonly PlannedCall[], cwd: string, facts: PlanFacts = {}): readonly string[] {
  const plain = { ...facts, realPath: (path: string) => path };
  return calls.flatMap((call) => {
    const demand = demandOf(call, cwd, plain);
    return demand.type === "paths" ? demand.paths : [];
  });
}

function demandOf(call: PlannedCall, cwd: string, facts: PlanFacts): Demand {
  const args = parseObject(call.arguments);
  if (!args) return { type: "barrier" };
  const toReal = (path: string) => locate(path, cwd, facts);
  switch (call.name) {
    case "delegate_task":
      return { type: "delegate" };
    case "read_file":
      return reserve([args.path], false, toReal);
    case "search_files":
      return reserve([args.path ?? "."], false, toReal);
    case "write_file":
      return reserve([args.path], true, toReal);
    case "patch":
      return reserve(isV4a(args) ? pathsInPatch(String(args.patch)) : [args.path], true, toReal);
    case "terminal":
      return isQuietCommand(args, facts) ? { type: "free" } : { type: "barrier" };
    default:
      return FREE.has(call.name) || facts.isParallelTool?.(call.name) ? { type: "free" } : { type: "barrier" };
  }
}

function reserve(given: readonly unknown[], writes: boolean, toReal: (path: string) => string): Demand {
  const paths = given.filter((path) => typeof path === "string" && path.trim() !== "");
  if (paths.length === 0 || paths.length !== given.length) return { type: "barrier" };
  return { type: "paths", paths: paths.map((path) => toReal(String(path))), writes };
}

function isV4a(args: Readonly<Record<string, unknown>>): boolean {
  if (typeof args.patch !== "string") return false;
  return args.mode === "patch" || args.mode === "v4a" || args.mode === undefined;
}

function isQuietCommand(args: Readonly<Record<string, unknown>>, facts: PlanFacts): boolean {
  if (args.background === true || args.pty === true || typeof args.command !== "string") return false;
  return facts.isReadOnlyCommand?.(args.command) === true;
}

function locate(path: string, cwd: string, facts: PlanFacts): string {
  const inHome = facts.home !== undefined && (path === "~" || path.startsWith("~/"));
  const expanded = inHome ? join(facts.home, path.slice(1)) : path;
  const absolute = normalize(isAbsolute(expanded) ? expanded : join(cwd, expanded));
  const real = facts.realPath?.(absolute) ?? absolute;
  return real.length > 1 && real.endsWith(sep) ? real.slice(0, -1) : real;
}

function conflicts(run: Run, demand: Demand): boolean {
  if (demand.type !== "paths") return false;
  return run.reserved.some(
    (taken) => (taken.writes || demand.writes) && demand.paths.some((path) => overlap(taken.path, path)),
  );
}

/** Equal, or one holds the other. Compared by whole segments: `/a/bc` does not lie in `/a/b`. */
function overlap(a: string, b: string): boolean {
  return a === b || a === sep || b === sep || a.startsWith(b + sep) || b.startsWith(a + sep);
}

function mergeSequential(segments: readonly Segment[]): Segment[] {
  const merged: Segment[] = [];
  for (const segment of segments) {
    const last = merged.at(-1);
    if (last?.[0] === "sequential" && segment[0] === "sequential")
      merged[merged.length - 1] = ["sequential", [...last[1], ...segment[1]]];
    else merged.push(segment);
  }
  return merged;
}

function parseObject(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
    return value as Record<string, unknown>; // a parsed object
  } catch {
    return null;
  }
}
