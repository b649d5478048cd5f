// A compiler run over a changed copy of the source: with the whole tests only.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { repository } from "./support/run-hermes.ts";
import { whole } from "./support/sample.ts";

test("every setting has a reader that the compiler finds, or says that it has no effect yet", { skip: !whole }, () => {
  const script = join(repository, "scripts", "setting-readers.mjs");
  const { status, stdout, stderr } = spawnSync(process.execPath, [script], { encoding: "utf8" });
  assert.equal(status, 0, stdout + stderr);
  assert.ok(Number(/^\d+/.exec(stderr)?.[0]) > 150, stderr);
});
