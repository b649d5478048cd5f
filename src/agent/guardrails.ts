// Notices that a turn runs in circles: the same call failing again, the same tool failing again, the same answer again.
import { createHash } from "node:crypto";
import type { Config } from "../home/config/schema.ts";
import type { ToolHooks } from "./assembly.ts";
import { canonicalJson } from "./repair.ts";
import { isFailedResult } from "./tool-runner.ts";

type GuardSettings = Config["tool_loop_guardrails"];
type PartialSettings = {
  readonly warnings_enabled?: boolean;
  readonly hard_stop_enabled?: boolean;
  readonly warn_after?: Partial<GuardSettings["warn_after"]>;
  readonly hard_stop_after?: Partial<GuardSettings["hard_stop_after"]>;
};

interface GuardDecision {
  readonly action: "allow" | "warn" | "block" | "halt";
  readonly code: string;
  readonly count: number;
}

const WARN_AFTER = { exact_failure: 2, same_tool_failure: 3, idempotent_no_progress: 2 };
const HARD_STOP_AFTER = { exact_failure: 5, same_tool_failure: 8, idempotent_no_progress: 5 };

/** Asking again gives the same answer. */
const IDEMPOTENT: ReadonlySet<string> = new Set([
  ...["read_file", "search_files", "web_search", "web_extract", "session_search"],
  ...["browser_snapshot", "browser_console", "browser_get_images"],
]);
const READ_ONLY_MCP =
  /^mcp_+filesystem_+(?:read_(?:text_|media_|multiple_)?files?|list_directory(?:_with_sizes)?|list_allowed_directories|directory_tree|get_file_info|search_files)$/;

/** Calls of one turn that are enough for anybody. */
const TURN_CAPS: Readonly<Record<string, { readonly most: number; readonly code: string }>> = {
  web_search: { most: 50, code: "web_search_cap" },
  delegate_task: { most: 50, code: "subagent_cap" },
};

const ADVICE: Readonly<Record<string, string>> = {
  repeated_exact_failure_warning: "this very call failed before; change its arguments or take another way",
  repeated_exact_failure_block:
    "this very call failed too often and is not run again; change its arguments or take another way",
  same_tool_failure_warning: "this tool keeps failing; read its errors, check your assumptions or use another tool",
  same_tool_failure_halt: "this tool keeps failing",
  idempotent_no_progress_warning: "you have this answer already; use it instead of asking again",
  idempotent_no_progress_block:
    "the same call gave the same answer too often and is not run again; use the answer you have",
  web_search_cap: "this turn has searched the web often enough; work with what was found",
  subagent_cap: "this turn has started enough sub-agents; work with what they found",
};

/** One per turn. `before` only blocks; `after` counts and warns. */
export class ToolLoopGuard {
  readonly #warnings: boolean;
  readonly #hardStop: boolean;
  readonly #warnAfter: GuardSettings["warn_after"];
  readonly #stopAfter: GuardSettings["hard_stop_after"];
  readonly #failedCalls = new Map<string, number>();
  readonly #failedTools = new Map<string, number>();
  readonly #answers = new Map<string, { readonly result: string; readonly count: number }>();
  readonly #used = new Map<string, number>();
  #halt: (GuardDecision & { readonly tool: string }) | null = null;

  constructor(settings: PartialSettings = {}) {
    this.#warnings = settings.warnings_enabled ?? true;
    this.#hardStop = settings.hard_stop_enabled ?? false;
    this.#warnAfter = { ...WARN_AFTER, ...settings.warn_after };
    this.#stopAfter = { ...HARD_STOP_AFTER, ...settings.hard_stop_after };
  }

  /** Set once a tool failed so often that the turn has to end. */
  get halt(): (GuardDecision & { readonly tool: string }) | null {
    return this.#halt;
  }

