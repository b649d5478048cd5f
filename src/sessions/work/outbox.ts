// Answers that are promised: written with the turn that made them, sent in order, each outcome committed. And who may send them.
import { parseJson } from "../../kit/json.ts";
import type { StoreCore } from "../core.ts";
import { databaseNow, holderInWords, isGone } from "../lanes.ts";
import { LaneMovedError } from "../store.ts";
import type { BotLease, OutboxPart, OutboxRow, SendOutcome, WorkStore } from "../work.ts";

const LEASE_SECONDS = 60;
/** No lease is taken for longer: one that runs further comes from a clock that was wrong. */
const LONGEST_LEASE_SECONDS = 3600;
const SET_BACK_SECONDS = 60;

/** Equal values are equal texts: targets are compared by it. */
export function canonical(value: unknown): string {
  return JSON.stringify(value ?? null, (_, inner) =>
    inner !== null && typeof inner === "object" && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([one], [other]) => (one < other ? -1 : 1)))
      : inner,
  );
}

const OUTBOX = `SELECT id, cause, part, platform, account, target, payload, state, attempts, not_before AS notBefore,
  platform_message_id AS platformMessageId, error, created_at AS createdAt FROM outbox`;

export function outboxRows(core: StoreCore, where: string, ...values: (string | number)[]): OutboxRow[] {
  const rows = core.db.all<OutboxRow & { readonly target: string; readonly payload: string }>(
    `${OUTBOX} ${where}`,
    ...values,
  );
  return rows.map((row) => ({ ...row, target: parseJson(row.target), payload: parseJson(row.payload) }));
}

export function promisePart(core: StoreCore, part: OutboxPart): number {
  const now = databaseNow(core);
  const sent = part.sentAs !== undefined;
  const { changes, lastId } = core.db.run(
    `INSERT INTO outbox (cause, part, platform, account, target, payload, state, platform_message_id, created_at, sent_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (cause, part) DO NOTHING`,
    ...[
      part.cause,
      part.part,
      part.platform,
      part.account,
      canonical(part.target),
      JSON.stringify(part.payload ?? null),
    ],
    ...[sent ? "sent" : "pending", part.sentAs ?? null, now, sent ? now : null],
  );
  if (changes > 0) return lastId;
  return outboxRows(core, "WHERE cause = ? AND part = ?", part.cause, part.part)[0]?.id ?? 0;
}

export function withdrawParts(core: StoreCore, ids: readonly number[]): number[] {
  const gone = "DELETE FROM outbox WHERE id = ? AND state IN ('pending', 'dead')";
  return ids.filter((id) => core.db.run(gone, id).changes > 0);
}

const FIRST_OF_TARGET = `NOT EXISTS (SELECT 1 FROM outbox AS before WHERE before.platform = outbox.platform AND before.account = outbox.account
  AND before.target = outbox.target AND before.id < outbox.id AND before.state IN ('pending', 'sending'))`;

export function dueRows(core: StoreCore, platform: string, account: string): OutboxRow[] {
  return outboxRows(
    core,
    // What was promised later than now was so before the clock was set back: its wait means nothing any more.
    `WHERE platform = ?1 AND account = ?2 AND state = 'pending' AND (not_before <= ?3 OR created_at > ?3 + ${SET_BACK_SECONDS})
       AND ${FIRST_OF_TARGET} ORDER BY id`,
    ...[platform, account, databaseNow(core)],
  );
}

export function nextDue(core: StoreCore, platform: string, account: string): number | null {
  const row = core.db.get<{ at: number | null }>(
    `SELECT MIN(not_before) AS at FROM outbox WHERE platform = ? AND account = ? AND state = 'pending' AND ${FIRST_OF_TARGET}`,
    ...[platform, account],
  );
  return row?.at ?? null;
}

export function interruptedSends(core: StoreCore, platform: string, account: string, lease: BotLease): OutboxRow[] {
  assertBot(core, lease);
  return outboxRows(core, "WHERE platform = ? AND account = ? AND state = 'sending' ORDER BY id", platform, account);
}

