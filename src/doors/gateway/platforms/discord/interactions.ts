// Slash commands and buttons: the menu that Discord shows, and what comes of a choice in it.
import { createHash } from "node:crypto";
import { sliceCodePoints, truncateCodePoints } from "../../../../kit/code-points.ts";
import type { AdapterHost, ChatMessage } from "../../contract.ts";
import type { DiscordApi } from "./api.ts";
import type { Inbound } from "./inbound.ts";
import type { Rooms } from "./rooms.ts";
import type { ButtonInteraction, CommandInteraction, Interaction, Command as ListedCommand } from "./shapes.ts";
import { type Named, timeOf } from "./text.ts";

interface Command {
  readonly name: string;
  readonly description: string;
}

const MAX_NAME = 32;
const MAX_DESCRIPTION = 100;
const MAX_COMMANDS = 100;
const ARGUMENTS = { type: 3, name: "arguments", description: "What follows the command" } as const;
/** Only the person who chose it sees the reply. */
const EPHEMERAL = 64;
const MARK = "hermes";

/** The id of a button, which Discord hands back; null when it takes no id that long. */
export function customId(questionId: string, choice: string): string | null {
  const id = JSON.stringify([MARK, questionId, choice]);
  return id.length <= 100 ? id : null;
}

function parseCustomId(id: string): { readonly questionId: string; readonly choice: string } | null {
  try {
    const [mark, questionId, choice] = JSON.parse(id) as unknown[]; // looked at in the next line
    if (mark !== MARK || typeof questionId !== "string" || typeof choice !== "string") return null;
    return { questionId, choice };
  } catch {
    return null; // a button of an earlier bot of this name
  }
}

/** The commands as Discord takes them, each with the name it has in the registry. */
export function menuOf(commands: readonly Command[]): readonly (Command & { readonly registered: string })[] {
  const menu = new Map<string, Command & { readonly registered: string }>();
  for (const command of commands) {
    if (menu.size === MAX_COMMANDS) break;
    const clean = command.name.toLowerCase().replace(/[^\p{L}\p{N}_-]/gu, "");
    const name = freeName(clean, (taken) => menu.has(taken));
    if (name === null) continue;
    const description = truncateCodePoints(command.description.trim() || command.name, MAX_DESCRIPTION, "…");
    menu.set(name, { name, description, registered: command.name });
  }
  return [...menu.values()];
}

/** A name that was cut gives its last place to a digit where it is taken; any other that is taken is dropped. */
function freeName(name: string, isTaken: (name: string) => boolean): string | null {
  const cut = sliceCodePoints(name, 0, MAX_NAME);
  if (cut === "") return null;
  if (!isTaken(cut)) return cut;
  if (cut === name) return null;
  const digit = [..."0123456789"].find((one) => !isTaken(sliceCodePoints(cut, 0, MAX_NAME - 1) + one));
  return digit === undefined ? null : sliceCodePoints(cut, 0, MAX_NAME - 1) + digit;
}

/** Names the menu by what it holds, whatever order and extras Discord gives it back with. */
function hashOf(commands: readonly Command[]): string {
  const rows = commands.map(({ name, description }) => `${name}\n${description}`).sort();
  return createHash("sha256").update(rows.join("\n\n")).digest("hex");
}

export class Interactions {
  readonly #host: AdapterHost;
  readonly #discord: DiscordApi;
  readonly #rooms: Rooms;
  readonly #inbound: Inbound;
  readonly #registered = new Map<string, string>();
  #synced = "";

  constructor(parts: { host: AdapterHost; discord: DiscordApi; rooms: Rooms; inbound: Inbound }) {
    this.#host = parts.host;
    this.#discord = parts.discord;
    this.#rooms = parts.rooms;
    this.#inbound = parts.inbound;
  }

