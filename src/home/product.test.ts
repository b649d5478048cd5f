import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { hermesCommand, installRoot, VERSION } from "./paths.ts";

test("the version is the package's version", async () => {
  const manifest = JSON.parse(await readFile(join(installRoot(), "package.json"), "utf8"));
  assert.equal(manifest.version, VERSION);
});

test("what to type is named as it was started: through npm in a clone, by its own name elsewhere", () => {
  const through = { npm_lifecycle_event: "start", npm_package_json: join(installRoot(), "package.json") };
  assert.equal(hermesCommand("setup", through), "npm start -- setup");
  assert.equal(hermesCommand("", through), "npm start");
  // npm's variables may come from another package that is being started.
  assert.equal(hermesCommand("setup", { ...through, npm_package_json: "/elsewhere/package.json" }), "hermes setup");
  assert.equal(hermesCommand("setup", { ...through, npm_lifecycle_event: "test" }), "hermes setup");
});
