// Webhooks: other programs call us, each delivery is a conversation of its own.
import { asRecord, asText, isRecord } from "../../../../kit/json.ts";
import { isLoopbackHost } from "../../../http.ts";
import type { PlatformEntry } from "../../contract.ts";
import { isYes } from "../../groups.ts";
import { listen } from "../../listener.ts";
import { askWho, named } from "../../verify.ts";
import { addressProblem, trimmedUrl } from "../../web-calls.ts";
import { addressOf, configuredRoutes, exposure } from "./routes.ts";
import { parseOwnTarget } from "./targets.ts";

export const GITHUB_URL = "https://api.github.com";

export const entry: PlatformEntry = {
  name: "webhook",
  label: "Webhook",
  emoji: "🪝",
  // What a comment on GitHub may hold, without our mark in it. Other targets are split by their own platform.
  maxLength: 65_000,
  lengthUnit: "utf16",
  identity(option) {
    if (!isYes(option("enabled", "WEBHOOK_ENABLED"), false)) return null;
    const { host, port } = addressOf(option);
    return `${host}:${port}`;
  },
  variables: [
    { name: "WEBHOOK_ENABLED", about: "true: listen for deliveries" },
    {
      name: "WEBHOOK_SECRET",
      about: "the secret of all routes that have none of their own",
      secret: true,
      optional: true,
    },
    { name: "WEBHOOK_HOST", about: "address to listen on; default 127.0.0.1", optional: true },
    { name: "WEBHOOK_PORT", about: "port to listen on; default 8644", optional: true },
    { name: "GITHUB_TOKEN", about: "token for comments on GitHub (github_comment)", secret: true, optional: true },
  ],
  guide:
    "Add a route: hermes webhook subscribe NAME --events LIST --prompt TEXT\n" +
    "Then give the sender the address and the secret that it prints. Try it: hermes webhook test NAME",
  options: ["host", "port", "secret", "routes", "rate_limit", "enabled", "github_api_url", "github_token"],
  check(option) {
    const { host, port } = addressOf(option);
    if (!Number.isInteger(port) || port < 0 || port > 65_535) return `WEBHOOK_PORT is not a port: ${port}`;
    const written = option("routes");
    if (written !== undefined && written !== null && !isRecord(written))
      return "platforms.webhook.extra.routes must be a table: name -> route";
    for (const route of configuredRoutes(option)) {
      if (!isRecord(asRecord(written)[route.name])) return `the route ${route.name} must be a table`;
      if (route.problem !== null) return `the route ${route.name} cannot be used: ${route.problem}`;
      const open = exposure(route, host);
      if (open === null) continue;
      const why = isLoopbackHost(host) ? "" : `, and ${host} can be reached from other machines`;
      return `the route ${route.name} cannot be used: ${open}${why}; set its secret or WEBHOOK_SECRET`;
    }
    const github = option("github_api_url");
    return github === undefined ? null : addressProblem(github, "platforms.webhook.extra.github_api_url");
  },
  repeatIsSafe: false,
  canEdit: false,
  interactive: false,
  listensOnly: true,
  trustsTransport: true,
  foreignText: true,
  display: {
    tool_progress: "off",
    streaming: false,
    interim_assistant_messages: false,
    long_running_notifications: false,
    busy_ack_detail: false,
  },
  parseTarget: parseOwnTarget,
  sendsAlone: true,
  // Whether the address can be listened on, and who the token for comments belongs to.
  verify: async ({ option, log }) => {
    const { host, port } = addressOf(option);
    const handle = async () => ({ status: 503 });
    const listener = await listen({ host, port, log, handle, setting: "WEBHOOK_PORT and WEBHOOK_HOST" });
    await listener.close();
    const token = asText(option("github_token", "GITHUB_TOKEN")).trim();
    if (token === "") return listener.url;
    const user = await askWho(
      {
        url: `${trimmedUrl(option("github_api_url")) || GITHUB_URL}/user`,
        headers: { authorization: `Bearer ${token}`, "user-agent": "hermes" },
      },
      {
        who: ({ login }) => named(login, "@"),
        words: ({ message }) => message,
        refusal: "GitHub does not accept GITHUB_TOKEN",
      },
    );
    return `${listener.url}, ${user} on GitHub`;
  },
  open: async (host) => (await import("./adapter.ts")).openWebhook(host),
};
