// Which tools belong together, as data. A name may stand here before its tool exists: only registered tools are ever offered.

export interface Toolset {
  readonly description: string;
  readonly tools?: readonly string[];
  readonly includes?: readonly string[];
  /** The only platform it can be used on. */
  readonly onlyOn?: string;
}

const BROWSER = "navigate snapshot click type scroll back press get_images vision console cdp dialog";
const KANBAN = "show list complete block heartbeat comment create link unblock";
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

/** Off until somebody asks for them. */
export const DEFAULT_OFF: ReadonlySet<string> = new Set([
  ...["moa", "homeassistant", "spotify", "discord", "discord_admin"],
  ...["video", "video_gen", "x_search"],
]);

const CORE_SETS = [
  ...["web", "terminal", "file", "vision", "image_gen", "skills", "browser", "tts", "todo", "memory"],
  ...["session_search", "clarify", "code_execution", "delegation", "cronjob", "messaging"],
  ...["homeassistant", "kanban", "computer_use"],
];

export const CORE_TOOLS: readonly string[] = toolsOf(CORE_SETS);

/** Every platform of the product. One that a plugin adds gets the core list without an entry here. */
export const PLATFORMS: readonly string[] = [
  ...["cli", "telegram", "discord", "slack", "whatsapp", "signal", "bluebubbles", "email", "homeassistant"],
  ...["mattermost", "matrix", "dingtalk", "feishu", "wecom", "wecom_callback", "weixin", "qqbot", "yuanbao"],
  ...["webhook", "api_server", "acp", "cron"],
];

const NEEDS_A_PERSON = ["clarify", "send_message", "text_to_speech", ...toolsOf(["kanban", "computer_use"])];

/** Bundles whose members differ from the core list, by platform. */
const SPECIAL_BUNDLES: Readonly<Record<string, readonly string[]>> = {
  discord: [...CORE_TOOLS, ...toolsOf(["discord", "discord_admin"])],
  api_server: without(NEEDS_A_PERSON),
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
export const LEGACY_NAMES: Readonly<Record<string, string>> = {
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
