// What one process asks of a turn that another one runs: to stop, or to take in a word of its user. Whoever holds conversations looks for
// such requests every two seconds, once for all of them.
import { t } from "../home/language/words.ts";
import type { Logger } from "../home/log.ts";
import { type Clock, systemClock } from "../kit/clock.ts";
import { parseJson } from "../kit/json.ts";
import type { StoreCore } from "./core.ts";
import { holderInWords, holderOf } from "./lanes.ts";
import type { LaneToken, SessionStore } from "./store.ts";
import type { AskedHolder, Control, WorkStore } from "./work.ts";

interface ControlRow {
  readonly id: number;
  readonly lane: string;
  readonly kind: string;
  readonly payload: string | null;
}

/** Inside a transaction, like everything that takes a core. A request is for the turn that runs now: it names that turn's token. */
export function addControl(
  core: StoreCore,
  sessionId: string,
  kind: Control["kind"],
  says: Control["says"],
): { readonly id: number; readonly holder: string } | null {
  const held = holderOf(core, sessionId);
  if (held === null) return null;
  const { lastId } = core.db.run(
    "INSERT INTO controls (lane, kind, payload, created_at) VALUES (?, ?, ?, unixepoch('subsec'))",
    ...[held.lane, kind, JSON.stringify({ token: held.token, says })],
  );
  return { id: Number(lastId), holder: held.holder };
}

/** `waits`: its turn still runs and has not looked. */
export function controlState(core: StoreCore, id: number): "waits" | "taken" | "over" {
  const row = core.db.get<ControlRow & { taken_at: number | null }>("SELECT * FROM controls WHERE id = ?", id);
  if (!row) return "over";
  if (row.taken_at !== null) return "taken";
  return holderOf(core, row.lane)?.token === tokenIn(row) ? "waits" : "over";
}

const tokenIn = ({ payload }: ControlRow) => (parseJson(payload ?? "") as { token?: unknown } | null)?.token;

/** What waits for any of these leases. A home in which nobody ever asked for anything has no such table. */
export function waitingControls(core: StoreCore, leases: readonly LaneToken[]): readonly ControlRow[] {
  if (!core.db.get("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'controls'")) return [];
  const lanes = leases.map(() => "?").join(", ");
  return core.db.all<ControlRow>(
    `SELECT id, lane, kind, payload FROM controls WHERE taken_at IS NULL AND lane IN (${lanes}) ORDER BY id`,
    ...leases.map(({ lane }) => lane),
  );
}

/** Each is handed out once. One for a turn that is over is deleted; one for a later holder is left to it. */
export function takeControls(core: StoreCore, leases: readonly LaneToken[]): Control[] {
  const tokens = new Map(leases.map((lease) => [lease.lane, lease.token]));
  return waitingControls(core, leases).flatMap((row): Control[] => {
    const parsed = parseJson(row.payload ?? "") as { token?: unknown; says?: unknown } | null;
    const [own = 0, asked] = [tokens.get(row.lane), parsed?.token];
    if (typeof asked === "number" && asked > own) return [];
    const isKnown = row.kind === "interrupt" || row.kind === "steer";
    if (asked !== own || !isKnown) {
      core.db.run("DELETE FROM controls WHERE id = ?", row.id);
      return [];
    }
    core.db.run("UPDATE controls SET taken_at = unixepoch('subsec') WHERE id = ?", row.id);
    const { lane, kind } = row;
    const says = typeof parsed?.says === "object" && parsed.says !== null ? (parsed.says as Control["says"]) : {}; // written by `addControl`
    return [{ ...{ id: row.id, lane, says }, kind: kind as Control["kind"] }]; // checked above
  });
}

// The holder's side.

type Obey = (control: Control) => void;

/** The one look of a process for all conversations that it holds in a store. */
export class ControlWatch {
  static readonly #ofStore = new WeakMap<object, ControlWatch>();
  readonly #store: Pick<SessionStore, "takeControls">;
  readonly #held = new Map<LaneToken, Obey>();
  #looking: Promise<void> = Promise.resolve();
  #stop: AbortController | null = null;

  private constructor(store: Pick<SessionStore, "takeControls">) {
    this.#store = store;
  }

  static of(store: Pick<SessionStore, "takeControls">): ControlWatch {
    const known = ControlWatch.#ofStore.get(store) ?? new ControlWatch(store);
    ControlWatch.#ofStore.set(store, known);
    return known;
  }

  /** Resolves to the end of it: what was taken by then has reached `obey`. */
  join(lease: LaneToken, obey: Obey, ports: WatchPorts): () => Promise<void> {
    this.#held.set(lease, obey);
    if (this.#stop === null) {
      this.#stop = new AbortController();
      void this.#watch(ports, this.#stop.signal);
    }
    return async () => {
      await this.#looking;
      this.#held.delete(lease);
      if (this.#held.size > 0) return;
      this.#stop?.abort();
      this.#stop = null;
    };
  }

  async #watch({ seconds, log }: WatchPorts, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      // What another process wants comes in real time, whatever clock the conversation lives by: one that never waits would look for ever.
      await systemClock.sleep(seconds() * 1000, signal).catch(() => undefined); // over
      if (signal.aborted) return;
      this.#looking = this.#look().catch((error) => log.warn("requests of other processes could not be read", error));
      await this.#looking;
    }
  }

  async #look(): Promise<void> {
    const held = new Map(this.#held);
    for (const control of await this.#store.takeControls([...held.keys()]))
      for (const [lease, obey] of held) if (lease.lane === control.lane) obey(control);
  }
}

interface WatchPorts {
  readonly seconds: () => number;
  readonly log: Logger;
}

// The other side.

const LOOK_AGAIN_MS = 100;
/** Four looks of the holder. */
const PATIENCE_MS = 8000;

/** Asks whoever holds the conversation, and waits until it has heard. Null: nobody works on it. */
export async function askHolder(
  work: WorkStore,
  sessionId: string,
  request: Pick<Control, "kind" | "says">,
  { clock, patienceMs = PATIENCE_MS }: { readonly clock: Clock; readonly patienceMs?: number },
): Promise<Heard | null> {
  const sent = await work.control(sessionId, request.kind, request.says);
  if (sent === null) return null;
  const until = clock.now() + patienceMs;
  let state = await work.controlState(sent.id);
  while (state === "waits" && clock.now() < until) {
    await clock.sleep(LOOK_AGAIN_MS);
    state = await work.controlState(sent.id);
  }
  return { kind: request.kind, holder: sent.holder, state };
}

export interface Heard {
  readonly kind: Control["kind"];
  readonly holder: string;
  readonly state: AskedHolder;
}

/** For the person who asked. */
export function heardInWords({ kind, holder, state }: Heard): string {
  const who = holderInWords(holder);
  if (state === "waits") return t("{who} has not answered yet; it stops or reads this when it does.", { who });
  if (state === "over") return t("The turn of {who} ended before it could be told.", { who });
  return kind === "interrupt"
    ? t("Asked {who} to stop its turn.", { who })
    : t("↪ with the next tool result of {who}.", { who });
}
