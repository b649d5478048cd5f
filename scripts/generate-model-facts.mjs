// node scripts/generate-model-facts.mjs PATH/model-facts.json
// Writes src/llm/catalogue/model-facts.generated.json: one line per model, only the providers of our table, only what we ask for.
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { writeFactLine } from "../src/llm/catalogue/facts.ts";

const [source] = process.argv.slice(2);
if (!source) {
  process.stderr.write("usage: node scripts/generate-model-facts.mjs PATH/model-facts.json\n");
  process.exit(2);
}

// Our provider id <- the published lists it is made of; a later list fills the gaps of an earlier one.
// `prices: false`: the list is a plan's, while our endpoint bills by token.
const lists = {
  openrouter: [{ from: "openrouter" }],
  anthropic: [{ from: "anthropic" }],
  "openai-api": [{ from: "openai" }],
  "openai-codex": [{ from: "openai-codex" }],
  gemini: [{ from: "google" }],
  xai: [{ from: "xai" }],
  deepseek: [{ from: "deepseek" }],
  zai: [{ from: "zai" }, { from: "zai-coding-cn" }],
  "kimi-coding": [{ from: "moonshotai" }, { from: "kimi-coding" }],
  "kimi-coding-cn": [{ from: "moonshotai-cn" }],
  minimax: [{ from: "minimax" }],
  "minimax-cn": [{ from: "minimax-cn" }],
  alibaba: [{ from: "qwen-token-plan", prices: false }],
  copilot: [{ from: "github-copilot" }],
  nvidia: [{ from: "nvidia" }],
  huggingface: [{ from: "huggingface" }],
  "opencode-zen": [{ from: "opencode" }],
  "opencode-go": [{ from: "opencode-go" }],
  xiaomi: [{ from: "xiaomi" }],
  "azure-foundry": [{ from: "azure" }],
};

// Image makers and protocols without an adapter answer no chat.
const unusable = new Set(["openrouter-images", "typesafe-system-one", "cloudflare-workers-ai-system-one"]);

const published = JSON.parse(readFileSync(source, "utf8"));
const facts = {};
for (const [provider, parts] of Object.entries(lists)) {
  const rows = new Map();
  for (const { from, prices = true } of parts) {
    for (const [model, entry] of Object.entries(published[from] ?? {})) {
      if (unusable.has(entry.api) || model.endsWith(":batch") || rows.has(model)) continue;
      rows.set(model, row(model, entry, prices));
    }
  }
  facts[provider] = [...rows.values()].sort();
}

const target = join(dirname(dirname(fileURLToPath(import.meta.url))), "src/llm/catalogue/model-facts.generated.json");
writeFileSync(target, `${JSON.stringify(facts, null, 1)}\n`);
process.stdout.write(
  `${Object.values(facts).flat().length} models of ${Object.keys(facts).length} providers -> ${target}\n`,
);

function row(id, { context, output, input = [], reasoning, cost }, withPrices) {
  if (id.includes("|")) throw new Error(`model id with a separator: ${id}`);
  const known = withPrices && cost && typeof cost.input === "number" && typeof cost.output === "number";
  return writeFactLine({
    id,
    contextLength: context ?? null,
    maxOutput: output ?? null,
    images: input.includes("image"),
    reasoning: Boolean(reasoning),
    price: known ? priceOf(cost) : null,
    tiers: known ? (cost.tiers ?? []).map((tier) => ({ above: tier.inputTokensAbove, ...priceOf(tier) })) : [],
  });
}

function priceOf({ input, output, cacheRead = null, cacheWrite = null }) {
  return { input, output, cacheRead, cacheWrite };
}
