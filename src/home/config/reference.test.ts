import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { eachField } from "./field.ts";
import { configReference } from "./reference.ts";
import { configSchema } from "./schema.ts";

test("the reference names every key", () => {
  const text = configReference();
  for (const { path } of eachField(configSchema.fields)) assert.ok(text.includes(`\`${path}\``), path);
});

test("the reference says what is not used yet", () => {
  const text = configReference();
  assert.match(text, /\| `curator\.interval_hours` \|.*\| \*Not used yet:\* /);
  assert.match(text, /### auxiliary\.skills_hub\n\n\*Not used yet:\* Searches for skills\./);
  assert.match(text, /\| `HONCHO_API_KEY` \| \*Not used yet:\* /);
  assert.doesNotMatch(text, /\| `agent\.max_turns` \|.*Not used yet/);
});

test("docs/reference/config.md is what the schema says; node scripts/generate-config-reference.mjs writes it", () => {
  const file = new URL("../../../docs/reference/config.md", import.meta.url);
  assert.equal(readFileSync(file, "utf8"), configReference());
});
