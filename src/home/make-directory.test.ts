import assert from "node:assert/strict";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { makeDirectory } from "./paths.ts";

test("parents are made too, with the same rights; what is there stays", async (t) => {
  const root = await mkdtemp(join(tmpdir(), "make-directory-"));
  t.after(() => rm(root, { recursive: true }));
  const deep = join(root, "a", "b", "c");
  makeDirectory(deep, 0o700);
  makeDirectory(deep, 0o755);
  for (const dir of [deep, join(root, "a")]) assert.equal((await stat(dir)).mode & 0o777, 0o700);
});

test("a place where nothing can be made is an error, not an endless loop", {
  skip: process.platform !== "linux",
}, () => {
  assert.throws(() => makeDirectory("/proc/none/of/these", 0o700), { code: "ENOENT" });
});
