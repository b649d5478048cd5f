// Where the answer is read. Platforms without a hint get none.

const CRON_NOTE = "Scheduled jobs created here deliver to files only, unless `deliver` names a messaging platform.";
const MEDIA = "To send a file, write `MEDIA:/absolute/path` on a line of its own";

const HINTS: Readonly<Record<string, string>> = {
  cli: `You are a CLI agent: your answers are read in a terminal. Write plain text rather than Markdown. There is no way to attach files here: never write \`MEDIA:\` tags, give absolute paths instead. ${CRON_NOTE}`,
  tui: `Your answers are read in a terminal interface. ${CRON_NOTE}`,
  telegram: `You are in a Telegram chat. Markdown is converted: bold, italic, strikethrough, spoilers, code, links and headings work; tables do not, use lists. ${MEDIA}: pictures, audio, video and documents arrive as such. Links to images are shown as photos.`,
  discord: `You are in a Discord channel or direct message. Discord Markdown works (bold, italic, code blocks, lists, headings, links); tables do not. ${MEDIA}: it becomes an attachment.`,
  slack: `You are in a Slack channel or direct message. Markdown is converted to Slack's own: bold, italic, strikethrough, code, lists and links work; tables and headings do not. ${MEDIA}: it becomes an upload.`,
  mattermost: `You are in a Mattermost channel or direct message. Full Markdown works, tables included. ${MEDIA}: it becomes an attachment.`,
  feishu: `You are in a Feishu (Lark) chat. Bold, italic, code, lists and links work; tables and headings do not. ${MEDIA}: pictures are shown, other types arrive as files.`,
  weixin: `You are in a WeChat chat. Write plain text; Markdown is not rendered. ${MEDIA}: pictures, voice, video and files arrive as such.`,
  wecom: `You are in a WeCom chat. Simple Markdown works: bold, links, quotes, inline code; no tables. ${MEDIA}: pictures up to 10 MB, files up to 20 MB, voice as AMR only.`,
  qqbot: `You are in a QQ chat. Simple Markdown works; no tables. ${MEDIA}: pictures are shown, audio and video are sent where the chat allows them, other types as files.`,
  whatsapp: `You are in a WhatsApp chat. Markdown is converted: bold, italic, strikethrough, code and lists work; no tables. ${MEDIA}: pictures, audio, video and documents arrive as such.`,
  signal: `You are in a Signal chat. Markdown is converted: bold, italic, strikethrough, code and lists work; no tables. ${MEDIA}: it becomes an attachment.`,
  matrix: `You are in a Matrix room. Markdown is converted to HTML; do not use tables, spoilers, strikethrough or checkboxes, and give links a name. ${MEDIA}: pictures, audio and video are shown, other types arrive as files.`,
  bluebubbles: `You are in an iMessage chat. Plain text, short; Markdown is not rendered. ${MEDIA}: it becomes an attachment.`,
  sms: "You answer by SMS: plain text, no Markdown, brief, at most about 1,600 characters.",
  email: `You answer by e-mail. Plain text, well structured, no Markdown; no greeting or sign-off unless it fits. ${MEDIA}: it becomes an attachment.`,
  cron: "You run as a scheduled job and nobody is present: ask no questions, decide yourself and finish. Your final response is delivered automatically; it has to stand on its own.",
  api_server:
    "You answer through an API; how your answer is rendered is unknown. Write plain, conversational text. Only images are inlined from `MEDIA:/absolute/path` (up to 5 MB), and not on the runs endpoint; for other files give paths.",
  webui: `You are in a web chat with full Markdown, tables and code blocks included. ${MEDIA}; do not use image syntax with local paths.`,
  desktop: `You are in a desktop app with full Markdown, tables and code blocks included. ${MEDIA}; do not use image syntax with local paths.`,
};

export interface HintOptions {
  /** `platform_hints` of the settings: text to append, or `{append, replace}`. */
  readonly settings?: Readonly<Record<string, unknown>> | undefined;
  /** What a plugin says of its platform. */
  readonly plugin?: string | null | undefined;
  readonly warn?: (warning: string) => void;
}

export const PLATFORMS_WITH_HINTS: readonly string[] = Object.keys(HINTS);

export function platformHint(platform: string, { settings, plugin, warn }: HintOptions = {}): string | null {
  const key = platform.toLowerCase();
  const own = Object.hasOwn(HINTS, key) ? HINTS[key] : plugin;
  const wish = settings && Object.hasOwn(settings, key) ? settings[key] : undefined;
  if (wish === undefined || wish === null) return own ?? null;
  const change = readChange(wish);
  if (!change) {
    warn?.(`platform_hints.${key} in config.yaml is ignored: write a text, or {append: text} or {replace: text}.`);
    return own ?? null;
  }
  const parts = [change.replace ?? own ?? "", change.append ?? ""].filter((text) => text.trim() !== "");
  return parts.length === 0 ? null : parts.join("\n\n");
}

function readChange(wish: unknown): { readonly append?: string; readonly replace?: string } | null {
  if (typeof wish === "string") return { append: wish };
  if (typeof wish !== "object" || wish === null || Array.isArray(wish)) return null;
  const { append, replace } = wish as { append?: unknown; replace?: unknown }; // checked in the next lines
  if (append === undefined && replace === undefined) return null;
  if (append !== undefined && typeof append !== "string") return null;
  if (replace !== undefined && typeof replace !== "string") return null;
  return { ...(append === undefined ? {} : { append }), ...(replace === undefined ? {} : { replace }) };
}
