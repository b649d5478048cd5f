// What the settings say about the API server: where it listens, who may use it, and why it may not start.
import type { OpenHome } from "../../home/open.ts";
import { UserError } from "../../kit/errors.ts";
import { asList, asRecord, asText, isRecord } from "../../kit/json.ts";
import { isLoopbackHost } from "../http.ts";

/** The variable wins, then `platforms.api_server.extra`. */
type Option = (key: string, variable?: string) => unknown;

export interface ApiSettings {
  readonly host: string;
  readonly port: number;
  /** Null: whoever reaches it may use it. */
  readonly key: string | null;
  /** Web origins that may use it; `*` is any. */
  readonly origins: readonly string[];
  /** What clients call the agent. */
  readonly modelName: string;
  /** Names that a client may ask for, and the model behind each. */
  readonly routes: Readonly<Record<string, ModelRoute>>;
  /** The client's `model` is the model. */
  readonly directModels: boolean;
  /** Turns at once; further calls are refused. */
  readonly maxTurns: number;
  /** Seconds that a call waits for a session that somebody else uses. */
  readonly busySeconds: number;
  /** Seconds of quiet after which a stream gets a line that says it lives. */
  readonly keepaliveSeconds: number;
}

export interface ModelRoute {
  readonly model: string;
  readonly provider?: string | undefined;
}

const HOST = "127.0.0.1";
const PORT = 8642;
export const PORT_SETTING = "API_SERVER_PORT";
const MAX_TURNS = 256;
const BUSY_SECONDS = 30;
const KEEPALIVE_SECONDS = 30;
const SHORTEST_KEY = 8;
/** Keys out of a manual: whoever left one in has not chosen any. */
const PLACEHOLDER =
  /^(?:change[-_ ]?(?:me|this|it).*|your[-_ ].*|<.*>|placeholder.*|example.*|secret(?:[-_ ]?key)?|password\d*|api[-_ ]?key|(.)\1*)$/i;

/** Keys of `platforms.api_server.extra`. */
export const OPTIONS = [
  ..."host port key cors_origins model_name model_routes direct_model_requests".split(" "),
  ..."max_turns busy_seconds keepalive_seconds enabled".split(" "),
];

/** Throws a `UserError` for what cannot be meant. */
export function readApiSettings(option: Option, { paths }: Pick<OpenHome, "paths">): ApiSettings {
  const host = textOf(option("host", "API_SERVER_HOST")) || HOST;
  const port = Number(option("port", PORT_SETTING) ?? PORT);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new UserError(`${PORT_SETTING} is not a port: ${String(option("port", PORT_SETTING))}`);
  return {
    ...{ host, port },
    key: textOf(option("key", "API_SERVER_KEY")) || null,
    origins: originsOf(option("cors_origins", "API_SERVER_CORS_ORIGINS")),
    modelName: textOf(option("model_name", "API_SERVER_MODEL_NAME")) || nameOf(paths.profile),
    routes: routesOf(option("model_routes")),
    directModels: option("direct_model_requests") === true,
    maxTurns: positive(option("max_turns"), MAX_TURNS),
    busySeconds: positive(option("busy_seconds"), BUSY_SECONDS),
    keepaliveSeconds: positive(option("keepalive_seconds"), KEEPALIVE_SECONDS),
  };
}

const textOf = (value: unknown) => (typeof value === "number" ? String(value) : asText(value)).trim();

/** The profile speaks under its own name. */
const nameOf = (profile: string) => (["default", "custom", ""].includes(profile) ? "hermes-agent" : profile);

function positive(value: unknown, fallback: number): number {
  const number = Number(value ?? fallback);
  return Number.isFinite(number) && number > 0 ? number : fallback;
}

function originsOf(value: unknown): readonly string[] {
  const given = Array.isArray(value) ? asList(value).map(String) : asText(value).split(",");
  return given.map((one) => one.trim().replace(/\/$/, "")).filter((one) => one !== "");
}

/** `alias: model`, or `alias: {model, provider}`. */
function routesOf(value: unknown): Readonly<Record<string, ModelRoute>> {
  const rows = Object.entries(asRecord(value)).flatMap(([alias, row]): [string, ModelRoute][] => {
    if (typeof row === "string" && row.trim() !== "") return [[alias, { model: row.trim() }]];
    const { model, provider } = isRecord(row) ? row : {};
    if (typeof model !== "string" || model.trim() === "") return [];
    return [[alias, { model: model.trim(), provider: asText(provider).trim() || undefined }]];
  });
  return Object.fromEntries(rows);
}

/** Why the server may not start; null: it may. `setting` is where its address was named. */
export function refusalToStart(
  { host, key }: Pick<ApiSettings, "host" | "key">,
  setting = "API_SERVER_HOST",
): string | null {
  if (isLoopbackHost(host)) return null;
  const how = `set API_SERVER_KEY to a long random text (openssl rand -hex 32), or ${setting} to 127.0.0.1`;
  if (key === null)
    return `${host} can be reached from other machines, and no key is set: anyone could run commands here; ${how}`;
  if (PLACEHOLDER.test(key))
    return `API_SERVER_KEY is a placeholder, and ${host} can be reached from other machines; ${how}`;
  if (key.length < SHORTEST_KEY)
    return `API_SERVER_KEY is shorter than ${SHORTEST_KEY} characters, and ${host} can be reached from other machines; ${how}`;
  return null;
}

/** What people should know of a server that may start. */
export function startWarnings({ host, key, origins }: ApiSettings): readonly string[] {
  const isOpen = !isLoopbackHost(host);
  return [
    ...(key === null ? ["no key is set: any local program can use this server"] : []),
    ...(isOpen
      ? [
          `${host} can be reached from other machines: anyone who has the key can run commands on this host, as this user`,
        ]
      : []),
    ...(origins.includes("*")
      ? [
          key === null
            ? "API_SERVER_CORS_ORIGINS=* does nothing without a key: every web page could run commands here"
            : "API_SERVER_CORS_ORIGINS=* lets every web page that has the key use this server",
        ]
      : []),
  ];
}
