import { asText } from "../../../../kit/json.ts";
import type { ChatTarget, PlatformEntry } from "../../contract.ts";
import { askWho, named } from "../../verify.ts";
import { addressProblem, trimmedUrl } from "../../web-calls.ts";

export const entry: PlatformEntry = {
  name: "mattermost",
  label: "Mattermost",
  emoji: "💬",
  maxLength: 4000,
  lengthUnit: "codepoint",
  identity: (option) => asText(option("token", "MATTERMOST_TOKEN")).trim() || null,
  variables: [
    { name: "MATTERMOST_URL", about: "address of the server, such as https://chat.example.com" },
    { name: "MATTERMOST_TOKEN", about: "access token of the bot account", secret: true },
  ],
  guide: [
    "1. System Console, Integrations, Bot Accounts: enable bot account creation.",
    "2. Main menu, Integrations, Bot Accounts: add one, copy its access token, and add the bot to its team and channels.",
    "Mattermost keeps words behind a slash for itself: write commands with a blank in front ( /status) or behind the bot's name.",
  ].join("\n"),
  options: "url reply_in_thread free_response_channels allowed_channels strict_mention".split(" "),
  check: (option) => {
    const url = option("url", "MATTERMOST_URL");
    if (asText(url).trim() === "") return "MATTERMOST_URL is not set; set the address of the server";
    return addressProblem(url, "MATTERMOST_URL");
  },
  // The server knows a pending post again for half a minute, and only the one machine that took it.
  repeatIsSafe: false,
  canEdit: true,
  display: { tool_progress: "new" },
  parseTarget,
  sendsAlone: true,
  verify: ({ option }) =>
    askWho(
      {
        url: `${trimmedUrl(option("url", "MATTERMOST_URL"))}/api/v4/users/me`,
        headers: { authorization: `Bearer ${asText(option("token", "MATTERMOST_TOKEN")).trim()}` },
      },
      {
        who: ({ username }) => named(username, "@"),
        words: ({ message }) => message,
        refusal: "Mattermost does not accept MATTERMOST_TOKEN",
      },
    ),
  open: async (host) => (await import("./adapter.ts")).openMattermost(host),
};

/** Ids have 26 letters and digits; behind a colon the post that a thread begins with. */
function parseTarget(text: string): ChatTarget | null {
  const [, chatId, threadId] = /^([a-z0-9]{26})(?::([a-z0-9]{26}))?$/.exec(text.trim()) ?? [];
  if (chatId === undefined) return null;
  return threadId === undefined ? { chatId } : { chatId, threadId };
}
