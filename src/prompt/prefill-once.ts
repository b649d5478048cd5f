// Example messages in front of every request: read once per conversation, so that its requests keep beginning alike.
import type { OpenHome } from "../home/open.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import type { SessionStore } from "../sessions/store.ts";

const KEY = "prefill";

export class PrefillOnce {
  readonly #home: OpenHome;
  readonly #store: Pick<SessionStore, "getValue" | "setValue">;
  #read: Promise<string | null> | null = null;
  #warned = false;
  #digest: string | null = null;
  messages: readonly HistoryMessage[] = [];

  constructor(home: OpenHome, store: Pick<SessionStore, "getValue" | "setValue">) {
    this.#home = home;
    this.#store = store;
  }

  /** Resolves to what the user should be told, once. */
  async load(): Promise<string | null> {
    this.#read ??= this.#load();
    const warning = await this.#read;
    const told = this.#warned ? null : warning;
    this.#warned = true;
    return told;
  }

  /** Whether an earlier process sent this session with other examples. What is sent now is remembered. */
  async hasChanged(sessionId: string, hasHistory: boolean): Promise<boolean> {
    try {
      const before = hasHistory ? await this.#store.getValue(sessionId, KEY) : null;
      if (before === this.#digest) return false;
      await this.#store.setValue(sessionId, KEY, this.#digest);
      return hasHistory;
    } catch (error) {
      this.#home.log.warn("which examples a session was sent with could not be stored", error);
      return false;
    }
  }

  async #load(): Promise<string | null> {
    const { prefill_messages_file: top, agent } = this.#home.config();
    const candidates = [top, agent.prefill_messages_file];
    if (candidates.every((name) => name.trim() === "")) return null;
    const { readPrefill } = await import("./overlay/prefill.ts");
    const { hostFiles } = await import("./ports.ts");
    const { sha256 } = await import("./fingerprint.ts");
    const userHome = this.#home.environment().HOME ?? this.#home.osHome;
    const read = await readPrefill({ candidates, hermesHome: this.#home.paths.dir, userHome, files: hostFiles });
    this.messages = read.messages;
    if (read.messages.length > 0) this.#digest = sha256(JSON.stringify(read.messages));
    return read.warning;
  }
}
