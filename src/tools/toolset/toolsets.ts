// Which tools a platform gets: from the run's own list, the configuration, or the platform's bundle.
import type { Config } from "../../home/config/schema.ts";
import type { ToolRegistry } from "./registry.ts";

/** The tools of a toolset, an alias, a bundle, or of everything (`all`, `*`): sorted, each once. Unknown names have none. */
export function resolveToolset(name: string, registry: ToolRegistry): string[] {
  if (name === "all" || name === "*") {
    return unique([...Object.keys(staticToolsets()), ...registry.toolsets()].flatMap((set) => collect(set, registry)));
  }
  return unique(collect(name, registry));
}

function isToolset(name: string, registry: ToolRegistry): boolean {
  return name === "all" || name === "*" || canonical(name) in staticToolsets() || registry.toolsOf(name).length > 0;
}

/** At least one tool of it is there: the table also names toolsets whose tools this version does not have. */
export function hasTools(name: string, registry: ToolRegistry): boolean {
  return resolveToolset(name, registry).some((tool) => registry.has(tool));
}

/** What can be switched on and off here, in the order it is shown; MCP servers have switches of their own. */
export function switchableToolsets(registry: ToolRegistry): string[] {
  return [...Object.keys(CONFIGURABLE).filter((name) => hasTools(name, registry)), ...pluginToolsets(registry)];
}

/** Of these toolsets those that a run with nothing but these tools has. */
export function toolsetsOf(
  tools: ReadonlySet<string>,
  toolsets: readonly string[],
  registry: ToolRegistry,
): readonly string[] {
  // A single toolset counts by the tools that are its own: web_search alone is no browser.
  const members = (name: string) => (name in COMPOSITE ? resolveToolset(name, registry) : registry.toolsOf(name));
  return toolsets.filter((name) => members(name).some((tool) => tools.has(tool)));
}

/** Toolsets that came at run time and are neither ours nor an MCP server's. */
export function pluginToolsets(registry: ToolRegistry): string[] {
  return registry.toolsets().filter((name) => !(name in CONFIGURABLE) && !name.startsWith("mcp-"));
}

export interface ToolsetQuestion {
  readonly platform: string;
  readonly config: Config;
  /** `--toolsets` of this run. */
  readonly toolsets?: readonly string[];
  /** A run that a parent agent started; it is handed its toolsets and gains none on its own. */
  readonly delegated?: boolean;
  env(name: string): string | undefined;
}

export interface ToolsetAnswer {
  /** Toolsets in force, sorted. */
  readonly toolsets: readonly string[];
  /** Registered tools in force, sorted. Availability is not asked here. */
  readonly tools: readonly string[];
  /** Configured MCP servers in force, connected or not, sorted. */
  readonly servers: readonly string[];
  /** Names nobody knows; worth a warning. */
  readonly unknown: readonly string[];
}

/** The one answer to "which tools": what `hermes tools list` shows and what a session is started with. */
export function chooseToolsets(question: ToolsetQuestion, registry: ToolRegistry): ToolsetAnswer {
  const typed = listedNames(question);
  const listed = typed.map(canonical);
  const named = new Set(listed);
  const everything = named.has("all") || named.has("*");
  const chosen = new Set<string>();
  for (const name of everything ? Object.keys(CONFIGURABLE) : ownToolsets(listed, question)) chosen.add(name);
  for (const name of pluginToolsets(registry)) if (everything || pluginIsOn(name, named, question)) chosen.add(name);
  for (const name of mcpToolsets(named, registry, question)) chosen.add(name);
  for (const name of chosen) {
    if ((CONFIGURABLE[name]?.onlyOn ?? question.platform) !== question.platform) chosen.delete(name);
  }
  const hasBoard = chosen.has("kanban");
  if (question.env("HERMES_KANBAN_TASK")) chosen.add("kanban");
  // A child works for its parent: what it found is the parent's to write on the board.
  if (question.delegated) chosen.delete("kanban");

  const disabled = question.config.agent.disabled_toolsets.map(canonical);
  for (const name of disabled) chosen.delete(name);
  const tools = new Set([...chosen].flatMap((name) => resolveToolset(name, registry)));
  // The browser set includes web search for runs that name it; a user who switched "web" off meant it.
  const others = [...chosen].filter((name) => name !== "browser");
  if (!question.toolsets && !others.some((name) => resolveToolset(name, registry).includes("web_search")))
    tools.delete("web_search");
  if (!hasBoard) for (const tool of WHOLE_BOARD) tools.delete(tool);
  for (const name of disabled) for (const tool of subtracted(name, registry)) tools.delete(tool);
  for (const tool of question.config.tools.disabled_functions) tools.delete(tool);
  return {
    toolsets: [...chosen].sort(),
    tools: [...tools].filter((tool) => registry.has(tool)).sort(),
    servers: chooseServers(question),
    unknown: [
      // What this run asks for has to be there; the settings may be of another version.
      ...typed.filter((name) => !isKnown(name, question, question.toolsets?.length ? hasTools : isToolset, registry)),
      ...disabled.filter((name) => !isKnown(name, question, isToolset, registry)),
    ],
  };
}

