// One bot on Discord: a socket that tells what happens, and the API that is written to.
import type { GatewayDispatchEvents, GatewayDispatchPayload } from "@discordjs/core";
import type { SessionInfo, WebSocketManager } from "@discordjs/ws";
import { within } from "../../../../kit/clock.ts";
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
import { channelOf, Sending } from "./sending.ts";

/** Servers, messages in them, direct messages, and what messages say. */
const INTENTS = (1 << 0) | (1 << 9) | (1 << 12) | (1 << 15);
/** The socket tries again every half second; after so many in vain the gateway takes over, which waits longer. */
const MAX_FAILED = 20;
const CLOSE_MS = 3000;
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
  return new DiscordAdapter(host, await DiscordApi.open(host));
}

/** What belongs to one connection. */
interface Link {
  readonly selfId: string;
  readonly socket: WebSocketManager;
  readonly rooms: Rooms;
  readonly intake: Intake;
  readonly interactions: Interactions;
  readonly events: typeof GatewayDispatchEvents;
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
    const me = await this.#discord.read((limit) => this.#discord.api.users.getCurrent(limit), this.#over.signal);
    this.account = me.discriminator === "0" ? me.username : `${me.username}#${me.discriminator}`;
    const rooms = new Rooms(me.id, (id) => this.#channel(id));
    const parts = { host: this.#host, discord: this.#discord, rooms, selfId: me.id };
    const inbound = new Inbound(parts);
    const intake = new Intake({ ...parts, inbound, lost: (error) => this.#lose(error) });
    await intake.start();
    const { GatewayDispatchEvents: events } = await this.#host.package(
      "@discordjs/core",
      () => import("@discordjs/core"),
    );
    const socket = await this.#openSocket();
    const interactions = new Interactions({ ...parts, inbound });
    this.#link = { selfId: me.id, socket, rooms, intake, interactions, events, applicationId: me.id };
    if (this.#over.signal.aborted) return;
    await socket.connect().catch((error) => {
      throw error instanceof PlatformError ? error : unreached(error);
    });
  }

  /** Null where Discord says that there is none for us. */
  async #channel(id: string) {
    try {
      return await this.#discord.read((limit) => this.#discord.api.channels.get(id, limit), this.#over.signal);
    } catch (error) {
      if (error instanceof PlatformError && !error.retryable && error.code !== "invalid_token") return null;
      throw error;
    }
  }

  async #openSocket(): Promise<WebSocketManager> {
    const { WebSocketManager, WebSocketShardEvents } = await this.#host.package(
      "@discordjs/ws",
      () => import("@discordjs/ws"),
    );
    // Of this adapter alone: the package would hand the session of an earlier one to the next.
    const sessions = new Map<number, SessionInfo>();
    const socket = new WebSocketManager({
      ...{ token: tokenOf(this.#host.option) ?? "", intents: INTENTS, rest: this.#discord.rest },
      // Asked before it connects again, which it does after a pause that nothing ends: after our end it gets no answer.
      retrieveSessionInfo: (shard) =>
        this.#over.signal.aborted ? new Promise<null>(() => undefined) : (sessions.get(shard) ?? null),
      updateSessionInfo: (shard, info) => {
        // An address that is not one would end the program, one without encryption would show the token.
        if (info === null || addressProblem(info.resumeURL, "resume_gateway_url", "ws") !== null)
          sessions.delete(shard);
        else sessions.set(shard, info);
      },
    });
    const { url } = await this.#discord.read(() => socket.fetchGatewayInformation(), this.#over.signal);
    const problem = addressProblem(url, "the address of Discord's socket", "ws");
    if (problem !== null) throw new PlatformError("bad_address", problem, { retryable: false });
    let failures = 0;
    const up = () => {
      failures = 0;
    };
    socket.on(WebSocketShardEvents.Ready, up);
    socket.on(WebSocketShardEvents.Resumed, up);
    socket.on(WebSocketShardEvents.Closed, (code) => {
      failures += 1;
      const fatal = FATAL[code]?.();
      if (fatal !== undefined) this.#lose(fatal);
      else if (failures > MAX_FAILED) this.#lose(unreached(`closed ${failures} times, last with ${code}`));
      else if (!this.#over.signal.aborted) this.#host.log.info(`the socket was closed (${code}); reconnecting`);
    });
    socket.on(WebSocketShardEvents.Error, (error) => this.#lose(unreached(error)));
    socket.on(WebSocketShardEvents.SocketError, (error) =>
      this.#host.log.debug(`the socket failed: ${messageOf(error)}`),
    );
    socket.on(WebSocketShardEvents.Dispatch, (payload) => {
      if (this.#link === null || this.#over.signal.aborted) return;
      try {
        this.#dispatch(payload, this.#link);
      } catch (error) {
        this.#host.log.error(`an event of Discord (${String(payload.t)}) could not be read`, error);
      }
    });
    return socket;
  }

  #dispatch(payload: GatewayDispatchPayload, { selfId, rooms, intake, interactions, events }: Link): void {
    switch (payload.t) {
      case events.Ready: {
        if (this.#link !== null) this.#link.applicationId = payload.d.application.id;
        const guilds = payload.d.guilds.map(({ id }) => id);
        rooms.forget(guilds);
        return intake.sessionBegan(guilds);
      }
      case events.GuildCreate:
        if (!payload.d.unavailable) rooms.addGuild(payload.d);
        return intake.guildArrived(payload.d.id);
      case events.GuildUpdate:
        return rooms.changeGuild(payload.d);
      case events.GuildDelete:
        rooms.removeGuild(payload.d.id);
        return intake.guildArrived(payload.d.id);
      case events.ChannelCreate:
      case events.ChannelUpdate:
      case events.ThreadCreate:
      case events.ThreadUpdate:
        rooms.add(payload.d);
        return;
      case events.ThreadListSync:
        for (const thread of payload.d.threads) rooms.add(thread, payload.d.guild_id);
        return;
      case events.ChannelDelete:
      case events.ThreadDelete:
        return rooms.remove(payload.d.id);
      case events.MessageCreate:
        if (payload.d.author.id !== selfId) return intake.created(payload.d);
        this.#sending.echoed(payload.d);
        return rooms.wroteIn(payload.d.channel_id);
      case events.MessageUpdate:
        // Discord changes messages too, to show what a link leads to.
        if (payload.d.author.id !== selfId && payload.d.edited_timestamp) intake.edited(payload.d);
        return;
      case events.MessageDelete:
        return intake.deleted(payload.d.channel_id, [payload.d.id]);
      case events.MessageDeleteBulk:
        return intake.deleted(payload.d.channel_id, payload.d.ids);
      case events.InteractionCreate:
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
      // A socket that is not answered waits half a minute for its closing.
      await within(async () => link.socket.destroy({ reason: "shutting down" }), CLOSE_MS, this.#host.clock).catch(
        (error) => this.#host.log.debug(`the socket was left open: ${messageOf(error)}`),
      );
      await link.intake.close();
    }
    this.#discord.close();
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
    const { channels } = this.#discord.api;
    await this.#try("a message was not deleted", (limit) =>
      channels.deleteMessage(channelOf(target), messageId, limit),
    );
  }

  async typing(target: ChatTarget): Promise<void> {
    const { channels } = this.#discord.api;
    await this.#try("typing was not shown", (limit) => channels.showTyping(channelOf(target), limit));
  }

  async mark(target: ChatTarget, messageId: string, state: keyof typeof REACTIONS): Promise<void> {
    if (!isYes(this.#host.option("reactions", "DISCORD_REACTIONS"), false)) return;
    const { channels } = this.#discord.api;
    // The message that a thread was opened below lies in the channel.
    const channel = messageId === target.threadId ? target.chatId : channelOf(target);
    await this.#try("a reaction was not set", (limit) =>
      channels.addMessageReaction(channel, messageId, REACTIONS[state], limit),
    );
    if (state === "working") return;
    await this.#try("a reaction was not removed", (limit) =>
      channels.deleteOwnMessageReaction(channel, messageId, REACTIONS.working, limit),
    );
  }

  async #try(what: string, work: (limit: { readonly signal: AbortSignal }) => Promise<unknown>): Promise<void> {
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
