// Keys in what a user types or pastes. Only what is a key beyond doubt: a shape of a vendor, a private key, a name of a key with a value that
// no word looks like. Loose words stay, whatever they are.
import type { PastedKey, PastedText } from "../home/open.ts";
import { type Marks, redactKnown, screenMarks } from "./redact-known.ts";
import { redactNamed } from "./redact-named.ts";
import {
  redactPrivateKeys,
  redactSeeds,
  redactTelegramTokens,
  redactTokens,
  redactWebTokens,
} from "./redact-shapes.ts";

/** Where keys of this shape are looked for; the longest beginning counts. */
const NAMES: Readonly<Record<string, string>> = {
  "sk-ant-": "ANTHROPIC_API_KEY",
  "sk-or-": "OPENROUTER_API_KEY",
  "sk-proj-": "OPENAI_API_KEY",
  "sk-": "OPENAI_API_KEY",
  ghp_: "GITHUB_TOKEN",
  gho_: "GITHUB_TOKEN",
  ghu_: "GITHUB_TOKEN",
  ghs_: "GITHUB_TOKEN",
  github_pat_: "GITHUB_TOKEN",
  "glpat-": "GITLAB_TOKEN",
  gsk_: "GROQ_API_KEY",
  "xai-": "XAI_API_KEY",
  AIza: "GOOGLE_API_KEY",
  hf_: "HF_TOKEN",
  "tvly-": "TAVILY_API_KEY",
  "fc-": "FIRECRAWL_API_KEY",
  "pplx-": "PERPLEXITY_API_KEY",
  "nvapi-": "NVIDIA_API_KEY",
  fw_: "FIREWORKS_API_KEY",
  exa_: "EXA_API_KEY",
  fal_: "FAL_KEY",
  bb_live_: "BROWSERBASE_API_KEY",
  "xoxb-": "SLACK_BOT_TOKEN",
  "xapp-": "SLACK_APP_TOKEN",
  npm_: "NPM_TOKEN",
  ntn_: "NOTION_API_KEY",
  lin_api_: "LINEAR_API_KEY",
  figd_: "FIGMA_TOKEN",
  r8_: "REPLICATE_API_TOKEN",
  dop_v1_: "DIGITALOCEAN_TOKEN",
  sk_live_: "STRIPE_API_KEY",
  "SG.": "SENDGRID_API_KEY",
};

/** The text without them, and what they were. Linear, and the same when done again. */
export function takePastedKeys(text: string, known: readonly string[]): PastedText {
  const keys: PastedKey[] = [];
  const take = (value: string, name: string | null, shown: string) => {
    if (!keys.some((key) => key.value === value)) keys.push({ value, name, shown });
    return shown;
  };
  const marks: Marks = {
    ...screenMarks,
    token: (value, prefix) => take(value, nameFor(value), screenMarks.token(value, prefix)),
    privateKey: (block) => take(block, null, screenMarks.privateKey(block)),
  };
  // What this home knows already needs no home.
  let result = redactKnown(text, known, {
    ...screenMarks,
    token: (value) => take(value, null, screenMarks.token(value, "")),
  });
  result = redactPrivateKeys(result, marks);
  result = redactNamed(result, {
    marks,
    strict: false,
    mask: (name, value) => take(value, variableName(name) ?? nameFor(value), screenMarks.token(value, "")),
  });
  result = redactTokens(result, marks);
  result = redactWebTokens(result, marks);
  result = redactSeeds(result, marks);
  result = redactTelegramTokens(result, marks, (value) => take(value, "TELEGRAM_BOT_TOKEN", marks.hidden));
  return { text: result, keys };
}

function nameFor(value: string): string | null {
  if (/^[MNO][\w-]{22,28}\.[\w-]{6}\./.test(value)) return "DISCORD_BOT_TOKEN";
  const beginnings = Object.keys(NAMES).filter((beginning) => value.startsWith(beginning));
  const longest = beginnings.sort((a, b) => b.length - a.length)[0];
  return longest === undefined ? null : (NAMES[longest] ?? null);
}

/** `db_password` is kept as DB_PASSWORD; a bare `token` or `password` says nothing about whose it is. */
function variableName(name: string): string | null {
  const upper = name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replace(/[.-]/g, "_")
    .toUpperCase();
  return /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$/.test(upper) ? upper : null;
}
