import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { defaultConfig } from "../../home/config/schema.ts";
import { knownVariables } from "../../home/known-variables.ts";
import { collectSecrets } from "../../home/secrets.ts";
import { isSecretName } from "../../sandbox/child-env.ts";
import { builtinPlatforms } from "./registry.ts";

/** What entries call a secret, and what the code of platforms reads under such a name. */
async function secretVariables(): Promise<readonly string[]> {
  const declared = (await builtinPlatforms()).flatMap(({ variables }) => variables.filter(({ secret }) => secret));
  const cwd = join(import.meta.dirname, "platforms");
  const read = globSync("*/*.ts", { cwd, exclude: ["**/*.test.ts"] }).flatMap((file) => [
    ...readFileSync(join(cwd, file), "utf8").matchAll(/(?<=, )"([A-Z][A-Z0-9_]*_(?:TOKEN|SECRET|PASSWORD|KEY))"/g),
  ]);
  return [...new Set([...declared.map(({ name }) => name), ...read.map(([, name = ""]) => name)])];
}

test("every secret of a platform is known as one, masked in what is shown, and kept from commands", async () => {
  const names = await secretVariables();
  assert.ok(names.length > 15, names.join(", "));
  for (const name of names) {
    const value = `value-of-${name}`;
    const sources = { environment: () => ({ [name]: value }), config: defaultConfig, authFile: "/missing" };
    assert.ok(
      knownVariables.some((one) => one.name === name && one.secret && !one.notUsed),
      `${name} is not in src/home/known-variables.ts`,
    );
    assert.deepEqual(collectSecrets(sources)(), [value], `${name} is not masked`);
    assert.ok(isSecretName(name), `${name} reaches commands`);
  }
});
