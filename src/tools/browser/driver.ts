// The library that drives browsers. Most conversations open no page, so it is not part of the program: npm installs it with the first one.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { installByHand, npmInstall } from "../../home/npm-install.ts";
import type { HomePaths } from "../../home/paths.ts";
import { exists } from "../../kit/files.ts";

export type Driver = typeof import("playwright-core");

interface DriverOptions {
  readonly home: HomePaths;
  env(name: string): string | undefined;
  /** Says what takes so long. */
  notify(text: string): void;
}

/** Which one, to the byte. Tested with this one only, so no other is taken. */
export const DRIVER = {
  name: "playwright-core",
  version: "1.65.0",
  integrity: "sha512-vNSKgH6YqtN7cdT/L334zo0a+YwkrpicyrHJlWWPIm/Q+Nn2SWInil01oT0mbu96U4GgoRtCYQD9CzJQgju+lA==",
  /** A clone for development has it, or the user installed it next to Hermes. */
  installed: (): Promise<Driver> => import("playwright-core"),
};

const loading = new Map<string, Promise<Driver>>();

/** Rejects with a sentence for the user. Calls made at the same time wait for one installation. */
export function loadDriver(options: DriverOptions, driver = DRIVER): Promise<Driver> {
  const folder = join(options.home.root, "browser-driver", driver.version);
  const present = loading.get(folder) ?? load(folder, options, driver);
  loading.set(folder, present);
  present.catch(() => loading.delete(folder));
  return present;
}

async function load(folder: string, options: DriverOptions, driver: typeof DRIVER): Promise<Driver> {
  try {
    return await driver.installed();
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND")) throw error;
  }
  const entry = join(folder, "node_modules", driver.name, "index.mjs");
  if (!(await exists(entry))) await install(folder, options, driver);
  return import(pathToFileURL(entry).href);
}

/** npm refuses other bytes than the expected ones. */
async function install(folder: string, { env, notify }: DriverOptions, driver: typeof DRIVER): Promise<void> {
  const { name, version, integrity } = driver;
  const packages = { [name]: version };
  notify(`installing the browser driver ${name} ${version} into ${folder} (about 14 MB, once)`);
  const outcome = await npmInstall({ folder, packages, integrity: { [name]: integrity }, env });
  if (outcome.type === "installed") return;
  const why =
    outcome.type === "no npm"
      ? "npm, which installs it, is not on the PATH"
      : `npm could not install ${name}: ${outcome.reason}`;
  throw new Error(`No browser driver: ${why}. Install it yourself: ${installByHand(folder, packages)}`);
}
