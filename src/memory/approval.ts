// Memory writes that need the user's approval: asked for at once where that is possible, else kept until the user decides.

import { mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "../home/log.ts";
import type { Clock } from "../kit/clock.ts";
import { truncateCodePoints } from "../kit/code-points.ts";
import { codeOf, messageOf } from "../kit/errors.ts";
import { writeFileAtomic } from "../kit/files.ts";
import { mapOf, number, oneOf, optional, parseAs, record, type Shape, type ShapeOf, text } from "../kit/json.ts";
import { type Ask, DO_NOT_RETRY, foreignNote } from "../safety/decision.ts";
import { FILE_NAMES, fail, type MemoryResult } from "./entries.ts";
import type { MemoryRequest, Operation } from "./request.ts";
import type { MemoryAuthor, MemoryStore } from "./store.ts";

/** The run a memory call belongs to. */
export interface MemoryRun {
  readonly origin: string;
  readonly sessionId: string;
  readonly turn: number;
  readonly platform: string;
  /** A user can be asked. */
  readonly interactive: boolean;
  readonly ask: Ask;
  readonly signal: AbortSignal;
  /** Where text from outside in the conversation came from; null or absent: nothing of that kind is to be asked about. */
  foreignText?(): string | null;
}

interface ApprovalOptions {
  readonly store: MemoryStore;
  readonly pendingDir: string;
  readonly clock: Clock;
  readonly log: Logger;
}

export function createApproval({ store, pendingDir, clock, log }: ApprovalOptions) {
  const trustedSessions = new Set<string>();

  /** Only a write that would work and would change something is worth a question. */
  async function write(
    args: Readonly<Record<string, unknown>>,
    author: MemoryAuthor,
    run: MemoryRun,
  ): Promise<MemoryResult> {
    const request = await store.accept(args);
    if ("code" in request) return request;
    const effect = await store.dryRun(request);
    if (typeof effect !== "string") return effect;
    if (effect === "nothing") return store.carryOut(request, author);

    const asked = author.origin === "foreground" && run.interactive;
    const choice = asked ? await askFor(request, run) : "stage";
    if (choice === "write") return store.carryOut(request, author);
    if (choice === "deny") return fail("denied", `The user refused this memory write. ${DO_NOT_RETRY}.`);
    return stage(request, author, run.foreignText?.() ?? null);
  }

  async function askFor(request: MemoryRequest, run: MemoryRun): Promise<"write" | "deny" | "stage"> {
    const source = run.foreignText?.() ?? null;
    // A yes from before a stranger's text was read says nothing about what that text asks for.
    const trusted = source === null ? run.sessionId : `${run.sessionId} after text from outside`;
    if (trustedSessions.has(trusted)) return "write";
    try {
      const question = {
        kind: "approval",
        command: request.operations.map(describe).join("\n\n"),
        description: `write to memory (${FILE_NAMES[request.target]})`,
        patternKey: "memory_write",
        about: "own change",
        allowAlways: false,
        ...(source !== null && { note: foreignNote(source) }),
      } as const;
      const { choice, timedOut } = await run.ask(question, run.signal);
      if (choice === "session") trustedSessions.add(trusted);
      if (choice === "once" || choice === "session") return "write";
      return choice === "deny" && !timedOut ? "deny" : "stage";
    } catch (error) {
      log.warn("the question about a memory write failed; the write waits", error);
      return "stage";
    }
  }

  async function stage(request: MemoryRequest, { origin }: MemoryAuthor, source: string | null): Promise<MemoryResult> {
    try {
      const { id } = await stageWrite(
        pendingDir,
        {
          subsystem: "memory",
          action: request.batch ? "batch" : (request.operations[0]?.action ?? "batch"),
          summary: summarize(request),
          origin,
          payload: payloadOf(request),
          ...(source !== null && { source }),
        },
        clock,
      );
      return {
        success: true,
        staged: true,
        pending_id: id,
        message: `Not saved yet: the write waits for the user's approval${source === null ? "" : `, because text from outside (${source}) is in this conversation`} (/memory pending shows it). Do not repeat it.`,
      };
    } catch (error) {
      const cause = messageOf(error);
      return fail("write_failed", `The write needs the user's approval and could not be kept for it: ${cause}`);
    }
  }

  return { write };
}

/** Full text: the user decides about what will stand in every prompt. */
function describe(operation: Operation): string {
  if (operation.action === "add") return `add:\n${operation.content}`;
  if (operation.action === "remove") return `remove the entry with:\n${operation.oldText}`;
  return `replace the entry with:\n${operation.oldText}\nby:\n${operation.content}`;
}

function summarize({ target, operations }: MemoryRequest): string {
  const parts = operations.map((operation) => {
    const text = operation.action === "remove" ? operation.oldText : operation.content;
    return `${operation.action} ${JSON.stringify(truncateCodePoints(text, 80, "..."))}`;
  });
  return `${target}: ${parts.join("; ")}`;
}

function payloadOf({ target, batch, operations }: MemoryRequest): Record<string, unknown> {
  const calls = operations.map((operation) => ({
    action: operation.action,
    ...("content" in operation ? { content: operation.content } : {}),
    ...("oldText" in operation ? { old_text: operation.oldText } : {}),
  }));
  return batch ? { target, operations: calls } : { target, ...calls[0] };
}

// Writes of the agent that wait for approval: one file each, kept until they are approved or rejected.

const ID = /^[0-9a-f]{8}$/;

const anything: Shape<unknown> = (_value): _value is unknown => true;
const pendingWrite = record({
  id: text,
  subsystem: oneOf(["memory", "skills"]),
  action: text,
  summary: text,
  origin: text,
  /** Unix seconds. */
  created_at: number,
  /** The arguments of the call, to be made again. */
  payload: mapOf(anything),
  /** Whose text was in the conversation when it was made. */
  source: optional(text),
});

export type PendingWrite = ShapeOf<typeof pendingWrite>;

type NewPendingWrite = Pick<PendingWrite, "subsystem" | "action" | "summary" | "origin" | "payload" | "source">;

/** `dir` holds the waiting writes of one subsystem. Throws when the record cannot be kept. */
async function stageWrite(dir: string, write: NewPendingWrite, clock: Clock): Promise<PendingWrite> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const record = { id: await freeId(dir, clock), ...write, created_at: clock.now() / 1000 };
  await writeFileAtomic(fileOf(dir, record.id), `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600 });
  return record;
}

/** Oldest first. Files that are no such record are left out. */
export async function listPendingWrites(dir: string): Promise<readonly PendingWrite[]> {
  const names = await readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
  const ids = names.filter((name) => name.endsWith(".json")).map((name) => name.slice(0, -".json".length));
  const records = await Promise.all(ids.map((id) => readPendingWrite(dir, id)));
  return records.filter((record) => record !== null).sort((a, b) => a.created_at - b.created_at || compare(a.id, b.id));
}

async function readPendingWrite(dir: string, id: string): Promise<PendingWrite | null> {
  if (!ID.test(id)) return null;
  try {
    const read = parseAs(await readFile(fileOf(dir, id), "utf8"), pendingWrite);
    return read && ID.test(read.id) ? read : null;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
}

export async function dropPendingWrite(dir: string, id: string): Promise<void> {
  if (ID.test(id)) await rm(fileOf(dir, id), { force: true });
}

function fileOf(dir: string, id: string): string {
  return join(dir, `${id}.json`);
}

async function freeId(dir: string, clock: Clock): Promise<string> {
  for (;;) {
    const id = Math.floor(clock.random() * 2 ** 32)
      .toString(16)
      .padStart(8, "0");
    const taken = await stat(fileOf(dir, id)).catch(() => null);
    if (!taken) return id;
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
