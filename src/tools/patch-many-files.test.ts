// Patches of many files: all parts fit, or no file is touched.
import assert from "node:assert/strict";
import { chmod, mkdir, readdir, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { type FileRig, fileRig, parsed } from "../../test/support/file-workspace.ts";
import { patch as patchTool } from "./patch.ts";

let rig: FileRig;
before(async () => {
  rig = await fileRig();
});
after(() => rig.close());

type Args = Parameters<typeof patchTool>[0];
const run = async (args: Args, ctx = rig.context()) => parsed(await patchTool(args, ctx));
const apply = (patch: string) => run({ mode: "patch", patch });
const put = (name: string, text: string) => writeFile(rig.at(name), text);
const onDisk = (name: string) => readFile(rig.at(name), "utf8");

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
  assert.equal(await onDisk("new/file.txt"), "first\nsecond\n");
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
  ["several changes in one hunk", "a\nb\nc\nd\ne\n", "@@\n a\n-b\n+B\n c\n+x\n d\n-e", "a\nB\nc\nx\nd\n"],
  ["several hunks below one another", "a\n1\nb\n1\nc\n", "@@\n a\n-1\n+2\n@@\n-1\n+3\n c", "a\n2\nb\n3\nc\n"],
  [
    "a hunk that fits twice goes below the one before",
    "a\n1\nb\n1\n",
    "@@\n-a\n+A\n-1\n+2\n@@\n-1\n+3",
    "A\n2\nb\n3\n",
  ],
  ["the last of equal places, told by the file's end", "1\nx\n1\n", "@@\n-1\n+2\n*** End of File", "1\nx\n2\n"],
  ["additions at the file's end", "a\nb\n", "@@ a\n+x\n*** End of File", "a\nb\nx\n"],
  ["additions to an empty file", "", "@@\n+x\n+y", "x\ny\n"],
  [
    "headers in a row lead to a method of a class",
    "class A:\n  def f():\n    return 1\nclass B:\n  def f():\n    return 1\n",
    "@@ class B:\n@@   def f():\n-    return 1\n+    return 2",
    "class A:\n  def f():\n    return 1\nclass B:\n  def f():\n    return 2\n",
  ],
  [
    "headers in a row lead to the place of an addition",
    "class A:\n  def f():\n    return 1\nclass B:\n  def f():\n    return 1\n",
    "@@ class B:\n\n@@ def f():\n+    print(0)",
    "class A:\n  def f():\n    return 1\nclass B:\n  def f():\n    print(0)\n    return 1\n",
  ],
  [
    "a hint on several lines means the one below the last change",
    "f:\n  1\nf:\n  1\n",
    "@@ f:\n-  1\n+  2\n@@ f:\n-  1\n+  3",
    "f:\n  2\nf:\n  3\n",
  ],
  ["mixed line ends: context keeps its own", "a\r\nb\nc\r\nd\n", "@@\n a\n-b\n+x\n+y\n c\n d", "a\r\nx\ny\nc\r\nd\n"],
  [
    "mixed line ends: each line keeps the end of the one it replaces",
    "a\r\nb\nc\r\n",
    "@@\n-a\n-b\n-c\n+1\n+2\n+3",
    "1\r\n2\n3\r\n",
  ],
  ["mixed line ends: an addition ends as the line above", "a\r\nb\nc\r\n", "@@ b\n+x", "a\r\nb\nx\nc\r\n"],
  [
    "mixed line ends in other indentation",
    "  a\r\n  b\n  c\r\n  d",
    "@@\n a\n-b\n+x\n+y\n c\n d",
    "  a\r\n  x\n  y\n  c\r\n  d",
  ],
  [
    "context that reads like a marker",
    "a\n*** End Patch\nb\n",
    "@@\n a\n *** End Patch\n-b\n+x",
    "a\n*** End Patch\nx\n",
  ],
  [
    "context that reads like a header, and a line added below it",
    "*** Add File: n.txt\nb\n",
    "@@\n-b\n+c",
    "*** Add File: n.txt\nc\n",
  ],
  [
    "context that reads like a header above an addition",
    "a\n*** Add File: n.txt\nb\n",
    "@@\n a\n *** Add File: n.txt\n+x\n b",
    "a\n*** Add File: n.txt\nx\nb\n",
  ],
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
  [
    "a path that climbs by another name",
    "*** Update File: a.txt\n*** Move to: ../x\n@@\n-a\n+b",
    /"\.\." is not allowed/,
  ],
  [
    "a header it does not know",
    "*** Add File: no.txt\n+x\n*** Rename File: a -> b",
    /line 3: "\*\*\* Rename File: a -> b" is not a line of a patch/,
  ],
  [
    "a line with stars in a hunk",
    "*** Update File: twice.txt\n@@\n***bold***\n-1\n+2",
    /line 3: "\*\*\*bold\*\*\*" is not a line of a patch.*blank, \+ or - in front/,
  ],
  [
    "a header with a typo",
    "*** Add File: no.txt\n+x\n*** Updat File: a.txt\n@@\n-1\n+2",
    /line 3: .* is not a line of a patch/,
  ],
  [
    "a new name for an added file",
    "*** Add File: no.txt\n*** Move to: b.txt\n+x",
    /line 2: .* must stand once below \*\*\* Update File/,
  ],
  [
    "two new names",
    "*** Update File: a.txt\n*** Move to: b.txt\n*** Move to: c.txt\n@@\n-1\n+2",
    /line 3: .* must stand once/,
  ],
  [
    "changes without a file",
    "*** Begin Patch\n@@\n-1\n+2\n*** Delete File: twice.txt\n*** End Patch",
    /line 2: "@@" stands above the first/,
  ],
  [
    "operations behind the end",
    "*** Begin Patch\n*** Add File: no.txt\n+x\n*** End Patch\n*** Delete File: twice.txt",
    /line 5: .* stands behind \*\*\* End Patch/,
  ],
  [
    "added lines below a deletion",
    "*** Delete File: twice.txt\n+new text",
    /DELETE 'twice\.txt': there are added lines below it/,
  ],
  ["a header without a path", "*** Delete File:", /DELETE: the header names no path/],
  [
    "an addition whose hint is on several lines",
    "*** Update File: twice.txt\n@@ 1\n+2",
    /is ambiguous — its hint is on 2 lines/,
  ],
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

test("a refused patch leaves the files alone, also those it had understood", async () => {
  await put("twice.txt", "1\n1\n");
  for (const [, body] of broken) await apply(body);
  assert.equal(await onDisk("twice.txt"), "1\n1\n");
  await assert.rejects(onDisk("no.txt"));
});

test("a file gets a new name and new text in one go, with its mode", async () => {
  await put("old-name.sh", "echo one\n");
  await chmod(rig.at("old-name.sh"), 0o750);
  const result = await apply(
    "*** Begin Patch\n*** Update File: old-name.sh\n*** Move to: deep/er/new-name.sh\n@@\n-echo one\n+echo two\n*** End Patch",
  );
  assert.equal(result.error, undefined);
  assert.deepEqual(result.files_modified, ["old-name.sh -> deep/er/new-name.sh"]);
  assert.match(result.diff, /--- a\/old-name\.sh\n\+\+\+ \/dev\/null/);
  assert.match(result.diff, /\+\+\+ b\/deep\/er\/new-name\.sh\n.*\n\+echo two/);
  assert.equal(await onDisk("deep/er/new-name.sh"), "echo two\n");
  assert.equal((await stat(rig.at("deep/er/new-name.sh"))).mode & 0o777, 0o750);
  await assert.rejects(onDisk("old-name.sh"));
});

const renames: [string, string][] = [
  ["without hunks", "*** Update File: r.txt\n*** Move to: s.txt"],
  ["as a move with an arrow", "*** Move File: r.txt -> s.txt"],
  ["as a move with its target below", "*** Move File: r.txt\n*** Move to: s.txt"],
];
for (const [name, body] of renames) {
  test(`a file gets a new name ${name}`, async () => {
    await put("r.txt", "same\n");
    const result = await apply(body);
    assert.deepEqual(result.files_modified, ["r.txt -> s.txt"]);
    assert.equal(await onDisk("s.txt"), "same\n");
    await assert.rejects(onDisk("r.txt"));
    await apply("*** Delete File: s.txt");
  });
}

test("hunks below a move change the file on its way", async () => {
  await put("r.txt", "a\nb\n");
  assert.equal((await apply("*** Move File: r.txt -> t.txt\n@@\n-b\n+c")).error, undefined);
  assert.equal(await onDisk("t.txt"), "a\nc\n");
});

test("a new name that is taken, and hunks that do not fit, leave the file where it is", async () => {
  await put("from.txt", "a\n");
  await put("taken.txt", "b\n");
  const onto = await apply("*** Update File: from.txt\n*** Move to: taken.txt\n@@\n-a\n+b");
  assert.match(onto.error, /• from\.txt: destination already exists/);
  const unfit = await apply("*** Update File: from.txt\n*** Move to: free.txt\n@@\n-zzzzzz\n+b");
  assert.match(unfit.error, /• from\.txt: hunk 1 \(no hint\) not found/);
  assert.deepEqual([await onDisk("from.txt"), await onDisk("taken.txt")], ["a\n", "b\n"]);
  await assert.rejects(onDisk("free.txt"));
});

test("a new name is held to the same rules as a new file", async () => {
  await put("from.txt", "a\n");
  const result = await apply("*** Update File: from.txt\n*** Move to: ~/.ssh/config\n@@\n-a\n+b");
  assert.match(result.error, /Write denied/);
  assert.equal(await onDisk("from.txt"), "a\n");
});

const padded: [string, string][] = [
  ["around Begin Patch", " *** Begin Patch \n*** Update File: b.txt\n@@\n-one\n+two\n*** End Patch"],
  ["around End Patch", "*** Begin Patch\n*** Update File: b.txt\n@@\n-one\n+two\n *** End Patch \n"],
  ["around the first header", "*** Begin Patch\n  *** Update File:  b.txt \n@@\n-one\n+two\n*** End Patch"],
  [
    "around a later header",
    "*** Begin Patch\n*** Add File: c.txt\n+x\n  *** Update File: b.txt\n@@\n-one\n+two\n*** End Patch",
  ],
  ["around a header behind hunks", "*** Update File: c.txt\n@@\n-c\n+x\n *** Update File: b.txt\n@@\n-one\n+two\n"],
  [
    "around an added file behind hunks",
    "*** Update File: b.txt\n@@\n-one\n+two\n *** Add File: d.txt\n+x\n*** End Patch",
  ],
  ["around a deletion behind hunks", "*** Update File: b.txt\n@@\n-one\n+two\n *** Delete File: c.txt\n*** End Patch"],
  ["around a new name", "*** Update File: c.txt\n  *** Move to: d.txt\n*** Update File: b.txt\n@@\n-one\n+two"],
  ["around the file's end", "*** Update File: b.txt\n@@\n-one\n+two\n *** End of File\n*** End Patch"],
  ["and CRLF", "*** Begin Patch\r\n*** Update File: b.txt\r\n@@\r\n-one\r\n+two\r\n*** End Patch\r\n"],
  [
    "and words around the patch",
    "Here it is:\n*** Begin Patch\n*** Update File: b.txt\n@@\n-one\n+two\n*** End Patch\nDone.\n",
  ],
  [
    "and two patches in one text",
    "*** Begin Patch\n*** Delete File: c.txt\n*** End Patch\n*** Begin Patch\n*** Update File: b.txt\n@@\n-one\n+two\n*** End Patch",
  ],
];
for (const [name, text] of padded) {
  test(`patch of many files forgives blanks ${name}`, async () => {
    await put("b.txt", "one\n");
    if (/(?:Update|Delete) File: c\.txt/.test(text)) await put("c.txt", "c\n");
    const result = await apply(text);
    assert.equal(result.error, undefined);
    assert.equal(await onDisk("b.txt"), "two\n");
    for (const left of ["c.txt", "d.txt"]) await rm(rig.at(left), { force: true });
  });
}

const added: [string, string, string][] = [
  ["lines", "+one\n+two", "one\ntwo\n"],
  ["an empty line at the end", "+one\n+", "one\n\n"],
  ["nothing", "", ""],
  ["a line that says there is no break", "+one\n\\ No newline at end of file", "one"],
  ["lines without their sign", "one\ntwo\n", "one\ntwo\n"],
  ["lines that read like markers", "+*** End Patch\n+*** Update File: x", "*** End Patch\n*** Update File: x\n"],
];
for (const [name, body, expected] of added) {
  test(`an added file: ${name}`, async () => {
    assert.equal((await apply(`*** Begin Patch\n*** Add File: fresh.txt\n${body}\n*** End Patch`)).error, undefined);
    assert.equal(await onDisk("fresh.txt"), expected);
    await rm(rig.at("fresh.txt"));
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