  /** Written only when it differs from what is there: Discord counts each writing, and clients load it again. */
  async setMenu(applicationId: string, commands: readonly Command[]): Promise<void> {
    const menu = menuOf(commands);
    for (const { name, registered } of menu) this.#registered.set(name, registered);
    const hash = hashOf(menu);
    if (hash === this.#synced) return;
    const { api } = this.#discord;
    const there = await this.#discord.read((limit) => api.commands(applicationId, limit));
    if (hashOf(there) !== hash || !there.every(takesArguments)) {
      const body = menu.map(({ name, description }) => ({ name, description, options: [ARGUMENTS] }));
      await this.#discord.read((limit) => api.setCommands(applicationId, body, limit));
      this.#host.log.info(`registered ${menu.length} slash commands`);
    }
    this.#synced = hash;
  }

  async handle(interaction: Interaction): Promise<void> {
    if (interaction.type === 2) return this.#command(interaction);
    if (interaction.type === 3) return this.#button(interaction);
  }

  async #command(interaction: CommandInteraction): Promise<void> {
    if (interaction.data.type !== 1) return;
    const { name, options = [] } = interaction.data;
    const given = options.map(({ value }) => (value === undefined ? "" : String(value))).join(" ");
    const text = `/${this.#registered.get(name) ?? name} ${given}`.trim();
    const place = await this.#placeOf(interaction);
    if (place === null) return;
    const { source, room } = place;
    if (room !== null && !this.#inbound.isOpenFor(room, { text, isCommand: true }))
      return this.#reply(interaction, "Commands are disabled in this channel.");
    const message: ChatMessage = {
      ...{ text, type: "command", source, updateId: interaction.id, mentionsUs: true },
      sentAt: timeOf(interaction.id) / 1000,
      ...this.#inbound.settingsOf(source),
      allowedByRole: await this.#inbound.hasAllowedRole(source.user_id ?? "", interaction.member?.roles),
    };
    try {
      await this.#host.receive([message]);
    } catch (error) {
      this.#host.log.error(`the command ${text.split(" ", 1)[0]} could not be stored`, error);
      return this.#reply(interaction, "This command could not be stored. Try again in a moment.");
    }
    await this.#reply(interaction, `Received: \`${truncateCodePoints(text.replaceAll("`", "'"), 200, "…")}\``);
  }

  async #button(interaction: ButtonInteraction): Promise<void> {
    const { id, token, application_id: applicationId, message } = interaction;
    const chosen = parseCustomId(interaction.data.custom_id);
    const place = await this.#placeOf(interaction);
    if (chosen === null || place === null) return;
    const { api } = this.#discord;
    // Discord waits three seconds for this; what came of it is said in a message of its own.
    const deferred = await this.#discord.ask((limit) => api.acknowledge(id, token, limit));
    if ("failure" in deferred) this.#host.log.warn(`a button was not acknowledged: ${deferred.failure.message}`);
    const answer = async (text: string) => {
      const body = { content: truncateCodePoints(text, 2000, "…"), flags: EPHEMERAL, allowed_mentions: { parse: [] } };
      const said = await this.#discord.ask((limit) => api.followUp(applicationId, token, body, limit));
      if ("failure" in said) this.#host.log.warn(`a button was not answered: ${said.failure.message}`);
    };
    try {
      const { source } = place;
      const allowedByRole = await this.#inbound.hasAllowedRole(source.user_id ?? "", interaction.member?.roles);
      await this.#host.pressed({ ...chosen, source, messageId: message.id, allowedByRole, answer });
    } catch (error) {
      this.#host.log.error("a pressed button had no effect", error);
      await answer("This had no effect. Try again in a moment.");
    }
  }

  async #placeOf(interaction: Interaction) {
    const user: Named | undefined = interaction.member?.user ?? interaction.user;
    const chatId = interaction.channel?.id ?? interaction.channel_id;
    if (user === undefined || chatId === undefined) return null;
    const room = interaction.guild_id === undefined ? null : await this.#rooms.find(chatId);
    if (interaction.guild_id !== undefined && room === null) return null;
    return { room, source: await this.#rooms.sourceOf(room, { chatId, user, nick: interaction.member?.nick ?? null }) };
  }

  async #reply({ id, token }: Interaction, content: string): Promise<void> {
    const body = { content, flags: EPHEMERAL, allowed_mentions: { parse: [] } };
    const result = await this.#discord.ask((limit) => this.#discord.api.reply(id, token, body, limit));
    if ("failure" in result) this.#host.log.warn(`a command was not acknowledged: ${result.failure.message}`);
  }
}

const takesArguments = ({ options }: ListedCommand) => options?.length === 1 && options[0]?.name === ARGUMENTS.name;
