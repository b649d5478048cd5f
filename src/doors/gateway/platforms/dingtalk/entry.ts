import type { PlatformEntry } from "../../contract.ts";
import { askWho, named } from "../../verify.ts";
import { addressProblem, trimmedUrl } from "../../web-calls.ts";

export const entry: PlatformEntry = {
  name: "dingtalk",
  label: "DingTalk",
  emoji: "🔷",
  maxLength: 20_000,
  lengthUnit: "utf16",
  identity: (option) => {
    const id = String(option("client_id", "DINGTALK_CLIENT_ID") ?? "").trim();
    return id === "" || String(option("client_secret", "DINGTALK_CLIENT_SECRET") ?? "").trim() === "" ? null : id;
  },
  variables: [
    { name: "DINGTALK_CLIENT_ID", about: "Client ID (AppKey) of the app" },
    { name: "DINGTALK_CLIENT_SECRET", about: "Client secret (AppSecret) of the app", secret: true },
    { name: "DINGTALK_ALLOWED_USERS", about: "Who may write to it: staff ids, separated by commas", optional: true },
  ],
  guide: [
    "In the DingTalk developer console create an internal app, and add a robot to it.",
    "Set the robot to receive messages in stream mode, and publish the app.",
    "Client ID and secret are on the page Credentials of the app.",
  ].join("\n"),
  options: ["client_id", "client_secret", "api_url", "oapi_url", "request_timeout"],
  check: (option) => {
    const url = option("api_url", "DINGTALK_API_URL");
    return url === undefined ? null : addressProblem(trimmedUrl(url), "DINGTALK_API_URL");
  },
  repeatIsSafe: false,
  canEdit: false,
  display: { tool_progress: "off", streaming: false },
  sendsAlone: true,
  hint: "You are on DingTalk. Markdown is shown formatted, without tables.",
  // Conversations have ids of their own; a person is written to by the id in the company.
  parseTarget: (written) => {
    const text = written.trim();
    return /^(?:cid[\w+/=-]{5,100}|user:[\w.:$+/=-]{1,100})$/.test(text) ? { chatId: text } : null;
  },
  verify: ({ option }) => {
    const appKey = String(option("client_id", "DINGTALK_CLIENT_ID")).trim();
    const appSecret = String(option("client_secret", "DINGTALK_CLIENT_SECRET")).trim();
    const api = trimmedUrl(option("api_url", "DINGTALK_API_URL") ?? "https://api.dingtalk.com");
    return askWho(
      { url: `${api}/v1.0/oauth2/accessToken`, method: "POST", body: { appKey, appSecret } },
      {
        who: ({ accessToken }) => (named(accessToken) === null ? null : appKey),
        words: ({ message }) => message,
        refusal: "DingTalk does not accept DINGTALK_CLIENT_ID and DINGTALK_CLIENT_SECRET",
        refusedBy: [400],
      },
    );
  },
  open: async (host) => (await import("./adapter.ts")).openDingTalk(host),
};
