// One bot on Discord: a socket that tells what happens, and the API that is written to.
import { messageOf } from "../../../../kit/errors.ts";
import {
  type AdapterHost,
  type ChatTarget,
  type ChoiceButton,
  type KnownChat,
  type OutgoingFile,
  type PlatformAdapter,
  PlatformError,
  type SendOptions,
  type SendResult,
} from "../../contract.ts";
import { isYes } from "../../groups.ts";
import { addressProblem } from "../../web-calls.ts";
import { DiscordApi, invalidToken } from "./api.ts";
import { tokenOf } from "./entry.ts";
import { Inbound } from "./inbound.ts";
import { Intake } from "./intake.ts";
import { Interactions } from "./interactions.ts";
import { Rooms } from "./rooms.ts";
import type { Limit } from "./routes.ts";
import { channelOf, Sending } from "./sending.ts";
import type { Dispatch } from "./shapes.ts";
import { DiscordSocket } from "./socket.ts";

/** Servers, messages in them, direct messages, and what messages say. */
const INTENTS = (1 << 0) | (1 << 9) | (1 << 12) | (1 << 15);
/** After so many connections in vain the gateway takes over, which waits longer. */
const MAX_FAILED = 8;
const REACTIONS = { working: "👀", done: "✅", failed: "❌" } as const;

/** Closings of the socket after which trying again does not help. */
const FATAL: Readonly<Record<number, () => PlatformError>> = {
  4004: invalidToken,
  4010: () => refused("Discord refused the shard of this bot"),
  4011: () => refused("this bot is in too many servers for one connection"),
  4012: () => refused("Discord no longer supports this version of its API; update Hermes"),
  4013: () => refused("Discord does not know the intents of this bot; update Hermes"),
  4014: () =>
    refused(
      "Discord withholds the texts of messages; enable the Message Content Intent under Bot at https://discord.com/developers/applications",
    ),
};
const refused = (message: string) => new PlatformError("socket_refused", message, { retryable: false });

export async function openDiscord(host: AdapterHost): Promise<PlatformAdapter> {
  return new DiscordAdapter(host, new DiscordApi(host));
}

/** What belongs to one connection. */
interface Link {
  readonly selfId: string;
  readonly socket: DiscordSocket;
  readonly rooms: Rooms;
  readonly intake: Intake;
  readonly interactions: Interactions;
  applicationId: string;
}

class DiscordAdapter implements PlatformAdapter {
  account = "";
  readonly #host: AdapterHost;
  readonly #discord: DiscordApi;
  readonly #sending: Sending;
  readonly #over = new AbortController();
  readonly #failed = Promise.withResolvers<never>();
  #link: Link | null = null;
  #isUp = false;

  constructor(host: AdapterHost, discord: DiscordApi) {
    this.#host = host;
    this.#discord = discord;
    this.#sending = new Sending(host, discord);
    discord.onRefused = (error) => this.#lose(error);
    this.#failed.promise.catch(() => undefined); // waited for only while connecting
  }

