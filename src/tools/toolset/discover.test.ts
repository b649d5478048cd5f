import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { recordingLog } from "../../../test/support/tool-context.ts";
import { importTools, loadTools, toolFiles } from "./discover.ts";
import { registry } from "./registry.ts";

test("every source file of the folder is a tool, and nothing else is", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "hermes-tools-"));
  t.after(() => rm(directory, { recursive: true }));
  await mkdir(join(directory, "files"));
  for (const name of ["b.ts", "a.js", "b.test.ts", "a.d.ts", "notes.md"]) await writeFile(join(directory, name), "");
  assert.deepEqual(await toolFiles(pathToFileURL(`${directory}/`)), ["a.js", "b.ts"]);
});

test("each file of the catalogue registers a tool when it is loaded", async () => {
  const folder = new URL("../", import.meta.url);
  const files = await toolFiles(folder);
  assert.ok(files.includes("read-file.ts"));
  for (const file of files) {
    assert.match(await readFile(new URL(file, folder), "utf8"), /^register(<[^>\n]*>)?\(/m, file);
  }
});

test("a tool file that fails to load costs one warning and nothing else", async () => {
  const log = recordingLog();
  const loaded: string[] = [];
  const load = (file: string) => ({ file, load: async () => void loaded.push(file) });
  await importTools([load("a.ts"), { file: "bad.ts", load: () => Promise.reject(new Error("x")) }, load("c.ts")], log);
  assert.deepEqual(loaded, ["a.ts", "c.ts"]);
  assert.deepEqual(
    log.lines.map((line) => line.level),
    ["warn"],
  );
});

test("every tool file of the product loads", async () => {
  const log = recordingLog();
  await loadTools(log);
  assert.deepEqual(log.lines, []);
  for (const name of registry.names()) assert.ok(registry.get(name)?.parameters.type === "object", name);
});
