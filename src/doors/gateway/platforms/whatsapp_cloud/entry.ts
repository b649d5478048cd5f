// WhatsApp by Meta's Cloud API.

import { asRecord } from "../../../../kit/json.ts";
import type { ChatTarget, PlatformEntry } from "../../contract.ts";
import { askWho, named } from "../../verify.ts";
import { addressProblem, trimmedUrl } from "../../web-calls.ts";
import { whatsappText } from "./format.ts";

/** A number, or the long form of one that other programs write (`49170…:3@s.whatsapp.net`). The Cloud API has no groups. */
function parseNumber(text: string): ChatTarget | null {
  const [, digits] =
    /^\+?(\d{7,15})(?::\d{1,5})?(?:@(?:s\.whatsapp\.net|c\.us))?$/.exec(text.replace(/[ ()-]/g, "")) ?? [];
  return digits ? { chatId: digits } : null;
}

const NEEDED = {
  phone_number_id: "WHATSAPP_CLOUD_PHONE_NUMBER_ID",
  access_token: "WHATSAPP_CLOUD_ACCESS_TOKEN",
  verify_token: "WHATSAPP_CLOUD_VERIFY_TOKEN",
  app_secret: "WHATSAPP_CLOUD_APP_SECRET",
};

export const entry: PlatformEntry = {
  name: "whatsapp_cloud",
  label: "WhatsApp",
  emoji: "💬",
  maxLength: 4096,
  lengthUnit: "utf16",
  identity(option) {
    const number = option("phone_number_id", NEEDED.phone_number_id);
    return number && option("access_token", NEEDED.access_token) ? String(number) : null;
  },
  variables: [
    { name: NEEDED.access_token, about: "access token of the app, best one of a system user", secret: true },
    { name: NEEDED.phone_number_id, about: "id of the phone number (not the number itself)" },
    {
      name: NEEDED.verify_token,
      about: "a word of your own that Meta repeats when it checks the address",
      secret: true,
    },
    { name: NEEDED.app_secret, about: "app secret, to check who calls", secret: true },
    { name: "WHATSAPP_CLOUD_WEBHOOK_HOST", about: "address to listen on; default 127.0.0.1", optional: true },
    { name: "WHATSAPP_CLOUD_WEBHOOK_PORT", about: "port to listen on; default 8090", optional: true },
    { name: "WHATSAPP_CLOUD_ALLOWED_USERS", about: "numbers that may write, between commas", optional: true },
  ],
  guide:
    "Create an app with WhatsApp at https://developers.facebook.com/apps.\n" +
    "Phone number id and token: WhatsApp, API setup. App secret: App settings, Basic.\n" +
    "Webhook: WhatsApp, Configuration: your public address (for port 8090, path /whatsapp/webhook), the verify token, field 'messages'.",
  options: [...Object.keys(NEEDED), "api_url", "api_version", "webhook_host", "webhook_port", "webhook_path"],
  format: whatsappText,
  check(option) {
    for (const [key, variable] of Object.entries(NEEDED))
      if (!option(key, variable))
        return `${variable} is not set; without it nobody can be told apart: hermes gateway setup`;
    const api = option("api_url", "WHATSAPP_CLOUD_API_URL");
    return api === undefined ? null : addressProblem(api, "WHATSAPP_CLOUD_API_URL");
  },
  repeatIsSafe: false,
  canEdit: false,
  piiSafe: true,
  display: { tool_progress: "new", streaming: false },
  parseTarget: parseNumber,
  sendsAlone: true,
  verify: ({ option }) => {
    const api = trimmedUrl(option("api_url", "WHATSAPP_CLOUD_API_URL") ?? "https://graph.facebook.com");
    const id = encodeURIComponent(String(option("phone_number_id", NEEDED.phone_number_id)).trim());
    const version = String(option("api_version") ?? "v20.0");
    return askWho(
      {
        url: `${api}/${version}/${id}?fields=display_phone_number`,
        headers: { authorization: `Bearer ${String(option("access_token", NEEDED.access_token)).trim()}` },
      },
      {
        who: ({ display_phone_number: number }) => named(number),
        words: ({ error }) => asRecord(error).message,
        refusal: `WhatsApp does not accept ${NEEDED.access_token} for ${NEEDED.phone_number_id}`,
        refusedBy: [400, 404],
      },
    );
  },
  open: async (host) => (await import("./adapter.ts")).openWhatsapp(host),
};
