// The code of a plugin is pinned when it is switched on: rewritten behind the user's back it does not run.
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { define } from "../../src/doors/cli/plugins.ts";
import { CodePins } from "../../src/home/code-pins.ts";
import { openHome } from "../../src/home/open.ts";
import { runSubCommand } from "../support/sub-command.ts";
import { type Talk, talk } from "../support/talk.ts";

const code = (word: string) =>
  `export default (ctx) => ctx.registerTool({ name: "t_pin", description: "says", handler: () => "${word}" });`;
const manifest = "name: t_pinned\nversion: 1.0.0\n";
const files = { "plugins/t_pinned/plugin.yaml": manifest, "plugins/t_pinned/index.mjs": code("first") };
const config = "plugins: { enabled: [t_pinned] }\n";
const entry = ({ homeDir }: Talk) => join(homeDir, "plugins", "t_pinned", "index.mjs");

async function answerOf(conversation: Talk): Promise<string> {
  conversation.server.script({ toolCalls: [{ name: "t_pin", arguments: {} }] }, { text: "ok" });
  await conversation.say("go");
  return conversation.server.last.raw;
}

async function enable({ homeDir, osHome, project }: Talk, name = "t_pinned") {
  const home = await openHome({ argv: [], env: { HERMES_HOME: homeDir, HOME: osHome }, osHome, cwd: project });
  return runSubCommand(define, ["enable", name], { home, cwd: project });
}

test("a plugin that was on before there were pins is pinned at its first load, in a file for the user alone", async (t) => {
  const conversation = await talk(t, { config, home: files });
  assert.match(await answerOf(conversation), /first/);
  const pins = join(conversation.homeDir, "plugin_pins.json");
  assert.match(await readFile(pins, "utf8"), /t_pinned": "[0-9a-f]{64}"/);
  assert.equal((await stat(pins)).mode & 0o777, 0o600);
});

test("rewritten it does not run until it is switched on again, and one line says so", async (t) => {
  const conversation = await talk(t, { config, home: files });
  assert.match(await answerOf(conversation), /first/);
  await writeFile(entry(conversation), code("forged"));
  await conversation.begin();
  const said = conversation.conversation.notes.join("\n");
  assert.match(
    said,
    /"t_pinned" could not be loaded: its files changed since you enabled it.*hermes plugins enable t_pinned/,
  );
  assert.doesNotMatch(await answerOf(conversation), /forged/);
  const { code: exit, out } = await enable(conversation);
  assert.equal(exit, 0, out);
  await conversation.begin();
  assert.match(await answerOf(conversation), /forged/);
});

test("the same size and times do not hide a change from it", async (t) => {
  const conversation = await talk(t, { config, home: files });
  assert.match(await answerOf(conversation), /first/);
  const before = await stat(entry(conversation));
  await writeFile(entry(conversation), code("fORGE"));
  await utimes(entry(conversation), before.atime, before.mtime);
  const home = join(conversation.homeDir, "plugins", "t_pinned");
  assert.equal(await new CodePins({ at: (...parts) => join(conversation.homeDir, ...parts) }).isChanged(home), true);
});

test("every file counts: packages, hidden ones, new ones, gone ones, and what a link leads to", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "hermes-pins-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const pins = new CodePins({ at: (...parts) => join(dir, ...parts) });
  const folder = await mkdtemp(join(dir, "plugin-"));
  await writeFile(join(folder, "a.mjs"), "1");
  await writeFile(join(dir, "outside.mjs"), "1");
  await symlink(join(dir, "outside.mjs"), join(folder, "link.mjs"));
  const changes: readonly (() => Promise<void>)[] = [
    () => writeFile(join(folder, ".hidden"), "x"),
    () => writeFile(join(folder, "a.mjs"), "2"),
    () => writeFile(join(dir, "outside.mjs"), "2"),
    () => rm(join(folder, "a.mjs")),
  ];
  for (const change of changes) {
    await pins.pin(folder);
    await pins.verify(folder, "x");
    await change();
    assert.equal(await pins.isChanged(folder), true);
    await assert.rejects(pins.verify(folder, "hermes plugins enable x"), /hermes plugins enable x$/);
  }
  await writeFile(join(dir, "plugin_pins.json"), "{");
  await assert.rejects(pins.verify(folder, "x"), /damaged/);
});