/** The names a run starts from: its own, the platform's, on the command line the general ones, else the platform's bundle. */
export function listedNames({ platform, config, toolsets }: Omit<ToolsetQuestion, "env">): string[] {
  if (toolsets && toolsets.length > 0) return [...toolsets];
  const configured = config.platform_toolsets[platform];
  if (Array.isArray(configured)) return configured.map(String);
  if (platform === "cli" && config.toolsets.length > 0) return [...config.toolsets];
  return [bundleName(platform)];
}

function ownToolsets(listed: readonly string[], question: ToolsetQuestion): string[] {
  const bundles = listed.filter((name) => name.startsWith("hermes-"));
  const single = listed.filter((name) => name in CONFIGURABLE || name in COMPOSITE);
  return [...single, ...bundles.flatMap((name) => expandBundle(name, question))];
}

/** The configurable toolsets that lie wholly inside a bundle, without those that wait to be asked for. */
function expandBundle(bundle: string, question: ToolsetQuestion): string[] {
  const tools = new Set(bundleTools(bundle));
  return Object.entries(CONFIGURABLE)
    .filter(([name, set]) => set.tools?.every((tool) => tools.has(tool)) && isOnByDefault(name, question))
    .map(([name]) => name);
}

function bundleTools(name: string): readonly string[] {
  const bundle = BUNDLES[name];
  // A platform of a plugin has no entry: it gets the core.
  if (!bundle) return CORE_TOOLS;
  return [...(bundle.tools ?? []), ...(bundle.includes ?? []).flatMap((inner) => BUNDLES[inner]?.tools ?? [])];
}

function isOnByDefault(name: string, { env }: ToolsetQuestion): boolean {
  if (name === "homeassistant") return Boolean(env("HASS_TOKEN"));
  if (name === "x_search") return Boolean(env("XAI_API_KEY"));
  return !DEFAULT_OFF.has(name);
}

function pluginIsOn(name: string, named: ReadonlySet<string>, question: ToolsetQuestion): boolean {
  if (named.has(name)) return true;
  // A run with a list of its own has what it names.
  if (question.toolsets?.length) return false;
  const known = question.config.known_plugin_toolsets[question.platform];
  return !(Array.isArray(known) && known.includes(name));
}

/** The configured servers a run may use: all that are enabled, or those it names; none with `no_mcp`. */
export function chooseServers(question: Omit<ToolsetQuestion, "env">): string[] {
  const { config } = question;
  const named = new Set(listedNames(question));
  if (named.has("no_mcp")) return [];
  const disabled = new Set(config.agent.disabled_toolsets);
  const enabled = Object.entries(config.mcp_servers).flatMap(([name, entry]) => (isEnabledServer(entry) ? [name] : []));
  const wanted = enabled.filter((name) => named.has(name) || named.has(`mcp-${name}`));
  const everything = named.has("all") || named.has("*") || wanted.length === 0;
  return (everything ? enabled : wanted).filter((name) => !disabled.has(name) && !disabled.has(`mcp-${name}`)).sort();
}

function isEnabledServer(entry: unknown): boolean {
  if (typeof entry !== "object" || entry === null || !("enabled" in entry)) return true;
  return (entry.enabled ?? true) === true || /^(?:true|yes|on|1)$/i.test(String(entry.enabled).trim());
}

/** All servers, or only those that are named; `no_mcp` means none. */
function mcpToolsets(named: ReadonlySet<string>, registry: ToolRegistry, { config }: ToolsetQuestion): string[] {
  if (named.has("no_mcp")) return [];
  const all = registry.toolsets().filter((name) => name.startsWith("mcp-"));
  if (named.has("all") || named.has("*")) return all;
  const isNamed = (toolset: string) => named.has(toolset) || named.has(toolset.slice("mcp-".length));
  // A server that is named but not there yet still makes the list an allowlist.
  const configured = Object.keys(config.mcp_servers).map((name) => `mcp-${name}`);
  return [...all, ...configured].some(isNamed) ? all.filter(isNamed) : all;
}

