import type { AdapterHost, PlatformEntry } from "../../contract.ts";
import { askWho } from "../../verify.ts";
import { addressProblem, trimmedUrl } from "../../web-calls.ts";

const text = (value: unknown) => String(value ?? "").trim();

function check(option: AdapterHost["option"]): string | null {
  const domain = text(option("domain", "FEISHU_DOMAIN"));
  const mode = text(option("connection_mode", "FEISHU_CONNECTION_MODE")) || "websocket";
  if (domain !== "" && domain !== "feishu" && domain !== "lark") {
    const problem = addressProblem(trimmedUrl(domain), "FEISHU_DOMAIN");
    if (problem !== null) return `${problem}; or it is feishu or lark`;
  }
  if (mode !== "websocket" && mode !== "webhook") return "FEISHU_CONNECTION_MODE must be websocket or webhook";
  const keys = [option("encrypt_key", "FEISHU_ENCRYPT_KEY"), option("verification_token", "FEISHU_VERIFICATION_TOKEN")];
  // Without either, anybody who finds the address could write in the name of everybody.
  if (mode === "webhook" && keys.every((key) => text(key) === ""))
    return "a webhook needs FEISHU_ENCRYPT_KEY or FEISHU_VERIFICATION_TOKEN, as the developer console shows them";
  return null;
}

export const entry: PlatformEntry = {
  name: "feishu",
  label: "Feishu",
  emoji: "🪶",
  maxLength: 8000,
  lengthUnit: "utf16",
  identity: (option) => {
    const app = text(option("app_id", "FEISHU_APP_ID"));
    return app === "" || text(option("app_secret", "FEISHU_APP_SECRET")) === "" ? null : app;
  },
  variables: [
    { name: "FEISHU_APP_ID", about: "App ID, such as cli_a1b2c3" },
    { name: "FEISHU_APP_SECRET", about: "App secret", secret: true },
    { name: "FEISHU_DOMAIN", about: "feishu, lark, or an address of your own", optional: true },
    { name: "FEISHU_CONNECTION_MODE", about: "websocket (default) or webhook", optional: true },
    { name: "FEISHU_VERIFICATION_TOKEN", about: "For a webhook: its verification token", secret: true, optional: true },
    { name: "FEISHU_ENCRYPT_KEY", about: "For a webhook: its encrypt key", secret: true, optional: true },
    {
      name: "FEISHU_ALLOWED_USERS",
      about: "Who may write to it: open ids (ou_...), separated by commas",
      optional: true,
    },
  ],
  guide: [
    "In the developer console of Feishu or Lark create a custom app, and add the bot feature to it.",
    "Give it the permissions im:message, im:message:send_as_bot, im:resource and im:chat:readonly.",
    "Under Events and callbacks choose the persistent connection, and add the events im.message.receive_v1 and",
    "im.message.recalled_v1 and the callback card.action.trigger. Then publish a version.",
  ].join("\n"),
  options: [
    ..."app_id app_secret domain connection_mode verification_token encrypt_key webhook_host webhook_port".split(" "),
    ..."webhook_path request_timeout reactions".split(" "),
  ],
  check,
  repeatIsSafe: true,
  canEdit: true,
  display: { tool_progress: "new" },
  sendsAlone: true,
  hint: "You are on Feishu. Markdown is shown formatted, with tables and code blocks.",
  parseTarget: (written) => {
    const [, chatId, threadId] = /^((?:oc|ou|on)_[\w-]{1,100})(?::(om_[\w-]{1,100}))?$/.exec(written.trim()) ?? [];
    return chatId === undefined ? null : { chatId, ...(threadId === undefined ? {} : { threadId }) };
  },
  verify: async (host) => {
    const { option } = host;
    const { FeishuApi } = await import("./api.ts");
    const app = text(option("app_id", "FEISHU_APP_ID"));
    return askWho(
      {
        url: `${new FeishuApi(host).base}/open-apis/auth/v3/tenant_access_token/internal`,
        method: "POST",
        body: { app_id: app, app_secret: text(option("app_secret", "FEISHU_APP_SECRET")) },
      },
      {
        who: ({ code }) => (code === 0 ? app : null),
        words: ({ msg }) => msg,
        refusal: "Feishu does not accept FEISHU_APP_ID and FEISHU_APP_SECRET",
        refusedBy: [400],
      },
    );
  },
  open: async (host) => (await import("./adapter.ts")).openFeishu(host),
};
