// How large the model's window is. First hit wins; the order goes from what the user said to what can only be guessed.

import { mkdir, readFile } from "node:fs/promises";
import type { OpenHome } from "../../home/open.ts";
import { codeOf } from "../../kit/errors.ts";
import { writeFileAtomic } from "../../kit/files.ts";
import { mapping } from "../providers/settings.ts";
import { modelFacts, modelFactsAnywhere } from "./facts.ts";

/** What servers said about windows, kept by endpoint and model. */
export interface LearnedLimits {
  /** Named in a refusal, or by a server elsewhere that was asked once: it holds until another one is set. */
  get(baseUrl: string, model: string): Promise<number | null>;
  set(baseUrl: string, model: string, tokens: number): Promise<void>;
  /** What a server that is asked at every start said last: for whoever does not ask it. */
  lastProbed(baseUrl: string, model: string): Promise<number | null>;
  /** Never rejects: in a home that cannot be written to, nothing is remembered. */
  noteProbed(baseUrl: string, model: string, tokens: number): Promise<void>;
}

interface WindowQuestion {
  readonly provider: string;
  readonly model: string;
  readonly baseUrl: string;
  /** `model.context_length` of the configuration. */
  readonly configured?: number | undefined;
  /** `providers.<name>.models.<model>.context_length`. */
  readonly customModel?: number | undefined;
  readonly learned?: LearnedLimits | undefined;
  /** Asks the endpoint itself (`/models`, `/api/show`); may answer null, must not throw. */
  readonly probe?: (() => Promise<number | null>) | undefined;
  /** Asks a server elsewhere, where there would only be a guess. What it says is remembered, so that it is asked once. */
  readonly lastResort?: (() => Promise<number | null>) | undefined;
}

type WindowSource =
  | "config"
  | "custom_provider"
  | "learned"
  | "endpoint"
  | "provider"
  | "catalogue"
  | "family"
  | "default";

interface Window {
  readonly tokens: number;
  readonly source: WindowSource;
}

export async function contextLengthOf(question: WindowQuestion): Promise<Window> {
  const { provider, model, baseUrl } = question;
  if (question.configured) return { tokens: question.configured, source: "config" };
  if (question.customModel) return { tokens: question.customModel, source: "custom_provider" };
  // LM Studio reloads a model with another window at any time; what was learned yesterday says nothing.
  const learned = provider === "lmstudio" ? null : await question.learned?.get(baseUrl, model);
  if (learned) return { tokens: learned, source: "learned" };
  const probed = await question.probe?.();
  if (probed) await question.learned?.noteProbed(baseUrl, model, probed);
  const said = probed ?? (await question.learned?.lastProbed(baseUrl, model));
  if (said) return { tokens: said, source: "endpoint" };
  const special = windowOfProvider(provider, model);
  if (special) return { tokens: special, source: "provider" };
  const fixed = fixedWindow(model);
  if (fixed) return { tokens: fixed, source: "family" };
  const published = (await modelFacts(provider, model, baseUrl)) ?? (await modelFactsAnywhere(model));
  if (published?.contextLength) return { tokens: published.contextLength, source: "catalogue" };
  const family = familyWindow(model);
  if (family) return { tokens: family, source: "family" };
  const asked = await question.lastResort?.();
  if (!asked) return { tokens: UNKNOWN_WINDOW, source: "default" };
  // A home that cannot be written to only means that it is asked again next time.
  await question.learned?.set(baseUrl, model, asked).catch(() => undefined);
  return { tokens: asked, source: "endpoint" };
}

function windowOfProvider(provider: string, model: string): number | null {
  if (provider === "demo") return 128_000;
  if (provider !== "openai-codex") return null;
  return model.toLowerCase().includes("spark") ? 128_000 : 272_000;
}

// Context windows by family, for models nothing is published about. The longest key contained in the name wins.

/** Names whose window is fixed, whatever a catalogue says. */
const FIXED: Readonly<Record<string, number>> = {
  "gpt-4": 8192,
  "gpt-4-turbo": 128_000,
  "claude-3-opus": 200_000,
  "deepseek-chat": 65_536,
  "gemini-2": 1_048_576,
};

