// What a chat sees of a turn: signs of life while it works, notices, and the answer as parts of the outbox.
import type { AgentEvent } from "../../agent/events.ts";
import type { OpenAgent } from "../../agent/opened.ts";
import type { ModelFailure } from "../../agent/outcome.ts";
import { said } from "../../home/language/words.ts";
import type { Logger } from "../../home/log.ts";
import { type Clock, within } from "../../kit/clock.ts";
import { messageOf } from "../../kit/errors.ts";
import type { OutboxPart, WorkStore } from "../../sessions/work.ts";
import { composeAnswer, isSilence } from "./answer.ts";
import type { ChatSource } from "./chat.ts";
import type { AdapterHost, ChatMessage, ChatTarget, PlatformAdapter, PlatformEntry } from "./contract.ts";
import type { Payload } from "./delivery.ts";
import { LiveReply } from "./live.ts";
import { mediaInResult } from "./media-out.ts";
import type { GatewaySettings } from "./settings.ts";
import { spokenText, voiceMode } from "./voice.ts";

/** What waits in the inbox as a message. */
export type QueuedMessage = ChatMessage & {
  /** Typed behind `/queue`: a turn of its own, whatever else waits. */
  readonly queued?: boolean;
  /** Nobody wrote it: we tell the conversation something. */
  readonly ours?: boolean;
  /** What is stored in place of the text, when a command made it longer. */
  readonly shownAs?: string;
};

export interface Bot {
  readonly entry: PlatformEntry;
  readonly account: string;
  /** Null while it is not connected: what is said then waits in the outbox. */
  readonly adapter: PlatformAdapter | null;
}

/** A chat to write to, and the bot that does it. */
interface Destination {
  readonly entry: PlatformEntry;
  readonly account: string;
  readonly target: ChatTarget;
}

/** What replies of a gateway share. */
export interface ReplyPorts {
  readonly settings: GatewaySettings;
  readonly work: WorkStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** Fetches pictures that an answer shows by their address. */
  readonly download: AdapterHost["download"];
  bot(platform: string): Bot;
  /** Whether the platform is set up: what came from one that no longer is waits. */
  serves(platform: string): boolean;
  /** Where an answer goes that is not for the chat it came from. Rejects with what is wrong with the target. */
  elsewhere(target: string, source: ChatSource): Promise<readonly Destination[]>;
  /** Something was promised in the name of a bot. */
  wake(platform: string): void;
}

/** The reply to one turn: `cause` names its parts in the outbox. */
export class Reply {
  readonly #ports: ReplyPorts;
  readonly #message: QueuedMessage;
  readonly #row: number;
  readonly #heardVoice: boolean;
  #live: LiveReply | null = null;
  /** Files that tools want sent, streamed messages that no part is left for, what the model thought last. */
  readonly #media: string[] = [];
  #unused: readonly string[] = [];
  #thought = "";
  #told = 0;

  /** `heardVoice`: something that is answered was spoken. */
  constructor(message: QueuedMessage, row: number, ports: ReplyPorts, { heardVoice = false } = {}) {
    this.#message = message;
    this.#heardVoice = heardVoice;
    this.#row = row;
    this.#ports = ports;
  }

