// From the arguments of a memory call to operations that may be carried out, or the reason why not.
import { type Finding, scanForThreats } from "../safety/threats/scan.ts";
import { fail, type MemoryFailure } from "./entries.ts";
import { hasDelimiterLine, type MemoryTarget, TARGETS, tidyText } from "./format.ts";

export const ACTIONS = ["add", "replace", "remove"] as const;
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

export function batchFailure(index: number, action: string, reason: string): MemoryFailure {
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

function isRecord(value: unknown): value is Arguments {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function show(value: unknown): string {
  return value === undefined ? "(none)" : (JSON.stringify(value) ?? String(value)).slice(0, 80);
}
