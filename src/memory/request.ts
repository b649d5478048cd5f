// From the arguments of a memory call to operations that may be carried out, or the reason why not.

import { countCodePoints, truncateCodePoints } from "../kit/code-points.ts";
import { isRecord } from "../kit/json.ts";
import { type Finding, scanForThreats } from "../safety/threats/scan.ts";
import {
  FILE_NAMES,
  fail,
  hasDelimiterLine,
  lengthOf,
  type MemoryFailure,
  type MemoryTarget,
  shortUsage,
  TARGETS,
  tidyText,
  withCommas,
} from "./entries.ts";

const ACTIONS = ["add", "replace", "remove"] as const;
export type MemoryAction = (typeof ACTIONS)[number];

/** One change, its texts tidied and checked. */
export type Operation =
  | { readonly action: "add"; readonly content: string }
  | { readonly action: "replace"; readonly oldText: string; readonly content: string }
  | { readonly action: "remove"; readonly oldText: string };

export interface MemoryRequest {
  readonly target: MemoryTarget;
  readonly batch: boolean;
  readonly operations: readonly Operation[];
}

type Arguments = Readonly<Record<string, unknown>>;

export function parseRequest(args: Arguments): MemoryRequest | MemoryFailure {
  const target = args.target ?? "memory";
  if (!isOneOf(TARGETS, target)) {
    return fail("bad_target", `Unknown target ${show(args.target)}: use "memory" or "user".`);
  }
  const { operations } = args;
  if (operations !== undefined && operations !== null && !Array.isArray(operations)) {
    return fail("bad_action", `operations must be a list of {action, content, old_text}, not ${show(operations)}.`);
  }
  if (operations && operations.length > 0) return parseBatch(target, operations);
  const operation = parseOperation(args);
  if ("code" in operation) return operation;
  return checkContent(operation) ?? { target, batch: false, operations: [operation] };
}

/** Contents are looked at first, all of them: a dangerous one is the thing to know, whatever else is wrong. */
function parseBatch(target: MemoryTarget, given: readonly unknown[]): MemoryRequest | MemoryFailure {
  const parsed = given.map((item) => parseOperation(isRecord(item) ? item : {}));
  for (const [index, item] of given.entries()) {
    const content = isRecord(item) ? textOf(item.content) : undefined;
    const problem = content === undefined ? undefined : checkContent({ action: "add", content: tidyText(content) });
    if (problem) return { ...problem, error: `Operation ${index + 1}: ${problem.error}` };
  }
  const operations: Operation[] = [];
  for (const [index, operation] of parsed.entries()) {
    if ("code" in operation) return batchFailure(index, actionOf(given[index]), operation.error);
    operations.push(operation);
  }
  return { target, batch: true, operations };
}

function batchFailure(index: number, action: string, reason: string): MemoryFailure {
  return fail("batch_failed", `Operation ${index + 1} (${action}): ${reason} Nothing of the batch was applied.`);
}

function parseOperation(args: Arguments): Operation | MemoryFailure {
  const { action } = args;
  if (!isOneOf(ACTIONS, action)) {
    return fail("bad_action", `Unknown action ${show(action)}: use add, replace or remove.`);
  }
  const oldText = tidyText(textOf(args.old_text) ?? "");
  if (action === "remove") return oldText === "" ? missingOldText(action) : { action, oldText };

  const given = textOf(args.content);
  if (given === undefined) return fail("missing_content", `${action} needs content: the text of the entry.`);
  const content = tidyText(given);
  if (content === "") {
    const instead = action === "replace" ? " To delete an entry use remove instead." : "";
    return fail("empty_content", `content is empty.${instead}`);
  }
  if (action === "add") return { action, content };
  return oldText === "" ? missingOldText(action) : { action, oldText, content };
}

function missingOldText(action: string): MemoryFailure {
  return fail(
    "missing_old_text",
    `${action} needs old_text. Call it again with a substring that only the entry you mean contains; current_entries shows them.`,
  );
}

function checkContent(operation: Operation): MemoryFailure | undefined {
  if (operation.action === "remove") return undefined;
  const [finding] = scanForThreats(operation.content, "strict");
  if (finding) return fail("threat", threatMessage(finding));
  if (!hasDelimiterLine(operation.content)) return undefined;
  return fail(
    "delimiter",
    "content has a line with nothing but §, which separates entries. Add the parts as separate entries.",
  );
}

function threatMessage({ id }: Finding): string {
  const invisible = /^invisible_unicode_(.+)$/.exec(id)?.[1];
  if (invisible) return `Blocked: content contains invisible unicode character ${invisible} (possible injection).`;
  return `Blocked: content matches threat pattern '${id}'. Memory is part of every prompt; say it in other words or leave it out.`;
}

function actionOf(item: unknown): string {
  return isRecord(item) && typeof item.action === "string" ? item.action : "no action";
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : undefined;
}

function isOneOf<T extends string>(choices: readonly T[], value: unknown): value is T {
  return choices.some((choice) => choice === value);
}

function show(value: unknown): string {
  return value === undefined ? "(none)" : (JSON.stringify(value) ?? String(value)).slice(0, 80);
}

// Operations on a list of entries. Pure: what is on disk is someone else's business.

type Applied =
  | { readonly type: "changed"; readonly entries: readonly string[]; readonly message: string }
  | { readonly type: "failed"; readonly failure: MemoryFailure }
  /** The entry that was meant is longer than a whole store may be: someone else put free text into the file. */
  | { readonly type: "drifted"; readonly entry: string };

