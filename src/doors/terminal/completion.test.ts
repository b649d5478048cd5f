import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { TUI } from "@earendil-works/pi-tui";
import { type CommandDefinition, typedWords } from "../../commands/context.ts";
import { makeTheme } from "../terminal-text.ts";
import { Completion, ProjectFiles } from "./completion.ts";
import { InputHistory, PromptEditor } from "./input-line.ts";

const command = (name: string, extra: Partial<CommandDefinition> = {}): CommandDefinition => ({
  name,
  description: `does ${name}`,
  category: "Session",
  run: async () => undefined,
  ...extra,
});

let folder: string;
let completion: Completion;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "hermes-completion-"));
  await mkdir(join(folder, "src", "deep"), { recursive: true });
  await writeFile(join(folder, "src", "main.ts"), "x");
  await writeFile(join(folder, "src", "数据.txt"), "x".repeat(2048));
  await writeFile(join(folder, "secret.log"), "x");
  await writeFile(join(folder, "src", "main\u001b[8m.ts"), "x"); // drawn, it would hide the words behind it
  await writeFile(join(folder, ".gitignore"), "*.log\n");
  const files = new ProjectFiles(folder, () => 0);
  completion = new Completion({
    commands: () => [
      command("model"),
      command("new", { aliases: ["reset", "n"] }),
      command("resume"),
      command("tools", { argsHint: "[list|enable|disable]" }),
      command("queue"),
      command("busy", { argsHint: "[queue|steer|interrupt]" }),
    ],
    values: async ({ name }, typed) => {
      if (name === "resume")
        return { replaces: typed, values: ["Alpha talk", "Beta talk"].map((value) => ({ value })) };
      if (name !== "tools" || !typed.includes(" ")) return null;
      const values = ["web", "terminal"].map((value) => ({ value, about: `about ${value}` }));
      return { replaces: typedWords(typed).last, values };
    },
    skills: async () => [
      { name: "release", description: "Release it", kind: "skill" },
      { name: "release-notes", description: "Write notes", kind: "skill" },
      { name: "morning", description: "a, b", kind: "bundle" },
    ],
    files: () => files.list(),
    cwd: folder,
  });
});
after(() => rm(folder, { recursive: true }));

async function offered(text: string, force = false): Promise<string[]> {
  const found = await completion.getSuggestions([text], 0, text.length, { force });
  return found?.items.map((item) => item.value) ?? [];
}

const cases: [string, string[]][] = [
  ["/m", ["/model", "/morning"]],
  ["/re", ["/reset", "/resume", "/release", "/release-notes"]],
  ["/release_n", ["/release-notes"]],
  ["/release /re", ["/release-notes"]],
  ["/release /release-notes /m", ["/morning"]],
  ["/release tag /re", []],
  ["/n", ["/n"]],
  ["/busy ", ["queue", "steer", "interrupt"]],
  ["/busy s", ["steer"]],
  ["/busy steer", []],
  ["/resume be", ["Beta talk"]],
  ["/resume talk", ["Alpha talk", "Beta talk"]],
  ["/tools ", ["list", "enable", "disable"]],
  ["/tools disable ", ["web", "terminal"]],
  ["/tools disable web,ter", ["terminal"]],
  ["/tools disable nothing", []],
  ["/queue look at @main", ["@file:src/main.ts"]],
  ["/zzz", []],
  ["hello", []],
  ["look at @main", ["@file:src/main.ts"]],
  ["look at @fi", ["@file:"]],
  ["look at @file:src/m", ["@file:src/main.ts"]],
  ["look at @file:数据", ["@file:src/数据.txt"]],
  ["look at @file:src/main.ts", []],
  ["look at @diff", []],
  ["look at @folder:s", ["@folder:src/"]],
  ["look at @stag", ["@staged"]],
  ["look at @secret", []],
  ["mail a@main", []],
  ["open ./s", ["./src/", "./secret.log"]],
  ["open src/", ["src/deep/", "src/main.ts", "src/数据.txt"]],
];
for (const [text, expected] of cases)
  test(`${JSON.stringify(text)} offers ${JSON.stringify(expected)}`, async () =>
    assert.deepEqual(await offered(text), expected));

test("Tab completes any word as a path, but not where a command takes values of its own", async () => {
  assert.deepEqual(await offered("open sr", true), ["src/"]);
  assert.deepEqual(await offered("/queue sr", true), ["src/"]);
  assert.deepEqual(await offered("/tools disable s", true), []);
  assert.deepEqual(await offered("/busy s", true), ["steer"]);
});

test("what is taken stands where it was typed, followed by a blank unless it is a folder", async () => {
  const apply = (text: string, value: string, prefix: string) =>
    completion.applyCompletion([text], 0, text.length, { value, label: value }, prefix);
  assert.deepEqual(apply("/m", "/model", "/m"), { lines: ["/model "], cursorLine: 0, cursorCol: 7 });
  assert.deepEqual(apply("see ./s", "./src/", "./s"), { lines: ["see ./src/"], cursorLine: 0, cursorCol: 10 });
});

test("a menu that is behind the typing gives nothing to Enter and Tab", async () => {
  const tui = { terminal: { rows: 24 }, requestRender: () => undefined } as unknown as TUI; // all an editor asks of it
  const editor = new PromptEditor(tui, new InputHistory(), { theme: makeTheme(false), prompt: () => "❯" });
  editor.setAutocompleteProvider(completion);
  const sent: string[] = [];
  editor.onSubmit = (text) => sent.push(text);
  const keys = (text: string) => [...text].forEach((key) => void editor.handleInput(key));
  const until = async (reached: () => boolean) => {
    for (let turn = 0; turn < 100 && !reached(); turn++) await setImmediate();
    assert.ok(reached(), editor.getText());
  };
  keys("/mo");
  await until(() => editor.isShowingAutocomplete());
  keys("\u0015/busy\r");
  assert.deepEqual(sent, ["/busy"]);
  keys("/bu");
  await until(() => editor.isShowingAutocomplete());
  keys("sy q\t"); // looked up anew
  await until(() => editor.getText() === "/busy queue ");
});
