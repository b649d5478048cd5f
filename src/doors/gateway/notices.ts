// What is said in chats beside turns: what an agent learned, what ended in the background, that the gateway restarts, what could not be sent.
import type { BackgroundReport } from "../../agent/background.ts";
import type { OpenAgent } from "../../agent/opened.ts";
import { t } from "../../home/language/words.ts";
import type { Logger } from "../../home/log.ts";
import type { OpenHome } from "../../home/open.ts";
import type { Clock } from "../../kit/clock.ts";
import type { OutboxRow, WorkStore } from "../../sessions/work.ts";
import type { ChatTarget } from "./contract.ts";
import type { Payload } from "./delivery.ts";
import type { OwnMessage } from "./desk.ts";
import { takeRestartNote } from "./instance.ts";
import type { Link } from "./link.ts";
import { type QueuedMessage, targetOf } from "./reply.ts";
import { type ChatEntry, localIso, type Routes } from "./routes.ts";
import { HANDED_ON } from "./send.ts";
import type { GatewaySettings } from "./settings.ts";
import type { ChatTurn } from "./turn.ts";

interface NoticesOptions {
  readonly home: OpenHome;
  readonly settings: GatewaySettings;
  readonly work: WorkStore;
  readonly routes: Routes;
  readonly clock: Clock;
  readonly log: Logger;
  link(platform: string): Link | undefined;
  links(): Iterable<Link>;
  isAllowed(who: OwnMessage): Promise<boolean>;
  lastIn(key: string): OwnMessage | null;
  /** A row of the inbox may be new. */
  arrived(): void;
}

export class Notices {
  readonly #options: NoticesOptions;
  #told = 0;
  /** Conversations of chats that are open, with the chat of each. */
  readonly #open = new Map<OpenAgent, string>();
  readonly #ended = new WeakSet<object>();

  constructor(options: NoticesOptions) {
    this.#options = options;
  }

  /** One text, once for its cause; it waits in the outbox while the bot is not connected. */
  async tell(link: Link, target: ChatTarget, cause: string, text: string): Promise<readonly number[]> {
    const { home, work } = this.#options;
    const payload: Payload = { type: "text", text: home.redact(text) };
    const { entry, account } = link;
    const ids = await work.promise([{ cause, part: 0, platform: entry.name, account, target, payload }]);
    link.wake();
    return ids;
  }

  /** Reads what an agent says outside of its turns until it is closed. */
  async follow(key: string, conversation: OpenAgent): Promise<void> {
    this.#open.set(conversation, key);
    await this.#read(key, conversation).finally(() => this.#open.delete(conversation));
  }

  /** Tells chats of processes that ended since the last look and that the model is not told of and has not looked at. */
  async processes(): Promise<void> {
    const { home } = this.#options;
    const mode = home.config().display.background_process_notifications;
    for (const [{ agent, processes }, key] of this.#open) {
      // The turn may read of it yet.
      if (agent.busy) continue;
      for (const process of processes.list()) {
        const { exitCode, notify, consumed } = process;
        if (exitCode === null || this.#ended.has(process)) continue;
        this.#ended.add(process);
        if (!notify && !consumed && mode !== "off" && (mode !== "error" || exitCode !== 0))
          await this.#tellEnd(key, process, TAILS[mode]);
      }
    }
  }

  async #tellEnd(key: string, process: EndedProcess, most: number): Promise<void> {
    const { home, routes, lastIn, isAllowed } = this.#options;
    const origin = (await routes.get(key))?.origin;
    const from = lastIn(key) ?? (origin && { source: origin });
    const link = from && this.#options.link(from.source.platform);
    if (!from || !link || link.entry.interactive === false || !(await isAllowed(from))) return;
    const { id } = process;
    const code = process.exitCode ?? 0;
    const command = home.redact(process.command);
    const output = home.redact(process.output).trim().slice(-most).replaceAll("```", "'''");
    const text = t("⚙️ Background process {id} ended (exit code {code}): {command}", { id, code, command });
    const shown = output === "" ? text : `${text}\n\`\`\`\n${output}\n\`\`\``;
    await this.tell(link, targetOf(from), `notice:${id}`, shown);
  }