const FAMILIES: Readonly<Record<string, number>> = {
  ...FIXED,
  claude: 200_000,
  "claude-opus-4-6": 1_000_000,
  "claude-sonnet-4-6": 1_000_000,
  "claude-opus-4-7": 1_000_000,
  "claude-opus-4-8": 1_000_000,
  "claude-sonnet-5": 1_000_000,
  "claude-opus-5": 1_000_000,
  "claude-fable": 1_000_000,
  "gpt-5": 400_000,
  "gpt-5.1-chat": 128_000,
  "gpt-5.3-codex-spark": 128_000,
  "gpt-5.4": 1_050_000,
  "gpt-5.5": 1_050_000,
  "gpt-5.6": 1_050_000,
  "gpt-5.4-mini": 400_000,
  "gpt-5.4-nano": 400_000,
  "gpt-4o": 128_000,
  "gpt-4.1": 1_047_576,
  gemini: 1_048_576,
  "gemma-4": 256_000,
  "gemma-3": 131_072,
  gemma: 8192,
  "deepseek-v4": 1_000_000,
  deepseek: 128_000,
  llama: 131_072,
  qwen: 131_072,
  "qwen3-coder": 262_144,
  "qwen3-coder-plus": 1_000_000,
  "qwen3.6-plus": 1_048_576,
  "qwen3.7-plus": 1_048_576,
  kimi: 262_144,
  "kimi-k3": 1_048_576,
  glm: 202_752,
  "glm-5.2": 1_048_576,
  minimax: 204_800,
  "minimax-m3": 1_000_000,
  grok: 131_072,
  "grok-4": 256_000,
  "grok-4.5": 500_000,
  "grok-4.3": 1_000_000,
  "grok-4-fast": 2_000_000,
  "grok-4.20": 2_000_000,
  "grok-code-fast": 256_000,
  "mimo-v2.5": 1_048_576,
  nemotron: 131_072,
  hy3: 262_144,
};

const UNKNOWN_WINDOW = 256_000;

const byLength = Object.entries(FAMILIES).sort(([a], [b]) => b.length - a.length);

function fixedWindow(model: string): number | null {
  return FIXED[bareName(model)] ?? null;
}

/** The window of the model's family; null when no family matches. */
function familyWindow(model: string): number | null {
  const name = bareName(model);
  const hyphened = name.replaceAll(".", "-");
  // Claude versions are written with dots and with hyphens; other families mean different models by them.
  const hit = byLength.find(([key]) => name.includes(key) || (key.startsWith("claude") && hyphened.includes(key)));
  return hit?.[1] ?? null;
}

function bareName(model: string): string {
  const name = model.trim().toLowerCase();
  return name.slice(name.lastIndexOf("/") + 1);
}

// `context_length_cache.yaml`: windows that servers named when they refused a request. The file itself comes in as a port.

interface TextFile {
  /** Null when it does not exist. */
  read(): Promise<string | null>;
  write(text: string): Promise<void>;
}

/** A file that cannot be understood counts as empty and is replaced by the next thing learned. */
export function learnedLimits(file: TextFile): Pick<LearnedLimits, "get" | "set"> {
  return {
    async get(baseUrl, model) {
      return (await readAll(file)).get(keyOf(baseUrl, model)) ?? null;
    },
    async set(baseUrl, model, tokens) {
      const { stringify } = await import("yaml");
      const limits = await readAll(file);
      limits.set(keyOf(baseUrl, model), tokens);
      await file.write(stringify({ context_lengths: Object.fromEntries(limits) }));
    },
  };
}

async function readAll(file: TextFile): Promise<Map<string, number>> {
  const source = await file.read();
  if (!source) return new Map();
  const { parseDocument } = await import("yaml");
  const document = parseDocument(source);
  const root: unknown = document.errors.length > 0 ? null : document.toJS();
  const table = typeof root === "object" && root !== null && "context_lengths" in root ? root.context_lengths : null;
  const entries = typeof table === "object" && table !== null ? Object.entries(table) : [];
  return new Map(entries.filter((entry): entry is [string, number] => Number.isInteger(entry[1]) && entry[1] >= 1024));
}

function keyOf(baseUrl: string, model: string): string {
  return `${model}@${baseUrl.replace(/(?<!\/)\/+$/, "")}`;
}

// What servers said about the windows of their models, remembered in the home: what they named when they refused a request, for every
// later conversation; what they answered when they were last asked, for whoever does not ask.

type Home = Pick<OpenHome, "paths" | "log">;

export function learnedWindows(home: Home): LearnedLimits {
  const path = home.paths.at("context_length_cache.yaml");
  const refused = learnedLimits({ read: () => readIfThere(path), write: (text) => writeFileAtomic(path, text) });
  return {
    ...refused,
    async lastProbed(baseUrl, model) {
      const tokens = (await readProbed(home))[probedKey(baseUrl, model)];
      return typeof tokens === "number" && tokens > 0 ? tokens : null;
    },
    async noteProbed(baseUrl, model, tokens) {
      const known = await readProbed(home);
      const key = probedKey(baseUrl, model);
      if (known[key] === tokens) return;
      try {
        await mkdir(home.paths.cacheDir, { recursive: true, mode: 0o700 });
        await writeFileAtomic(probedFile(home), `${JSON.stringify({ ...known, [key]: tokens })}\n`);
      } catch (error) {
        home.log.debug("the window a server named could not be remembered", error);
      }
    },
  };
}

/** A file that cannot be understood counts as empty and is replaced. */
async function readProbed(home: Home): Promise<Readonly<Record<string, unknown>>> {
  try {
    return mapping(JSON.parse((await readIfThere(probedFile(home))) ?? "{}"));
  } catch (error) {
    home.log.debug("the remembered windows cannot be read", error);
    return {};
  }
}

async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
}

const probedFile = ({ paths }: Home) => paths.at("cache", "probed_windows.json");
const probedKey = (baseUrl: string, model: string) => `${model}@${baseUrl.replace(/(?<!\/)\/+$/, "")}`;
