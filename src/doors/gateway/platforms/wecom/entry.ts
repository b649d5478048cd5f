import type { PlatformEntry } from "../../contract.ts";
import { addressProblem, trimmedUrl } from "../../web-calls.ts";

export const entry: PlatformEntry = {
  name: "wecom",
  label: "WeCom",
  emoji: "💼",
  maxLength: 4000,
  lengthUnit: "utf16",
  identity: (option) => {
    const bot = String(option("bot_id", "WECOM_BOT_ID") ?? "").trim();
    return bot === "" || String(option("secret", "WECOM_SECRET") ?? "").trim() === "" ? null : bot;
  },
  variables: [
    { name: "WECOM_BOT_ID", about: "Bot ID of the smart robot" },
    { name: "WECOM_SECRET", about: "Its secret for long connections", secret: true },
    { name: "WECOM_ALLOWED_USERS", about: "Who may write to it: user ids, separated by commas", optional: true },
    { name: "WECOM_HOME_CHANNEL", about: "User id or chat id for messages without a chat", optional: true },
  ],
  guide: [
    "In the WeCom admin console open Security and management, Smart robots, and create a robot.",
    "Choose API mode with a long connection; the page then shows its Bot ID and secret.",
    "Callbacks over HTTP are not supported: they need an address on the internet, the long connection does not.",
  ].join("\n"),
  options: ["bot_id", "secret", "websocket_url", "request_timeout"],
  check: (option) => {
    const url = option("websocket_url", "WECOM_WEBSOCKET_URL");
    return url === undefined ? null : addressProblem(trimmedUrl(url), "WECOM_WEBSOCKET_URL", "ws");
  },
  repeatIsSafe: false,
  canEdit: false,
  display: { tool_progress: "off", streaming: false },
  // A second connection of the same bot ends the first: only who holds it can send.
  sendsAlone: false,
  hint: "You are on WeCom. Markdown is shown formatted.",
  parseTarget: (written) => (/^[\w.@-]{1,64}$/.test(written.trim()) ? { chatId: written.trim() } : null),
  // A gateway that runs with this bot loses its connection to this, and opens it again.
  verify: async (host) => {
    const adapter = await (await import("./adapter.ts")).openWeCom(host);
    try {
      await adapter.connect(AbortSignal.timeout(30_000));
      return adapter.account;
    } finally {
      await adapter.disconnect();
    }
  },
  open: async (host) => (await import("./adapter.ts")).openWeCom(host),
};
