// Environment variables that mean something to the program and have no key in config.yaml. Those that have one carry its name in the
// schema.

export type VariableGroup = "model" | "tool" | "chat" | "program";

interface KnownVariable {
  readonly name: string;
  readonly group: VariableGroup;
  readonly meaning: string;
  readonly secret: boolean;
  /** Known because homes of the Python original hold it; nothing in this program reads it yet. */
  readonly notUsed?: true;
}

const secrets = (group: VariableGroup, entries: Readonly<Record<string, string>>): KnownVariable[] =>
  Object.entries(entries).map(([name, meaning]) => ({ name, group, meaning, secret: true }));
const switches = (entries: Readonly<Record<string, string>>): KnownVariable[] =>
  Object.entries(entries).map(([name, meaning]) => ({ name, group: "program", meaning, secret: false }));

const notUsed: ReadonlySet<string> = new Set([
  ...["GROQ_API_KEY", "HONCHO_API_KEY", "DAYTONA_API_KEY"],
  ...["HERMES_TUI", "HERMES_TUI_RESUME"],
  ...["HERMES_DUMP_REQUESTS"],
]);

const all: readonly KnownVariable[] = [
  ...secrets("model", {
    OPENROUTER_API_KEY: "OpenRouter: most models with one key",
    ANTHROPIC_API_KEY: "Anthropic",
    OPENAI_API_KEY: "OpenAI",
    GOOGLE_API_KEY: "Google Gemini",
    GEMINI_API_KEY: "Google Gemini, other name",
    XAI_API_KEY: "xAI",
    DEEPSEEK_API_KEY: "DeepSeek",
    GLM_API_KEY: "Z.ai / GLM",
    KIMI_API_KEY: "Moonshot / Kimi",
    MINIMAX_API_KEY: "MiniMax",
    DASHSCOPE_API_KEY: "Alibaba Qwen",
    NVIDIA_API_KEY: "NVIDIA",
    HF_TOKEN: "Hugging Face",
    OLLAMA_API_KEY: "Ollama Cloud",
    GITHUB_TOKEN: "GitHub Copilot; comments on GitHub by webhooks",
  }),
  ...secrets("tool", {
    FIRECRAWL_API_KEY: "web search and pages: Firecrawl",
    TAVILY_API_KEY: "web search and pages: Tavily",
    EXA_API_KEY: "web search and pages: Exa",
    PARALLEL_API_KEY: "web search and pages: Parallel",
    BRAVE_SEARCH_API_KEY: "web search: Brave",
    FAL_KEY: "image generation: FAL",
    BROWSERBASE_API_KEY: "browser in the cloud: Browserbase",
    BROWSERBASE_PROJECT_ID: "Browserbase project id",
    ELEVENLABS_API_KEY: "speech: ElevenLabs",
    GROQ_API_KEY: "speech recognition: Groq",
    HONCHO_API_KEY: "external memory: Honcho",
    DAYTONA_API_KEY: "commands in the cloud: Daytona",
    SUDO_PASSWORD: "password for sudo in the terminal tool",
  }),
  ...secrets("chat", {
    TELEGRAM_BOT_TOKEN: "Telegram",
    TELEGRAM_WEBHOOK_SECRET: "Telegram, secret of its webhook",
    DISCORD_BOT_TOKEN: "Discord",
    SLACK_BOT_TOKEN: "Slack, bot",
    SLACK_APP_TOKEN: "Slack, app",
    MATTERMOST_TOKEN: "Mattermost",
    MATRIX_ACCESS_TOKEN: "Matrix",
    MATRIX_PASSWORD: "Matrix, instead of a token",
    EMAIL_PASSWORD: "e-mail",
    IRC_NICKSERV_PASSWORD: "IRC, account of the nick",
    IRC_SERVER_PASSWORD: "IRC, server",
    XMPP_PASSWORD: "XMPP",
    TWILIO_AUTH_TOKEN: "SMS (Twilio)",
    WHATSAPP_CLOUD_ACCESS_TOKEN: "WhatsApp",
    WHATSAPP_CLOUD_VERIFY_TOKEN: "WhatsApp, check of its webhook",
    WHATSAPP_CLOUD_APP_SECRET: "WhatsApp, signature of its webhook",
    FEISHU_APP_SECRET: "Feishu and Lark",
    FEISHU_VERIFICATION_TOKEN: "Feishu and Lark, check of a webhook",
    FEISHU_ENCRYPT_KEY: "Feishu and Lark, encryption of a webhook",
    DINGTALK_CLIENT_SECRET: "DingTalk",
    WECOM_SECRET: "WeCom",
    HASS_TOKEN: "Home Assistant",
    WEBHOOK_SECRET: "webhooks, those without a secret of their own",
    API_SERVER_KEY: "API server, key required from its clients",
  }),
  ...switches({
    HERMES_HOME: "home folder, instead of ~/.hermes",
    HERMES_HOME_MODE: "mode of new directories, octal (0700)",
    HERMES_SKIP_CHMOD: "do not change modes of existing files",
    HERMES_FROM_SOURCE: "in a clone: 1 runs src/, 0 runs dist/; otherwise dist/ runs if it is newer than src/",
    HERMES_MANAGED: "name of the package manager that owns this installation",
    HERMES_YOLO_MODE: "run dangerous commands without asking; read once at start",
    HERMES_IGNORE_USER_CONFIG: "ignore config.yaml and use built-in defaults",
    HERMES_IGNORE_RULES: "skip AGENTS.md, SOUL.md, memory and preloaded skills",
    HERMES_SESSION_SOURCE: "source recorded for new conversations; `tool` hides them from lists",
    HERMES_SESSION_ID: "set for commands the agent runs: its conversation id",
    HERMES_KANBAN_HOME: "folder that the boards lie in, instead of the root of the homes",
    HERMES_KANBAN_BOARD: "board that is meant where none is named",
    HERMES_KANBAN_CLAIM_TTL_SECONDS: "seconds a card is its worker's without a sign of life (900)",
    HERMES_KANBAN_RATE_LIMIT_COOLDOWN_SECONDS: "seconds until a card that a quota stopped is started again (300)",
    HERMES_KANBAN_STOP_NUDGE: "0: a worker that ends without completing or blocking its card is not reminded",
    HERMES_KANBAN_GUIDANCE: "guidance for workers of boards, instead of the built-in text",
    HERMES_SIGTERM_GRACE: "seconds a turn gets to finish when the program is stopped (1.5)",
    HERMES_TUI: "kept for the Python original",
    HERMES_TUI_RESUME: "conversation to resume at start",
    HERMES_LIGHT: "1: light terminal, 0: dark terminal; if unset, Hermes queries the terminal",
    HERMES_TUI_THEME: "the same, as light or dark",
    HERMES_TUI_BACKGROUND: "the background of the terminal as #rrggbb",
    HERMES_DUMP_REQUESTS: "write failed model requests to sessions/",
    HERMES_SEARCH_SLOW_MS: "milliseconds after which a search is logged as slow (1000)",
    HERMES_API_TIMEOUT: "timeout of one model request in seconds (1800)",
    HERMES_STREAM_STALE_TIMEOUT: "seconds without data before a stream is aborted (180)",
    HERMES_API_CALL_STALE_TIMEOUT: "the same without streaming (90)",
    HERMES_CRON_TIMEOUT: "seconds of inactivity before a scheduled run is stopped (600)",
    API_SERVER_ENABLED: "run the API server with the gateway",
    API_SERVER_HOST: "its host (127.0.0.1)",
    API_SERVER_PORT: "its port (8642)",
    API_SERVER_CORS_ORIGINS: "web origins allowed to use it",
    API_SERVER_MODEL_NAME: "name of the agent for its clients (hermes-agent)",
    NO_COLOR: "no colours",
  }),
];

export const knownVariables: readonly KnownVariable[] = all.map((variable) =>
  notUsed.has(variable.name) ? { ...variable, notUsed: true } : variable,
);

/** A name that `hermes config set` stores in .env instead of config.yaml. */
export function belongsIntoEnv(name: string): boolean {
  const upper = name.toUpperCase();
  if (/_(?:API_KEY|TOKEN|SECRET)$/.test(upper) || upper.startsWith("TERMINAL_SSH")) return true;
  // No setting is written in capitals; a variable is, such as one that `key_env` names.
  if (/^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$/.test(name)) return true;
  return knownVariables.some((variable) => variable.secret && variable.name === upper);
}