export function beginSend(core: StoreCore, id: number, lease: BotLease): boolean {
  assertBot(core, lease);
  const { changes } = core.db.run(
    `UPDATE outbox SET state = 'sending' WHERE id = ? AND state = 'pending' AND ${FIRST_OF_TARGET}`,
    id,
  );
  return changes > 0;
}

export function settleSend(core: StoreCore, id: number, outcome: SendOutcome, lease: BotLease): void {
  assertBot(core, lease);
  const now = databaseNow(core);
  switch (outcome.type) {
    case "sent":
      core.db.run(
        `UPDATE outbox SET state = 'sent', platform_message_id = ?, error = NULL, attempts = attempts + 1, sent_at = ?
         WHERE id = ? AND state = 'sending'`,
        ...[outcome.messageId, now, id],
      );
      return;
    case "again":
      core.db.run(
        `UPDATE outbox SET state = 'pending', not_before = ?, attempts = attempts + ?, error = ?, payload = COALESCE(?, payload),
           target = COALESCE(?, target) WHERE id = ? AND state = 'sending'`,
        ...[now + outcome.afterSeconds, Number(outcome.counts), outcome.error],
        ...[outcome.payload === undefined ? null : JSON.stringify(outcome.payload)],
        ...[outcome.target === undefined ? null : canonical(outcome.target), id],
      );
      return;
    case "dead":
      core.db.run(
        "UPDATE outbox SET state = 'dead', error = ?, attempts = attempts + 1, sent_at = ? WHERE id = ? AND state IN ('sending', 'pending')",
        ...[outcome.error, now, id],
      );
  }
}

export function bounced(
  core: StoreCore,
  { platform, account, cause, part }: Pick<OutboxPart, "platform" | "account" | "cause" | "part">,
  error: string,
): OutboxRow | null {
  const [row] = outboxRows(
    core,
    "WHERE platform = ? AND account = ? AND cause = ? AND part = ? AND state IN ('sent', 'sending')",
    ...[platform, account, cause, part],
  );
  if (!row) return null;
  core.db.run("UPDATE outbox SET state = 'dead', error = ? WHERE id = ?", error, row.id);
  return { ...row, state: "dead", error };
}

// Who reads and writes a bot.

interface BotRow {
  readonly holder: string | null;
  readonly token: number;
  readonly expires: number;
}

function readBot(core: StoreCore, bot: string): BotRow | undefined {
  return core.db.get<BotRow>(
    "SELECT holder, token, COALESCE(expires, 0) AS expires FROM adapter_leases WHERE bot = ?",
    bot,
  );
}

export function takeBot(
  core: StoreCore,
  bot: string,
  holder: string,
  seconds = LEASE_SECONDS,
): Awaited<ReturnType<WorkStore["takeBot"]>> {
  const now = databaseNow(core);
  const row = readBot(core, bot);
  const isOther = row?.holder && row.holder !== holder && !isGone(row.holder);
  if (isOther && row.expires > now && row.expires <= now + LONGEST_LEASE_SECONDS)
    return { type: "held", by: row.holder ?? "", until: row.expires };
  const token = row?.holder === holder ? row.token : (row?.token ?? 0) + 1;
  core.db.run(
    "INSERT OR REPLACE INTO adapter_leases (bot, holder, token, expires) VALUES (?, ?, ?, ?)",
    ...[bot, holder, token, now + seconds],
  );
  return { type: "taken", lease: { bot, holder, token } };
}

function assertBot(core: StoreCore, { bot, holder, token }: BotLease): void {
  const row = readBot(core, bot);
  if (row?.holder === holder && row.token === token) return;
  throw new LaneMovedError(bot, row?.holder ? holderInWords(row.holder) : null);
}

export function renewBot(core: StoreCore, lease: BotLease, seconds = LEASE_SECONDS): void {
  assertBot(core, lease);
  core.db.run("UPDATE adapter_leases SET expires = ? WHERE bot = ?", databaseNow(core) + seconds, lease.bot);
}

export function releaseBot(core: StoreCore, { bot, holder, token }: BotLease): void {
  core.db.run(
    "UPDATE adapter_leases SET holder = NULL, expires = NULL WHERE bot = ? AND holder = ? AND token = ?",
    ...[bot, holder, token],
  );
}
