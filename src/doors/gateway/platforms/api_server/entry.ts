// The API server as a platform of the gateway: the same process, the same start and stop, a line of its own in the status.
import { messageOf } from "../../../../kit/errors.ts";
import { OPTIONS, readApiSettings, refusalToStart, startWarnings } from "../../../api/settings.ts";
import type { AdapterHost, PlatformEntry } from "../../contract.ts";
import { isYes } from "../../groups.ts";

export const entry: PlatformEntry = {
  name: "api_server",
  label: "API Server",
  emoji: "🔌",
  maxLength: 65_000,
  lengthUnit: "utf16",
  identity(option) {
    if (!isYes(option("enabled", "API_SERVER_ENABLED"), false)) return null;
    return `api_server:${String(option("port", "API_SERVER_PORT") ?? "")}`;
  },
  variables: [
    { name: "API_SERVER_ENABLED", about: "true: run the API server with the gateway" },
    {
      name: "API_SERVER_KEY",
      about: "the key that clients send; without one only programs of this machine may use it",
      secret: true,
      optional: true,
    },
    { name: "API_SERVER_HOST", about: "address to listen on; default 127.0.0.1", optional: true },
    { name: "API_SERVER_PORT", about: "port to listen on; default 8642", optional: true },
    { name: "API_SERVER_CORS_ORIGINS", about: "web origins that may use it, with commas", optional: true },
    { name: "API_SERVER_MODEL_NAME", about: "the name that clients see; default hermes-agent", optional: true },
  ],
  guide:
    "Any program that speaks the OpenAI API can use the agent: base URL http://127.0.0.1:8642/v1, the key, and the model hermes-agent.\n" +
    "Make a key with: openssl rand -hex 32",
  options: OPTIONS,
  check(option) {
    try {
      return refusalToStart(readApiSettings(option, NO_PROFILE));
    } catch (error) {
      return messageOf(error);
    }
  },
  warnings: (option) => startWarnings(readApiSettings(option, NO_PROFILE)),
  repeatIsSafe: false,
  canEdit: false,
  interactive: false,
  listensOnly: true,
  ownsPort: true,
  trustsTransport: true,
  display: {
    tool_progress: "off",
    streaming: false,
    interim_assistant_messages: false,
    long_running_notifications: false,
    busy_ack_detail: false,
  },
  sendsAlone: false,
  // Nobody is written to: programs ask.
  parseTarget: () => null,
  open: async (host: AdapterHost) => (await import("./adapter.ts")).openApiPlatform(host),
};

/** Only the name of the model hangs on the profile. */
const NO_PROFILE = { paths: { profile: "default" } } as Parameters<typeof readApiSettings>[1]; // nothing else of it is read
