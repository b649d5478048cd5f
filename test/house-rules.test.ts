import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { clearedText } from "../src/safety/decision.ts";
import { openLocalEnvironment } from "../src/sandbox/local.ts";
import { cleared } from "./support/cleared.ts";

const script = join(import.meta.dirname, "../scripts/house-rules.mjs");

async function check(t: TestContext, files: Readonly<Record<string, string>>) {
  const root = await mkdtemp(join(tmpdir(), "hermes-house-"));
  t.after(() => rm(root, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
  return new Promise<{ code: number; output: string }>((resolve) =>
    execFile(process.execPath, [script, root], (error, output) => resolve({ code: error ? 1 : 0, output })),
  );
}

const ways = [
  'import { spawn } from "node:child_process";',
  "import { exec } from 'child_process';",
  'const { fork } = await import("node:child_process");',
  'const cp = process.getBuiltinModule("child_process");',
  'const pty = await import("@lydell/node-pty");',
  "const { fork } = await import(`node:cluster`);",
];

test("a file that is not on the list may not start programs, whichever way it reaches for them", async (t) => {
  for (const line of ways) {
    const { code, output } = await check(t, { "src/tools/new-tool.ts": `${line}\n` });
    assert.equal(code, 1, line);
    assert.match(output, /src\/tools\/new-tool\.ts:1: programs are started by/);
  }
});

test("files on the list and tests may start programs, and words in comments are no imports", async (t) => {
  const { code, output } = await check(t, {
    "src/sandbox/errands.ts": 'import { spawn } from "node:child_process";\n',
    "src/tools/a.test.ts": 'import { spawn } from "node:child_process";\n',
    "src/tools/b.ts": '// see "node:child_process"\n',
  });
  assert.equal(code, 0, output);
});

test("only safety/ clears commands", async (t) => {
  const line = 'import { clearCommand } from "../safety/decision.ts";\n';
  assert.equal((await check(t, { "src/tools/new-tool.ts": line })).code, 1);
  assert.equal((await check(t, { "src/safety/new-rule.ts": line })).code, 0);
});

test("an environment refuses what nobody decided about, even behind a cast", async (t) => {
  const root = await mkdtemp(join(tmpdir(), "hermes-house-"));
  const environment = await openLocalEnvironment({
    cwd: root,
    environment: { PATH: process.env.PATH ?? "", TMPDIR: root },
  });
  t.after(async () => {
    await environment.cleanup();
    await rm(root, { recursive: true, force: true });
  });
  const options = { timeoutMs: 10_000, signal: new AbortController().signal };
  const forged = [{ text: "echo ran" }, { ...cleared("echo ran") }, "echo ran", null] as never[]; // what a careless cast would pass
  for (const command of forged) {
    await assert.rejects(environment.execute(command, options), /without a decision/);
    await assert.rejects(environment.spawn(command, {}), /without a decision/);
    assert.throws(() => clearedText(command), /without a decision/);
  }
  assert.equal((await environment.execute(cleared("echo ran"), options)).output, "ran\n");
});
