// Which settings the program reads, told by the compiler: in a copy of the source the settings are taken out of the type of the
// configuration, and every complaint is a reader. The test of the mark "not used yet" looks for names; this one is sure of them.
//
//   node scripts/setting-readers.mjs          settings whose mark is wrong
//   node scripts/setting-readers.mjs --all    every setting with the files that read it
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eachField, isSection } from "../src/home/config/field.ts";
import { configSchema } from "../src/home/config/schema.ts";
import { projectNode, root } from "./setup.mjs";

/** They know every setting by name and act by none. */
const NO_READERS = /^src\/(?:home\/config\/|doors\/cli\/config(?:-show|-check)?\.ts|home\/known-variables\.ts)/;

/** Sections that are handed on whole, to code that takes its settings by name: the file that must name them. */
const HANDED_ON = [
  [
    /^(?:model|providers|custom_providers|provider_routing|openrouter)\b/,
    ["src/llm/providers/settings.ts", "src/llm/providers/target.ts"],
  ],
  [/^auxiliary\./, ["src/llm/auxiliary/client.ts"]],
  [/^budget\./, ["src/llm/gate/caps.ts"]],
  [/^web\.\w+\.base_url$/, ["src/tools/web/services.ts"]],
  [/^tool_loop_guardrails\./, ["src/agent/guardrails.ts"]],
  [/^security\.website_blocklist\./, ["src/safety/url-guard.ts"]],
  [/^display\.user_message_preview\./, ["src/doors/terminal/transcript.ts"]],
  // Looked up as they are written in the file: a platform's own default comes before that of the schema.
  [
    /^display\.(?:busy_ack_detail|cleanup_progress|long_running_notifications)$/,
    ["src/doors/gateway/desk.ts", "src/doors/gateway/live.ts"],
  ],
];

function handedOn(path) {
  const files = HANDED_ON.find(([pattern]) => pattern.test(path))?.[1] ?? [];
  const name = new RegExp(`\\b${path.split(".").at(-1)}\\b`);
  return files.filter((file) => name.test(readFileSync(join(root, file), "utf8")));
}

const typeName = (path) => `Settings_${path.join("_")}`;

/** Sections stay, what is in them goes. */
function typesOf(fields, path = []) {
  const inner = Object.entries(fields).filter(([, entry]) => isSection(entry));
  const lines = inner.map(([key]) => `  ${JSON.stringify(key)}: ${typeName([...path, key])};`);
  const own = `export interface ${typeName(path)} {\n${lines.join("\n")}\n}\n`;
  return [own, ...inner.flatMap(([key, entry]) => typesOf(entry.fields, [...path, key]))];
}

function complaints() {
  const folder = mkdtempSync(join(tmpdir(), "hermes-settings-"));
  try {
    cpSync(join(root, "src"), join(folder, "src"), { recursive: true, filter: (path) => !path.endsWith(".test.ts") });
    cpSync(join(root, "tsconfig.json"), join(folder, "tsconfig.json"));
    cpSync(join(root, "package.json"), join(folder, "package.json"));
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
    const schema = join(folder, "src", "home", "config", "schema.ts");
    const text = readFileSync(schema, "utf8").replace(
      /export type Config = [^;]+;/,
      `export type Config = ${typeName([])};`,
    );
    writeFileSync(schema, text + typesOf(configSchema.fields).join("\n"));
    const args = [join(root, "node_modules", "typescript", "bin", "tsc"), "-p", folder, "--pretty", "false"];
    const { stdout, status, error } = spawnSync(projectNode(), args, {
      encoding: "utf8",
      maxBuffer: 64_000_000,
      cwd: folder,
    });
    if (error || status === 0)
      throw error ?? new Error("the compiler complains about nothing: the type was not replaced");
    return stdout;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Setting -> files. */
function readersOf(output) {
  const found = new Map();
  const known = new Map();
  for (const { path } of eachField(configSchema.fields)) {
    const at = path.split(".");
    known.set(`${typeName(at.slice(0, -1))} ${at.at(-1)}`, path);
  }
  let file = "";
  const add = (type, name) => {
    const path = known.get(`${type} ${name}`);
    if (path === undefined || NO_READERS.test(file)) return;
    found.set(path, new Set([...(found.get(path) ?? []), file]));
  };
  for (const line of output.split("\n")) {
    file = /^(src\/[^(]+)\(/.exec(line)?.[1] ?? file;
    for (const [, name, type] of line.matchAll(
      /Property '(\w+)' (?:does not exist on|is missing in) type '(Settings_\w*)'/g,
    ))
      add(type, name);
    for (const [, type, names] of line.matchAll(
      /Type '(Settings_\w*)' is missing the following properties from type [^:]*: ([\w, ]+)/g,
    ))
      for (const name of names.split(/[ ,]+/)) add(type, name);
    for (const [, names, type] of line.matchAll(
      /Type '((?:"\w+"(?: \| )?)+)' does not satisfy the constraint 'keyof (Settings_\w*)'/g,
    ))
      for (const [, name] of names.matchAll(/"(\w+)"/g)) add(type, name);
  }
  return found;
}

const output = complaints();
const readers = readersOf(output);
let wrong = 0;
for (const { path, field } of eachField(configSchema.fields)) {
  const files = [...(readers.get(path) ?? (field.notUsed ? [] : handedOn(path)))];
  if (process.argv.includes("--all"))
    process.stdout.write(`${path}: ${field.notUsed ? "not used yet" : files.join(", ")}\n`);
  if ((files.length === 0) === (field.notUsed === true)) continue;
  wrong++;
  process.stdout.write(
    files.length === 0
      ? `${path}: no reader found\n`
      : `${path}: marked as not used, but read in ${files.join(", ")}\n`,
  );
}
process.stderr.write(`${readers.size} settings are read by type, ${wrong} marks are wrong\n`);
if (wrong > 0) process.exitCode = 1;