  get target(): ChatTarget {
    return targetOf(this.#message);
  }

  /** From here on the chat sees that somebody is at work. Not while the bot is not connected. */
  open(): void {
    const { adapter, entry } = this.#bot;
    const { settings, clock, log } = this.#ports;
    if (adapter === null) return;
    this.#mark("working");
    const key = `live:${this.#row}`;
    this.#live = new LiveReply({ adapter, entry, settings, target: this.target, clock, log, key });
  }

  show(event: AgentEvent): void {
    if (event.type === "tool_end") this.#media.push(...mediaInResult(event.call.name, event.result));
    if (event.type === "thinking") this.#thought += event.delta;
    if (event.type === "step") this.#thought = "";
    this.#live?.show(event);
  }

  /** A question waits: nobody is at work. */
  pause(): void {
    this.#live?.pause();
  }

  resume(): void {
    this.#live?.resume();
  }

  async close(how: "answered" | "failed" | "stopped"): Promise<void> {
    this.#mark(how === "answered" ? "done" : "failed");
    await this.#live
      ?.close(how, this.#unused)
      .catch((error) => this.#ports.log.debug("the live reply did not end well", error));
  }

  /** A sign beside the message, where the settings of the platform want one. */
  #mark(state: "working" | "done" | "failed"): void {
    const { messageId } = this.#message;
    if (messageId === undefined) return;
    const { adapter } = this.#bot;
    const mark = async () => adapter?.mark?.(this.target, messageId, state);
    mark().catch((error) => this.#ports.log.debug("a message could not be marked", error));
  }

  /** Said beside the answer, in its order. */
  async tell(texts: readonly string[]): Promise<void> {
    const { work, settings } = this.#ports;
    if (texts.length === 0) return;
    // Nobody reads along where programs write: a notice would become part of what they are sent.
    if (this.#bot.entry.interactive === false) return this.#ports.log.info(texts.join("\n"));
    const cause = `notice:inbox:${this.#row}:${this.#told++}`;
    const payload: Payload = { type: "text", text: settings.home.redact(said(texts.join("\n"))), passing: true };
    const { entry, account } = this.#bot;
    await work.promise([{ cause, part: 0, platform: entry.name, account, target: this.target, payload }]);
    this.#ports.wake(entry.name);
  }

  /** The answer as parts of the outbox, for each chat that gets it. */
  async compose(
    text: string,
    {
      failed,
      failure,
      conversation,
    }: { readonly failed: boolean; readonly failure?: ModelFailure | undefined; readonly conversation: OpenAgent },
  ): Promise<readonly OutboxPart[]> {
    const { settings, log } = this.#ports;
    const streamed = (await this.#live?.streamed().catch(() => [])) ?? [];
    const origin = this.#bot.entry.interactive === false ? ("unattended" as const) : ("chat" as const);
    const destinations = await this.#destinations();
    const asVoice = failed ? null : await this.#spoken(text, conversation);
    const parts = await Promise.all(
      destinations.map(async (destination) => {
        const { entry } = destination;
        const own = entry.name === this.#bot.entry.name ? { streamed } : {};
        const { payloads, notes, unused } = await composeAnswer(text, {
          ...{ home: settings.home, settings, entry, origin, failed, failure, clock: this.#ports.clock },
          ...{ mediaFromTools: this.#media, reasoning: this.#thought, download: this.#ports.download, ...own },
          footer: footerOf(conversation),
          asVoice: entry.name === this.#bot.entry.name ? asVoice : null,
          sendsFiles: this.#ports.bot(entry.name).adapter?.sendFile !== undefined,
          sendsAlbums: this.#ports.bot(entry.name).adapter?.sendAlbum !== undefined,
        });
        for (const note of notes) log.info(note);
        if (entry.name === this.#bot.entry.name) this.#unused = unused;
        return { destination, payloads };
      }),
    );
    // Parts of one cause are numbered through, whoever they go to.
    let number = 0;
    return parts.flatMap(({ destination, payloads }) => {
      const made = this.parts(payloads, destination, number);
      number += payloads.length;
      return made;
    });
  }

  /** The answer as sound, where the chat wants that; null also when it cannot be had: the text comes anyway. */
  async #spoken(answer: string, conversation: OpenAgent): Promise<string | null> {
    const { settings, log, clock } = this.#ports;
    const { source } = this.#message;
    const { adapter, entry } = this.#bot;
    if (adapter?.sendFile === undefined || entry.interactive === false || isSilence(answer, "chat")) return null;
    try {
      const mode = await voiceMode(settings.home, source);
      if (mode === "off" || (mode === "voice_only" && !this.#heardVoice)) return null;
      const hasSound = [...this.#media, answer].some((one) => SOUND.test(one));
      const words = hasSound ? "" : spokenText(settings.home.redact(answer));
      return words === "" ? null : await within(() => conversation.speak(words), SPEAK_MS, clock);
    } catch (error) {
      log.warn("an answer was not spoken", error);
      return null;
    }
  }

  async #destinations(): Promise<readonly Destination[]> {
    const { deliver, source } = this.#message;
    if (deliver === undefined) return [{ ...this.#bot, target: this.target }];
    try {
      return await this.#ports.elsewhere(deliver, source);
    } catch (error) {
      this.#ports.log.warn(`the answer to a message of ${source.platform} goes nowhere: ${messageOf(error)}`);
      return [];
    }
  }

  /** Parts of the outbox, from this number on. */
  parts(
    payloads: readonly Payload[],
    { entry, account, target }: Destination = { ...this.#bot, target: this.target },
    from = 0,
  ): readonly OutboxPart[] {
    const mode = this.#ports.settings.option(entry.name)("reply_to_mode") ?? "first";
    const answered = entry.name === this.#message.source.platform ? this.#message.messageId : undefined;
    const cause = `inbox:${this.#row}`;
    return payloads.map((payload, at) => {
      const part = from + at;
      const replies = answered !== undefined && (mode === "all" || (mode === "first" && part === 0));
      const said: Payload = replies ? { ...payload, replyTo: answered } : payload;
      return { cause, part, platform: entry.name, account, target, payload: said };
    });
  }

  /** Bots that have something to send now. */
  async wake(): Promise<void> {
    for (const { entry } of await this.#destinations()) this.#ports.wake(entry.name);
  }

  get #bot(): Bot {
    return this.#ports.bot(this.#message.source.platform);
  }
}

const SPEAK_MS = 60_000;
/** The agent made a sound of its own. */
const SOUND = /\.(?:mp3|wav|ogg|opus|m4a|flac)\b/i;

const footerOf = ({ target, agent, cwd }: OpenAgent) => ({
  ...{ model: target.model, contextUsed: agent.lastPromptTokens, contextLength: target.contextLength, cwd },
});

/** Where the reply to a message goes. */
export function targetOf({ source, replyIn }: Pick<ChatMessage, "source" | "replyIn">): ChatTarget {
  if (replyIn) return replyIn;
  const { chat_id: chat, user_id: user, thread_id: thread } = source;
  return { chatId: chat ?? user ?? "", ...(thread ? { threadId: thread } : {}) };
}
