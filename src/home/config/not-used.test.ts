// Which settings and variables the program reads, found in its source: a mark that is missing or out of date is an error here.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { knownVariables } from "../known-variables.ts";
import { installRoot } from "../paths.ts";
import { eachField } from "./field.ts";
import { configSchema } from "./schema.ts";

const here = fileURLToPath(new URL(".", import.meta.url));

/** Source without comments. The schema, and the commands that show and change settings, know every name and read none. */
const sources = readdirSync(join(installRoot(), "src"), { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
  .map((name) => join(installRoot(), "src", name))
  .filter(
    (path) => !path.startsWith(here) && !/^(?:config|config-(?:show|check)|known-variables)\.ts$/.test(basename(path)),
  )
  .map((path) =>
    readFileSync(path, "utf8")
      .replace(/\/\*[\s\S]*?\*\//g, "")
      .replace(/(^|\s)\/\/.*$/gm, "$1"),
  );
const code = sources.map(withoutTexts);

/** Texts name settings too; `["name"]` is code, and one setting is called like a keyword. */
function withoutTexts(source: string): string {
  return source
    .replace(/\binterface \w+/g, "")
    .replace(/\["\w+"\]|"(?:[^"\\\n]|\\.)*"/g, (found) => (found.startsWith("[") ? found : '""'));
}

/** Sections that are handed on whole, to code that does not name them: what reads their settings there. */
const handedOn: readonly (readonly [path: RegExp, reader: string])[] = [
  [/^budget\.\w+\.(?:usd|tokens)$/, "capOf(caps, scope).tokens"],
  [/^web\.\w+\.base_url$/, "config.web[name]"],
  [/^context_references\.remote$/, "settings.remote ||"],
  [/^display\.user_message_preview\.(?:first|last)_lines$/, "shown.first_lines + shown.last_lines"],
  [/^checkpoints\.max_file_size_mb$/, "limits().max_file_size_mb"],
  [/^security\.website_blocklist\.\w+$/, "{ enabled, domains, shared_files: files } = settings()"],
  [/^checkpoints\.delete_orphans$/, "delete_orphans } = limits()"],
  [/^session_reset\.(?:mode|idle_minutes|at_hour)$/, "session_reset: general, platforms } = config"],
  [/^display\.runtime_footer\.\w+$/, "runtime_footer: settled } = home.config().display"],
  [
    /^display\.(?:busy_ack_detail|cleanup_progress|long_running_notifications)$/,
    "asTable(home.configTree()?.display)[key]",
  ],
];

function isRead(path: string): boolean {
  const handed = handedOn.find(([pattern]) => pattern.test(path));
  if (handed) return code.some((text) => text.includes(handed[1]));
  const [section, task, key] = path.split(".");
  if (section === "auxiliary" && task !== "background_review" && isTaskSetting(task ?? "", key ?? "")) return true;
  return code.some((text) => readsIn(text, path.split(".")));
}

/** All side tasks are asked in one place, which takes their settings by name; somebody must ask. */
function isTaskSetting(task: string, key: string): boolean {
  const asked = sources.some((text) => text.includes(`task: "${task}"`));
  return asked && code.some((text) => text.includes("auxiliary[task]") && new RegExp(`\\b${key}\\b`).test(text));
}

function readsIn(text: string, path: readonly string[]): boolean {
  const key = `\\b${path.at(-1)}\\b`;
  if (!new RegExp(key).test(text)) return false;
  const owner = path.length > 1 ? `\\b${path.at(-2)}` : "(?:\\bconfig\\(\\)|\\bconfig|\\bsettings)";
  const owners = [
    owner,
    ...[...text.matchAll(new RegExp(`const (\\w+) = [^;]*${owner};`, "g"))].map(([, name]) => `\\b${name}`),
  ];
  const isTaken = owners.some(
    (from) =>
      new RegExp(`${from}\\??\\.${key}`).test(text) ||
      [...text.matchAll(/\{([^{}]*)\}\s*(?::[^=;{}]+)?=\s*([^;{}]*?)(?:;|\) \{)/g)].some(
        ([, names = "", origin = ""]) => new RegExp(key).test(names) && new RegExp(`${from}\\)?$`).test(origin.trim()),
      ),
  );
  if (isTaken || path.length === 1) return isTaken;
  return new RegExp(`${owner}: \\{[^{}]*${key}`).test(text) || text.includes(`["${path.at(-2)}"]`);
}

test("settings that nothing reads are marked as not used yet, and no others", () => {
  const fields = [...eachField(configSchema.fields)];
  const marked = fields.filter(({ field }) => field.notUsed).map(({ path }) => path);
  const unread = fields.filter(({ path }) => !isRead(path)).map(({ path }) => path);
  assert.deepEqual(marked, unread);
  assert.ok(marked.includes("lsp"));
  assert.ok(marked.length < fields.length / 2, `${marked.length} of ${fields.length}`);
});

test("variables that nothing reads are marked as not used yet, and no others", () => {
  // Their names stand where commands are kept from seeing them, decide about toolsets that have no tools yet, or are what a pasted key is
  // kept as.
  const mentioned = new Set(["DAYTONA_API_KEY", "GROQ_API_KEY"]);
  const launcher = readFileSync(join(installRoot(), "bin", "hermes.mjs"), "utf8");
  const isKnown = (name: string) => [...sources, launcher].some((text) => new RegExp(`\\b${name}\\b`).test(text));
  for (const { name, notUsed = false } of knownVariables) {
    assert.equal(notUsed, mentioned.has(name) || !isKnown(name), name);
  }
});
