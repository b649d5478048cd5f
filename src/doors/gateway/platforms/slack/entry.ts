import type { Json } from "../../../../kit/json.ts";
import type { AdapterHost, ChatTarget, PlatformEntry } from "../../contract.ts";
import { askWho } from "../../verify.ts";
import { addressProblem } from "../../web-calls.ts";
import { toMrkdwn } from "./markdown.ts";

type Option = AdapterHost["option"];

export const entry: PlatformEntry = {
  name: "slack",
  label: "Slack",
  emoji: "💬",
  // Slack cuts what is longer than 40,000.
  maxLength: 39_000,
  lengthUnit: "utf16",
  identity: (option) => textOf(option("token", "SLACK_BOT_TOKEN")),
  variables: [
    { name: "SLACK_BOT_TOKEN", about: "bot token of the app, xoxb-...", secret: true },
    { name: "SLACK_APP_TOKEN", about: "app-level token for Socket Mode, xapp-...", secret: true },
  ],
  guide: [
    "1. https://api.slack.com/apps: create an app, turn on Socket Mode, and make an app-level token with connections:write (xapp-...).",
    "2. OAuth & Permissions, bot token scopes: app_mentions:read, channels:history, channels:read, chat:write, commands, files:read,",
    "   files:write, groups:history, groups:read, im:history, im:read, im:write, mpim:history, mpim:read, reactions:write, users:read.",
    "3. Event Subscriptions, bot events: app_mention, message.channels, message.groups, message.im, message.mpim.",
    "4. Slash Commands: /hermes. Interactivity: on. App Home: allow messages.",
    "5. Install the app to the workspace, copy the bot token (xoxb-...), and invite the app to its channels.",
  ].join("\n"),
  options: [
    ..."app_token api_url tokens_file request_timeout reply_in_thread strict_mention".split(" "),
    ..."free_response_channels allowed_channels reactions".split(" "),
  ],
  format: toMrkdwn,
  check,
  verify,
  repeatIsSafe: false,
  canEdit: true,
  display: { tool_progress: "off" },
  parseTarget,
  sendsAlone: true,
  // Slack takes every other word behind a slash for itself.
  commandWord: (name) => `/hermes ${name}`,
  open: async (host) => (await import("./adapter.ts")).openSlack(host),
};

const textOf = (value: unknown) => (typeof value === "string" && value.trim() !== "" ? value.trim() : null);

/** `C0123ABCD`, with `:TS` for a thread; `U...` is a person. */
function parseTarget(text: string): ChatTarget | null {
  const [, chatId, threadId] =
    /^([CGD][A-Z0-9]{8,}|[UW][A-Z0-9]{8,}(?!:))(?::(\d{5,}\.\d{1,6}))?$/.exec(text.trim()) ?? [];
  if (chatId === undefined) return null;
  return threadId === undefined ? { chatId } : { chatId, threadId };
}

function check(option: Option): string | null {
  const tokens = (textOf(option("token", "SLACK_BOT_TOKEN")) ?? "").split(",").map((token) => token.trim());
  if (!tokens.every((token) => token.startsWith("xoxb-")))
    return "SLACK_BOT_TOKEN is not a bot token, which begins with xoxb-; copy it from OAuth & Permissions of the app";
  const app = textOf(option("app_token", "SLACK_APP_TOKEN"));
  if (app === null)
    return "SLACK_APP_TOKEN is not set; make an app-level token with connections:write in the settings of the app";
  if (!app.startsWith("xapp-"))
    return "SLACK_APP_TOKEN is not an app-level token, which begins with xapp-; make one in the settings of the app";
  const url = textOf(option("api_url", "SLACK_API_URL"));
  return url === null ? null : addressProblem(url, "SLACK_API_URL");
}

/** Both tokens: the one that speaks, and the one that listens. */
async function verify({ option }: { readonly option: Option }): Promise<string> {
  const base = (textOf(option("api_url", "SLACK_API_URL")) ?? "https://slack.com/api/").replace(/\/?$/, "/");
  const ask = (method: string, token: string, meaning: { who(answer: Json): string | null; refusal: string }) =>
    askWho(
      { url: `${base}${method}`, method: "POST", headers: { authorization: `Bearer ${token}` }, body: {} },
      { ...meaning, words: ({ error }) => error },
    );
  const [bot = ""] = (textOf(option("token", "SLACK_BOT_TOKEN")) ?? "").split(",");
  const name = await ask("auth.test", bot.trim(), {
    who: ({ ok, user, team }) => (ok === true ? `@${String(user)} in ${String(team)}` : null),
    refusal: "Slack does not accept SLACK_BOT_TOKEN",
  });
  await ask("apps.connections.open", textOf(option("app_token", "SLACK_APP_TOKEN")) ?? "", {
    who: ({ ok }) => (ok === true ? name : null),
    refusal:
      "Slack does not accept SLACK_APP_TOKEN; it needs the scope connections:write, and Socket Mode has to be on",
  });
  return name;
}
