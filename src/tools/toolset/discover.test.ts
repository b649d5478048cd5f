import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { recordingLog } from "../../../test/support/tool-context.ts";
import { importTools, loadTools, toolFiles } from "./discover.ts";
import { registry } from "./registry.ts";

test("only files with a registration at their top level are tools", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "hermes-tools-"));
  t.after(() => rm(directory, { recursive: true }));
  const files = {
    "b.ts": 'import { register } from "./registry.ts";\nregister({ name: "b" });\n',
    "a.ts": "register<S>(spec);\n",
    "inside.ts": "export function later() {\n  register({});\n}\n",
    "plain.ts": "export const x = 1;\n",
    "registry.ts": "register({});\n",
    "b.test.ts": "register({});\n",
    "notes.md": "register({})\n",
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
  assert.deepEqual(await toolFiles(pathToFileURL(`${directory}/`)), ["a.ts", "b.ts"]);
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
