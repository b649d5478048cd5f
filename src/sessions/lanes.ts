// One conversation, one writer. A lane is a conversation; whoever holds its lease may write, and what still carries an older lease is
// refused. Times are the database's: all holders compare by the same clock, later on several machines too.
import { randomBytes } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import type { Logger } from "../home/log.ts";
import type { Clock } from "../kit/clock.ts";
import { truncateCodePoints } from "../kit/code-points.ts";
import { isAlive } from "../kit/pid.ts";
import { stripAnsi } from "../kit/strip-ansi.ts";
import type { StoreCore } from "./core.ts";
import { conversationOf, parseConfig } from "./lineage.ts";
import {
  type LaneAnswer,
  LaneMovedError,
  type LaneToken,
  type Leased,
  type SessionStore,
  StoreError,
} from "./store.ts";

const LEASE_SECONDS = 60;
/** How long a free lane is first offered to whoever had it: agent, prompt cache and sandbox are still warm there. */
const PREFER_SECONDS = 600;
const LOOK_AGAIN_MS = 250;
/** No lease is taken for longer than this: one that runs further comes from a clock that was wrong, and holds nobody up. */
const LONGEST_LEASE_SECONDS = 3600;
const LONGEST_NAME = 80;

interface LaneRow {
  /** Null: released. */
  readonly holder: string | null;
  readonly token: number;
  readonly expires: number;
  readonly prefer_holder: string | null;
  readonly prefer_until: number;
}

/**
 * The first session of a conversation. Compressions stay in its lane, and what was delegated from it is written under its lease; a branch
 * is a lane of its own.
 */
export function laneOf(core: StoreCore, sessionId: string): string {
  const seen = new Set<string>();
  for (let current = sessionId; ; ) {
    const [root = current] = conversationOf(core, current);
    const row = core.db.get<{ parent: string | null; model_config: string | null }>(
      "SELECT parent_session_id AS parent, model_config FROM sessions WHERE id = ?",
      root,
    );
    if (!row?.parent || seen.has(root) || !parseConfig(row.model_config)?._delegate_from) return root;
    seen.add(root);
    current = row.parent;
  }
}

/** Other programs may write the table too: what is not a name, a counter or a time is read as none. */
function readLane(core: StoreCore, lane: string): LaneRow | undefined {
  return core.db.get<LaneRow>(
    `SELECT CAST(holder AS TEXT) AS holder, CAST(prefer_holder AS TEXT) AS prefer_holder,
       CASE WHEN typeof(token) = 'integer' AND token BETWEEN 0 AND ${Number.MAX_SAFE_INTEGER - 1} THEN token ELSE 0 END AS token,
       CASE WHEN expires BETWEEN 0 AND unixepoch() + ${LONGEST_LEASE_SECONDS} THEN expires ELSE 0 END AS expires,
       CASE WHEN typeof(prefer_until) = 'real' THEN prefer_until ELSE 0 END AS prefer_until
     FROM lanes WHERE lane = ?`,
    lane,
  );
}

export function databaseNow(core: StoreCore): number {
  return core.db.get<{ now: number }>("SELECT unixepoch('subsec') AS now")?.now ?? core.now();
}

/** Inside a transaction, like everything here. */
export function takeLane(
  core: StoreCore,
  sessionId: string,
  holder: string,
  { seconds = LEASE_SECONDS, respectPreference = false }: Parameters<SessionStore["takeLane"]>[2] = {},
): LaneAnswer {
  const lane = laneOf(core, sessionId);
  const now = databaseNow(core);
  const row = readLane(core, lane);
  const isOther = (name: string | null | undefined): name is string => !!name && name !== holder && !isGone(name);
  if (isOther(row?.holder) && row.expires > now) return { type: "held", by: row.holder, until: row.expires };
  if (respectPreference && isOther(row?.prefer_holder) && row.prefer_until > now) {
    return { type: "preferred", by: row.prefer_holder, until: row.prefer_until };
  }
  const token = row?.holder === holder ? row.token : (row?.token ?? 0) + 1;
  core.db.run(
    "INSERT OR REPLACE INTO lanes (lane, holder, token, expires) VALUES (?, ?, ?, ?)",
    ...[lane, holder, token, now + seconds],
  );
  return { type: "taken", lease: { lane, holder, token } };
}

export function renewLane(core: StoreCore, lease: LaneToken, { seconds = LEASE_SECONDS } = {}): void {
  assertLease(core, lease.lane, { lease });
  core.db.run("UPDATE lanes SET expires = ? WHERE lane = ?", databaseNow(core) + seconds, lease.lane);
}

/** A lease that is somebody else's by now stays as it is. */
export function releaseLane(core: StoreCore, lease: LaneToken, { preferSeconds = PREFER_SECONDS } = {}): void {
  core.db.run(
    `UPDATE lanes SET holder = NULL, expires = NULL, prefer_holder = holder, prefer_until = ?
     WHERE lane = ? AND holder = ? AND token = ?`,
    ...[databaseNow(core) + preferSeconds, lease.lane, lease.holder, lease.token],
  );
}

