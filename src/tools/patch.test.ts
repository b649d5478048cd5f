import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { type FileRig, fileRig, parsed } from "../../test/support/file-workspace.ts";
import { patch as patchTool } from "./patch.ts";
import { readFile as readTool } from "./read-file.ts";

let rig: FileRig;
before(async () => {
  rig = await fileRig();
});
after(() => rig.close());

type Args = Parameters<typeof patchTool>[0];
const run = async (args: Args, ctx = rig.context()) => parsed(await patchTool(args, ctx));
const replace = (path: string, old_string: string, new_string: string, more: Partial<Args> = {}) =>
  run({ path, old_string, new_string, ...more });
const apply = (patch: string) => run({ mode: "patch", patch });
const put = (name: string, text: string) => writeFile(rig.at(name), text);
const onDisk = (name: string) => readFile(rig.at(name), "utf8");

test("a replacement gives a unified diff and the file's name", async () => {
  await put("a.txt", "one\ntwo\nthree\n");
  assert.deepEqual(await replace("a.txt", "two", "2"), {
    success: true,
    diff: "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
    files_modified: ["a.txt"],
  });
  assert.equal(await onDisk("a.txt"), "one\n2\nthree\n");
});

const refusals: [string, string, string, string, RegExp][] = [
  ["empty", "x", "", "y", /^old_string cannot be empty/],
  ["blank", "x", " \n", "y", /^old_string is only whitespace/],
  ["identical", "x", "abc", "abc", /^old_string and new_string are identical/],
  [
    "several",
    "x\nx\n",
    "x",
    "y",
    /^Found 2 matches for old_string\. Provide more context to make it unique, or use replace_all=True\.\n {2}L1: x\n {2}L2: x$/,
  ],
  ["none", "alpha beta\n", "alpha bexx gamma delta", "y", /^Could not find a match for old_string in the file/],
  ["drift", "  say('hello there')\n", "say(\\'hello there\\')", "say(\\'bye\\')", /^Escape-drift detected/],
];
for (const [name, text, old, request, message] of refusals) {
  test(`patch refuses: ${name}`, async () => {
    await put("case.txt", text);
    const result = await replace("case.txt", old, request);
    assert.equal(result.success, false);
    assert.match(result.error, message);
    assert.equal(await onDisk("case.txt"), text);
  });
}

test("replace_all replaces every match, CRLF stays", async () => {
  await put("crlf.txt", "a\r\nb\r\na\r\n");
  assert.equal((await replace("crlf.txt", "a\n", "x\ny\n", { replace_all: true })).success, true);
  assert.equal(await onDisk("crlf.txt"), "x\r\ny\r\nb\r\nx\r\ny\r\n");
});

test("an edit that is there already is a success that changed nothing", async () => {
  await put("done.txt", "const b = 22;\n");
  const result = await replace("done.txt", "const a = 11;", "const b = 22;");
  assert.deepEqual([result.success, result.no_change], [true, true]);
  assert.ok(result.note);
  assert.equal((await replace("done.txt", "const b = 22;", "const b = 22;")).no_change, true);
});

test("the third failure on one file says to read it again", async () => {
  const ctx = rig.context();
  await put("stubborn.txt", "abc\n");
  const attempt = async () => (await run({ path: "stubborn.txt", old_string: "zzzzzz", new_string: "y" }, ctx)).error;
  await attempt();
  assert.doesNotMatch(await attempt(), /third failed/);
  assert.match(await attempt(), /third failed patch of stubborn.txt: read the file again/);
});

test("a region that was only similar comes with a warning", async () => {
  await put("similar.ts", "const value = compute(a, b);\n");
  assert.match((await replace("similar.ts", "const valeu = compute(a, b);", "x"))._warning, /only similar/);
});

test("a problem that the patch brought into a data file is told", async () => {
  await put("p.json", '{"a": 1}\n');
  assert.match((await replace("p.json", "1", "")).lint, /^invalid JSON/);
});

