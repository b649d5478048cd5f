// Users read plain English: the words that CONTEXT.md rules out are in no text they see.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { repository } from "./support/run-hermes.ts";
import { sourceTexts } from "./support/texts.ts";

/** What the model reads is worded for it and counted in tokens; these rooms and files hold such texts, or samples of attacks. */
const FOR_THE_MODEL =
  /^src\/(?:prompt|tools|safety|skills|memory)\/|^src\/agent\/(?:compression\/summar|delegation\/|judge|request|guardrails|review\/|titles|trajectory)|^src\/home\/language\/|shell-line|search\/english/;

const banned = bannedPhrases(readFileSync(join(repository, "CONTEXT.md"), "utf8"));
const pattern = new RegExp(`(?<!\\p{L})(?:${banned.join("|")})(?!\\p{L})`, "iu");

function bannedPhrases(context: string): readonly string[] {
  const table = context.slice(context.indexOf("| Say | Do not say |")).split("\n").slice(2);
  return table.flatMap((row) => row.split("|")[2]?.split(",") ?? []).flatMap((phrase) => phrase.trim() || []);
}

test("the list of CONTEXT.md is read", () => {
  assert.ok(banned.length > 30, String(banned.length));
  assert.match("The key stands in config.yaml", pattern);
  assert.doesNotMatch("It asks, understands in time and remends", pattern);
});

test("no message, help text or setting of the program uses such a word", () => {
  const texts = sourceTexts("src/**/*.ts").filter(({ file }) => !FOR_THE_MODEL.test(file));
  assert.ok(texts.length > 3000, String(texts.length));
  assert.deepEqual(
    texts.filter(({ text }) => pattern.test(text)).map(({ file, text }) => `${file}: ${text}`),
    [],
  );
});

test("no page of the documentation uses such a word", () => {
  const pages = [...globSync("docs/{guide,reference}/*.md", { cwd: repository }), "README.md", "SECURITY.md"];
  assert.ok(pages.length > 25, String(pages.length));
  const found = pages.flatMap((page) =>
    readFileSync(join(repository, page), "utf8")
      .split("\n")
      .flatMap((line, at) => (pattern.test(line) ? [`${page}:${at + 1}: ${pattern.exec(line)?.[0]}`] : [])),
  );
  assert.deepEqual(found, []);
});
