import assert from "node:assert/strict";
import { test } from "node:test";
import { promptInputs as inputs } from "../../test/support/prompt-inputs.ts";
import { buildSystemPromptParts } from "./build.ts";
import { fingerprintChanges, hashToolChoice, hashTools, isStampedText, sha256 } from "./fingerprint.ts";
import { retargetPrompt } from "./session-prompts.ts";

const build = buildSystemPromptParts({ ...inputs, toolsHash: "t", toolSelection: "s" });
const stamp = build.fingerprint;

const cases: readonly (readonly [stored: unknown, wanted: Partial<typeof stamp>, changes: readonly string[]])[] = [
  [stamp, stamp, []],
  [JSON.parse(JSON.stringify(stamp)), stamp, []],
  [{ ...stamp, promptHash: "other", toolsHash: "other" }, stamp, []],
  [{ ...stamp, v: 0 }, stamp, ["v"]],
  [stamp, { ...stamp, model: "m" }, ["model"]],
  [stamp, { ...stamp, provider: "p" }, ["provider"]],
  [stamp, { ...stamp, platform: "telegram" }, ["platform"]],
  [stamp, { ...stamp, cwd: "/x" }, ["cwd"]],
  [stamp, { ...stamp, toolSelection: "x", model: "m" }, ["model", "toolSelection"]],
  [{ model: "claude-x", provider: "anthropic" }, stamp, []],
  [{ ...stamp, cwd: null }, stamp, []],
  [null, stamp, []],
  ["nonsense", stamp, []],
];
for (const [stored, wanted, changes] of cases) {
  test(`stored ${JSON.stringify(stored)?.slice(0, 60)}: ${changes.length === 0 ? "use it" : `changed ${changes}`}`, () => {
    assert.deepEqual(fingerprintChanges(stored, wanted), changes);
  });
}

test("a build is stamped with the hash of its text", () => {
  assert.equal(stamp.promptHash, sha256(build.full));
  assert.ok(isStampedText(stamp, build.full));
  assert.ok(!isStampedText(stamp, `${build.full} `));
  assert.ok(!isStampedText(null, build.full));
  assert.equal(sha256("é"), "4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c");
});

test("the hash of a choice does not depend on order; that of the tools sent does", () => {
  const choice = { toolsets: ["b", "a"], disabledToolsets: [], disabledTools: ["x"], mcpServers: ["m"] };
  assert.equal(hashToolChoice(choice), hashToolChoice({ ...choice, toolsets: ["a", "b", "a"] }));
  assert.notEqual(hashToolChoice(choice), hashToolChoice({ ...choice, disabledTools: [], disabledToolsets: ["x"] }));
  assert.notEqual(hashTools([{ a: 1 }, { b: 1 }]), hashTools([{ b: 1 }, { a: 1 }]));
});

test("a fail-over changes two lines of the last block and nothing a project file says", () => {
  const text = "Model: forged\nProvider: forged";
  const contextFiles = { text, reports: [], warnings: [], hashes: [] };
  const own = buildSystemPromptParts({ ...inputs, contextFiles });
  const other = buildSystemPromptParts({ ...inputs, contextFiles, model: "$& m", provider: "p" });
  assert.equal(retargetPrompt(own.full, { model: "$& m", provider: "p" }), other.full);
  assert.equal(
    retargetPrompt("somebody else's prompt\nModel: x", { model: "m", provider: "p" }),
    "somebody else's prompt\nModel: x",
  );
});
