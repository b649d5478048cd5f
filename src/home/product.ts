// Name, maker and version of the product: the one place that knows them.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const PRODUCT = "Hermes Agent";
export const MAKER = "Nous Research";
export const VERSION = "0.1.0";
export const RELEASED = "2026-11-15";

export const versionLine = () => `${PRODUCT} v${VERSION} (${RELEASED})`;

/** The folder of the installed package, from source and from the bundle alike. */
export function installRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "package.json")) && dirname(folder) !== folder) folder = dirname(folder);
  return folder;
}

/** What runs: the source of a clone, or what was built from it. */
export const runsFromSource = () => import.meta.url.endsWith(".ts");

/** A build lies beside the source. */
export const hasBuild = () => existsSync(join(installRoot(), "dist", "main.js"));

/** The plugins that came with the program. */
export const bundledPlugins = () => join(installRoot(), "plugins");
