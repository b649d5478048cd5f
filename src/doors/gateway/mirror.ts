// What was sent into a chat beside its turns, as part of that chat's conversation: its agent knows what stands there.
import { unansweredCalls } from "../../agent/repair.ts";
import type { Logger } from "../../home/log.ts";
import { KeyedSteps } from "../../kit/steps.ts";
import { holdLane } from "../../sessions/lanes.ts";
import type { SessionStore, StoredMessage } from "../../sessions/store.ts";
import type { ChatEntry, Routes } from "./routes.ts";

interface MirrorOptions {
  readonly store: SessionStore;
  readonly routes: Routes;
  readonly log: Logger;
}

/**
 * - Rows are written under the lease of the conversation, so that an agent that is open for it reads them before its next turn.
 * - Nobody waits here for a turn that runs: two chats may write to each other. What finds the conversation busy, or in the middle of a turn
 *   that a crash cut off, is kept until a turn of the chat ends or the next one begins. A crash meanwhile loses it: the chat itself has it.
 */
export class Mirror {
  readonly #options: MirrorOptions;
  readonly #waiting = new Map<string, string[]>();
  readonly #steps = new KeyedSteps();

  constructor(options: MirrorOptions) {
    this.#options = options;
  }

  /** Resolves to whether the chat's next turn has it in its history. */
  async add({ session_key: key, session_id: id }: ChatEntry, text: string): Promise<boolean> {
    const { store, log } = this.#options;
    try {
      if (!(await store.get(id))) return false;
      const waiting = this.#waiting.get(key);
      if (waiting) waiting.push(text);
      else this.#waiting.set(key, [text]);
      await this.#write(key, isAnswered);
      return true;
    } catch (error) {
      log.info("what was delivered is not in the conversation of its chat yet", error);
      return this.#waiting.has(key);
    }
  }

  /** Between two turns of the chat; `begins`: another one is next, and none goes on. */
  async settle(key: string, { begins = false } = {}): Promise<void> {
    if (!this.#waiting.has(key)) return;
    await this.#write(key, begins ? isWhole : isAnswered).catch((error) =>
      this.#options.log.info("what was delivered is not in the conversation of its chat yet", error),
    );
  }

  #write(key: string, mayFollow: (rows: readonly StoredMessage[]) => boolean): Promise<void> {
    const { store, routes, log } = this.#options;
    return this.#steps.run(key, async () => {
      const texts = this.#waiting.get(key);
      const entry = await routes.get(key);
      if (!texts || !entry || !(await store.get(entry.session_id))) {
        this.#waiting.delete(key);
        return;
      }
      const held = await holdLane(store, entry.session_id, { log });
      if (held.type !== "taken") return;
      try {
        const id = await store.tip(entry.session_id);
        if (!mayFollow(await store.load(id))) return;
        const written = texts.length;
        const rows = texts.map((content) => ({ role: "assistant" as const, content }));
        await store.append(id, rows, { lease: held.lease });
        texts.splice(0, written);
        if (texts.length === 0) this.#waiting.delete(key);
      } finally {
        await held.release();
      }
    });
  }
}

/** The last turn has its answer: a turn that was cut off could not go on behind another row. */
function isAnswered(rows: readonly StoredMessage[]): boolean {
  const last = rows.at(-1);
  return last === undefined || (last.role === "assistant" && (last.tool_calls ?? []).length === 0);
}

/** No call waits for its result. */
const isWhole = (rows: readonly StoredMessage[]) => unansweredCalls(rows).length === 0;
