// Discord as the gateway knows it: what it is set up with, and how a chat there is written.
import type { AdapterHost, PlatformEntry } from "../../contract.ts";
import { askWho, named } from "../../verify.ts";
import { addressProblem } from "../../web-calls.ts";

const API_URL = "https://discord.com/api";

export const entry: PlatformEntry = {
  name: "discord",
  label: "Discord",
  emoji: "🎮",
  maxLength: 2000,
  lengthUnit: "codepoint",
  identity: tokenOf,
  variables: [
    { name: "DISCORD_BOT_TOKEN", about: "the token of the bot", secret: true },
    {
      name: "DISCORD_ALLOWED_USERS",
      about: "ids of the people who may talk to it, separated by commas",
      optional: true,
    },
    { name: "DISCORD_HOME_CHANNEL", about: "the id of the channel for messages without a chat", optional: true },
  ],
  guide: [
    "1. Open https://discord.com/developers/applications and create an application.",
    "2. Under Bot, reset the token and copy it, and enable the Message Content Intent.",
    "3. Under OAuth2, create an invite with the scopes bot and applications.commands and open it. Permissions: View Channels, Send Messages, Send Messages in Threads, Create Public Threads, Read Message History, Attach Files, Add Reactions.",
    "4. For ids, enable Developer Mode in Discord (Settings, Advanced), then right-click a person or channel.",
  ].join("\n"),
  options: [
    ..."api_url request_timeout auto_thread free_response_channels allowed_channels ignored_channels".split(" "),
    ..."no_thread_channels thread_require_mention ignore_no_mention allow_bots allowed_roles reactions".split(" "),
    ..."history_backfill history_backfill_limit allow_mention_everyone allow_mention_roles".split(" "),
    ..."allow_mention_users allow_mention_replied_user".split(" "),
  ],
  check: (option) => addressProblem(apiUrlOf(option), "DISCORD_API_URL"),
  // Discord keeps a nonce for a few minutes only; after that the history of the channel is asked.
  repeatIsSafe: false,
  canEdit: true,
  parseTarget(text) {
    const [, chatId, threadId] = /^(\d{1,20})(?::(\d{1,20}))?$/.exec(text.trim()) ?? [];
    return chatId === undefined ? null : { chatId, ...(threadId === undefined ? {} : { threadId }) };
  },
  sendsAlone: true,
  verify: ({ option }) =>
    askWho(
      { url: `${apiUrlOf(option)}/v10/users/@me`, headers: { authorization: `Bot ${tokenOf(option) ?? ""}` } },
      {
        who: ({ username }) => named(username),
        words: ({ message }) => message,
        refusal: "Discord does not accept DISCORD_BOT_TOKEN; reset and copy it under Bot",
      },
    ),
  open: async (host) => (await import("./adapter.ts")).openDiscord(host),
};

export function tokenOf(option: AdapterHost["option"]): string | null {
  const token = String(option("token", "DISCORD_BOT_TOKEN") ?? "").trim();
  // People copy it with the word that stands before it in the header.
  return token.replace(/^Bot /i, "").trim() || null;
}

/** Without a version and a slash at its end. */
export function apiUrlOf(option: AdapterHost["option"]): string {
  const written = String(option("api_url", "DISCORD_API_URL") ?? "").trim() || API_URL;
  return written.replace(/\/$/, "").replace(/\/v\d{1,3}$/, "");
}
