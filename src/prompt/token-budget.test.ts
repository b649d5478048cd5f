// What a conversation pays before its first word, block by block. The budget file changes only on purpose.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { DEFAULT_TOOLS, promptInputs, someSkills } from "../../test/support/prompt-inputs.ts";
import { countCodePoints } from "../kit/code-points.ts";
import { buildSystemPromptParts } from "./build.ts";
import type { PromptInputs } from "./contract.ts";

const budget = JSON.parse(
  await readFile(new URL("../../test/fixtures/prompt-budget.json", import.meta.url), "utf8"),
) as { session: Record<string, number>; blocks: Record<string, number> };

const session: PromptInputs = {
  ...promptInputs,
  model: "claude-sonnet-5",
  toolNames: DEFAULT_TOOLS,
  hostName: "Linux (6.8.0-45-generic)",
  skills: someSkills(10),
};
const coding = { active: true, focus: false, workspace: null, instructions: "" };

test("a default session with ten skills stays within its tokens", (t) => {
  const build = buildSystemPromptParts(session);
  const sizes = build.blocks.map(({ id, text }) => [id, countTokens(text)] as const);
  for (const [id, tokens] of sizes)
    t.diagnostic(`${id.padEnd(18)} ${String(tokens).padStart(5)} of ${budget.blocks[id]}`);
  const total = countTokens(build.full);
  t.diagnostic(`${"whole prompt".padEnd(18)} ${String(total).padStart(5)} of ${budget.session.total}`);
  assert.ok(total <= (budget.session.total ?? 0), `${total} tokens`);
});

for (const model of ["claude-sonnet-5", "gpt-5.5", "gemini-3-pro"]) {
  test(`no block of a coding session with ${model} is over its budget`, () => {
    for (const { id, text } of buildSystemPromptParts({ ...session, model, coding }).blocks) {
      assert.ok(countTokens(text) <= (budget.blocks[id] ?? 0), `${id}: ${countTokens(text)} of ${budget.blocks[id]}`);
    }
  });
}

for (const [model, key] of [
  ["claude-sonnet-5", "stable_chars_claude_cli"],
  ["gpt-5.5", "stable_chars_gpt_cli"],
] as const) {
  test(`the stable layer of ${model} without its skills index is short`, () => {
    const { stable } = buildSystemPromptParts({ ...session, model, skills: [] });
    assert.ok(countCodePoints(stable) <= (budget.session[key] ?? 0), `${countCodePoints(stable)} characters`);
  });
}