test("missing arguments, missing files, secrets and protected files are clear errors", async () => {
  await put(".env", "A=b\n");
  await put("known.txt", "A_TOKEN=abc\nb=1\n");
  assert.match((await run({ old_string: "a", new_string: "b" })).error, /Missing argument: path/);
  assert.match((await run({ path: "a.txt", new_string: "b" })).error, /Missing argument: old_string/);
  assert.match((await run({ path: "a.txt", old_string: "b" })).error, /Missing argument: new_string/);
  assert.match((await run({ mode: "patch" })).error, /Missing argument: patch/);
  const missing = await replace("known.tx", "a", "b");
  assert.equal(missing.error, "File not found: known.tx");
  assert.ok(missing.similar_files.includes("known.txt"));
  assert.match((await replace(".env", "A", "B")).error, /^Read denied/);
  assert.match((await replace("/etc/hosts", "a", "b")).error, /^Write denied/);
  assert.match((await replace("known.txt", "A_TOKEN=«redacted»", "A_TOKEN=x")).error, /stands for a secret/);
});

test("secrets around a change do not appear in the diff or in hints", async () => {
  await put("diff.txt", "A_TOKEN=abcdef\nb=1\n");
  const result = await replace("diff.txt", "b=1", "b=2");
  assert.match(result.diff, / A_TOKEN=«redacted»\n/);
  assert.doesNotMatch((await replace("diff.txt", "A_TOKEN=abcxyz and more of it", "x")).error, /abcdef/);
});

test("numbers that a diff adds are not taken for telephone numbers, keys and numbers of people are", async () => {
  await put("times.txt", "one\n");
  const key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\n-----END PRIVATE KEY-----";
  const { diff } = await replace("times.txt", "one", `1700000000\n${key}\ncall +14155552671`);
  assert.match(
    diff,
    /\n-one\n\+1700000000\n\+«redacted private key»\n\+«redacted.*\n\+«redacted.*\n\+call \+141\*\*\*\*2671\n/,
  );
});

test("a stale file is patched with a warning", async () => {
  const ctx = rig.context();
  await put("stale.txt", "a\nb\n");
  await readTool({ path: "stale.txt" }, ctx);
  await put("stale.txt", "a\nb\nc\n");
  assert.match((await run({ path: "stale.txt", old_string: "b", new_string: "x" }, ctx))._warning, /changed on disk/);
});

test("a replacement keeps the line ends of lines that stay", async () => {
  await put("mixed.txt", "a\r\nb\nc\r\nd\n");
  assert.equal((await replace("mixed.txt", "a\nb\nc\nd", "a\nx\ny\nc\nd")).success, true);
  assert.equal(await onDisk("mixed.txt"), "a\r\nx\ny\nc\r\nd\n");
});

for (const [name, bytes] of [
  ["Latin-1", Buffer.from("caf\xe9\nname\n", "latin1")],
  ["UTF-16", Buffer.from("\ufeffname\n", "utf16le")],
] as const) {
  test(`a file in ${name} is refused by both modes and keeps its bytes`, async () => {
    await writeFile(rig.at("foreign.txt"), bytes);
    const replaced = await replace("foreign.txt", "name", "title");
    const patched = await apply("*** Begin Patch\n*** Update File: foreign.txt\n@@\n-name\n+title\n*** End Patch");
    for (const result of [replaced, patched]) {
      assert.equal(result.success, false);
      assert.match(result.error, /foreign\.txt is not UTF-8 text/);
    }
    assert.deepEqual(await readFile(rig.at("foreign.txt")), bytes);
  });
}

test("a large file is patched like a small one, also where old_string is only similar or not there", async () => {
  const lines = Array.from({ length: 20_000 }, (_, n) => `\tconst value${n} = compute(${n * 7}); // line ${n}`);
  await put("large.ts", `${lines.join("\n")}\n`);
  const old_string = "const value15000 =  compute(105000);  // line 15000";
  const result = await run({ path: "large.ts", old_string, new_string: "const value15000 = 1;" });
  assert.equal(result.success, true);
  const text = await onDisk("large.ts");
  assert.match(text, /\n\tconst value14999 = [^\n]*\n\s*const value15000 = 1;\n\tconst value15001 = /);
  const missing = await run({ path: "large.ts", old_string: "function nowhere() {}", new_string: "x" });
  assert.match(missing.error, /Could not find a match/);
});
