// A context engine of the user's own, through the real doors: who is told what, and when.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { commandRig } from "./support/command-rig.ts";
import { runHermes } from "./support/run-hermes.ts";
import { tempHome } from "./support/temp-home.ts";

const DIARY = `import { appendFileSync } from "node:fs";
const note = (line) => appendFileSync(new URL("../../../diary.txt", import.meta.url), line + "\\n");
export default ({ model }) => ({
  name: "diary", thresholdTokens: 1e9, contextLength: 1, compressionCount: 0, protectFirstN: 0, protectLastN: 0,
  lastPromptTokens: 0, lastCompletionTokens: 0, lastTotalTokens: 0,
  updateFromResponse: () => {}, shouldCompress: () => false, compress: async (messages) => messages,
  onSessionStart: (id) => note("start " + id), onSessionEnd: (id, messages) => note("end " + id + " " + messages.length), onSessionReset: () => note("reset"),
  getStatus: () => ({ model, pages: 1234, inner: {} }),
});`;
const HOME = {
  "config.yaml": "context: { engine: diary }\n",
  "plugins/context_engine/diary/index.mjs": DIARY,
};

test("an engine is told of the beginning, the end and a fresh start, and /usage shows what it says", async (t) => {
  const rig = await commandRig(t, HOME);
  const first = rig.ctx.conversation.agent.sessionId;
  await rig.chat("hello");
  await rig.type("/usage");
  assert.match(rig.text(), /^Engine: {9}diary, model \S+, pages 1,234$/m);
  await rig.type("/compress --preview");
  assert.match(rig.text(), /the context engine "diary" shows no previews/);
  rig.answers.push("once");
  await rig.type("/new");
  const second = rig.ctx.conversation.agent.sessionId;
  assert.notEqual(second, first);
  const diary = await readFile(rig.ctx.home.paths.at("diary.txt"), "utf8");
  assert.deepEqual(diary.trimEnd().split("\n"), [`start ${first}`, `start ${second}`, `end ${first} 2`, "reset"]);
});

test("a name nobody knows is said in one line at the start, and the default engine serves", async (t) => {
  const rig = await commandRig(t, { "config.yaml": "context: { engine: nowhere }\n" });
  const lines = rig.ctx.conversation.notes.filter((note) => /engine/.test(note));
  assert.deepEqual(lines, [
    'There is no context engine "nowhere"; using the default one. It is set by context.engine in config.yaml.',
  ]);
  await using home = await tempHome({ "config.yaml": "context: { engine: nowhere }\n" });
  const { stdout, stderr, code } = await runHermes(["chat", "-q", "hello"], { home });
  assert.equal(code, 0);
  assert.notEqual(stdout.trim(), "");
  assert.equal(stderr.split("There is no context engine").length, 2, "once");
});

test("an engine that is installed but not named stays out", async (t) => {
  const rig = await commandRig(t, { "plugins/context_engine/diary/index.mjs": DIARY });
  await rig.chat("hello");
  await assert.rejects(readFile(rig.ctx.home.paths.at("diary.txt")), { code: "ENOENT" });
});
