import assert from "node:assert/strict";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { makeDirectories } from "./files.ts";

test("folders are made with all above them, once", async (t) => {
  const root = await mkdtemp(join(tmpdir(), "hermes-kit-"));
  t.after(() => rm(root, { recursive: true }));
  const deep = join(root, "a", "b", "c");
  assert.equal(await makeDirectories(deep), true);
  assert.ok((await stat(deep)).isDirectory());
  assert.equal(await makeDirectories(deep), false);
  assert.equal(await makeDirectories(root), false);
  const made = await Promise.all([1, 2, 3].map(() => makeDirectories(join(root, "x", "y"))));
  assert.ok(made.includes(true), "several at once do not disturb each other");
  await writeFile(join(root, "file"), "");
  await assert.rejects(makeDirectories(join(root, "file")), { code: "EEXIST" });
  await assert.rejects(makeDirectories(join(root, "file", "below")), { code: "ENOTDIR" });
});

test("a place where no folder can be made says so", { skip: process.platform !== "linux" }, async () => {
  await assert.rejects(makeDirectories("/proc/none/of/these"), { code: "ENOENT" });
});
