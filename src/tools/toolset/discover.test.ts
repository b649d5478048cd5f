import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { recordingLog } from "../../../test/support/tool-context.ts";
import { loadTools, toolFiles } from "./discover.ts";
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

test("a tool file that fails to load costs one warning and nothing else", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "hermes-tools-"));
  t.after(() => rm(directory, { recursive: true }));
  const report = (name: string) => `process.emit("hermes-test-tool", ${JSON.stringify(name)});`;
  await writeFile(join(directory, "a.js"), report("a.js"));
  await writeFile(join(directory, "bad.js"), 'throw new Error("x");');
  await writeFile(join(directory, "c.js"), report("c.js"));
  const loaded: string[] = [];
  const note = (name: string) => void loaded.push(name);
  const events: NodeJS.EventEmitter = process;
  events.on("hermes-test-tool", note);
  t.after(() => events.off("hermes-test-tool", note));
  const log = recordingLog();
  await loadTools(log, pathToFileURL(`${directory}/`));
  assert.deepEqual(loaded.sort(), ["a.js", "c.js"]);
  assert.deepEqual(log.lines, [
    { level: "warn", message: "tool file bad.js could not be loaded; its tools are missing" },
  ]);
});

test("every tool file of the product loads", async () => {
  const log = recordingLog();
  await loadTools(log);
  assert.deepEqual(log.lines, []);
  for (const name of registry.names()) assert.ok(registry.get(name)?.parameters.type === "object", name);
});
