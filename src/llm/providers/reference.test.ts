import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { ALIASES, LOCAL_SERVERS, PROVIDERS, type ProviderRow } from "./table.ts";

const page = await readFile(new URL("../../../docs/reference/providers.md", import.meta.url), "utf8");

/** One line of the reference table, as the table of the program has it. */
function line(row: ProviderRow): string {
  const code = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(", ") || "–";
  const url = [row.baseUrl && `\`${row.baseUrl}\``, row.baseUrlEnv && `(\`${row.baseUrlEnv}\`)`]
    .filter(Boolean)
    .join(" ");
  const mode = row.mode === "by_url" ? "by URL" : row.mode === "by_model" ? "by model" : `\`${row.mode}\``;
  return `| \`${row.id}\` | ${row.name} | ${code(row.keyEnv)} | ${url || "yours"} | ${mode} | ${code(ALIASES[row.id] ?? [])} |`;
}

for (const row of PROVIDERS) {
  test(`the reference has ${row.id} as the program has it`, () =>
    assert.ok(page.includes(line(row)), `docs/reference/providers.md needs this line:\n${line(row)}`));
}

test("the reference has no provider that the program does not have", () => {
  const named = [...page.matchAll(/^\| `([a-z-]+)` \| [^|]+ \| [^|]+ \| [^|]+ \| [^|]+ \| [^|]+ \|$/gm)].map(
    (match) => match[1],
  );
  assert.deepEqual(
    named,
    PROVIDERS.map((row) => row.id),
  );
});

test("the reference names the addresses of local servers", () => {
  for (const [name, url] of Object.entries(LOCAL_SERVERS)) assert.ok(page.includes(`\`${name}\` | \`${url}\``), name);
});
