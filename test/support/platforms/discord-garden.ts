// A server of Discord with two people and the gateway's bot in it, for the tests of that platform.
import { setTimeout as sleep } from "node:timers/promises";
import { gatewayHome, ModelServer, type RunningGateway, startGateway } from "../gateway-rig.ts";
import type { RecordedRequest } from "../model-server/script.ts";
import type { TempHome } from "../temp-home.ts";
import { DiscordServer } from "./discord-server.ts";
import type { DiscordChannel, DiscordGuild, DiscordMessage, DiscordUser } from "./discord-world.ts";

interface GardenOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly config?: string;
  /** Lines of `platforms.discord.extra`. */
  readonly extra?: readonly string[];
  /** Before the gateway is started; may give further variables. */
  prepare?(garden: Garden): Readonly<Record<string, string>> | undefined;
  readonly ready?: RegExp | null;
  /** Lines of `gateway.timers`. */
  readonly timers?: readonly string[];
}

/** Everything a test of Discord needs; `t.after` ends it. */
export class Garden {
  readonly discord: DiscordServer;
  readonly model: ModelServer;
  readonly guild: DiscordGuild;
  readonly alice: DiscordUser;
  readonly bob: DiscordUser;
  home!: TempHome; // set before anybody sees it, as is the gateway
  gateway!: RunningGateway;
  #rooms = 0;

  private constructor(discord: DiscordServer, model: ModelServer) {
    this.discord = discord;
    this.model = model;
    this.guild = discord.guild("Garden");
    this.alice = discord.user("alice", { name: "Alice" });
    this.bob = discord.user("bob");
  }

  static async open(t: { after(work: () => unknown): void }, options: GardenOptions = {}): Promise<Garden> {
    const discord = await DiscordServer.start(t);
    const model = await ModelServer.start();
    const garden = new Garden(discord, model);
    const { env = {}, config = "", extra = [], prepare, ready, timers = [] } = options;
    const variables = prepare?.(garden) ?? {};
    const lines = ["request_timeout: 2", ...extra].map((line) => `      ${line}\n`);
    garden.home = await gatewayHome(model, {
      env: {
        ...{ DISCORD_BOT_TOKEN: discord.token, DISCORD_API_URL: discord.apiUrl },
        DISCORD_ALLOWED_USERS: `${garden.alice.id}, ${garden.bob.id}`,
        ...{ ...env, ...variables },
      },
      gateway: timers.map((line) => `    ${line}\n`).join(""),
      config: `platforms:\n  discord:\n    extra:\n${lines.join("")}${config}`,
    });
    t.after(async () => {
      await garden.gateway?.kill();
      await model.close();
      await garden.home[Symbol.asyncDispose]();
    });
    await garden.start(ready);
    return garden;
  }

  async start(ready?: RegExp | null): Promise<void> {
    this.gateway = await startGateway(this.home, ready === undefined ? {} : { ready });
  }

  /** The text that calls the bot. */
  get call(): string {
    return `<@${this.discord.bot.id}>`;
  }

  room(options: { readonly type?: number; readonly topic?: string } = {}): DiscordChannel {
    return this.discord.channel(this.guild, `room-${++this.#rooms}`, options);
  }

  /** The model answers with the words that follow the last "say ", and "ok" otherwise. */
  echo(): this {
    this.model.otherwise(({ body }) => ({
      text: [...lastText(body.messages).matchAll(/say ([^\n]*)/g)].at(-1)?.[1] ?? "ok",
    }));
    return this;
  }

  /** The questions of turns, without the side calls for titles. */
  turns(): readonly RecordedRequest[] {
    return this.model.requests.filter(({ body }) => (body.tools ?? []).length > 0);
  }

  /** Turns whose message says this itself, not in what stands above it for context. */
  asked(text: string): readonly RecordedRequest[] {
    return this.turns().filter(({ body }) => lastText(body.messages).split("\n\n").at(-1)?.includes(text));
  }

  answers(channel: DiscordChannel): readonly string[] {
    return this.discord.saidIn(channel).map(({ content }) => content);
  }

  /** Waits for a message of the bot in a channel. */
  answer(channel: DiscordChannel, text: string): Promise<DiscordMessage> {
    const look = () => this.discord.saidIn(channel).find(({ content }) => content === text);
    return this.discord.until(look, `"${text}" in ${channel.name}; there: ${this.answers(channel).join(" | ")}`);
  }

  /** Calls the bot, and waits until it has answered: whatever was written there before has been looked at. */
  async settle(room: DiscordChannel = this.discord.dm(this.alice)): Promise<void> {
    const { discord, alice, call } = this;
    const word = `settled ${++this.#rooms}`;
    discord.write(alice, room, `${call} say ${word}`);
    const places = () => [room, ...discord.threadsOf(room).filter(({ name }) => name.includes(word))];
    await discord.until(() => places().some((place) => this.answers(place).includes(word)), word);
    // A turn that began beside it has asked the model by now.
    await sleep(100);
  }
}

function lastText(messages: readonly { role: string; content: unknown }[]): string {
  const { content } = messages.findLast(({ role }) => role === "user") ?? {};
  return typeof content === "string" ? content : JSON.stringify(content ?? "");
}
