// Operations on a list of entries. Pure: what is on disk is someone else's business.
import { countCodePoints, truncateCodePoints } from "../kit/code-points.ts";
import { fail, type MemoryFailure } from "./entries.ts";
import { lengthOf } from "./format.ts";
import { batchFailure, type MemoryRequest, type Operation } from "./request.ts";
import { shortUsage, withCommas } from "./usage.ts";

export type Applied =
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

/** The one entry that contains the text; an entry that is the text wins, or it could never be named beside a longer one. */
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