/**
 * Refuses a write whose lease is no longer the newest of its lane. One that only ran out is not refused: nobody wrote since, and a laptop
 * that slept goes on where it was.
 */
export function assertLease(core: StoreCore, sessionId: string, { lease }: Leased): void {
  if (!lease) return;
  const lane = laneOf(core, sessionId);
  const row = readLane(core, lane);
  if (lane === lease.lane && row?.holder === lease.holder && row.token === lease.token) return;
  throw new LaneMovedError(sessionId, row?.holder ? holderInWords(row.holder) : null);
}

/** Who is working on the conversation, if that is somebody else. */
export function heldByOther(core: StoreCore, sessionId: string, own: string | undefined): string | null {
  if (!core.shape.tables.has("lanes")) return null;
  const row = readLane(core, laneOf(core, sessionId));
  if (!row?.holder || row.holder === own || row.expires <= databaseNow(core)) return null;
  return isGone(row.holder) ? null : row.holder;
}

/** Who works on the conversation now, and under which token. */
export function holderOf(core: StoreCore, sessionId: string) {
  const lane = laneOf(core, sessionId);
  const { holder, token, expires } = readLane(core, lane) ?? { holder: null, token: 0, expires: 0 };
  return holder === null || expires <= databaseNow(core) || isGone(holder) ? null : { lane, holder, token };
}

/** The sessions of conversations that nobody is working on. */
export function withoutHeld(core: StoreCore, ids: readonly string[]): readonly string[] {
  if (!core.shape.tables.has("lanes")) return ids;
  const rows = core.db.all<{ lane: string; holder: string }>(
    `SELECT CAST(lane AS TEXT) AS lane, CAST(holder AS TEXT) AS holder FROM lanes
     WHERE holder IS NOT NULL AND expires BETWEEN unixepoch('subsec') AND unixepoch() + ${LONGEST_LEASE_SECONDS}`,
  );
  const held = new Set(rows.filter(({ holder }) => !isGone(holder)).map(({ lane }) => lane));
  return held.size === 0 ? ids : ids.filter((id) => !held.has(laneOf(core, id)));
}

// Holders: `place:pid:random`. On Linux a place is `host/boot.namespace`: containers may share a home and a host name, and number their
// processes each for itself. Elsewhere, and in rows of earlier versions, it is the host's name alone.

let ownPlace: { readonly name: string; readonly provable: boolean } | undefined;

function here() {
  ownPlace ??= placeOf(hostname());
  return ownPlace;
}

function placeOf(host: string) {
  if (process.platform !== "linux") return { name: host, provable: true }; // no namespaces of processes there
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").slice(0, 8);
    const namespace = /\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0];
    if (/^[\da-f]{8}$/.test(boot) && namespace) return { name: `${host}/${boot}.${namespace}`, provable: true };
  } catch {
    // no /proc, or one that hides these: nobody can be looked at, and leases run out
  }
  return { name: host, provable: false };
}

export const newHolder = () => `${here().name}:${process.pid}:${randomBytes(6).toString("hex")}`;

/** Who that is, for a sentence to a user: nothing in it drives a terminal, whoever wrote the row. */
export function holderInWords(holder: string): string {
  const { place, pid } = partsOf(holder);
  const host = place.replace(/\/[^/]*$/, "");
  const words = pid === null ? holder : place === here().name ? `process ${pid}` : `process ${pid} on ${host}`;
  const shown = stripAnsi(words).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "");
  return truncateCodePoints(shown.trim() || "another process", LONGEST_NAME, "…");
}

/** A process of this machine that is gone gives nothing back; those of other machines and containers cannot be looked at from here. */
export function isGone(holder: string): boolean {
  const { place, pid } = partsOf(holder);
  const { name, provable } = here();
  return pid !== null && provable && place === name && isDead(pid);
}

function partsOf(holder: string): { readonly place: string; readonly pid: number | null } {
  const found = /^(.+):(\d+):[^:]*$/s.exec(holder);
  return { place: found?.[1] ?? "", pid: found ? Number(found[2]) : null };
}

export const isDead = (pid: number) => pid > 0 && !isAlive(pid);

// A lane as a turn uses it: taken, renewed while it lasts, released at its end.

export interface HeldLane {
  readonly type: "taken";
  /** For every write of the turn. */
  readonly lease: LaneToken;
  /** Aborts as soon as it is known that somebody else took the lane, or that the database is another one: nothing more can be written. */
  readonly lost: AbortSignal;
  /** Does not throw: a lease that cannot be given back expires, and this resolves to false. */
  release(): Promise<boolean>;
}

/** Somebody else has it. */
export type LaneHeld = Exclude<LaneAnswer, { readonly type: "taken" }>;

interface HoldOptions {
  readonly log: Logger;
  /** Default: one of its own, so that two conversations of one process exclude each other too. */
  readonly holder?: string;
  readonly seconds?: number;
  /** How long to wait for whoever holds it; default not at all. */
  readonly wait?: LaneWait | undefined;
}