/** Disabling a platform's bundle takes away only what that platform has beyond the core. */
function subtracted(name: string, registry: ToolRegistry): string[] {
  const tools = resolveToolset(name, registry);
  return name.startsWith("hermes-") ? tools.filter((tool) => !CORE_TOOLS.includes(tool)) : tools;
}

function isKnown(
  name: string,
  { platform, config }: ToolsetQuestion,
  isThere: (name: string, registry: ToolRegistry) => boolean,
  registry: ToolRegistry,
): boolean {
  if (name === "no_mcp" || name === bundleName(platform) || isThere(name, registry)) return true;
  // Servers connect after the list is made; a configured one is not a typing mistake.
  return name.replace(/^mcp-/, "") in config.mcp_servers;
}

function collect(name: string, registry: ToolRegistry, seen = new Set<string>()): string[] {
  const key = canonical(name);
  if (seen.has(key)) return [];
  seen.add(key);
  const set = staticToolsets()[key];
  return [
    ...(set?.tools ?? []),
    ...registry.toolsOf(key),
    ...(set?.includes ?? []).flatMap((inner) => collect(inner, registry, seen)),
  ];
}

let table: Readonly<Record<string, Toolset>> | null = null;
function staticToolsets(): Readonly<Record<string, Toolset>> {
  table ??= { ...CONFIGURABLE, ...COMPOSITE, ...BUNDLES };
  return table;
}

function canonical(name: string): string {
  return LEGACY_NAMES[name] ?? name;
}

function unique(names: readonly string[]): string[] {
  return [...new Set(names)].sort();
}

// Which tools belong together, as data. A name may stand here before its tool exists: only registered tools are ever offered.

interface Toolset {
  readonly description: string;
  readonly tools?: readonly string[];
  readonly includes?: readonly string[];
  /** The only platform it can be used on. */
  readonly onlyOn?: string;
}

const BROWSER = "navigate snapshot click type scroll back press get_images vision console cdp dialog";
const KANBAN = "show list complete block heartbeat comment create link unblock attach attach_url attachments";
/** They are about the whole board: for profiles that were given it, not for whoever works on one card. */
const WHOLE_BOARD = ["kanban_list", "kanban_unblock"];
const HOME_ASSISTANT = "list_entities get_state list_services call_service";
const prefixed = (prefix: string, words: string) => words.split(" ").map((word) => `${prefix}_${word}`);

/** The toolsets a user switches on and off one by one, in the order they are shown. */
export const CONFIGURABLE: Readonly<Record<string, Toolset>> = {
  web: { description: "Web search and page text", tools: ["web_search", "web_extract"] },
  browser: { description: "A real browser", tools: [...prefixed("browser", BROWSER), "web_search"] },
  terminal: { description: "Shell commands and background processes", tools: ["terminal", "process"] },
  file: {
    description: "Read, write, patch and search files",
    tools: ["read_file", "write_file", "patch", "search_files"],
  },
  code_execution: { description: "Scripts that call tools", tools: ["execute_code"] },
  vision: { description: "Look at images", tools: ["vision_analyze"] },
  image_gen: { description: "Make images", tools: ["image_generate"] },
  moa: { description: "Ask several models at once", tools: ["mixture_of_agents"] },
  tts: { description: "Speak", tools: ["text_to_speech"] },
  skills: { description: "Skills the agent uses and writes", tools: ["skills_list", "skill_view", "skill_manage"] },
  todo: { description: "Task list", tools: ["todo"] },
  memory: { description: "Notes that outlive a session", tools: ["memory"] },
  session_search: { description: "Search of past conversations", tools: ["session_search"] },
  clarify: { description: "Questions to the user", tools: ["clarify"] },
  delegation: { description: "Sub-agents", tools: ["delegate_task"] },
  cronjob: { description: "Scheduled jobs", tools: ["cronjob"] },
  messaging: { description: "Messages to chats", tools: ["send_message"] },
  kanban: { description: "Task board", tools: prefixed("kanban", KANBAN) },
  homeassistant: { description: "Home Assistant", tools: prefixed("ha", HOME_ASSISTANT) },
  computer_use: { description: "Desktop control", tools: ["computer_use"] },
  discord: { description: "Discord", tools: ["discord"], onlyOn: "discord" },
  discord_admin: { description: "Discord administration", tools: ["discord_admin"], onlyOn: "discord" },
  video: { description: "Look at videos", tools: ["video_analyze"] },
  video_gen: { description: "Make videos", tools: ["video_generate"] },
  x_search: { description: "Search on X", tools: ["x_search"] },
  spotify: { description: "Spotify", tools: ["spotify"] },
};

