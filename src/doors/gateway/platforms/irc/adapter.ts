// One nick on one server. IRC acknowledges nothing, so that a PING behind the last line of a part asks whether the server has read it: what
// left before the connection broke may have arrived or not.
import { createHash } from "node:crypto";
import type { ChatSource } from "../../chat.ts";
import {
  type AdapterHost,
  type ChatMessage,
  type ChatTarget,
  type KnownChat,
  type PlatformAdapter,
  PlatformError,
  type SendOptions,
  type SendResult,
} from "../../contract.ts";
import { channelSettings, isForUs } from "../../groups.ts";
import { IrcConnection } from "./connection.ts";
import { type IrcSettings, ircSettings, LINE_BYTES } from "./entry.ts";
import { toLines, toPlain } from "./format.ts";
import { addressedText, asCommand, type IrcLine, isChannel, isName, withoutControls } from "./protocol.ts";

const JOIN_SECONDS = 10;
const LOGIN_SECONDS = 5;
const RECEIPT_SECONDS = 30;
const REJOIN_SECONDS = 10;
const REGAIN_SECONDS = 60;

/** Numbers that say a line was not delivered, to whom it was sent as second parameter. */
const REFUSALS = new Set(["401", "403", "404", "405", "407", "411", "413", "442", "477", "486", "531", "716"]);
const JOIN_FAILURES = new Set(["403", "405", "471", "473", "474", "475", "476", "477", "437", "480", "489", "520"]);

export async function openIrc(host: AdapterHost): Promise<PlatformAdapter> {
  return new IrcAdapter(host, ircSettings(host.option));
}

/** A part on its way: what the server says about it until it has read all of it. */
interface InFlight {
  readonly target: string;
  readonly token: string;
  readonly done: PromiseWithResolvers<SendResult>;
  refusal: string | null;
}

class IrcAdapter implements PlatformAdapter {
  readonly #host: AdapterHost;
  readonly #settings: IrcSettings;
  readonly #over = new AbortController();
  readonly #joined = new Set<string>();
  /** Those that wait for a line from the server. */
  readonly #waiting = new Set<(line: IrcLine) => void>();
  #connection: IrcConnection | null = null;
  #inFlight: InFlight | null = null;
  #sending: Promise<unknown> = Promise.resolve();
  #receiving: Promise<unknown> = Promise.resolve();
  #nextLineAt = 0;
  #parts = 0;
  #received = 0;

  constructor(host: AdapterHost, settings: IrcSettings) {
    this.#host = host;
    this.#settings = settings;
  }

  get account(): string {
    return `${this.#connection?.nick ?? this.#settings.nick} on ${this.#settings.host}`;
  }

