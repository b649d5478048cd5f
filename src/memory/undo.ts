// Taking a change of memory back: exactly, while nothing has come after it; else only what it added and removed.
import { scanForThreats } from "../safety/threats/scan.ts";
import { sameEntries } from "./apply.ts";
import { fail, type MemoryFailure, type MemoryResult } from "./entries.ts";
import { lengthOf } from "./format.ts";
import type { HistoryRecord } from "./history.ts";
import type { Change, MemoryAuthor, MemoryStore } from "./store.ts";
import { shortUsage } from "./usage.ts";

export function undoRecord(store: MemoryStore, record: HistoryRecord, author: MemoryAuthor): Promise<MemoryResult> {
  const { target, before, after } = record;
  return store.change({ target, op: "undo", author, undoes: record.id }, (entries) => {
    if (!sameEntries(entries, after)) return takeBackParts(record, entries, store.limitOf(target));
    const message = "Change taken back; the store is exactly as it was before it.";
    return { entries: before, message, ...(record.before_text === undefined ? {} : { text: record.before_text }) };
  });
}

/** The newest change that is still in force: neither taken back, nor itself an undo, nor made by someone outside. */
export function newestToUndo(oldestFirst: readonly HistoryRecord[]): HistoryRecord | null {
  const undone = undoneIds(oldestFirst);
  return (
    oldestFirst.findLast(({ id, op, origin }) => op !== "undo" && origin !== "external" && !undone.has(id)) ?? null
  );
}

/** Ids of records that were taken back. An undo that was itself taken back counts for nothing. */
export function undoneIds(oldestFirst: readonly HistoryRecord[]): ReadonlySet<string> {
  const undone = new Set<string>();
  for (const { id, undoes } of oldestFirst.toReversed()) {
    if (undoes !== undefined && !undone.has(id)) undone.add(undoes);
  }
  return undone;
}

function takeBackParts(
  { before, after }: HistoryRecord,
  entries: readonly string[],
  limit: number,
): Change | MemoryFailure {
  const next = entries.filter((entry) => before.includes(entry) || !after.includes(entry));
  for (const [index, entry] of before.entries()) {
    if (after.includes(entry) || next.includes(entry)) continue;
    const [finding] = scanForThreats(entry, "strict");
    if (finding) return fail("threat", `Blocked: the entry to put back matches threat pattern '${finding.id}'.`);
    next.splice(index, 0, entry);
  }
  if (sameEntries(next, entries)) return fail("no_match", "Nothing of that change is left to take back.");
  if (lengthOf(next) > limit && lengthOf(next) >= lengthOf(entries)) {
    return fail("over_limit", `Taking it back would make ${shortUsage(lengthOf(next), limit)} chars. Free room first.`);
  }
  return { entries: next, message: "Change taken back; later changes were kept." };
}
