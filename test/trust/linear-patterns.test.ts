// Every regular expression of the source is fed the texts that cost it most. The work must grow as the text does, not as its square.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** Expressions that never see a long text, and why. A whole file where it says so for all of them. */
const SHORT_TEXTS: Readonly<Record<string, string>> = {
  "src/llm/demo.ts": "the embedded model looks at 2,000 characters of a question",
  "src/commands/registry.ts /\\[?([a-z][a-z-]*(?:\\|[a-z][a-z-]*)+)\\]?/": "hints of our own commands",
  "src/memory/entries.ts /\\B(?=(?:\\d{3})+$)/g": "the digits of a number",
  "src/safety/threats/paraphrases.ts /\\(\\?:[^)]*\\)\\??|\\[[^\\]]*\\]|.\\?/g":
    "texts of ours, when the module is loaded",
  "src/safety/threats/languages.ts /\\([^)]*\\)/g": "texts of ours, when the module is loaded",
  "src/prompt/files/soul.ts /<!--[\\s\\S]*?-->/g": "a SOUL.md of at most 10,000 characters",
};

/** Where expressions are built while the program runs; what is put into them was looked at. */
const BUILT: Readonly<Record<string, string>> = {
  "src/checkpoints/prune.ts": "a name of ours, on a report of git",
  "src/cron/scan.ts": "texts of ours, with bounded pieces between words, built when the module is loaded",
  "src/cron/words.ts": "texts of ours, from the beginning of a schedule to its end",
  "src/doors/cli/worktree.ts": "a line of the user's own .gitignore or .worktreeinclude",
  "src/doors/gateway/groups.ts": "the owner's own mention_patterns, on 2,000 characters of a message",
  "src/doors/terminal-text.ts": "a description of sequences of ours",
  "src/doors/terminal/code-colours.ts": "marks of languages, ours, between parts that cannot overlap",
  "src/home/config/store.ts": "a key of the settings",
  "src/plugins/shell-hooks/run.ts": "the user's own matcher, on the name of a tool",
  "src/prompt/coding.ts": "a name of ours at the beginning of a line",
  "src/safety/danger/guarded-places.ts": "texts of ours, built when the module is loaded and measured here",
  "src/safety/threats/matchers.ts": "texts of ours, built with their first use and measured here",
  "src/safety/threats/scan.ts": "one class of letters",
  "src/safety/verdict.ts": "the letters of a path",
  "src/sessions/search/snippet.ts": "the letters of the words that were searched for",
  "src/skills/scan/everyday.ts": "texts of ours, built when the module is loaded and measured here",
  "src/skills/scan/secrets.ts": "a name, between parts of bounded length",
  "src/tools/files/search.ts": "the pattern the model asked for, where ripgrep is missing",
};

interface Outcome {
  readonly expressions: number;
  readonly findings: readonly { readonly file: string; readonly expression: string; readonly text: string }[];
  readonly built: readonly string[];
}

const program = fileURLToPath(new URL("../support/patterns/run.ts", import.meta.url));

test("no expression takes more than its share of time on 64 KB of its worst", async () => {
  const home = await mkdtemp(join(tmpdir(), "hermes-patterns-"));
  const { stdout } = await promisify(execFile)(process.execPath, ["--allow-natives-syntax", program], {
    env: { ...process.env, HOME: home, HERMES_HOME: home },
    maxBuffer: 64 * 1024 * 1024,
  });
  await rm(home, { recursive: true });
  const { expressions, findings, built }: Outcome = JSON.parse(stdout.slice(stdout.lastIndexOf('{"expressions"')));
  assert.ok(expressions > 1000, `only ${expressions} were found`);
  const slow = findings.filter(
    ({ file, expression }) => !(file in SHORT_TEXTS) && !(`${file} ${expression}` in SHORT_TEXTS),
  );
  assert.deepEqual(slow, []);
  assert.deepEqual(
    built.filter((file) => !(file in BUILT)),
    [],
    "expressions that are built of other texts than before",
  );
});
