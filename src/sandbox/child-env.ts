import { access, constants, lstat, mkdir, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { isAbsolute, join } from "node:path";

// What a command may see of our environment: everything except the secrets this product holds.

const PROVIDERS =
  "OPENROUTER ANTHROPIC GOOGLE GEMINI DEEPSEEK GROQ MISTRAL XAI TOGETHER FIREWORKS NVIDIA GLM ZAI Z_AI KIMI KIMI_CN MOONSHOT MINIMAX " +
  "MINIMAX_CN DASHSCOPE ALIBABA QWEN HUGGINGFACE AI_GATEWAY OPENCODE_ZEN OPENCODE_GO KILOCODE NOUS COHERE PERPLEXITY CEREBRAS OLLAMA LM " +
  "AZURE_OPENAI AZURE_FOUNDRY ARCEE XIAOMI STEPFUN GMI TOKENHUB VOLCENGINE SILICONFLOW NOVITA HERMES";
const TOOL_SERVICES =
  "FIRECRAWL TAVILY EXA PARALLEL FAL BROWSERBASE BROWSER_USE BRAVE SERPER SEARXNG ELEVENLABS HONCHO MEM0 SUPERMEMORY LANGFUSE TINKER WANDB " +
  "COMPOSIO CAMOFOX";

/** Names a child never inherits; `*` stands for any rest. */
export const SECRET_NAMES: readonly string[] = [
  ...[...PROVIDERS.split(" "), ...TOOL_SERVICES.split(" ")].flatMap((name) => [
    `${name}_API_KEY`,
    `${name}_KEY`,
    `${name}_TOKEN`,
    `${name}_BASE_URL`,
  ]),
  ..."OPENAI_* ANTHROPIC_* AUXILIARY_*_API_KEY AUXILIARY_*_BASE_URL".split(" "),
  ..."GATEWAY_RELAY_*_SECRET GATEWAY_RELAY_*_KEY GATEWAY_RELAY_*_TOKEN".split(" "),
  ..."CLAUDE_CODE_OAUTH_TOKEN GH_TOKEN GITHUB_TOKEN COPILOT_GITHUB_TOKEN HF_TOKEN AWS_BEARER_TOKEN_BEDROCK".split(" "),
  ..."GOOGLE_APPLICATION_CREDENTIALS MODAL_* DAYTONA_API_KEY BROWSERBASE_PROJECT_ID SUDO_PASSWORD".split(" "),
  ..."TELEGRAM_* DISCORD_* SLACK_* EMAIL_* HASS_* MATRIX_* SIGNAL_* WHATSAPP_* MATTERMOST_* TWILIO_*".split(" "),
  ..."DINGTALK_* FEISHU_* WECOM_* WEIXIN_* QQBOT_* QQ_* YUANBAO_* BLUEBUBBLES_* IRC_* XMPP_*".split(" "),
  ..."API_SERVER_KEY WEBHOOK_SECRET HERMES_DASHBOARD_TOKEN HERMES_DASHBOARD_SESSION_TOKEN HERMES_SESSION_TOKEN".split(
    " ",
  ),
];

// Hundreds of names in one pattern would take longer to compile than a command takes to start.
const SECRET = new Set(SECRET_NAMES.filter((name) => !name.includes("*")));
const SECRET_FAMILY = new RegExp(
  `^(?:${SECRET_NAMES.filter((name) => name.includes("*"))
    .map((name) => name.replaceAll("*", ".*"))
    .join("|")})$`,
);
const FORCE = "_HERMES_FORCE_";

// Left behind by `npm start`; they would steer the user's own npm.
const LAUNCHER = /^(npm_(config|package|lifecycle|command|execpath|node_execpath).*|INIT_CWD)$/;

const USUAL_PATH = "/opt/homebrew/bin /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin".split(" ");

export function isSecretName(name: string): boolean {
  return SECRET.has(name) || SECRET_FAMILY.test(name);
}

/** The environment of a command. `_HERMES_FORCE_NAME=value` gives a child NAME on purpose. */
export function childEnvironment(
  parent: Readonly<Record<string, string>>,
  own: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const entries = Object.entries(parent).filter(
    ([name]) => !isSecretName(name) && !LAUNCHER.test(name) && !name.startsWith(FORCE),
  );
  const forced = Object.entries(parent)
    .filter(([name]) => name.startsWith(FORCE) && name.length > FORCE.length)
    .map(([name, value]) => [name.slice(FORCE.length), value]);
  const child: Record<string, string> = { ...Object.fromEntries([...entries, ...forced]), ...own };
  return { ...child, PATH: completePath(child.PATH) };
}

/** Names that were forced on purpose and so survive every later filter. */
export function forcedNames(parent: Readonly<Record<string, string>>): string[] {
  return Object.keys(parent)
    .filter((name) => name.startsWith(FORCE))
    .map((name) => name.slice(FORCE.length));
}

function completePath(path: string | undefined): string {
  if (process.platform === "win32") return path ?? "";
  const present = (path ?? "").split(":").filter(Boolean);
  return [...present, ...USUAL_PATH.filter((directory) => !present.includes(directory))].join(":");
}

// Where environments keep their own files on this machine.

const STALE_MS = 7 * 24 * 3600 * 1000;
const LOOK_EVERY_MS = 3600 * 1000;

/** Ours alone: a directory that somebody else prepared under a name we would guess is not used. */
export async function privateTempDir(base: string): Promise<string> {
  const wanted = join(base, `hermes-${process.getuid?.() ?? "user"}`);
  const before = await isOurs(wanted);
  if (before === null) await mkdir(wanted, { recursive: true, mode: 0o700 });
  return (before ?? (await isOurs(wanted))) ? wanted : mkdtemp(`${wanted}-`);
}

/** A folder in our temporary directory. That may have been cleared away since it was found, and somebody else's may stand there now. */
export async function makeInside(tempDir: string, folder: string): Promise<void> {
  if (!(await isOurs(tempDir))) await mkdir(tempDir, { mode: 0o700 });
  await mkdir(folder, { mode: 0o700 });
}

/** Null when nothing is there. */
async function isOurs(directory: string): Promise<boolean | null> {
  const uid = process.getuid?.();
  const found = await lstat(directory).catch(() => null);
  if (!found) return null;
  return found.isDirectory() && (uid === undefined || (found.uid === uid && (found.mode & 0o022) === 0));
}

/** A killed program leaves its shell state behind. What runs touches its own with every command. Looked for once an hour, by whoever comes
 * then: the agents of 500 chats looked through the folders of 500 chats, each at its end. */
export async function removeStale(tempDir: string): Promise<void> {
  const looked = join(tempDir, "looked");
  const last = await stat(looked).catch(() => null);
  if (last && Math.abs(Date.now() - last.mtimeMs) < LOOK_EVERY_MS) return;
  await writeFile(looked, "", { mode: 0o600 }).catch(() => undefined); // a full disk: the next one looks too
  for (const name of await readdir(tempDir).catch(() => [])) {
    const path = join(tempDir, name);
    if (!name.startsWith("shell-")) continue;
    const found = await stat(path).catch(() => null); // another run removed it first
    if (found && Date.now() - found.mtimeMs > STALE_MS) await removeTree(path);
  }
}

/** A command may have left directories behind that even their owner cannot look into; those stay. */
export async function removeTree(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true, maxRetries: 3 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EACCES" && error.code !== "EPERM" && error.code !== "ENOTEMPTY") throw error;
  });
}

/** The absolute path of a program on PATH; null when there is none that we may run. */
export async function findProgram(name: string, path: string): Promise<string | null> {
  const candidates = isAbsolute(name)
    ? [name]
    : path
        .split(":")
        .filter(isAbsolute)
        .map((directory) => join(directory, name));
  for (const candidate of candidates) {
    const usable = await access(candidate, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (usable) return candidate;
  }
  return null;
}
