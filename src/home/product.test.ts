import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { installRoot, VERSION } from "./paths.ts";

test("the version is the package's version", async () => {
  const manifest = JSON.parse(await readFile(join(installRoot(), "package.json"), "utf8"));
  assert.equal(manifest.version, VERSION);
});
