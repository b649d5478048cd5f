// Conversations without a chat that have to know of their cards: a turn for each row, on the conversation itself. Nothing is sent anywhere;
// the answer stands where programs read it.

import type { TurnOutcome } from "../../agent/events.ts";
import type { OpenAgent } from "../../agent/opened.ts";
import { WithdrawnError } from "../../agent/turn-kit.ts";
import type { Logger } from "../../home/log.ts";
import type { OpenHome } from "../../home/open.ts";
import type { Clock } from "../../kit/clock.ts";
import { asText } from "../../kit/json.ts";
import { INSTRUCTIONS_KEY } from "../../sessions/session-id.ts";
import { type SessionStore, StoreError } from "../../sessions/store.ts";
import type { InboxRow, WorkStore } from "../../sessions/work.ts";
import { CUT_OFF, MOST_ATTEMPTS, NOT_ITS_FAULT } from "./turn.ts";

/** The platform of such rows: no chat platform bears the name, so no chat takes them. The account is the board. */
export const CHATLESS = "kanban";

/** What such a row holds. */
export interface SessionWake {
  readonly text: string;
  /** Whose words besides ours are in it. */
  readonly outside: readonly string[];
}

interface WakePorts {
  readonly home: OpenHome;
  readonly store: SessionStore;
  readonly work: WorkStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** Where a conversation works that has no folder of its own. */
  readonly cwd: string;
}

const LOOK_MS = 5000;
const RETRY_MS = 5000;
const LONGEST_RETRY_MS = 300_000;

export class SessionWakes {
  readonly #ports: WakePorts;
  readonly #over = new AbortController();
  readonly #paused = new Map<number, { readonly failures: number; readonly until: number }>();
  #opened: OpenAgent | null = null;
  #looking: Promise<void> | null = null;

  constructor(ports: WakePorts) {
    this.#ports = ports;
  }

  /** Plays what waits, one turn after the other. */
  look(): void {
    if (this.#looking || this.#over.signal.aborted) return;
    this.#looking = this.#playAll()
      .catch((error) => this.#ports.log.warn("conversations that wait for their cards could not be woken", error))
      .finally(() => {
        this.#looking = null;
      });
  }

  /** What runs is cut off; its row stays, and the next start continues it. */
  async close(): Promise<void> {
    this.#over.abort();
    this.#opened?.agent.interrupt("Gateway shutting down");
    await this.#looking;
  }

  async #playAll(): Promise<void> {
    const { work, clock } = this.#ports;
    for (const rows of (await work.waiting()).values()) {
      const row = rows.find(({ platform, kind }) => platform === CHATLESS && kind === "wake");
      if (!row || this.#over.signal.aborted) continue;
      const { failures = 0, until = 0 } = this.#paused.get(row.id) ?? {};
      if (until - clock.now() > 0 && until - clock.now() <= LONGEST_RETRY_MS) continue;
      if (await this.#isOver(row)) this.#paused.delete(row.id);
      else {
        const wait = Math.min(LONGEST_RETRY_MS, RETRY_MS * 2 ** failures);
        this.#paused.set(row.id, { failures: failures + 1, until: clock.now() + wait });
      }
    }
  }

  /** False: it waits for another try. */
  async #isOver(row: InboxRow): Promise<boolean> {
    const { work, log } = this.#ports;
    try {
      if (await this.#endsUnplayed(row)) return true;
      return await this.#play(row);
    } catch (error) {
      log.warn(`${row.sessionKey} could not be woken by ${row.updateId}`, error);
      if (error instanceof StoreError) return false;
      // A setting, a model that is not connected: the next card says it again.
      await work.settle([row.id], "failed");
      return true;
    }
  }

  async #endsUnplayed({ id, sessionKey, attempts, messageId }: InboxRow): Promise<boolean> {
    const { store, work } = this.#ports;
    const session = await store.get(sessionKey);
    const messages = session && messageId !== null ? await store.load(await store.tip(sessionKey)) : [];
    // Somebody wrote meanwhile: what was cut off was read with that.
    const isOvertaken = messageId !== null && messages.findLast(({ role }) => role === "user")?.id !== messageId;
    if (session && attempts < MOST_ATTEMPTS && !isOvertaken) return false;
    await work.settle([id], session && !isOvertaken ? "dead" : "superseded");
    return true;
  }

  async #play(row: InboxRow): Promise<boolean> {
    const { text, outside } = row.event as SessionWake; // written by us
    const { work } = this.#ports;
    const opened = await this.#open(row.sessionKey);
    const watch = new AbortController();
    let isStored = false;
    let outcome: TurnOutcome | null = null;
    this.#opened = opened;
    try {
      const { agent } = opened;
      await agent.readOutside(outside);
      void this.#watch(opened, watch.signal);
      const turn = agent.run(
        { text, from: "synthetic" },
        {
          interactive: false,
          ...(row.messageId === null ? {} : { continues: CUT_OFF }),
          record: {
            begin: async (sessionId, messages, lease) => {
              const stored = await work.begin(lease, { sessionId, ids: [row.id], messages });
              if (stored === null || this.#over.signal.aborted) throw new WithdrawnError("it no longer waits");
              return stored;
            },
            asked: async (lease) => void (await work.asked(lease, [row.id])),
            finish: async (sessionId, append, { kind }, lease) => {
              if (this.#over.signal.aborted) {
                await work.unasked(lease, [row.id]);
                throw new WithdrawnError("the gateway stops; the turn resumes with the next start");
              }
              const end = kind === "failed" ? "failed" : kind === "interrupted" ? "stopped" : "answered";
              const done = [{ id: row.id, outcome: end } as const];
              const stored = await work.finish(lease, { sessionId, append, done, outbox: [] });
              isStored = true;
              return stored;
            },
          },
        },
      );
      for await (const event of turn) {
        if (this.#over.signal.aborted) agent.interrupt("Gateway shutting down");
        if (event.type === "done") outcome = event.outcome;
      }
    } finally {
      watch.abort();
      this.#opened = null;
      await opened.close("agent_close");
    }
    const ended: TurnOutcome | null = outcome;
    if (isStored || this.#over.signal.aborted || !ended?.failed || NOT_ITS_FAULT.has(ended.exitReason)) return isStored;
    throw new Error(ended.error ?? "no reason given");
  }

  /** As the API server opens it, and unattended: nobody waits for this turn. */
  async #open(name: string): Promise<OpenAgent> {
    const { home, store, clock, cwd } = this.#ports;
    const { model, agent } = home.config();
    const kept = asText(await store.getValue(name, INSTRUCTIONS_KEY));
    const overlay = [agent.system_prompt.trim(), kept.trim()].filter((text) => text !== "").join("\n\n");
    const { openAgent } = await import("../../agent/open.ts");
    return openAgent({
      ...{ home, clock, cwd, platform: "api_server", source: "api_server", interactive: false, origin: "kanban" },
      store: async () => store,
      resume: { name },
      model: model.default || undefined,
      provider: model.provider || undefined,
      ...{ learn: false, titles: false },
      overlay: () => overlay || undefined,
    });
  }

  /** A turn that shows no sign of life is stopped. */
  async #watch({ agent }: OpenAgent, over: AbortSignal): Promise<void> {
    const { clock, home } = this.#ports;
    while (!over.aborted) {
      await clock.sleep(LOOK_MS, over).catch(() => undefined); // it is over
      const { gateway_timeout: limit } = home.config().agent;
      if (!over.aborted && limit > 0 && agent.activity().secondsSinceActivity >= limit)
        agent.interrupt("Execution timed out (inactivity)");
    }
  }
}
