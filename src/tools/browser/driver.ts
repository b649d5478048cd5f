// The library that drives browsers. Most conversations open no page, so it is not part of the program: npm installs it with the first one.
import { spawn } from "node:child_process";
import { mkdir, mkdtemp, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { HomePaths } from "../../home/paths.ts";
import { findProgram } from "../../sandbox/child-env.ts";

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

/** npm reads its own settings; what else the shell knows (keys, tokens) is none of its business. */
const FOR_NPM = [
  ..."PATH HOME USER LANG TMPDIR XDG_CACHE_HOME XDG_CONFIG_HOME NODE_EXTRA_CA_CERTS SSL_CERT_FILE".split(" "),
  ..."HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy".split(" "),
  ..."npm_config_registry npm_config_cache npm_config_userconfig npm_config_cafile npm_config_strict_ssl".split(" "),
];
const LONGEST_MS = 10 * 60_000;

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
  if (!(await isThere(entry))) await install(folder, options, driver);
  return import(pathToFileURL(entry).href);
}

/** In a folder of its own, which takes its place when it is whole. */
async function install(folder: string, { env, notify }: DriverOptions, driver: typeof DRIVER): Promise<void> {
  const { name, version, integrity } = driver;
  const byHand = `Install it yourself: npm install --prefix ${folder} ${name}@${version}`;
  const npm = await findProgram("npm", env("PATH") ?? "");
  if (npm === null) throw new Error(`No browser driver: npm, which installs it, is not on the PATH. ${byHand}`);
  notify(`installing the browser driver ${name} ${version} into ${folder} (about 14 MB, once)`);
  const parent = join(folder, "..");
  await mkdir(parent, { recursive: true, mode: 0o700 });
  const staging = await mkdtemp(join(parent, ".new-"));
  try {
    const dependencies = { [name]: version };
    const packages = { "": { dependencies }, [`node_modules/${name}`]: { version, integrity } };
    await writeFile(join(staging, "package.json"), JSON.stringify({ private: true, dependencies }));
    await writeFile(join(staging, "package-lock.json"), JSON.stringify({ lockfileVersion: 3, packages }));
    const variables = FOR_NPM.map((variable) => [variable, env(variable)]).filter(([, value]) => value !== undefined);
    const failure = await runNpm(npm, staging, Object.fromEntries(variables));
    if (failure !== null) throw new Error(`No browser driver: npm could not install ${name}: ${failure}. ${byHand}`);
    await rename(staging, folder);
  } catch (error) {
    await rm(staging, { recursive: true, force: true });
    // Another process may have been faster.
    if (!(await isThere(join(folder, "node_modules", name)))) throw error;
  }
}

/** Null, or the line in which npm says why not. */
function runNpm(npm: string, cwd: string, env: Readonly<Record<string, string>>): Promise<string | null> {
  const args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"];
  return new Promise((resolve) => {
    const child = spawn(npm, args, { cwd, env, stdio: ["ignore", "ignore", "pipe"], timeout: LONGEST_MS });
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text) => {
      said += text;
    });
    child.on("error", (error) => resolve(error.message));
    child.on("close", (code, signal) => {
      const reasons = said.split("\n").map((line) => line.replace(/^npm (?:error|ERR!) ?/, "").trim());
      const reason = reasons.find((line) => line !== "" && !/^(?:code|errno|syscall|path) /.test(line));
      resolve(code === 0 ? null : (reason ?? `it ended with ${code ?? signal}`));
    });
  });
}

function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