interface LaneWait {
  readonly ms: number;
  readonly clock: Clock;
  readonly signal?: AbortSignal;
  /** Once, before the waiting begins. */
  onWait?(held: LaneHeld): void;
}

export async function holdLane(
  store: Pick<SessionStore, "takeLane" | "renewLane" | "releaseLane">,
  sessionId: string,
  { log, holder = newHolder(), seconds = LEASE_SECONDS, wait }: HoldOptions,
): Promise<HeldLane | LaneHeld> {
  const deadline = wait ? wait.clock.now() + wait.ms : 0;
  let answer = await store.takeLane(sessionId, holder, { seconds });
  if (answer.type !== "taken") wait?.onWait?.(answer);
  while (answer.type !== "taken" && wait && wait.clock.now() < deadline) {
    await wait.clock.sleep(LOOK_AGAIN_MS, wait.signal);
    answer = await store.takeLane(sessionId, holder, { seconds });
  }
  if (answer.type !== "taken") return answer;
  const { lease } = answer;
  const lost = new AbortController();
  let renewing: Promise<void> | null = null;
  const renew = async () => {
    try {
      await store.renewLane(lease, { seconds });
    } catch (error) {
      if (error instanceof StoreError && error.code === "moved") lost.abort(error);
      else log.warn("the lease of a conversation could not be renewed; it is tried again", error);
    }
  };
  // Real time on purpose: the lease runs by the database's clock, not by ours.
  const timer = setInterval(
    () => {
      renewing ??= renew().finally(() => {
        renewing = null;
      });
    },
    (seconds * 1000) / 3,
  ).unref();
  lost.signal.addEventListener("abort", () => clearInterval(timer), { once: true });
  const release = async () => {
    clearInterval(timer);
    await renewing;
    try {
      await store.releaseLane(lease);
      return true;
    } catch (error) {
      log.warn("the lease of a conversation was not given back", error);
      return false;
    }
  };
  return { type: "taken", lease, lost: lost.signal, release };
}

/**
 * The lane of one open conversation.
 *
 * - Whatever is written through `store` while the lane is held carries its lease: whoever writes need not know of it.
 * - One holder at a time: `hold` is not called again before `release`.
 */
export class Lane {
  readonly store: SessionStore;
  /** The store itself, which other lanes of this process use too. */
  readonly base: SessionStore;
  readonly #log: Logger;
  readonly #holder = newHolder();
  #lease: LaneToken | undefined;
  #root: string | null = null;
  /** The token of the next lease, if nobody else takes one before. */
  #nextToken: number | null = null;

  constructor(store: SessionStore, log: Logger) {
    this.store = withLease(store, () => this.#lease);
    this.base = store;
    this.#log = log;
  }

  /** `othersWrote`: since it was last held here, so what is in memory may be out of date. */
  async hold(sessionId: string, wait?: LaneWait): Promise<(HeldLane & { readonly othersWrote: boolean }) | LaneHeld> {
    const id = await this.#stillThere(sessionId);
    const held = await holdLane(this.store, id, { log: this.#log, holder: this.#holder, wait });
    if (held.type !== "taken") return held;
    const { lease } = held;
    this.#root = lease.lane;
    const othersWrote = this.#nextToken !== null && lease.token !== this.#nextToken;
    this.#lease = lease;
    const release = async () => {
      this.#lease = undefined;
      const given = await held.release();
      // One that was not given back is taken again as it is.
      this.#nextToken = given ? lease.token + 1 : lease.token;
      return given;
    };
    return { ...held, othersWrote, release };
  }

  /** A compression that somebody else took back is gone; the conversation is not. */
  async #stillThere(sessionId: string): Promise<string> {
    if (this.#root === null || this.#root === sessionId) return sessionId;
    return (await this.store.get(sessionId)) ? sessionId : this.#root;
  }
}

function withLease(store: SessionStore, current: () => LaneToken | undefined): SessionStore {
  const leased = <T extends Leased>(options?: T) => ({ lease: current(), ...options });
  return {
    ...store,
    end: (id, reason, options) => store.end(id, reason, leased(options)),
    update: (id, change, options) => store.update(id, change, leased(options)),
    leaseCompression: (id, options) => store.leaseCompression(id, leased(options)),
    continueAfterCompression: (id, rows, options) => store.continueAfterCompression(id, rows, leased(options)),
    undoCompression: (id, options) => store.undoCompression(id, leased(options)),
    branch: (id, newId, options) => store.branch(id, newId, leased(options)),
    append: (id, rows, options) => store.append(id, rows, leased(options)),
    replace: (id, rows, options) => store.replace(id, rows, leased(options)),
    rewind: (id, messageId, options) => store.rewind(id, messageId, leased(options)),
    setApiContent: (messageId, text, options) => store.setApiContent(messageId, text, leased(options)),
    setPrompt: (id, record, options) => store.setPrompt(id, record, leased(options)),
    setValue: (id, key, value, options) => store.setValue(id, key, value, leased(options)),
  };
}
