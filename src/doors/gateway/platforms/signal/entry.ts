import type { PlatformEntry } from "../../contract.ts";
import { askWho } from "../../verify.ts";
import { addressProblem, trimmedUrl } from "../../web-calls.ts";
import { styledText } from "./styles.ts";

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export const entry: PlatformEntry = {
  name: "signal",
  label: "Signal",
  emoji: "🔵",
  maxLength: 8000,
  lengthUnit: "utf16",
  identity: (option) => {
    const url = trimmedUrl(option("http_url", "SIGNAL_HTTP_URL"));
    const account = String(option("account", "SIGNAL_ACCOUNT") ?? "").trim();
    return url === "" || account === "" ? null : account;
  },
  variables: [
    { name: "SIGNAL_HTTP_URL", about: "Where signal-cli listens, such as http://127.0.0.1:8080" },
    { name: "SIGNAL_ACCOUNT", about: "The bot's phone number, such as +4915112345678" },
    { name: "SIGNAL_ALLOWED_USERS", about: "Who may write to it: phone numbers, separated by commas", optional: true },
    { name: "SIGNAL_HOME_CHANNEL", about: "Number or group:ID for messages without a chat", optional: true },
  ],
  guide: [
    "Install signal-cli, and register a number or link it to your phone: signal-cli link -n Hermes",
    "Then keep it running: signal-cli -a NUMBER daemon --http 127.0.0.1:8080 --receive-mode on-connection",
    "With that mode, messages wait at Signal while Hermes is off.",
  ].join("\n"),
  options: ["http_url", "account", "request_timeout", "reactions", "read_receipts"],
  format: (markdown) => styledText(markdown).text,
  check: (option) => addressProblem(trimmedUrl(option("http_url", "SIGNAL_HTTP_URL")), "SIGNAL_HTTP_URL"),
  repeatIsSafe: false,
  canEdit: false,
  piiSafe: true,
  display: { tool_progress: "off", streaming: false },
  sendsAlone: true,
  hint: "You are on Signal. Bold, italic, struck-out, spoiler and fixed-width text are shown; tables are not.",
  parseTarget: (written) => {
    const text = written.trim();
    if (/^group:[\w+/=-]{8,100}$/.test(text)) return { chatId: text };
    if (/^\+?\d{7,15}$/.test(text)) return { chatId: text.startsWith("+") ? text : `+${text}` };
    return UUID.test(text) ? { chatId: text.toLowerCase() } : null;
  },
  verify: ({ option }) =>
    askWho(
      { url: `${trimmedUrl(option("http_url", "SIGNAL_HTTP_URL"))}/api/v1/check` },
      { who: () => String(option("account", "SIGNAL_ACCOUNT")).trim(), refusal: "signal-cli refuses to be asked" },
    ),
  open: async (host) => (await import("./adapter.ts")).openSignal(host),
};
