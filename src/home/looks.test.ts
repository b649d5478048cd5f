import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { FileStamp, kindNow, readSmallNow, realPathNow } from "./looks.ts";

function folder(t: TestContext): string {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "hermes-looks-")));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

test("a path leads where the system says, also below a folder that was looked at before", (t) => {
  const dir = folder(t);
  mkdirSync(join(dir, "a/b"), { recursive: true });
  writeFileSync(join(dir, "a/b/file"), "");
  symlinkSync("a", join(dir, "link"));
  symlinkSync("nowhere", join(dir, "dangling"));
  symlinkSync("../a/b/file", join(dir, "a/to-file"));
  const names = ["a", "a/b/file", "link", "link/b/file", "dangling", "a/to-file", "a/none", "a/b/file/below", "a/../a"];
  for (const name of [...names, ...names.toReversed()]) {
    const path = `${dir}/${name}`;
    let real: string | null = null;
    try {
      real = realpathSync.native(path);
    } catch {
      // it leads nowhere
    }
    assert.equal(realPathNow(path), real, name);
  }
});

test("a folder that becomes a link is followed from the next turn of the event loop on", async (t) => {
  const dir = folder(t);
  const path = join(dir, "work/file");
  for (const name of ["work", "other"]) {
    mkdirSync(join(dir, name));
    writeFileSync(join(dir, name, "file"), name);
  }
  assert.equal(realPathNow(path), path);
  rmSync(join(dir, "work"), { recursive: true });
  symlinkSync("other", join(dir, "work"));
  await nextTurn();
  assert.equal(realPathNow(path), join(dir, "other/file"));
  assert.equal(readSmallNow(path), null, "what lies behind a link is not read by its old name");
});

test("a changed file has another stamp from the next turn of the event loop on, and at once for who asks for a fresh one", async (t) => {
  const path = join(folder(t), "file");
  const stamp = new FileStamp(path);
  assert.equal(stamp.now(), "");
  writeFileSync(path, "one");
  const one = stamp.fresh();
  assert.notEqual(one, "");
  writeFileSync(path, "longer");
  await nextTurn();
  assert.notEqual(stamp.now(), one);
});

test("only small regular files without links are read at once", (t) => {
  const dir = folder(t);
  const at = (name: string) => join(dir, name);
  writeFileSync(at("small"), "text");
  writeFileSync(at("empty"), "");
  writeFileSync(at("large"), Buffer.alloc(65 * 1024));
  symlinkSync("small", at("link"));
  const read = ["small", "empty", "large", "link", "missing", "."].map((name) => readSmallNow(at(name))?.toString());
  const expected = process.platform === "linux" ? "text" : undefined;
  assert.deepEqual(read, [expected, undefined, undefined, undefined, undefined, undefined]);
});

test("what stands at a path, behind links too; nothing where it cannot be seen", (t) => {
  const dir = folder(t);
  writeFileSync(join(dir, "file"), "");
  symlinkSync(".", join(dir, "link"));
  symlinkSync("nowhere", join(dir, "dangling"));
  const kinds = ["", "link", "file", "file/below", "dangling", "none"].map((name) => kindNow(join(dir, name)));
  assert.deepEqual([...kinds, kindNow("/dev/null")], ["directory", "directory", "file", null, null, null, "other"]);
});

test("a change is seen by what waited for something, also in the same turn of the event loop", async (t) => {
  const path = join(folder(t), "config.yaml");
  writeFileSync(path, "a: 1\n");
  const stamp = new FileStamp(path);
  const before = stamp.now();
  writeFileSync(path, "a: 10\n");
  assert.equal(stamp.now(), before, "shared until the code gives way");
  await new Promise<void>((resolve) => process.nextTick(resolve));
  assert.notEqual(stamp.now(), before);
});
