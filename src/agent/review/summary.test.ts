import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultConfig } from "../../home/config/schema.ts";
import { type EndedCall, noticeMode, reviewLine, summaryParts } from "./review.ts";

const memory = (args: object, result: object = { success: true, message: "Entry added." }): EndedCall => ({
  name: "memory",
  args: { target: "memory", ...args },
  result: JSON.stringify(result),
});
const skill = (args: object, result: object): EndedCall => ({
  name: "skill_manage",
  args: { name: "release", ...args },
  result: JSON.stringify({ success: true, ...result }),
});
const add = memory({ action: "add", content: "User prefers short answers" });
const profile = memory({ target: "user", action: "add", content: "Is called Ada" });
const created = skill(
  { action: "create", content: "---\nname: release\ndescription: Release the package\n---\n" },
  { message: "Skill 'release' created." },
);
const patched = skill(
  { action: "patch", old_string: "run\nthe tests", new_string: "run all tests" },
  { message: "Skill 'release' patched." },
);
const stagedMemory = memory({ action: "add", content: "x" }, { success: true, staged: true, message: "waits" });
const stagedSkill = skill({ action: "create" }, { staged: true, gist: "'release' — Release (1 KB)", message: "waits" });
const long = "word ".repeat(60);

const cases: readonly [what: string, calls: readonly EndedCall[], on: readonly string[], verbose: readonly string[]][] =
  [
    ["nothing", [], [], []],
    ["a memory", [add], ["Memory updated"], ["Memory ➕ User prefers short answers"]],
    ["the profile", [profile], ["User profile updated"], ["User profile ➕ Is called Ada"]],
    [
      "two of a kind are told once where they read the same",
      [add, memory({ action: "add", content: "Other" })],
      ["Memory updated"],
      ["Memory ➕ User prefers short answers", "Memory ➕ Other"],
    ],
    [
      "a batch",
      [
        memory({
          operations: [
            { action: "add", content: "new" },
            { action: "replace", old_text: "old", content: "better" },
            { action: "remove", old_text: "stale" },
          ],
        }),
      ],
      ["Memory updated"],
      ["Memory ➕ new", "Memory ✏️ better", "Memory ➖ stale"],
    ],
    ["a new skill", [created], ["Skill 'release' created."], ["📝 Skill 'release' created: Release the package"]],
    [
      "a patch",
      [patched],
      ["Skill 'release' patched."],
      [`📝 Skill 'release' patched: "run the tests" → "run all tests"`],
    ],
    [
      "a support file",
      [skill({ action: "write_file", file_path: "references/a.md" }, { message: "references/a.md written." })],
      ["references/a.md written."],
      ["📝 references/a.md written."],
    ],
    [
      "what waits for approval is not called saved",
      [stagedMemory, stagedSkill],
      ["2 changes staged for approval"],
      ["staged: Memory ➕ x", "staged: 'release' — Release (1 KB)"],
    ],
    [
      "a write that was refused",
      [memory({ action: "add" }, { success: false, code: "over_limit", error: "full" })],
      [],
      [],
    ],
    [
      "an entry that was there already",
      [memory({ action: "add" }, { success: true, message: "Entry already exists (nothing added)." })],
      [],
      [],
    ],
    ["a look at a skill", [{ name: "skill_view", args: {}, result: '{"success":true,"message":"x"}' }], [], []],
    ["a result that is no JSON", [{ name: "memory", args: {}, result: "Error" }], [], []],
    [
      "long texts are cut",
      [memory({ action: "add", content: long }), memory({ action: "remove", old_text: long })],
      ["Memory updated"],
      [`Memory ➕ ${long.slice(0, 119)}…`, `Memory ➖ ${long.slice(0, 59)}…`],
    ],
  ];

for (const [what, calls, on, verbose] of cases) {
  test(`told in the end: ${what}`, () => {
    assert.deepEqual(summaryParts(calls, "on"), on);
    assert.deepEqual(summaryParts(calls, "verbose"), verbose);
    assert.deepEqual(summaryParts(calls, "off"), []);
  });
}

test("it is one line with a disk in front, or none", () => {
  assert.equal(
    reviewLine([add, created], "on"),
    "💾 Self-improvement review: Memory updated · Skill 'release' created.",
  );
  assert.equal(reviewLine([], "on"), null);
  assert.equal(reviewLine([add], "off"), null);
});

test("a platform may have its own setting; yes and no are understood", () => {
  const config = defaultConfig();
  const withPlatform = (value: unknown) => ({
    ...config,
    display: { ...config.display, platforms: { cli: { memory_notifications: value } } },
  });
  assert.equal(noticeMode(config, "cli"), "on");
  assert.equal(noticeMode(withPlatform("verbose"), "cli"), "verbose");
  assert.equal(noticeMode(withPlatform(false), "cli"), "off");
  assert.equal(noticeMode(withPlatform(true), "cli"), "on");
  assert.equal(noticeMode(withPlatform("loud"), "cli"), "on");
  assert.equal(noticeMode(withPlatform("off"), "telegram"), "on");
});
