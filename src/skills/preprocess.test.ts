import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { skillTools } from "../../test/support/skill-run.ts";
import { skillsHome, skillText } from "../../test/support/skills-home.ts";
import { decideUnattended } from "../safety/verdict.ts";
import { openSkill, skillContent } from "./open-skill.ts";
import { bashSnippets, preprocess } from "./preprocess.ts";

const decide = (command: string) =>
  decideUnattended(command, {
    home: "/home/me/.hermes",
    osHome: "/home/me",
    sudoPasswordSet: false,
    denyGlobs: ["touch *"],
  });

const shell = (timeoutSeconds = 20) => ({
  skillDir: tmpdir(),
  variables: true,
  shell: { run: bashSnippets({ PATH: "/usr/bin:/bin", HELLO: "hi" }, decide), timeoutSeconds },
});

const snippets: readonly (readonly [string, string, string])[] = [
  ["output without its last line breaks", "a !`echo one; echo` b", "a one b"],
  ["errors when there is no output", "!`echo bad >&2`", "bad"],
  ["several in a row", "!`echo 1`!`echo 2`", "12"],
  ["variables handed in", "!`echo $HELLO`", "hi"],
  ["no input", "!`cat`", ""],
  // What would be asked about elsewhere because of its form; what it does is nothing.
  [
    "nothing that somebody would be asked about",
    "!`bash --norc -c 'echo ran'`",
    "[inline-shell error: not run: shell command via -c/-lc flag: it runs a program that is written on the command line]",
  ],
  [
    "nothing the user refuses",
    "!`touch x`",
    '[inline-shell error: not run: refused by approvals.deny: it matches "touch *" in approvals.deny]',
  ],
  ["a failure without a word", "!`exit 3`", "[inline-shell error: the command ended with code 3]"],
  ["output that looks like a command is not run", "!`printf '!\\x60echo again\\x60'`", "!`echo again`"],
  ["no command over two lines", "!`echo\n1`", "!`echo\n1`"],
  ["plain code stays", "`echo 1`", "`echo 1`"],
  ["long output is cut", "!`printf 'x%.0s' $(seq 5000)`", `${"x".repeat(4000)}...[truncated]`],
];
for (const [what, text, expected] of snippets) {
  test(`inline shell: ${what}`, async () => assert.equal(await preprocess(text, shell()), expected));
}

test("a command that does not end is ended, with all its children", { timeout: 30_000 }, async () => {
  const text = await preprocess("!`sleep 60 & sleep 60`", shell(0.2));
  assert.equal(text, "[inline-shell timeout after 0.2s: sleep 60 & sleep 60]");
});

test("placeholders stay when they are unknown or switched off", async () => {
  const text = ["HERMES_SKILL_DIR", "HERMES_SESSION_ID", "HOME"].map((name) => `\${${name}}`).join(" ");
  assert.equal(await preprocess(text, { skillDir: "/s", variables: true }), `/s ${text.split(" ").slice(1).join(" ")}`);
  assert.equal(await preprocess(text, { skillDir: "/s", variables: false, sessionId: "1" }), text);
});

test("commands of a skill run only when the user switched that on, and never a stranger's", async () => {
  const home = await skillsHome({
    "skills/mine/SKILL.md": skillText("mine", "D", "", "!`echo ran`\n"),
    "skills/theirs/SKILL.md": skillText("theirs", "D", "", "!`echo ran`\n"),
    "skills/.hub/lock.json": '{"installed":{"theirs":{"trust_level":"community"}}}\n',
  });
  const opening = { platform: "cli", inlineShell: bashSnippets({ PATH: "/usr/bin:/bin" }, decide) };
  const content = async (name: string) => {
    const opened = await openSkill(name, home, opening);
    assert.equal(opened.type, "opened");
    return opened.type === "opened" ? skillContent(opened, home, opening) : "";
  };
  assert.match(await content("mine"), /!`echo ran`/);
  home.settings = { inline_shell: true };
  assert.match(await content("mine"), /^ran$/m);
  assert.match(await content("theirs"), /!`echo ran`/);
  assert.match((await skillTools(home).view({ name: "mine" })).content, /!`echo ran`/, "no shell was handed in");
});