  async connect(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    signal.addEventListener("abort", () => this.disconnect(), { once: true });
    const { clock, log } = this.#host;
    const connection = await IrcConnection.open(this.#settings, {
      ...{ clock, log, signal: this.#over.signal },
      onLine: (line) => this.#onLine(line),
      onEnd: (error) => this.#lose(error),
    });
    this.#connection = connection;
    await this.#logIn(connection);
    await Promise.all(this.#settings.channels.map((channel) => this.#join(connection, channel)));
    if (connection.nick !== this.#settings.nick) this.#regainNick(connection);
  }

  async disconnect(): Promise<void> {
    this.#over.abort();
    this.#settleInFlight();
  }

  send(target: ChatTarget, text: string, options: SendOptions): Promise<SendResult> {
    const lines = toLines(options.plain ? text : toPlain(text), LINE_BYTES);
    const sent = this.#sending.then(() => this.#sendLines(target.chatId, lines));
    this.#sending = sent;
    return sent;
  }

  async chats(): Promise<readonly KnownChat[]> {
    return [...this.#joined].map((name) => ({ id: name, name, type: "channel" }));
  }

  async #sendLines(target: string, lines: readonly string[]): Promise<SendResult> {
    if (!isName(target)) return { failed: "refused", error: `"${target}" is not a channel or nick` };
    const connection = this.#connection;
    if (!connection?.isOpen) return this.#notConnected();
    const isOurs = this.#settings.channels.some((one) => connection.fold(channelName(one)) === connection.fold(target));
    if (isOurs && !this.#joined.has(connection.fold(target)))
      return { failed: "unreachable", error: `we are not in ${target}` };
    if (lines.length === 0) return { messageId: null };
    const token = `hermes-${++this.#parts}`;
    const flight: InFlight = { target: connection.fold(target), token, done: Promise.withResolvers(), refusal: null };
    let left = 0;
    for (const line of lines) {
      await this.#awaitTurn();
      if (!connection.isOpen) return left === 0 ? this.#notConnected() : unknown(left, lines.length);
      this.#inFlight = flight; // refusals of its first lines may come before its last one leaves
      connection.write(`PRIVMSG ${target} :${line}`);
      left++;
    }
    connection.write(`PING :${token}`);
    const limit = new AbortController();
    const time = this.#host.clock.sleep(RECEIPT_SECONDS * 1000, limit.signal).then(
      () => unknown(left, lines.length),
      () => unknown(left, lines.length),
    );
    const result = await Promise.race([flight.done.promise, time]);
    limit.abort();
    this.#inFlight = null;
    return result;
  }

  #notConnected(): SendResult {
    return { failed: "unreachable", error: `there is no connection to ${this.#settings.host}` };
  }

  /** Servers throw out who writes too fast. */
  async #awaitTurn(): Promise<void> {
    const { clock } = this.#host;
    const wait = this.#nextLineAt - clock.now();
    if (wait > 0) await clock.sleep(wait, this.#over.signal).catch(() => undefined);
    this.#nextLineAt = clock.now() + this.#settings.floodSeconds * 1000;
  }

  async #logIn(connection: IrcConnection): Promise<void> {
    const { nickservPassword } = this.#settings;
    if (nickservPassword === "" || connection.isLoggedIn) return;
    const answered = this.#waitFor(
      ({ command, from, params }) =>
        command === "900" ||
        (command === "NOTICE" && connection.fold(from) === "nickserv") ||
        (command === "401" && connection.fold(params[1] ?? "") === "nickserv"),
      LOGIN_SECONDS,
    );
    connection.write(`PRIVMSG NickServ :IDENTIFY ${nickservPassword}`);
    const answer = await answered;
    if (answer === null || answer.command === "401")
      this.#host.log.warn(`NickServ of ${this.#settings.host} did not answer; we are not logged in`);
  }

  /** A channel that cannot be joined is no reason to stay away from the others. */
  async #join(connection: IrcConnection, channel: string): Promise<void> {
    const name = connection.fold(channelName(channel));
    const answered = this.#waitFor(
      ({ command, from, params }) =>
        (command === "JOIN" && this.#isUs(from) && connection.fold(params[0] ?? "") === name) ||
        (JOIN_FAILURES.has(command) && connection.fold(params[1] ?? "") === name),
      JOIN_SECONDS,
    );
    connection.write(`JOIN ${channel}`);
    const answer = await answered;
    if (answer?.command === "JOIN" || this.#over.signal.aborted) return;
    const reason = answer?.params.at(-1) ?? "the server did not answer";
    this.#host.log.warn(`${channelName(channel)} on ${this.#settings.host} cannot be joined: ${reason}`);
  }

  /** Somebody else has our nick, perhaps an older connection of ours that the server has not missed yet. */
  async #regainNick(connection: IrcConnection): Promise<void> {
    const { nick, nickservPassword, host } = this.#settings;
    this.#host.log.warn(`${nick} is taken on ${host}; we are ${connection.nick} until it is free`);
    while (connection.isOpen && connection.fold(connection.nick) !== connection.fold(nick)) {
      if (nickservPassword !== "") connection.write(`PRIVMSG NickServ :GHOST ${nick} ${nickservPassword}`);
      connection.write(`NICK ${nick}`);
      await this.#host.clock.sleep(REGAIN_SECONDS * 1000, this.#over.signal).catch(() => undefined);
    }
  }

  #waitFor(matches: (line: IrcLine) => boolean, seconds: number): Promise<IrcLine | null> {
    const { promise, resolve } = Promise.withResolvers<IrcLine | null>();
    const done = new AbortController();
    const look = (line: IrcLine) => {
      if (matches(line)) resolve(line);
    };
    this.#waiting.add(look);
    this.#host.clock.sleep(seconds * 1000, done.signal).then(
      () => resolve(null),
      () => undefined,
    );
    return promise.finally(() => {
      done.abort();
      this.#waiting.delete(look);
    });
  }

  #onLine(line: IrcLine): void {
    if (this.#over.signal.aborted) return;
    const { command, params, from } = line;
    for (const look of this.#waiting) look(line);
    const [first = "", second = ""] = params;
    const channel = this.#fold(first);
    if (command === "JOIN" && this.#isUs(from)) this.#joined.add(channel);
    if (command === "PART" && this.#isUs(from)) this.#joined.delete(channel);
    if (command === "KICK" && this.#isUs(second)) this.#onKick(channel, params[2] ?? "");
    if (command === "PONG" && this.#inFlight && params.at(-1) === this.#inFlight.token) this.#settleInFlight(true);
    if (this.#inFlight && REFUSALS.has(command) && this.#fold(second) === this.#inFlight.target)
      this.#inFlight.refusal = params.at(-1) ?? command;
    if (command === "PRIVMSG") this.#onMessage(line);
  }

  #settleInFlight(isRead = false): void {
    const flight = this.#inFlight;
    if (!flight) return;
    if (flight.refusal !== null)
      flight.done.resolve({ failed: "refused", error: `${flight.target}: ${flight.refusal}` });
    else flight.done.resolve(isRead ? { messageId: null } : unknown());
  }

  #onKick(channel: string, reason: string): void {
    this.#joined.delete(channel);
    this.#host.log.warn(`we were removed from ${channel}: ${reason}`);
    const connection = this.#connection;
    const known = this.#settings.channels.find((one) => this.#fold(channelName(one)) === channel);
    if (known === undefined || !connection) return;
    this.#host.clock.sleep(REJOIN_SECONDS * 1000, this.#over.signal).then(
      () => this.#join(connection, known),
      () => undefined,
    );
  }

  #onMessage({ from, params, tags }: IrcLine): void {
    const [to = "", said = ""] = params;
    const action = /^\x01ACTION ([^\x01]*)\x01?$/.exec(said);
    if (from === "" || this.#isUs(from) || (said.startsWith("\x01") && !action)) return;
    const text = withoutControls(action ? `* ${from} ${action[1]}` : said).trim();
    const inChannel = isChannel(to);
    if (text === "" || (!inChannel && !this.#isUs(to))) return;
    const nicks = [this.#connection?.nick ?? this.#settings.nick, this.#settings.nick];
    const addressed = nicks.map((nick) => addressedText(text, nick)).find((rest) => rest !== null);
    const isMeant = !inChannel || addressed !== undefined;
    const body = addressed ?? text;
    const message = this.#message({ from, to, text: isMeant ? asCommand(body) : body, tags, inChannel, isMeant });
    const { option, log } = this.#host;
    const group = { chatId: this.#fold(to), text, mentionsUs: isMeant };
    if (inChannel && !isForUs(group, option, { requireMention: true, prefix: "IRC", chats: "CHANNELS" }, log)) return;
    this.#receiving = this.#receiving
      .then(() => this.#host.receive([message]))
      .catch((error) =>
        this.#lose(new PlatformError("store", "a message could not be stored", { retryable: true, cause: error })),
      );
  }

  #message(said: {
    readonly from: string;
    readonly to: string;
    readonly text: string;
    readonly tags: IrcLine["tags"];
    readonly inChannel: boolean;
    readonly isMeant: boolean;
  }): ChatMessage {
    const { from, to, text, tags, inChannel, isMeant } = said;
    const sentMs = Date.parse(tags.get("time") ?? "") || this.#host.clock.now();
    const chat = this.#fold(inChannel ? to : from);
    const person =
      this.#settings.identifyBy === "account"
        ? { user_id: tags.get("account") }
        : { user_id: from, user_id_alt: this.#fold(from) };
    const source: ChatSource = {
      ...{ platform: "irc", chat_id: chat, chat_name: inChannel ? to : from, chat_type: inChannel ? "channel" : "dm" },
      ...{ ...person, user_name: from },
    };
    // Without a time of the server nothing tells two equal lines apart but that they came one after the other.
    const order = tags.has("time") ? "" : ++this.#received;
    const made = createHash("sha256").update(`${chat}\n${from}\n${sentMs}\n${order}\n${text}`).digest("hex");
    return {
      ...{ text, type: "text", source, mentionsUs: isMeant, sentAt: Math.floor(sentMs / 1000) },
      updateId: tags.get("msgid") ?? made,
      ...(tags.has("msgid") ? { messageId: tags.get("msgid") } : {}),
      ...(tags.has("bot") ? { isBot: true } : {}),
      ...channelSettings([chat], this.#host.option),
    };
  }

  #fold(name: string): string {
    return this.#connection?.fold(name) ?? name.toLowerCase();
  }

  #isUs(nick: string): boolean {
    return this.#fold(nick) === this.#fold(this.#connection?.nick ?? this.#settings.nick);
  }

  #lose(error: PlatformError): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort();
    this.#settleInFlight();
    this.#host.lost(error);
  }
}

const channelName = (channel: string) => channel.split(/\s+/)[0] ?? channel;

function unknown(left = 1, all = 1): SendResult {
  return { failed: "unknown", error: `the connection broke after ${left} of ${all} lines were written` };
}
