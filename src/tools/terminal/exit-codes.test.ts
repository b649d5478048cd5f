import assert from "node:assert/strict";
import { test } from "node:test";
import { exitCodeMeaning, failureHint } from "./run.ts";

const meanings: readonly [command: string, code: number, expected: RegExp | null][] = [
  ["grep x file", 1, /No match/],
  ["cat a | /usr/bin/rg x", 1, /No match/],
  ["LC_ALL=C egrep x f", 1, /No match/],
  ["grep x file", 2, null],
  ["grep x file", 0, null],
  ["grep x f | wc -l", 1, null],
  ["cd a && diff b c", 1, /differ/],
  ["find / -name x", 1, /could not be read/],
  ["test -e x", 1, /false/],
  ["[ -e x ]", 1, /false/],
  ["(cd a; ack x)", 1, /No match/],
  ["git diff --exit-code", 1, /differences/],
  ["curl x", 6, /resolved/],
  ["curl x", 7, /refused/],
  ["curl -f x", 22, /HTTP/],
  ["curl x", 28, /timed out/],
  ["python x.py", 1, null],
  ["", 1, null],
];
for (const [command, code, expected] of meanings) {
  test(`exit ${code} of "${command}" ${expected ? `means ${expected.source}` : "has no friendly meaning"}`, () => {
    const meaning = exitCodeMeaning(command, code);
    if (expected) assert.match(meaning ?? "", expected);
    else assert.equal(meaning, null);
  });
}

test("a push that was rejected is a failure, whatever git's exit code means elsewhere", () => {
  const output =
    "To file:///srv/a.git\n ! [remote rejected] HEAD -> work\nerror: failed to push some refs to 'file:///srv/a.git'";
  assert.equal(exitCodeMeaning("git push origin HEAD", 1, output), null);
});

const hints: readonly [code: number, output: string, expected: RegExp | null][] = [
  [0, "permission denied", null],
  [127, "bash: foo: command not found", /not found/],
  [1, "ModuleNotFoundError: No module named 'x'", /module is missing/],
  [1, "Error: Cannot find module 'x'", /module is missing/],
  [1, "cat: x: Permission denied", /Permission denied/],
  [126, "", /could not be run/],
  [137, "", /memory/],
  [124, "", /timeout/],
  [1, "some other failure", null],
];
for (const [code, output, expected] of hints) {
  test(`hint for exit ${code} with "${output}"`, () => {
    const hint = failureHint(code, output);
    if (expected) assert.match(hint ?? "", expected);
    else assert.equal(hint, null);
  });
}
