// What is made from the command tree: completion scripts, the manual page, docs/reference/commands.md.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { Command } from "commander";
import { type CommandFacts, commandFacts, eachCommand } from "../src/doors/cli/command-facts.ts";
import { define } from "../src/doors/cli/completion.ts";
import { commandTree } from "../src/doors/cli/program.ts";
import type { CliContext } from "../src/doors/cli-context.ts";
import { repository } from "./support/run-hermes.ts";

const tree = await commandTree({} as CliContext); // nothing is run
const facts = commandFacts(tree);
const pages: {
  readonly manPage: (facts: CommandFacts, version: string) => string;
  readonly commandReference: (facts: CommandFacts) => string;
} = await import(join(repository, "scripts", "command-pages.mjs"));

async function script(shell: string): Promise<string> {
  let out = "";
  const command = new Command("completion");
  define(command, { tree: async () => tree, io: { out: (text: string) => (out += text) } } as unknown as CliContext); // all it uses
  await command.parseAsync([shell], { from: "user" });
  return out;
}

const typed: readonly (readonly [words: readonly string[], offered: string])[] = [
  [["ins"], "insights"],
  [["sessions", "exp"], "export"],
  [["sessions", "export", "--format", ""], "jsonl md html"],
  [["logs", ""], "agent errors gateway list"],
  [["logs", "--le"], "--level"],
  [["-p", ""], "default work"],
  [["-p", "work", "completion", ""], "bash zsh fish"],
  // The value of an option is no command, whatever it is called.
  [["-m", "sessions", "comp"], "completion"],
  [["-m", ""], ""],
];

test("bash completes commands, options, their values and the profiles there are", async (t: TestContext) => {
  const home = await mkdtemp(join(tmpdir(), "hermes-completion-"));
  t.after(() => rm(home, { recursive: true, force: true }));
  await mkdir(join(home, "profiles", "work"), { recursive: true });
  await writeFile(join(home, "completion.bash"), await script("bash"));
  const lines = typed.map(([words]) => `try hermes ${words.map((word) => `'${word}'`).join(" ")}`);
  const run = `source "$HERMES_HOME/completion.bash"
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hermes; echo "\${COMPREPLY[*]}"; }
${lines.join("\n")}`;
  const { stdout } = await promisify(execFile)("bash", ["-c", run], {
    env: { PATH: process.env.PATH, HERMES_HOME: home },
  });
  assert.deepEqual(
    stdout.split("\n").slice(0, -1).map(sorted),
    typed.map(([, offered]) => sorted(offered)),
  );
});

const sorted = (line: string) => line.split(" ").sort().join(" ");

test("zsh and fish are offered every command", async () => {
  const [zsh, fish] = [await script("zsh"), await script("fish")];
  for (const { path } of eachCommand(facts).slice(1)) {
    const name = path.at(-1) ?? "";
    assert.ok(zsh.includes(`'${name}:`), `zsh: ${path.join(" ")}`);
    assert.ok(fish.includes(`-a '${name}' -d`), `fish: ${path.join(" ")}`);
  }
});

test("the manual page names every command, and no text of ours is a request to the formatter", () => {
  const page = pages.manPage(facts, "1.2.3");
  for (const { path } of eachCommand(facts).slice(1))
    assert.ok(page.includes(`hermes ${path.join(" ")}`.replaceAll("-", "\\-")), path.join(" "));
  for (const line of page.split("\n").filter((text) => text.startsWith(".")))
    assert.match(line, /^\.(?:TH|SH|SS|TP|B|br)\b/);
});

test("docs/reference/commands.md is what the commands say; node scripts/generate-command-reference.mjs writes it", async () => {
  const file = join(repository, "docs", "reference", "commands.md");
  assert.equal(await readFile(file, "utf8"), pages.commandReference(facts));
});