  async #read(key: string, { agent }: OpenAgent): Promise<void> {
    const { routes, log } = this.#options;
    for await (const event of agent.notices) {
      if (event.type !== "notice") continue;
      const entry = await routes.get(key);
      const link = entry?.origin && this.#options.link(entry.origin.platform);
      if (!entry?.origin || !link) continue;
      if (event.kind === "process") {
        await this.#wake(entry, link, event.text).catch((error) =>
          log.error(`${key} does not hear what became of a background process`, error),
        );
        continue;
      }
      const text = event.kind === "review" && !event.text.startsWith("💾") ? `💾 ${event.text}` : event.text;
      const cause = `notice:${agent.sessionId}:${event.seq}:${this.#told++}`;
      await this.tell(link, targetOf({ source: entry.origin }), cause, text).catch((error) =>
        log.warn("a notice of an agent was not kept", error),
      );
    }
  }

  /** A turn of the chat: the model is told, and answers there. It waits for its turn, and ends unplayed where nobody may write any more. */
  async #wake({ session_key: sessionKey, session_id, origin }: ChatEntry, link: Link, text: string): Promise<void> {
    const { home, work, clock, lastIn, arrived } = this.#options;
    const from = lastIn(sessionKey) ?? (origin && { source: origin });
    if (!from) return;
    const updateId = `process:${session_id}:${clock.now()}:${this.#told++}`;
    const event: QueuedMessage = {
      ...{ ...from, text: home.redact(text), type: "text", updateId, sentAt: clock.now() / 1000 },
      ...{ queued: true, ours: true, outside: [] },
    };
    const { entry, account } = link;
    await work.accept([{ sessionKey, platform: entry.name, account, updateId, kind: "wake", event }]);
    arrived();
  }

  async background({ id, status, text }: BackgroundReport, message: QueuedMessage): Promise<void> {
    const link = this.#options.link(message.source.platform);
    if (link)
      await this.tell(link, targetOf(message), `notice:${id}`, `${status === "done" ? "✅" : "⚠️"} ${id}\n\n${text}`);
  }

  /** Told once: in the chat, if that can be reached, unless whoever sent it hears of it anyway. `gateway status` counts it. */
  async undeliverable(row: OutboxRow, error: string): Promise<void> {
    const { log } = this.#options;
    log.warn(`a message to ${row.platform} could not be delivered: ${error}`);
    const link = this.#options.link(row.platform);
    if (!link || row.cause.startsWith("notice:") || row.cause.startsWith(HANDED_ON)) return;
    const target = row.target as ChatTarget; // written by us
    const text = t("A message could not be delivered: {why}", { why: error });
    await this.tell(link, target, `notice:dead:${row.id}`, text);
  }

  /** After a restart home channels hear that it is over, and whoever asked for it. */
  async back(): Promise<void> {
    const note = await takeRestartNote(this.#options.home);
    if (note === null) return;
    const { by } = note;
    const link = by && this.#options.link(by.platform);
    const target = by && { chatId: by.chat_id, ...(by.thread_id ? { threadId: by.thread_id } : {}) };
    const asked = link && target ? [{ link, target, text: t("I am back.") }] : [];
    await this.#tellEach("back", [...asked, ...this.#homes(t("I am back."))]);
  }

  /**
   * Once for each chat with a running turn, and home channels. Entries are marked for the original, which goes on by them. Answers with
   * what is still to be sent.
   */
  async ending(turns: readonly ChatTurn[], isRestart: boolean): Promise<readonly Farewell[]> {
    const { routes, clock } = this.#options;
    const said: Notice[] = [];
    for (const turn of turns) {
      const link = this.#options.link(turn.source.platform);
      const entry = await routes.get(turn.key);
      const resume_reason = isRestart ? "restart_timeout" : "shutdown_timeout";
      const last_resume_marked_at = localIso(clock.now());
      if (entry) await routes.put({ ...entry, resume_pending: true, resume_reason, last_resume_marked_at });
      if (!link || !this.#hearsOfRestarts(link)) continue;
      const text = isRestart
        ? t("The gateway restarts. This turn finishes first if there is time; otherwise it continues afterwards.")
        : t("The gateway stops. This turn finishes first if there is time; otherwise it continues afterwards.");
      said.push({ link, target: turn.place.target, text });
    }
    const homes = this.#homes(isRestart ? t("The gateway restarts.") : t("The gateway stops."));
    return this.#tellEach("drain", [...said, ...homes]);
  }

  /** What has a moment to arrive before the bots go; later it is no news any more. */
  async leave(farewells: readonly Farewell[]): Promise<void> {
    const { work, clock } = this.#options;
    const until = clock.now() + LEAVE_MS;
    for (const { id, link } of farewells)
      while (link.adapter !== null && clock.now() < until && isOpen(await work.outboxRow(id))) await clock.sleep(20);
    await work.withdraw(farewells.map(({ id }) => id));
  }

  /** Home channels of platforms that people read, if they are connected. */
  #homes(text: string): readonly Notice[] {
    const { settings, links } = this.#options;
    return [...links()].flatMap((link) => {
      const { entry } = link;
      const channel = link.adapter === null || entry.interactive === false ? null : settings.homeChannel(entry);
      return channel && this.#hearsOfRestarts(link) ? [{ link, target: channel.target, text }] : [];
    });
  }

  #hearsOfRestarts({ entry }: Link): boolean {
    return this.#options.settings.platform(entry.name).extra.gateway_restart_notification !== false;
  }

  /** Several people may have a turn in one chat, and it may be a home channel too: it hears the first text. */
  async #tellEach(what: string, notices: readonly Notice[]): Promise<readonly Farewell[]> {
    const now = this.#options.clock.now();
    const told = new Set<string>();
    const farewells: Farewell[] = [];
    for (const { link, target, text } of notices) {
      const place = JSON.stringify([link.entry.name, target.chatId, target.threadId ?? null]);
      if (told.has(place)) continue;
      told.add(place);
      const ids = await this.tell(link, target, `notice:${what}:${place}:${now}`, text);
      farewells.push(...ids.map((id) => ({ id, link })));
    }
    return farewells;
  }
}

type EndedProcess = ReturnType<OpenAgent["processes"]["list"]>[number];

/** How much of the end of its output is shown, in characters. */
const TAILS = { all: 2000, result: 1000, error: 500 } as const;

interface Notice {
  readonly link: Link;
  readonly target: ChatTarget;
  readonly text: string;
}

/** Promised in the outbox, in the name of a bot that leaves. */
interface Farewell {
  readonly id: number;
  readonly link: Link;
}

const LEAVE_MS = 3000;

const isOpen = (row: OutboxRow | null) => row?.state === "pending" || row?.state === "sending";
