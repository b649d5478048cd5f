import assert from "node:assert/strict";
import { chmod, mkdir, readdir, readFile, stat, truncate, writeFile } from "node:fs/promises";
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
for (const [name, text, old, wish, message] of refusals) {
  test(`patch refuses: ${name}`, async () => {
    await put("case.txt", text);
    const result = await replace("case.txt", old, wish);
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

test("a patch of many files adds, updates, moves and deletes in one go", async () => {
  await put("up.py", "def f():\n    return 1\n\ndef g():\n    return 1\n");
  await put("gone.txt", "x");
  await put("from.sh", "echo\n");
  await chmod(rig.at("from.sh"), 0o755);
  const result = await apply(`*** Begin Patch
*** Update File: up.py
@@ def g(): @@
-    return 1
+    return 2
*** Add File: new/file.txt
+first
+second
*** Delete File: gone.txt
*** Move File: from.sh -> bin/to.sh
*** Update File: bin/to.sh
@@
-echo
+echo hi
*** End Patch`);
  assert.equal(result.error, undefined);
  assert.deepEqual(result.files_modified, ["up.py", "new/file.txt", "gone.txt", "from.sh -> bin/to.sh", "bin/to.sh"]);
  assert.equal(await onDisk("up.py"), "def f():\n    return 1\n\ndef g():\n    return 2\n");
  assert.equal(await onDisk("new/file.txt"), "first\nsecond");
  assert.equal(await onDisk("bin/to.sh"), "echo hi\n");
  assert.equal((await stat(rig.at("bin/to.sh"))).mode & 0o777, 0o755);
  await assert.rejects(onDisk("gone.txt"));
  await assert.rejects(onDisk("from.sh"));
  assert.match(result.diff, /--- a\/up\.py\n\+\+\+ b\/up\.py/);
  assert.match(result.diff, /--- \/dev\/null\n\+\+\+ b\/new\/file\.txt/);
});

test("if any part does not fit, no file is touched and every failure is named", async () => {
  await put("one.txt", "a\nb\n");
  await put("two.txt", "a\nb\n");
  const result = await apply(`*** Update File: one.txt
@@
-a
+A
*** Update File: two.txt
@@ somewhere @@
-zzzzzzzz
+y
*** Delete File: missing.txt
*** Update File: nowhere.txt
@@
-a
+b
*** Move File: one.txt -> two.txt
*** Add File: two.txt
+x`);
  assert.equal(result.success, false);
  assert.ok(
    result.error.startsWith(
      "Patch validation failed (no files were modified):\n  • two.txt: hunk 1 (somewhere) not found — ",
    ),
    result.error,
  );
  for (const reason of [
    "\n  • missing.txt: file not found for deletion",
    "\n  • nowhere.txt: File not found: nowhere.txt",
    "\n  • one.txt: destination already exists — move would overwrite",
    "\n  • two.txt: file already exists",
  ])
    assert.ok(result.error.includes(reason), reason);
  assert.equal(await onDisk("one.txt"), "a\nb\n");
});

const hunks: [string, string, string, string][] = [
  ["a bare line is context", "a\nb\nc\n", "@@\na\n-b\n+x\nc", "a\nx\nc\n"],
  ["lines with a backslash are ignored", "a\nb", "@@\n-b\n+x\n\\ No newline at end of file", "a\nx"],
  ["whole lines only", "abc\nb\n", "@@\n-b\n+x", "abc\nx\n"],
  ["a removed line leaves no gap", "a\nb\nc\n", "@@\n-b", "a\nc\n"],
  ["the last line removed", "a\nb", "@@\n-b", "a"],
  ["an addition without a hint goes to the end", "a\n", "@@\n+b", "a\nb\n"],
  ["an addition to a file without a final break", "a", "@@\n+b", "a\nb"],
  ["an addition below its hint", "a\nb\nc\n", "@@ b @@\n+x", "a\nb\nx\nc\n"],
  ["an addition below a hint that is part of a line", "def f(x):\n  1\n", "@@ def f\n+  0", "def f(x):\n  0\n  1\n"],
  ["CRLF stays", "a\r\nb\r\n", "@@\n a\n-b\n+x\n+y", "a\r\nx\r\ny\r\n"],
  ["CRLF stays for additions", "a\r\nb\r\n", "@@ a @@\n+x", "a\r\nx\r\nb\r\n"],
  ["a line that tells the file's end", "a\nb\n", "@@\n-b\n+x\n*** End of File", "a\nx\n"],
  ["no hunk header", "a\nb\n", "-b\n+x", "a\nx\n"],
  ["two hunks with a gap between them", "a\nb\nc\n", "@@\n-a\n+1\n\n@@\n-c\n+3", "1\nb\n3\n"],
  ["the hint picks the place", "x\n1\ny\n1\nz\n1\n", "@@ y @@\n-1\n+2", "x\n1\ny\n2\nz\n1\n"],
  ["other indentation is forgiven", "  a\n  b\n", "@@\n a\n-b\n+c", "  a\n  c\n"],
  ["context only around an insertion", "a\nb\n", "@@\n a\n+x\n b", "a\nx\nb\n"],
];
for (const [name, text, body, expected] of hunks) {
  test(`patch of many files: ${name}`, async () => {
    await put("h.txt", text);
    const result = await apply(`*** Begin Patch\n*** Update File: h.txt\n${body}\n*** End Patch`);
    assert.equal(result.error, undefined);
    assert.equal(await onDisk("h.txt"), expected);
  });
}

const broken: [string, string, RegExp][] = [
  ["no operation", "just words", /no operation found/],
  ["an update without hunks", "*** Update File: a.txt\n*** End Patch", /^Parse error: UPDATE 'a\.txt': no hunks found/],
  ["a path that climbs", "*** Add File: ../x\n+a", /"\.\." is not allowed/],
  ["a move without a target", "*** Move File: a.txt", /expected "old path -> new path"/],
  ["several places and no hint", "*** Update File: twice.txt\n@@\n-1\n+2", /hunk 1 \(no hint\) is ambiguous/],
  ["a protected file", "*** Add File: ~/.ssh/config\n+x", /Write denied/],
  ["a directory", "*** Delete File: folder", /no files were modified\):\n {2}• folder: It is a directory/],
  ["too many bytes", "*** Update File: big.txt\n@@\n-a\n+b", /• big\.txt: .* has 33554433 bytes, too many to patch/],
];
for (const [name, body, message] of broken) {
  test(`patch of many files refuses: ${name}`, async () => {
    await put("twice.txt", "1\n1\n");
    await mkdir(rig.at("folder"), { recursive: true });
    await put("big.txt", "a\n");
    await truncate(rig.at("big.txt"), 32 * 1024 * 1024 + 1);
    const result = await apply(body);
    assert.equal(result.success, false);
    assert.match(result.error, message);
  });
}

test("when the disk refuses in the middle, what was done is taken back", async () => {
  await put("first.txt", "a\n");
  await put("mover.txt", "m\n");
  const result = await apply(`*** Update File: first.txt
@@
-a
+b
*** Move File: mover.txt -> moved.txt
*** Add File: blocker
+x
*** Add File: blocker/below.txt
+x`);
  assert.match(result.error, /could not be applied.*blocker.* All files are as they were\./);
  assert.equal(await onDisk("first.txt"), "a\n");
  assert.equal(await onDisk("mover.txt"), "m\n");
  for (const name of ["moved.txt", "blocker"]) await assert.rejects(onDisk(name));
});

test("what was moved, changed and removed comes back as it was: place, text and mode", async () => {
  await put("tool.sh", "echo\n");
  await put("old.sh", "old\n");
  for (const name of ["tool.sh", "old.sh"]) await chmod(rig.at(name), 0o750);
  const result = await apply(`*** Move File: tool.sh -> bin2/tool.sh
*** Update File: bin2/tool.sh
@@
-echo
+echo hi
*** Delete File: old.sh
*** Add File: stone
+x
*** Add File: stone/below.txt
+x`);
  assert.match(result.error, /could not be applied.* All files are as they were\./);
  assert.equal(await onDisk("tool.sh"), "echo\n");
  assert.equal(await onDisk("old.sh"), "old\n");
  for (const name of ["tool.sh", "old.sh"]) assert.equal((await stat(rig.at(name))).mode & 0o777, 0o750, name);
  await assert.rejects(onDisk("bin2/tool.sh"));
});

test("a file may be removed twice in one patch, and one with the longest name at all", async () => {
  const longest = "n".repeat(255);
  await put("twice.txt", "one\n");
  await put(longest, "two\n");
  const others = (await readdir(rig.at("."))).filter((name) => name !== "twice.txt" && name !== longest);
  const result = await apply(
    `*** Delete File: twice.txt\n*** Add File: twice.txt\n+more\n*** Delete File: twice.txt\n*** Delete File: ${longest}`,
  );
  assert.equal(result.success, true, JSON.stringify(result));
  assert.deepEqual(await readdir(rig.at(".")), others);
});

test("a file that is no text can be moved and removed, not changed", async () => {
  const bytes = Buffer.from([0x89, 0x50, 0xff, 0x00, 0xfe]);
  for (const name of ["logo.png", "gone.png"]) await writeFile(rig.at(name), bytes);
  const changed = await apply("*** Move File: logo.png -> art/logo.png\n*** Update File: art/logo.png\n@@\n-a\n+b");
  assert.match(changed.error, /no files were modified.*\n {2}• art\/logo\.png: .* is not UTF-8 text/);
  const moved = await apply("*** Move File: logo.png -> art/logo.png\n*** Delete File: gone.png");
  assert.deepEqual(moved.files_modified, ["logo.png -> art/logo.png", "gone.png"]);
  assert.deepEqual(await readFile(rig.at("art/logo.png")), bytes);
  const left = await readdir(rig.dir);
  assert.deepEqual(
    left.filter((name) => name.includes("png")),
    [],
  );
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