  async connect(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    signal.addEventListener("abort", () => void this.disconnect(), { once: true });
    const stopped = Promise.withResolvers<never>();
    this.#over.signal.addEventListener("abort", () => stopped.reject(signal.reason ?? new Error("disconnected")), {
      once: true,
    });
    try {
      await Promise.race([this.#connect(), this.#failed.promise, stopped.promise]);
    } catch (error) {
      await this.disconnect();
      throw error;
    }
    this.#isUp = true;
  }

  async #connect(): Promise<void> {
    const me = await this.#discord.read((limit) => this.#discord.api.me(limit), this.#over.signal);
    this.account = !me.discriminator || me.discriminator === "0" ? me.username : `${me.username}#${me.discriminator}`;
    const rooms = new Rooms(me.id, (id) => this.#channel(id));
    const parts = { host: this.#host, discord: this.#discord, rooms, selfId: me.id };
    const inbound = new Inbound(parts);
    const intake = new Intake({ ...parts, inbound, lost: (error) => this.#lose(error) });
    await intake.start();
    const socket = await this.#openSocket();
    const interactions = new Interactions({ ...parts, inbound });
    this.#link = { selfId: me.id, socket, rooms, intake, interactions, applicationId: me.id };
    if (!this.#over.signal.aborted) await socket.start();
  }

  /** Null where Discord says that there is none for us. */
  async #channel(id: string) {
    try {
      return await this.#discord.read((limit) => this.#discord.api.channel(id, limit), this.#over.signal);
    } catch (error) {
      if (error instanceof PlatformError && !error.retryable && error.code !== "invalid_token") return null;
      throw error;
    }
  }

  async #openSocket(): Promise<DiscordSocket> {
    const { clock, log } = this.#host;
    const { url } = await this.#discord.read((limit) => this.#discord.api.socket(limit), this.#over.signal);
    const problem = addressProblem(url, "the address of Discord's socket", "ws");
    if (problem !== null) throw new PlatformError("bad_address", problem, { retryable: false });
    return new DiscordSocket({
      ...{ token: tokenOf(this.#host.option) ?? "", intents: INTENTS, address: url.replace(/\/$/, ""), clock, log },
      dispatch: (event) => {
        if (this.#link === null || this.#over.signal.aborted) return;
        try {
          this.#dispatch(event, this.#link);
        } catch (error) {
          log.error(`an event of Discord (${String(event.t)}) could not be read`, error);
        }
      },
      closed: (code, failures) => {
        const fatal = FATAL[code]?.();
        if (fatal !== undefined) this.#lose(fatal);
        else if (failures > MAX_FAILED) this.#lose(unreached(`closed ${failures} times, last with ${code}`));
        else log.info(`the socket was closed (${code}); reconnecting`);
        return fatal === undefined && failures <= MAX_FAILED;
      },
    });
  }

  #dispatch(payload: Dispatch, { selfId, rooms, intake, interactions }: Link): void {
    switch (payload.t) {
      case "READY": {
        if (this.#link !== null) this.#link.applicationId = payload.d.application.id;
        const guilds = payload.d.guilds.map(({ id }) => id);
        rooms.forget(guilds);
        return intake.sessionBegan(guilds);
      }
      case "GUILD_CREATE":
        if (!payload.d.unavailable) rooms.addGuild(payload.d);
        return intake.guildArrived(payload.d.id);
      case "GUILD_UPDATE":
        return rooms.changeGuild(payload.d);
      case "GUILD_DELETE":
        rooms.removeGuild(payload.d.id);
        return intake.guildArrived(payload.d.id);
      case "CHANNEL_CREATE":
      case "CHANNEL_UPDATE":
      case "THREAD_CREATE":
      case "THREAD_UPDATE":
        rooms.add(payload.d);
        return;
      case "THREAD_LIST_SYNC":
        for (const thread of payload.d.threads) rooms.add(thread, payload.d.guild_id);
        return;
      case "CHANNEL_DELETE":
      case "THREAD_DELETE":
        return rooms.remove(payload.d.id);
      case "MESSAGE_CREATE":
        if (payload.d.author.id !== selfId) return intake.created(payload.d);
        this.#sending.echoed(payload.d);
        return rooms.wroteIn(payload.d.channel_id);
      case "MESSAGE_UPDATE":
        // Discord changes messages too, to show what a link leads to.
        if (payload.d.author.id !== selfId && payload.d.edited_timestamp) intake.edited(payload.d);
        return;
      case "MESSAGE_DELETE":
        return intake.deleted(payload.d.channel_id, [payload.d.id]);
      case "MESSAGE_DELETE_BULK":
        return intake.deleted(payload.d.channel_id, payload.d.ids);
      case "INTERACTION_CREATE":
        interactions
          .handle(payload.d)
          .catch((error) => this.#host.log.error("a command or button of Discord failed", error));
        return;
    }
  }

  /** Once: whatever follows is part of the same end. */
  #lose(error: PlatformError): void {
    if (this.#over.signal.aborted) return;
    this.#failed.reject(error);
    if (!this.#isUp) return;
    void this.disconnect();
    this.#host.lost(error);
  }

  async disconnect(): Promise<void> {
    if (this.#over.signal.aborted) return;
    this.#over.abort();
    const link = this.#link;
    if (link !== null) {
      await link.socket.stop();
      await link.intake.close();
    }
  }

  // Writing. Nothing leaves after the end.

  async send(target: ChatTarget, text: string, options: SendOptions): Promise<SendResult> {
    return this.#ended ?? this.#sending.send(target, text, options);
  }

  async edit(target: ChatTarget, messageId: string, text: string, options: SendOptions & { final: boolean }) {
    return this.#ended ?? this.#sending.edit(target, messageId, text, options);
  }

  async sendFile(target: ChatTarget, file: OutgoingFile, options: SendOptions): Promise<SendResult> {
    return this.#ended ?? this.#sending.sendFile(target, file, options);
  }

  async sendAlbum(target: ChatTarget, files: readonly OutgoingFile[], options: SendOptions): Promise<SendResult> {
    return this.#ended ?? this.#sending.sendAlbum(target, files, options);
  }

  async ask(
    target: ChatTarget,
    text: string,
    question: { readonly id: string; readonly buttons: readonly ChoiceButton[] },
    options: SendOptions,
  ): Promise<SendResult> {
    return this.#ended ?? this.#sending.ask(target, text, question, options);
  }

  get #ended(): SendResult | null {
    return this.#over.signal.aborted ? { failed: "unreachable", error: "Discord is disconnected" } : null;
  }

  closeQuestion(target: ChatTarget, messageId: string, text: string): Promise<void> {
    return this.#sending.closeQuestion(target, messageId, text);
  }

  findSent(target: ChatTarget, key: string, text: string, since?: number): Promise<string | null | undefined> {
    return this.#sending.findSent(target, key, text, since);
  }

  async remove(target: ChatTarget, messageId: string): Promise<void> {
    const { api } = this.#discord;
    await this.#try("a message was not deleted", (limit) => api.deleteMessage(channelOf(target), messageId, limit));
  }

  async typing(target: ChatTarget): Promise<void> {
    const { api } = this.#discord;
    await this.#try("typing was not shown", (limit) => api.showTyping(channelOf(target), limit));
  }

  async mark(target: ChatTarget, messageId: string, state: keyof typeof REACTIONS): Promise<void> {
    if (!isYes(this.#host.option("reactions", "DISCORD_REACTIONS"), false)) return;
    const { api } = this.#discord;
    // The message that a thread was opened below lies in the channel.
    const channel = messageId === target.threadId ? target.chatId : channelOf(target);
    await this.#try("a reaction was not set", (limit) => api.react(channel, messageId, REACTIONS[state], limit));
    if (state === "working") return;
    await this.#try("a reaction was not removed", (limit) => api.unreact(channel, messageId, REACTIONS.working, limit));
  }

  async #try(what: string, work: (limit: Limit) => Promise<unknown>): Promise<void> {
    if (this.#over.signal.aborted) return;
    const result = await this.#discord.ask(work);
    if ("failure" in result) this.#host.log.debug(`${what}: ${result.failure.message}`);
  }

  async chats(): Promise<readonly KnownChat[]> {
    return this.#link?.rooms.listed() ?? [];
  }

  async setCommands(commands: readonly { readonly name: string; readonly description: string }[]): Promise<void> {
    if (this.#link !== null) await this.#link.interactions.setMenu(this.#link.applicationId, commands);
  }
}

function unreached(error: unknown): PlatformError {
  const why = typeof error === "string" ? error : messageOf(error);
  return new PlatformError("no_socket", `Discord's socket is not reached: ${why}`, { retryable: true, cause: error });
}
