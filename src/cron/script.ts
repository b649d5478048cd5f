// The script of a job: a program of the user's in `scripts/`, run where the commands of scheduled runs work.
import { readFile, realpath, rm } from "node:fs/promises";
import { extname, join, resolve } from "node:path";
import type { OpenHome } from "../home/open.ts";
import type { HomePaths } from "../home/paths.ts";
import { isMissing } from "../kit/errors.ts";
import { isWithin } from "../kit/files.ts";
import { parseJson } from "../kit/json.ts";
import { decideUnattended } from "../safety/verdict.ts";
import { openEnvironment } from "../sandbox/open.ts";
import { JobError } from "./jobs.ts";

interface ScriptResult {
  readonly stdout: string;
  /** Why it failed; null when it did not. */
  readonly error: string | null;
}

const PROGRAMS: Readonly<Record<string, string>> = {
  ".sh": "bash",
  ".bash": "bash",
  ".py": "python3",
  ".js": "node",
  ".mjs": "node",
  ".ts": "node",
};

const folderOf = (paths: HomePaths) => paths.at("scripts");

/** Where the script is. Throws a `JobError` for one outside `scripts/`, of an unknown kind, or that does not exist. */
export async function scriptPath(script: string, { paths }: Pick<OpenHome, "paths">): Promise<string> {
  const folder = folderOf(paths);
  const asked = resolve(folder, script);
  if (script.split(/[\\/]/).includes("..") || !isWithin(asked, folder))
    throw new JobError(`The script ${script} is not in ${folder}; put it there and name it by its file name.`);
  if (PROGRAMS[extname(asked).toLowerCase()] === undefined)
    throw new JobError(
      `The script ${script} is of no known kind; its name must end in ${Object.keys(PROGRAMS).join(", ")}.`,
    );
  try {
    const [real, base] = await Promise.all([realpath(asked), realpath(folder)]);
    if (isWithin(real, base)) return real;
  } catch (error) {
    if (!isMissing(error)) throw error;
    throw new JobError(`The script ${script} does not exist in ${folder}.`);
  }
  throw new JobError(`The script ${script} is a link that leads out of ${folder}.`);
}

interface ScriptRun {
  readonly home: OpenHome;
  readonly workdir: string | null;
  readonly sessionId: string;
  readonly signal: AbortSignal;
}

/** Never rejects for what the script did. Keys of the home are not in its environment, and what it prints is masked. */
export async function runScript(
  script: string,
  { home, workdir, sessionId, signal }: ScriptRun,
): Promise<ScriptResult> {
  const path = await scriptPath(script, home);
  const timeoutMs = home.config().cron.script_timeout_seconds * 1000;
  const cwd = workdir ?? folderOf(home.paths);
  const environment = await openEnvironment(home.config(), {
    environment: home.environment(),
    withheld: home.withheld(),
    cwd,
    privateHome: home.paths.at("home"),
    sessionId: () => sessionId,
    userHome: home.osHome,
    hermesHome: home.paths,
    unattended: true,
    report: (problem) => home.log.warn(problem),
  });
  try {
    const isHere = environment.kind === "local";
    const errors = join(environment.tempDir, `hermes-cron-${sessionId}.err`);
    const program = programFor(path, isHere);
    const run = async (line: string, stdin?: string) => {
      const outcome = decideUnattended(line, {
        home: home.paths.dir,
        osHome: home.osHome,
        sudoPasswordSet: false,
        denyGlobs: home.config().approvals.deny,
      });
      if (!outcome.approved) throw new JobError(`The script ${script} was not run: ${outcome.message}`);
      const place = isHere || workdir !== null ? { cwd } : {};
      return environment.execute(outcome.cleared, {
        timeoutMs,
        signal,
        stateless: true,
        ...place,
        ...(stdin === undefined ? {} : { stdin }),
      });
    };
    // A sandbox does not show the folder: there the program reads the script.
    const done = await run(`${program} 2> ${quoted(errors)}`, isHere ? undefined : await readFile(path, "utf8"));
    const stdout = home.redact(done.output);
    if (done.interrupted) return { stdout, error: `the script ${script} was stopped` };
    if (done.timedOut) return { stdout, error: `the script ${script} did not end within ${timeoutMs / 1000} s` };
    const { output } = await run(`cat ${quoted(errors)}`);
    await (environment.files?.remove(errors) ?? rm(errors, { force: true }));
    if (done.exitCode === 0) return { stdout, error: null };
    const last = home.redact(output.trim() || done.output.trim()).slice(-2000);
    return { stdout, error: `the script ${script} ended with code ${done.exitCode}${last === "" ? "" : `: ${last}`}` };
  } finally {
    await environment.cleanup();
  }
}

function programFor(path: string, isHere: boolean): string {
  const program = PROGRAMS[extname(path).toLowerCase()] ?? "bash";
  if (isHere) return `${program === "node" ? quoted(process.execPath) : program} ${quoted(path)}`;
  return program === "bash" ? "bash -s" : program === "python3" ? "python3 -" : "node --input-type=module -";
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/** The last line says that there is nothing for the agent to do. */
export function wantsNoAgent(stdout: string): boolean {
  const last = stdout.trimEnd().split("\n").at(-1) ?? "";
  const value = parseJson(last);
  return typeof value === "object" && value !== null && "wakeAgent" in value && value.wakeAgent === false;
}
