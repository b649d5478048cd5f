import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

/** A TypeScript file of test/support/ as one file of JavaScript: tests that start it dozens of times wait a third of the time. */
export function bundledScript(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), "hermes-script-"));
  after(() => rmSync(folder, { recursive: true, force: true }));
  const outfile = join(folder, "script.mjs");
  const entryPoints = [fileURLToPath(new URL(name, import.meta.url))];
  // Packages that are CommonJS inside ask for `require`.
  const banner = {
    js: 'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);',
  };
  buildSync({ entryPoints, outfile, bundle: true, platform: "node", format: "esm", banner, logLevel: "error" });
  return outfile;
}
