import type { PlatformEntry } from "../../contract.ts";
import { askWho, named } from "../../verify.ts";
import { addressProblem, trimmedUrl } from "../../web-calls.ts";

export const entry: PlatformEntry = {
  name: "homeassistant",
  label: "Home Assistant",
  emoji: "🏠",
  maxLength: 4096,
  lengthUnit: "utf16",
  identity: (option) => {
    const token = String(option("token", "HASS_TOKEN") ?? "").trim();
    return token === "" || trimmedUrl(option("url", "HASS_URL")) === "" ? null : token;
  },
  variables: [
    { name: "HASS_URL", about: "Address of Home Assistant, such as http://homeassistant.local:8123" },
    { name: "HASS_TOKEN", about: "A long-lived access token", secret: true },
    { name: "HOMEASSISTANT_HOME_CHANNEL", about: "ha_events, to send results of scheduled jobs there", optional: true },
  ],
  guide: [
    "In Home Assistant open your profile, Security, and create a long-lived access token.",
    "Then name what Hermes is to react to, in config.yaml under platforms.homeassistant.extra:",
    "watch_domains: [binary_sensor], watch_entities: [climate.living_room], or watch_all: true.",
  ].join("\n"),
  options: "url watch_domains watch_entities ignore_entities watch_all cooldown request_timeout".split(" "),
  check: (option) => addressProblem(trimmedUrl(option("url", "HASS_URL")), "HASS_URL"),
  repeatIsSafe: true,
  canEdit: false,
  interactive: false,
  trustsTransport: true,
  foreignText: true,
  display: {
    ...{ tool_progress: "off", streaming: false, interim_assistant_messages: false },
    ...{ long_running_notifications: false, busy_ack_detail: false },
  },
  sendsAlone: true,
  hint: "What you read here are changes of states in Home Assistant, not words of the user. Your answer is shown there as a notification.",
  parseTarget: (written) => (/^[a-z][a-z0-9_]{0,60}$/.test(written.trim()) ? { chatId: written.trim() } : null),
  verify: ({ option }) =>
    askWho(
      {
        url: `${trimmedUrl(option("url", "HASS_URL"))}/api/config`,
        headers: { authorization: `Bearer ${String(option("token", "HASS_TOKEN") ?? "").trim()}` },
      },
      { who: ({ location_name: name }) => named(name), refusal: "Home Assistant does not accept HASS_TOKEN" },
    ),
  open: async (host) => (await import("./adapter.ts")).openHomeAssistant(host),
};
