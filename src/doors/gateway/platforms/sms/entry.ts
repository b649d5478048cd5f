// Text messages by Twilio.
import type { ChatTarget, PlatformEntry } from "../../contract.ts";
import { askWho, named } from "../../verify.ts";
import { addressProblem, trimmedUrl } from "../../web-calls.ts";
import { withoutMarks } from "./format.ts";

/** `+` and 7 to 15 digits; people leave the sign out. */
function parseNumber(text: string): ChatTarget | null {
  const [, digits] = /^\+?(\d{7,15})$/.exec(text.replace(/[ ()-]/g, "")) ?? [];
  return digits ? { chatId: `+${digits}` } : null;
}

export const entry: PlatformEntry = {
  name: "sms",
  label: "SMS",
  emoji: "📱",
  maxLength: 1600,
  lengthUnit: "utf16",
  identity(option) {
    const account = option("account_sid", "TWILIO_ACCOUNT_SID");
    const number = option("phone_number", "TWILIO_PHONE_NUMBER");
    return account && number && option("auth_token", "TWILIO_AUTH_TOKEN") ? `${account}:${number}` : null;
  },
  variables: [
    { name: "TWILIO_ACCOUNT_SID", about: "account SID, from the Twilio console (AC...)" },
    { name: "TWILIO_AUTH_TOKEN", about: "auth token of the account", secret: true },
    { name: "TWILIO_PHONE_NUMBER", about: "your Twilio number, like +15551234567" },
    { name: "SMS_WEBHOOK_URL", about: "public address that Twilio calls, like https://example.com/webhooks/twilio" },
    { name: "SMS_WEBHOOK_HOST", about: "address to listen on; default 127.0.0.1", optional: true },
    { name: "SMS_WEBHOOK_PORT", about: "port to listen on; default 8080", optional: true },
    { name: "SMS_ALLOWED_USERS", about: "numbers that may write, between commas", optional: true },
  ],
  guide:
    "Account SID and auth token: https://console.twilio.com, Account Info.\n" +
    "Under Phone Numbers, your number, Messaging: set 'A message comes in' to the address of SMS_WEBHOOK_URL, method POST.\n" +
    "Let that address lead to SMS_WEBHOOK_HOST:SMS_WEBHOOK_PORT of this machine (reverse proxy or tunnel).",
  options: ["account_sid", "auth_token", "phone_number", "webhook_url", "webhook_host", "webhook_port", "api_url"],
  format: withoutMarks,
  check(option) {
    const url = option("webhook_url", "SMS_WEBHOOK_URL");
    if (!url) return "SMS_WEBHOOK_URL is not set; without it no message can be checked: hermes gateway setup sms";
    if (!/^https?:\/\/[^/]/i.test(String(url)) || !URL.canParse(String(url)))
      return "SMS_WEBHOOK_URL must be an address that begins with https://";
    const api = option("api_url", "TWILIO_API_URL");
    return api === undefined ? null : addressProblem(api, "TWILIO_API_URL");
  },
  repeatIsSafe: false,
  canEdit: false,
  display: {
    tool_progress: "off",
    streaming: false,
    interim_assistant_messages: false,
    long_running_notifications: false,
  },
  parseTarget: parseNumber,
  sendsAlone: true,
  verify: ({ option }) => {
    const api = trimmedUrl(option("api_url", "TWILIO_API_URL") ?? "https://api.twilio.com");
    const account = String(option("account_sid", "TWILIO_ACCOUNT_SID")).trim();
    const token = String(option("auth_token", "TWILIO_AUTH_TOKEN")).trim();
    const basic = Buffer.from(`${account}:${token}`).toString("base64");
    return askWho(
      {
        url: `${api}/2010-04-01/Accounts/${encodeURIComponent(account)}.json`,
        headers: { authorization: `Basic ${basic}` },
      },
      {
        who: ({ sid, friendly_name: name }) => named(name) ?? named(sid),
        words: ({ message }) => message,
        refusal: "Twilio does not accept TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN",
        refusedBy: [404],
      },
    );
  },
  open: async (host) => (await import("./adapter.ts")).openSms(host),
};