/** All or nothing, judged by the final state. */
export function applyOperations(entries: readonly string[], request: MemoryRequest, limit: number): Applied {
  let working = entries;
  let message = "";
  for (const [index, operation] of request.operations.entries()) {
    const step = applyOne(working, operation);
    if ("failure" in step) {
      const failure = request.batch ? batchFailure(index, operation.action, step.failure.error) : step.failure;
      return { type: "failed", failure };
    }
    if (step.touched !== null && entries.includes(step.touched) && countCodePoints(step.touched) > limit) {
      return { type: "drifted", entry: step.touched };
    }
    working = step.entries;
    message = step.message;
  }
  const failure = checkBudget(entries, working, request, limit);
  if (failure) return { type: "failed", failure };
  if (request.batch) message = `Applied ${request.operations.length} operation(s).`;
  return { type: "changed", entries: working, message };
}

interface Step {
  readonly entries: readonly string[];
  readonly message: string;
  /** The entry that was changed or removed. */
  readonly touched: string | null;
}

function applyOne(entries: readonly string[], operation: Operation): Step | { readonly failure: MemoryFailure } {
  if (operation.action === "add") {
    if (entries.includes(operation.content)) {
      return { entries, message: "Entry already exists (nothing added).", touched: null };
    }
    return { entries: [...entries, operation.content], message: "Entry added.", touched: null };
  }
  const found = findEntry(entries, operation.oldText);
  if (typeof found !== "string") return { failure: found };
  if (operation.action === "remove") {
    return { entries: entries.filter((entry) => entry !== found), message: "Entry removed.", touched: found };
  }
  const replaced = entries.map((entry) => (entry === found ? operation.content : entry));
  return { entries: [...new Set(replaced)], message: "Entry replaced.", touched: found };
}

/** The one entry that contains the text; an entry that is the text wins, or it could never be named next to a longer one. */
export function findEntry(entries: readonly string[], oldText: string): string | MemoryFailure {
  if (entries.includes(oldText)) return oldText;
  const matches = entries.filter((entry) => entry.includes(oldText));
  const [only] = matches;
  const what = JSON.stringify(truncateCodePoints(oldText, 200, "..."));
  if (only === undefined) {
    return fail("no_match", `No entry contains ${what}. Copy a part of an entry exactly; current_entries shows them.`);
  }
  if (matches.length === 1) return only;
  return fail(
    "ambiguous",
    `${matches.length} entries contain ${what}. Call it again with a more precise old_text that only one of them contains.`,
    { matches: matches.map((entry) => (countCodePoints(entry) > 80 ? `${truncateCodePoints(entry, 80)}...` : entry)) },
  );
}

/** A store that is over its limit, say because the limit was lowered, can still be made smaller step by step. */
function checkBudget(
  before: readonly string[],
  after: readonly string[],
  { batch, operations }: MemoryRequest,
  limit: number,
): MemoryFailure | null {
  const current = lengthOf(before);
  const resulting = lengthOf(after);
  if (resulting <= limit || resulting < current || sameEntries(before, after)) return null;
  const added = operations.reduce((sum, op) => sum + (op.action === "remove" ? 0 : countCodePoints(op.content)), 0);
  const fact =
    !batch && operations[0]?.action === "add"
      ? `The store is at ${shortUsage(current, limit)} chars; this entry has ${withCommas(added)} more and does not fit.`
      : `The result would have ${shortUsage(resulting, limit)} chars; the new text is ${withCommas(added)} of them.`;
  return fail(
    "over_limit",
    `${fact} Nothing was changed. Free room now, in this turn: replace entries by shorter ones or remove stale ones (current_entries ` +
      "shows them), best in one operations batch that frees room and adds; only the final size counts.",
  );
}

export function sameEntries(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((entry, index) => entry === b[index]);
}

// Why a memory write failed, for the person who asked for it. The result itself speaks to a model.

/** `show` is how the user looks at the entries here, e.g. `hermes memory show`. */
export function explainFailure(
  failure: MemoryFailure,
  about: { readonly target: MemoryTarget; readonly show: string },
): string {
  const file = FILE_NAMES[about.target];
  switch (failure.code) {
    case "over_limit":
      return (
        `There is not enough room in ${file}: ${failure.usage ?? "all"} characters used. Nothing was changed. Shorten it, or ` +
        `remove an entry first (${about.show} lists them).`
      );
    case "threat": {
      const what = /'([^']+)'|character (U\+\w+)/.exec(failure.error);
      return (
        `This text looks like an instruction that somebody slipped in (${what?.[1] ?? what?.[2] ?? "unknown pattern"}). Memory is part of every ` +
        "prompt, so it was not saved. Say it in other words."
      );
    }
    case "delimiter":
      return "A line with nothing but § separates entries. Add the parts one by one.";
    case "missing_content":
    case "empty_content":
      return "The entry is empty. Nothing was changed.";
    case "target_disabled":
      return `${file} is switched off (${about.target === "memory" ? "memory.memory_enabled" : "memory.user_profile_enabled"} in config.yaml). Nothing was changed.`;
    case "unavailable":
      return "Memory is switched off (memory.memory_enabled and memory.user_profile_enabled in config.yaml).";
    case "no_match":
    case "ambiguous":
      return `The entry is not there any more: somebody changed ${file} meanwhile. ${about.show} lists what is there.`;
    case "drift":
      return `${failure.error} ${failure.remediation?.replace("Tell the user. ", "") ?? ""}`.trim();
    default:
      return failure.error;
  }
}
