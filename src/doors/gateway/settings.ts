// What the settings say about chats, read anew each time it is asked: a changed file is in force with the next message.
import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import type { OpenHome } from "../../home/open.ts";
import type { Clock } from "../../kit/clock.ts";
import { codeOf } from "../../kit/errors.ts";
import { parseJson } from "../../kit/json.ts";
import type { AdapterHost, DisplayDefaults, PlatformEntry } from "./contract.ts";
import { isYes } from "./groups.ts";

type Table = Readonly<Record<string, unknown>>;

/** `gateway.timers.*`, in seconds. */
const TIMERS = {
  connect: 30,
  reconnect_first: 10,
  reconnect_every: 10,
  reconnect_backoff: 30,
  reconnect_max: 300,
  expiry_first: 60,
  expiry_every: 300,
  directory: 300,
  media_cleanup: 3600,
  rest_first: 3,
  rest_every: 30,
  lease: 60,
  controls: 2,
  send_retry: 2,
  send_retry_max: 300,
  stream_tick: 0.05,
  typing: 2,
  kanban_notify: 5,
  batch: 1,
};
type Timers = Readonly<typeof TIMERS>;

/** Tokens out of a manual: whoever left one in has not set the platform up. */
const PLACEHOLDER = /^(?:your[-_ ]|<.*>$|xxx|changeme|change-me|token-here|placeholder)/i;

export class GatewaySettings {
  readonly home: OpenHome;
  readonly #legacy: Table;
  #envStamp = "";

  private constructor(home: OpenHome, legacy: Table) {
    this.home = home;
    this.#legacy = legacy;
  }

  static async open(home: OpenHome): Promise<GatewaySettings> {
    const settings = new GatewaySettings(home, await readLegacy(home.paths.at("gateway.json")));
    settings.#envStamp = await stampOf(home.paths.envFile);
    return settings;
  }

