// Telegram as the gateway knows it: what it is set up with, how long a message may be, and how a chat there is written.

import { asRecord } from "../../../../kit/json.ts";
import type { AdapterHost, ChatMessage, PlatformEntry } from "../../contract.ts";
import { askWho, named } from "../../verify.ts";
import { addressProblem, trimmedUrl } from "../../web-calls.ts";
import { toMarkdownV2 } from "./markdown.ts";

type Option = AdapterHost["option"];

const API_URL = "https://api.telegram.org";
const text = (value: unknown) => String(value ?? "").trim();

export const entry: PlatformEntry = {
  name: "telegram",
  label: "Telegram",
  emoji: "✈️",
  maxLength: 4096,
  lengthUnit: "utf16",
  identity: (option) => text(option("token", "TELEGRAM_BOT_TOKEN")) || null,
  variables: [
    { name: "TELEGRAM_BOT_TOKEN", about: "the token of the bot", secret: true },
    {
      name: "TELEGRAM_ALLOWED_USERS",
      about: "ids of the people who may talk to it, separated by commas",
      optional: true,
    },
    { name: "TELEGRAM_HOME_CHANNEL", about: "the id of the chat for messages without a chat", optional: true },
  ],
  guide: [
    "1. Open Telegram, write /newbot to @BotFather and follow it. It gives you the token.",
    "2. Your own id: write to @userinfobot, or write to your bot and run hermes pairing list.",
    "3. For groups: add the bot, and turn off its privacy mode with /setprivacy at @BotFather, or it only sees commands, replies and mentions.",
  ].join("\n"),
  options: [
    ..."base_url base_file_url local_mode poll_timeout request_timeout conflict_retry network_retry".split(" "),
    ..."webhook_url webhook_host webhook_port webhook_secret allowed_topics ignored_threads guest_mode".split(" "),
    ..."exclusive_bot_mentions observe_unmentioned notifications disable_link_previews reactions followup_grace_seconds".split(
      " ",
    ),
  ],
  format: toMarkdownV2,
  check: problemOf,
  verify: ({ option }) =>
    askWho(
      { url: `${addressesOf(option).api}/bot${text(option("token", "TELEGRAM_BOT_TOKEN"))}/getMe` },
      {
        who: ({ result }) => named(asRecord(result).username, "@"),
        words: ({ description }) => description,
        refusal: "Telegram does not accept TELEGRAM_BOT_TOKEN; copy it again from @BotFather",
        refusedBy: [404],
      },
    ),
  // The Bot API knows no key of a message and no history.
  repeatIsSafe: false,
  canEdit: true,
  freshFinal: true,
  piiSafe: true,
  display: { tool_progress: "off", busy_ack_detail: false },
  batchSeconds,
  followUpSeconds(option) {
    const written = text(option("followup_grace_seconds", "HERMES_TELEGRAM_FOLLOWUP_GRACE_SECONDS"));
    return written !== "" && Number(written) >= 0 ? Number(written) : 3;
  },
  parseTarget(written) {
    const [, id, threadId, name] = /^(?:(-?\d{1,20})(?::(\d{1,20}))?|(@[A-Za-z]\w{3,31}))$/.exec(written.trim()) ?? [];
    const chatId = id ?? name;
    return chatId === undefined ? null : { chatId, ...(threadId === undefined ? {} : { threadId }) };
  },
  sendsAlone: true,
  open: async (host) => (await import("./adapter.ts")).openTelegram(host),
};

/** Where the Bot API is, without what other programs want at its end. */
export function addressesOf(option: Option): { readonly api: string; readonly files: string; readonly isOwn: boolean } {
  const base = trimmedUrl(text(option("base_url", "TELEGRAM_BASE_URL")) || API_URL).replace(/\/bot$/, "");
  const files = trimmedUrl(text(option("base_file_url", "TELEGRAM_BASE_FILE_URL")) || base).replace(/\/file\/bot$/, "");
  return { api: base, files, isOwn: base !== API_URL };
}

interface Webhook {
  readonly url: string;
  readonly host: string;
  readonly port: number;
  readonly secret: string;
}

/** Null: updates are polled. */
export function webhookOf(option: Option): Webhook | null {
  const url = text(option("webhook_url", "TELEGRAM_WEBHOOK_URL"));
  if (url === "") return null;
  return {
    url,
    host: text(option("webhook_host", "TELEGRAM_WEBHOOK_HOST")) || "127.0.0.1",
    port: Number(text(option("webhook_port", "TELEGRAM_WEBHOOK_PORT")) || 8443),
    secret: text(option("webhook_secret", "TELEGRAM_WEBHOOK_SECRET")),
  };
}

function problemOf(option: Option): string | null {
  const token = text(option("token", "TELEGRAM_BOT_TOKEN"));
  if (!/^[\w:-]+$/.test(token)) return "TELEGRAM_BOT_TOKEN is not a token; copy it again from @BotFather";
  const { api, files } = addressesOf(option);
  const problem = addressProblem(api, "TELEGRAM_BASE_URL") ?? addressProblem(files, "TELEGRAM_BASE_FILE_URL");
  if (problem !== null) return problem;
  const webhook = webhookOf(option);
  if (webhook === null) return null;
  if (!URL.parse(webhook.url)?.protocol.startsWith("http"))
    return "TELEGRAM_WEBHOOK_URL must be the address that Telegram calls, such as https://bot.example.com/telegram";
  if (!/^[\w-]{1,256}$/.test(webhook.secret))
    return "TELEGRAM_WEBHOOK_SECRET is needed with TELEGRAM_WEBHOOK_URL: up to 256 letters, digits, _ and -";
  if (!Number.isInteger(webhook.port) || webhook.port < 0 || webhook.port > 65_535)
    return "TELEGRAM_WEBHOOK_PORT must be a port number";
  return null;
}

/** Clients cut long texts into messages of about 4,096 characters, and send the pictures of an album one by one. */
function batchSeconds({ text: { length }, type, album }: ChatMessage): number {
  if (type === "command") return 0;
  if (album !== undefined) return 0.8;
  if (length >= 4000) return 1;
  return length <= 320 ? 0.18 : length <= 1024 ? 0.24 : 0.3;
}