  before(tool: string, args: unknown): GuardDecision {
    const capped = this.#count(tool, args);
    if (capped) return capped;
    if (!this.#hardStop) return allow(0);
    const key = keyOf(tool, args);
    const failures = this.#failedCalls.get(key) ?? 0;
    if (failures >= this.#stopAfter.exact_failure) return decide("block", "repeated_exact_failure_block", failures);
    const repeats = this.#answers.get(key)?.count ?? 0;
    if (repeats >= this.#stopAfter.idempotent_no_progress)
      return decide("block", "idempotent_no_progress_block", repeats);
    return allow(0);
  }

  after(tool: string, args: unknown, result: string, failed: boolean = isFailedResult(tool, result)): GuardDecision {
    const key = keyOf(tool, args);
    return failed ? this.#afterFailure(tool, key) : this.#afterSuccess(tool, key, result);
  }

  #afterFailure(tool: string, key: string): GuardDecision {
    const exact = add(this.#failedCalls, key, 1);
    const same = add(this.#failedTools, tool, 1);
    this.#answers.delete(key);
    if (this.#hardStop && same >= this.#stopAfter.same_tool_failure) {
      const decision = decide("halt", "same_tool_failure_halt", same);
      this.#halt ??= { ...decision, tool };
      return decision;
    }
    if (this.#warnings && exact >= this.#warnAfter.exact_failure)
      return decide("warn", "repeated_exact_failure_warning", exact);
    if (this.#warnings && same >= this.#warnAfter.same_tool_failure)
      return decide("warn", "same_tool_failure_warning", same);
    return allow(exact);
  }

  #afterSuccess(tool: string, key: string, result: string): GuardDecision {
    this.#failedCalls.delete(key);
    this.#failedTools.delete(tool);
    if (!isIdempotent(tool)) return allow(0);
    const answer = digest(canonicalResult(result));
    const before = this.#answers.get(key);
    const count = before?.result === answer ? before.count + 1 : 1;
    this.#answers.set(key, { result: answer, count });
    if (!this.#warnings || count < this.#warnAfter.idempotent_no_progress) return allow(count);
    return decide("warn", "idempotent_no_progress_warning", count);
  }

  #count(tool: string, args: unknown): GuardDecision | null {
    const cap = Object.hasOwn(TURN_CAPS, tool) ? TURN_CAPS[tool] : undefined;
    if (!cap) return null;
    const used = add(this.#used, tool, tool === "delegate_task" ? childrenIn(args) : 1);
    return used > cap.most ? decide("block", cap.code, used) : null;
  }
}

/** Appended to the result of a call that was warned about. */
function guardWarning({ code, count }: GuardDecision): string {
  return `[Tool loop warning: ${code}; count=${count}; ${ADVICE[code] ?? "take another way"}]`;
}

/** The result of a call that was not run. */
function guardRefusal({ code, count }: GuardDecision): string {
  return `Not run (${code}; count=${count}): ${ADVICE[code] ?? "take another way"}`;
}

/** The guard stands behind the blocking hooks of others and before their appendices. Calls that others blocked are not counted. */
export function guardedHooks(guard: ToolLoopGuard, hooks: ToolHooks = {}): ToolHooks {
  return {
    ...hooks,
    async before(call, run) {
      const blocked = await hooks.before?.(call, run);
      if (blocked) return blocked;
      const decision = guard.before(call.name, call.args);
      return decision.action === "block" ? guardRefusal(decision) : null;
    },
    async appendix(call, result, run) {
      const decision =
        result.status === "blocked" ? null : guard.after(call.name, call.args, result.text, result.status === "failed");
      const warning = decision?.action === "warn" ? [guardWarning(decision)] : [];
      const more = (await hooks.appendix?.(call, result, run)) ?? "";
      return [...warning, ...(more === "" ? [] : [more])].join("\n\n") || null;
    },
  };
}

const allow = (count: number): GuardDecision => ({ action: "allow", code: "allow", count });
const decide = (action: GuardDecision["action"], code: string, count: number): GuardDecision => ({
  action,
  code,
  count,
});

function isIdempotent(tool: string): boolean {
  return IDEMPOTENT.has(tool) || READ_ONLY_MCP.test(tool);
}

function add(counts: Map<string, number>, key: string, more: number): number {
  const count = (counts.get(key) ?? 0) + more;
  counts.set(key, count);
  return count;
}

function childrenIn(args: unknown): number {
  const tasks = typeof args === "object" && args !== null && "tasks" in args ? args.tasks : undefined;
  return Array.isArray(tasks) ? Math.max(1, tasks.length) : 1;
}

function keyOf(tool: string, args: unknown): string {
  const value = typeof args === "string" ? (parse(args) ?? args) : args;
  return `${tool}\n${digest(canonicalJson(value ?? {}))}`;
}

function canonicalResult(result: string): string {
  const value = /^\s*[[{]/.test(result) ? parse(result) : undefined;
  return value === undefined ? result : canonicalJson(value);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined; // compared as text
  }
}

const digest = (text: string) => createHash("sha256").update(text).digest("base64");