  /** Takes over what was changed in .env since; config.yaml is followed by the home itself. */
  async refresh(): Promise<void> {
    const stamp = await stampOf(this.home.paths.envFile);
    if (stamp === this.#envStamp) return;
    this.#envStamp = stamp;
    this.home.reloadEnv();
  }

  get timers(): Timers {
    const set = asTable(this.home.config().gateway.timers);
    const timers: Record<string, number> = { ...TIMERS };
    for (const [name, value] of Object.entries(set))
      if (name in timers && typeof value === "number" && value >= 0) timers[name] = value;
    const connect = Number(this.home.env("HERMES_GATEWAY_PLATFORM_CONNECT_TIMEOUT"));
    if (connect > 0) timers.connect = connect;
    return timers as Timers; // the names are those of TIMERS
  }

  /** `platforms.<name>` of config.yaml over `<name>:`, where the original has its options, over that of gateway.json. */
  platform(name: string): Table & { readonly extra: Table } {
    const old = asTable(asTable(this.#legacy.platforms)[name]);
    const own = asTable(this.home.config().platforms[name]);
    const block = this.#block(name);
    const facts = Object.fromEntries(Object.entries(block).filter(([key]) => FACTS.has(key)));
    const extra = { ...asTable(old.extra), ...this.#optionsIn(block), ...asTable(own.extra) };
    return { ...old, ...facts, ...own, extra };
  }

  #block(name: string): Table {
    const { telegram, discord, slack, whatsapp, mattermost, matrix } = this.home.config();
    const blocks: Table = { telegram, discord, slack, whatsapp, mattermost, matrix };
    return asTable(blocks[name]);
  }

  #optionsIn(block: Table): Table {
    const options = Object.entries(block).filter(([key]) => !FACTS.has(key) && key !== "extra");
    return { ...Object.fromEntries(options), ...asTable(block.extra) };
  }

  /** How an adapter reads its settings: the variable wins, then `extra`, then the platform's own keys, such as `token`. */
  option(name: string): AdapterHost["option"] {
    return (key, variable) => {
      const set = variable === undefined ? undefined : this.home.env(variable);
      if (set !== undefined && set.trim() !== "") return set.trim();
      const { extra, ...own } = this.platform(name);
      return extra[key] ?? own[key];
    };
  }

  /** Whether a platform is to be connected, and if it is set up but cannot be, why. */
  enabled(entry: PlatformEntry): { readonly on: boolean; readonly problem?: string } {
    const { enabled } = this.platform(entry.name);
    if (enabled === false) return { on: false };
    const option = this.option(entry.name);
    const identity = entry.identity(option);
    if (identity === null) {
      if (enabled !== true) return { on: false };
      const missing = entry.variables.filter(({ optional }) => !optional).map(({ name }) => name);
      return { on: false, problem: `it is enabled but not set up; set ${missing.join(", ")}: hermes gateway setup` };
    }
    if (PLACEHOLDER.test(identity))
      return { on: false, problem: "its token is a placeholder; set the real one: hermes gateway setup" };
    const problem = entry.check?.(option) ?? null;
    return problem === null ? { on: true } : { on: false, problem };
  }

  /** Keys of `extra` that nobody reads, as they are written. */
  unknownOptions({ name, options }: PlatformEntry): readonly string[] {
    const known = new Set([...options, ...SHARED_OPTIONS]);
    const unknown = (table: Table) => Object.keys(table).filter((key) => !known.has(key));
    const extra = unknown(asTable(asTable(this.home.config().platforms[name]).extra));
    const block = unknown(this.#optionsIn(this.#block(name)));
    return [...extra.map((key) => `platforms.${name}.extra.${key}`), ...block.map((key) => `${name}.${key}`)];
  }

  /** Platforms that are enabled and that nobody here has, in a line each. */
  unknownPlatforms(known: readonly string[]): readonly string[] {
    const named = [...Object.keys(asTable(this.#legacy.platforms)), ...Object.keys(this.home.config().platforms)];
    const isOn = (name: string) =>
      this.platform(name).enabled === true || isYes(this.home.env(variableOf(name)), false);
    return [...new Set([...named, ...Object.keys(GONE)])]
      .filter((name) => !known.includes(name) && !SERVED_ELSEWHERE.has(name) && isOn(name))
      .map((name) => `${name} is enabled, but ${GONE[name] ?? "there is no such platform here; a plugin can add one"}`);
  }

  /** One key of the display: of the platform, then for all chats, then the platform's default. */
  display<K extends keyof DisplayDefaults>(entry: PlatformEntry, key: K): DisplayDefaults[K] {
    const { display, streaming } = this.home.config();
    const own = asTable(display.platforms[entry.name])[key];
    const old = key === "tool_progress" ? asTable(display.tool_progress_overrides)[entry.name] : undefined;
    const general =
      key === "streaming" ? streaming.enabled || undefined : asTable(this.home.configTree()?.display)[key];
    const fallback = entry.display?.[key] ?? DISPLAY[key];
    const value = [own, old, general].find((one) => one !== undefined && one !== null) ?? fallback;
    return asDisplay(key, value) ?? fallback;
  }

  /** Where messages without a chat of their own go. */
  homeChannel({ name, homeVariable, parseTarget }: PlatformEntry) {
    const variable = homeVariable ?? `${name.toUpperCase()}_HOME_CHANNEL`;
    const own = this.platform(name).home_channel;
    const table = asTable(own);
    const written = this.home.env(variable) ?? (typeof own === "string" ? own : table.chat_id);
    if (written === undefined || String(written).trim() === "") return null;
    const id = String(written).trim();
    const target = parseTarget(id) ?? { chatId: id };
    const thread = this.home.env(`${name.toUpperCase()}_HOME_CHANNEL_THREAD_ID`) ?? table.thread_id ?? target.threadId;
    const label = this.home.env(`${name.toUpperCase()}_HOME_CHANNEL_NAME`) ?? table.name;
    return {
      target: { chatId: target.chatId, ...(thread ? { threadId: String(thread) } : {}) },
      name: label === undefined ? target.chatId : String(label),
      variable,
    };
  }

  /** `human_delay`, in seconds: a pause between the parts of an answer. */
  humanPause(clock: Pick<Clock, "random">): number {
    const { mode: set, min_ms: min, max_ms: max } = asTable(this.home.config().human_delay);
    const mode = (this.home.env("HERMES_HUMAN_DELAY_MODE") ?? String(set ?? "off")).trim().toLowerCase();
    if (mode !== "natural" && mode !== "custom") return 0;
    const number = (variable: string, value: unknown, fallback: number) => {
      const found = Number(this.home.env(variable) ?? value ?? fallback);
      return mode === "custom" && found >= 0 ? Math.min(found, 60_000) : fallback;
    };
    const [from, to] = [number("HERMES_HUMAN_DELAY_MIN_MS", min, 800), number("HERMES_HUMAN_DELAY_MAX_MS", max, 2500)];
    return (from + clock.random() * Math.max(0, to - from)) / 1000;
  }

  get sharing() {
    const { group_sessions_per_user: perUserInGroups, thread_sessions_per_user: perUserInThreads } = this.home.config();
    return { perUserInGroups, perUserInThreads };
  }
}

const DISPLAY: DisplayDefaults = {
  tool_progress: "all",
  streaming: false,
  interim_assistant_messages: true,
  long_running_notifications: true,
  busy_ack_detail: true,
};

/** What homes of the original may have enabled, and where it went. */
const GONE: Readonly<Record<string, string>> = {
  whatsapp:
    "its bridge is not part of this version. Use WhatsApp's Cloud API (hermes gateway setup whatsapp_cloud), or a plugin that brings the bridge",
};
const SERVED_ELSEWHERE: ReadonlySet<string> = new Set(["local"]);
const variableOf = (name: string) => `${name.toUpperCase()}_ENABLED`;

/** Keys of a platform itself; the others of a block are options. */
const FACTS: ReadonlySet<string> = new Set(["enabled", "token", "home_channel", "session_reset"]);

const SHARED_OPTIONS = [
  ..."reply_to_mode require_mention free_response_chats allowed_chats mention_patterns channel_prompts".split(" "),
  ..."channel_skill_bindings unauthorized_dm_behavior gateway_restart_notification missed_messages".split(" "),
  ..."allow_admin_from user_allowed_commands group_allow_admin_from group_user_allowed_commands token".split(" "),
];

/** YAML reads `off` and `on` as truth values. */
function asDisplay<K extends keyof DisplayDefaults>(key: K, value: unknown): DisplayDefaults[K] | null {
  const wanted: unknown = key === "tool_progress" && typeof value === "boolean" ? (value ? "all" : "off") : value;
  if (typeof wanted !== typeof DISPLAY[key]) return null;
  if (key === "tool_progress" && !["off", "new", "all", "verbose"].includes(String(wanted))) return null;
  return wanted as DisplayDefaults[K]; // its type and, for a word, its value were looked at
}

/** First 16 hex of sha256: names a bot without its token. */
export const accountOf = (identity: string) => createHash("sha256").update(identity).digest("hex").slice(0, 16);

export function asTable(value: unknown): Table {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Table) : {};
}

async function stampOf(path: string): Promise<string> {
  const facts = await stat(path).catch(() => null); // there is none
  return facts ? `${facts.mtimeMs}:${facts.size}:${facts.ino}` : "";
}

async function readLegacy(path: string): Promise<Table> {
  try {
    return asTable(parseJson(await readFile(path, "utf8")));
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
    return {};
  }
}
