// Packages that are not part of the program: npm installs them into the home when they are needed for the first time.
import { spawn } from "node:child_process";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { codeOf, isMissing } from "../kit/errors.ts";

interface NpmInstall {
  /** Gets `node_modules`; what was there before is replaced once the new one is whole. */
  readonly folder: string;
  /** Exact versions by name. */
  readonly packages: Readonly<Record<string, string>>;
  /** The hash of each package, for packages that need no others. Without it npm resolves what they need. */
  readonly integrity?: Readonly<Record<string, string>>;
  /** Written next to `node_modules`. */
  readonly files?: Readonly<Record<string, string>>;
  env(name: string): string | undefined;
}

type NpmOutcome =
  | { readonly type: "installed" }
  | { readonly type: "no npm" }
  | { readonly type: "failed"; readonly reason: string };

/** npm reads its own settings; what else the shell knows (keys, tokens) is none of its business. */
const FOR_NPM = [
  ..."PATH HOME USER LANG TMPDIR XDG_CACHE_HOME XDG_CONFIG_HOME NODE_EXTRA_CA_CERTS SSL_CERT_FILE".split(" "),
  ..."HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy".split(" "),
  ..."npm_config_registry npm_config_cache npm_config_userconfig npm_config_cafile npm_config_strict_ssl".split(" "),
];
const LONGEST_MS = 10 * 60_000;

/** Runs no scripts of packages. Several processes may install the same at once; the folder is whole all the time. */
export async function npmInstall({ folder, packages, integrity, files = {}, env }: NpmInstall): Promise<NpmOutcome> {
  const parent = dirname(folder);
  await mkdir(parent, { recursive: true, mode: 0o700 });
  const staging = await mkdtemp(join(parent, ".new-"));
  try {
    await writeFile(join(staging, "package.json"), JSON.stringify({ private: true, dependencies: packages }));
    if (integrity) await writeFile(join(staging, "package-lock.json"), lockFile(packages, integrity));
    for (const [name, text] of Object.entries(files)) await writeFile(join(staging, name), text);
    const variables = FOR_NPM.map((name) => [name, env(name)]).filter(([, value]) => value !== undefined);
    const outcome = await runNpm(integrity ? "ci" : "install", staging, Object.fromEntries(variables));
    if (outcome.type === "installed") await putInPlace(staging, folder);
    return outcome;
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/** The command a person can type instead. */
export function installByHand(folder: string, packages: Readonly<Record<string, string>>): string {
  const words = Object.entries(packages).map(([name, version]) => `${name}@${version}`);
  return `npm install --prefix ${folder} ${words.join(" ")}`;
}

function lockFile(packages: NpmInstall["packages"], integrity: Readonly<Record<string, string>>): string {
  const rows = Object.entries(packages).map(([name, version]) => [
    `node_modules/${name}`,
    { version, integrity: integrity[name] },
  ]);
  return JSON.stringify({
    lockfileVersion: 3,
    packages: { "": { dependencies: packages }, ...Object.fromEntries(rows) },
  });
}

/** What is there already makes way: it may be of other versions, or damaged. Another process may do the same at this moment. */
async function putInPlace(staging: string, folder: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await rename(staging, folder);
    } catch (error) {
      if (attempt === 5 || !["ENOTEMPTY", "EEXIST", "EPERM"].includes(codeOf(error) ?? "")) throw error;
    }
    const old = join(dirname(folder), `.old-${basename(staging)}`);
    await rename(folder, old).catch((error: unknown) => {
      if (!isMissing(error)) throw error;
    });
    await rm(old, { recursive: true, force: true });
  }
}

function runNpm(command: "ci" | "install", cwd: string, env: Readonly<Record<string, string>>): Promise<NpmOutcome> {
  const quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"];
  // A registry that is not reached is tried twice again, and not for minutes.
  const patience = ["--fetch-retry-maxtimeout=15000"];
  return new Promise((resolve) => {
    const child = spawn("npm", [command, ...quiet, ...patience], {
      ...{ cwd, env, timeout: LONGEST_MS },
      stdio: ["ignore", "ignore", "pipe"],
    });
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text) => {
      said += text;
    });
    child.on("error", (error) =>
      resolve(codeOf(error) === "ENOENT" ? { type: "no npm" } : { type: "failed", reason: error.message }),
    );
    child.on("close", (code, signal) => {
      const reasons = said.split("\n").map((line) => line.replace(/^npm (?:error|ERR!) ?/, "").trim());
      const reason = reasons.find((line) => line !== "" && !/^(?:code|errno|syscall|path) /.test(line));
      resolve(
        code === 0
          ? { type: "installed" }
          : { type: "failed", reason: reason ?? `it ended with ${code ?? signal ?? "an error"}` },
      );
    });
  });
}