/** Sets that are named as a whole and have no switch of their own. */
export const COMPOSITE: Readonly<Record<string, Toolset>> = {
  search: { description: "Web search only", tools: ["web_search"] },
  context_engine: { description: "Tools of a context engine plugin" },
  debugging: { description: "Terminal, web and files", tools: ["terminal", "process"], includes: ["web", "file"] },
  safe: { description: "Nothing that touches this machine", includes: ["web", "vision", "image_gen"] },
  coding: {
    description: "What code work needs",
    includes: [
      ...["file", "terminal", "search", "todo", "code_execution"],
      ...["skills", "memory", "session_search", "clarify", "delegation"],
    ],
  },
};

/** Off by default. */
const DEFAULT_OFF: ReadonlySet<string> = new Set([
  ...["moa", "homeassistant", "spotify", "discord", "discord_admin"],
  ...["video", "video_gen", "x_search", "kanban"],
]);

const CORE_SETS = [
  ...["web", "terminal", "file", "vision", "image_gen", "skills", "browser", "tts", "todo", "memory"],
  ...["session_search", "clarify", "code_execution", "delegation", "cronjob", "messaging"],
  ...["homeassistant", "kanban", "computer_use"],
];

const CORE_TOOLS: readonly string[] = toolsOf(CORE_SETS);

/** Every platform of the product. One that a plugin adds gets the core list without an entry here. */
export const PLATFORMS: readonly string[] = [
  ...["cli", "telegram", "discord", "slack", "whatsapp", "signal", "bluebubbles", "email", "homeassistant"],
  ...["mattermost", "matrix", "dingtalk", "feishu", "wecom", "wecom_callback", "weixin", "qqbot", "yuanbao"],
  ...["webhook", "api_server", "acp", "mcp", "cron"],
];

const NO_CHATS: ReadonlySet<string> = new Set(["cli", "webhook", "api_server", "acp", "mcp", "cron"]);

/** Platforms that something can be sent to: ours, those that the settings name, and what enabled plugins may bring under their names. */
export const chatPlatforms = ({ platforms, plugins }: Pick<Config, "platforms" | "plugins">): ReadonlySet<string> =>
  new Set([
    ...PLATFORMS.filter((name) => !NO_CHATS.has(name)),
    ...["irc", "xmpp", "sms", ...Object.keys(platforms), ...(plugins.enabled ?? [])],
  ]);

/** What conversations of people offer to tools there: sending elsewhere takes a gateway. */
export const portsOn = (platform: string): ReadonlySet<string> =>
  new Set(["ask", "schedule", ...(NO_CHATS.has(platform) ? [] : ["deliver"])]);

const NEEDS_A_PERSON = ["clarify", "send_message", "text_to_speech", ...toolsOf(["kanban", "computer_use"])];

/** Bundles whose members differ from the core list, by platform. */
const SPECIAL_BUNDLES: Readonly<Record<string, readonly string[]>> = {
  discord: [...CORE_TOOLS, ...toolsOf(["discord", "discord_admin"])],
  api_server: without(NEEDS_A_PERSON),
  mcp: without(NEEDS_A_PERSON),
  acp: without([...NEEDS_A_PERSON, "image_generate", "cronjob", ...toolsOf(["homeassistant"])]),
  // What arrives at a webhook was written by strangers.
  webhook: ["web_search", "web_extract", "vision_analyze", "clarify"],
};

export function bundleName(platform: string): string {
  return `hermes-${platform.replaceAll("_", "-")}`;
}

/** Bundles by name; `hermes-gateway` is all of them. */
export const BUNDLES: Readonly<Record<string, Toolset>> = {
  ...Object.fromEntries(
    PLATFORMS.map((platform) => [
      bundleName(platform),
      { description: `Tools of ${platform}`, tools: SPECIAL_BUNDLES[platform] ?? CORE_TOOLS },
    ]),
  ),
  "hermes-gateway": { description: "Tools of all platforms", includes: PLATFORMS.map(bundleName) },
};

/** Names of groups that older configurations use. */
const LEGACY_NAMES: Readonly<Record<string, string>> = {
  web_tools: "web",
  terminal_tools: "terminal",
  vision_tools: "vision",
  moa_tools: "moa",
  image_tools: "image_gen",
  skills_tools: "skills",
  browser_tools: "browser",
  cronjob_tools: "cronjob",
  file_tools: "file",
  tts_tools: "tts",
};

function toolsOf(names: readonly string[]): string[] {
  return names.flatMap((name) => CONFIGURABLE[name]?.tools ?? []);
}

function without(removed: readonly string[]): string[] {
  return CORE_TOOLS.filter((tool) => !removed.includes(tool));
}
