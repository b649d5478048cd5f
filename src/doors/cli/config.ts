// hermes config: show, read and change settings.

import { spawn } from "node:child_process";
import { access, constants, open, readFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import type { Command } from "commander";
import { CONFIG_VERSION } from "../../home/config/schema.ts";
import { mirroredVariable, parseKeyPath, planSet } from "../../home/config/set-key.ts";
import { child } from "../../home/config/store.ts";
import { isBlock, loadYaml, parseText, renderBlock } from "../../home/config/yaml-text.ts";
import { refusal } from "../../home/environment.ts";
import { belongsIntoEnv, knownVariables } from "../../home/known-variables.ts";
import { ConfigError } from "../../home/open.ts";
import { maskTree, maskValue } from "../../home/secrets.ts";
import { codeOf } from "../../kit/errors.ts";
import { skillsContext } from "../../skills/open.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { checkConfig } from "./config-check.ts";
import { showConfig, showConfigJson } from "./config-show.ts";

export function define(command: Command, ctx: CliContext): void {
  const { home, io } = ctx;
  const act =
    <Args extends unknown[]>(action: (...args: Args) => void | Promise<void>) =>
    async (...args: Args) => {
      try {
        await action(...args);
      } catch (error) {
        if (error instanceof ConfigError) throw new ExitError(1, error.message);
        throw error;
      }
    };
  const show = async ({ json }: { json?: boolean }) => {
    io.out(json ? showConfigJson(ctx) : await showConfig(ctx));
  };

  command
    .description("Show and change settings (config.yaml and .env)")
    .argument("[subcommand]")
    .allowExcessArguments()
    .option("--json", "machine-readable")
    .action((word: string | undefined, options: { json?: boolean }) => {
      if (word === undefined) return show(options);
      throw new ExitError(1, `unknown command "config ${word}".\n${command.helpInformation().trimEnd()}`);
    });
  command
    .command("show")
    .description("show the settings and where they are")
    .option("--json", "machine-readable")
    .action((_options: unknown, self: Command) => show(self.optsWithGlobals()));
  command
    .command("get")
    .description("print one setting, e.g. agent.max_turns")
    .argument("[key]")
    .option("--json", "print as JSON")
    .action(
      act((key: string | undefined, _options: unknown, self: Command) => getKey(ctx, key, self.optsWithGlobals())),
    );
  command
    .command("set")
    .description("change one setting; keys and tokens go to .env")
    .argument("[key]")
    .argument("[value]")
    .option("--force", "allow replacing sections, unknown keys and values of another type")
    .action(
      act((key: string | undefined, value: string | undefined, options: { force?: boolean }) =>
        setKey(ctx, key, value, options),
      ),
    );
  command
    .command("unset")
    .description("remove one setting")
    .argument("[key]")
    .action(act((key: string | undefined) => unsetKey(ctx, key)));
  command
    .command("edit")
    .description("open config.yaml in your editor")
    .action(act(() => editConfig(ctx)));
  command
    .command("path")
    .description("print the path of config.yaml")
    .action(() => io.out(`${home.paths.configFile}\n`));
  command
    .command("env-path")
    .description("print the path of .env")
    .action(() => io.out(`${home.paths.envFile}\n`));
  command
    .command("check")
    .description("check for mistakes and missing keys")
    .action(act(() => checkConfig(ctx)));
  command
    .command("migrate")
    .description("migrate an older config.yaml")
    .action(act(() => migrate(ctx)));
}

const SANDBOXES: Readonly<Record<string, string>> = { auto: "auto", bubblewrap: "on" };

function getKey({ home, io }: CliContext, key: string | undefined, { json }: { json?: boolean }): void {
  if (key === undefined) throw new ExitError(1, "Usage: hermes config get KEY [--json]");
  const plainModel =
    key === "model" && typeof home.configTree()?.model === "string" ? home.config().model.default : undefined;
  const value = plainModel ?? parseKeyPath(key).reduce<unknown>(child, home.config());
  const variable = value === undefined && belongsIntoEnv(key) ? home.env(key.toUpperCase()) : undefined;
  if (value === undefined && variable === undefined) throw new ExitError(1, "not set");
  // One secret is printed when it is asked for by name; a section shows that it is there.
  const shown = variable === undefined ? maskTree(value) : maskValue(variable);
  io.out(`${json ? JSON.stringify(shown, null, 2) : printValue(shown)}\n`);
}

function printValue(value: unknown): string {
  if (isBlock(value)) return renderBlock(value, "").join("\n");
  return typeof value === "object" && value !== null ? JSON.stringify(value) : String(value);
}

async function setKey(
  { home, io }: CliContext,
  key: string | undefined,
  text: string | undefined,
  { force = false }: { force?: boolean },
): Promise<void> {
  const isVariable = key !== undefined && !key.includes(".") && belongsIntoEnv(key);
  const given =
    text ??
    (isVariable && io.stdinIsTerminal ? (await io.secret(`Value of ${key.toUpperCase()}: `)) || undefined : undefined);
  if (key === undefined || given === undefined) throw new ExitError(1, "Usage: hermes config set KEY VALUE [--force]");
  if (isVariable) {
    const name = key.toUpperCase();
    await home.setEnv(name, given);
    const notUsed = knownVariables.some((variable) => variable.name === name && variable.notUsed);
    io.out(isSet(`${name} in ${home.display(home.paths.envFile)}`, notUsed));
    return;
  }
  const tree = home.configTree();
  if (tree === null) throw new ExitError(1, brokenFile(home));
  const yaml = await loadYaml();
  const parse = (flow: string) => {
    const parsed = parseText(yaml, `value: ${flow}`);
    return parsed.ok ? parsed.tree.value : undefined;
  };
  const planned = planSet(tree, key, given, { force, parse });
  const sandbox = planned.path.join(".") === "terminal.backend" ? SANDBOXES[String(planned.value)] : undefined;
  // The Python original refuses a backend it does not know, and the home must go on working there.
  if (sandbox !== undefined) {
    io.err(`terminal.backend ${planned.value} means local with a sandbox: saved as terminal.sandbox ${sandbox}.\n`);
    await home.setConfigKey(["terminal", "sandbox"], sandbox);
  }
  const { path, notices, notUsed } = planned;
  const value = sandbox === undefined ? planned.value : "local";
  await home.setConfigKey(path, value);
  const mirror = mirroredVariable(path);
  if (mirror !== null) await home.setEnv(mirror, typeof value === "object" ? JSON.stringify(value) : String(value));
  for (const notice of notices) io.err(`${notice}\n`);
  const shown = maskTree(value, path.at(-1));
  const assignment = `${path.join(".")} = ${typeof shown === "string" ? shown : JSON.stringify(shown)}`;
  io.out(isSet(`${assignment} in ${home.display(home.paths.configFile)}`, notUsed));
}

function isSet(what: string, notUsed: boolean): string {
  return notUsed ? `⚠ Set ${what}, but it has no effect yet.\n` : `✓ Set ${what}\n`;
}

async function unsetKey({ home, io }: CliContext, key: string | undefined): Promise<void> {
  if (key === undefined) throw new ExitError(1, "Usage: hermes config unset KEY");
  const tree = home.configTree();
  if (!key.includes(".") && belongsIntoEnv(key) && tree?.[key] === undefined) {
    if (!(await home.removeEnv(key.toUpperCase())))
      throw new ExitError(1, `${key.toUpperCase()} is not set in ${home.paths.envFile}`);
    io.out(`✓ Removed ${key.toUpperCase()} from ${home.display(home.paths.envFile)}\n`);
    return;
  }
  if (tree === null) throw new ExitError(1, brokenFile(home));
  const path = parseKeyPath(key);
  if (path.reduce<unknown>(child, tree) === undefined)
    throw new ExitError(1, `${key} is not set in ${home.paths.configFile}`);
  await home.unsetConfigKey(path);
  const mirror = mirroredVariable(path);
  if (mirror !== null) await home.removeEnv(mirror);
  io.out(`✓ Removed ${key} from ${home.display(home.paths.configFile)}\n`);
}

function brokenFile(home: CliContext["home"]): string {
  const problem = home.configProblem;
  const place = problem ? ` at line ${problem.line}, column ${problem.column}: ${problem.message}` : "";
  return `${home.paths.configFile} is broken${place}. Nothing was saved; fix it with: hermes config edit`;
}

async function migrate(ctx: CliContext): Promise<void> {
  const { home, io } = ctx;
  if (home.configBroken) throw new ExitError(1, brokenFile(home));
  const { from, to, changed, warnings } = await home.migrate();
  for (const line of changed) io.out(`✓ ${line}\n`);
  for (const line of warnings) io.err(`${line}\n`);
  if (from === to) io.out(`${home.display(home.paths.configFile)} is up to date (version ${to}).\n`);
  else io.out(`✓ ${home.display(home.paths.configFile)} is now version ${to}, was ${from}.\n`);
  if (!io.stdinIsTerminal) return;
  await offerKey(ctx);
  await askForSkillSettings(ctx);
}

/** Asks for a model key only; everything else is optional. */
async function offerKey({ home, io }: Pick<CliContext, "home" | "io">): Promise<void> {
  if (Object.keys(home.variables()).some((name) => /_API_KEY$/.test(name)) || home.config().model.api_key) return;
  const name = (
    await io.question("No model key is set. Name of a key to add, e.g. OPENROUTER_API_KEY (Enter to skip): ")
  )?.trim();
  if (!name) return;
  const value = (await io.secret(`Value of ${name.toUpperCase()}: `))?.trim();
  if (!value) return;
  await home.setEnv(name.toUpperCase(), value);
  io.out(`✓ Set ${name.toUpperCase()} in ${home.display(home.paths.envFile)}\n`);
}

// hermes config edit: the user's editor on config.yaml, and a look at the result.

async function editConfig({ home, io }: CliContext): Promise<void> {
  const path = home.paths.configFile;
  if (home.managed) throw new ExitError(1, refusal(home.managed, path));
  await createIfAbsent(path);
  const editor = await findEditor({ home, io }, `edit the file yourself: ${path}`);
  const code = await runEditor(editor, path, home.environment());
  if (code !== 0) throw new ExitError(1, `${editor} exited with code ${code}; ${path} is as it left it.`);

  const parsed = parseText(await loadYaml(), await readFile(path, "utf8"));
  if (!parsed.ok) {
    const { line, column, message } = parsed.problem;
    throw new ExitError(1, `✗ Line ${line}, column ${column}: ${message}\n  ${path} is ignored until this is fixed.`);
  }
  home.config();
  for (const { message } of home.configFindings()) io.err(`⚠ ${message}\n`);
  io.out(`✓ ${home.display(path)} is fine\n`);
}

async function createIfAbsent(path: string): Promise<void> {
  try {
    const file = await open(path, "wx", 0o600);
    await file.writeFile(`_config_version: ${CONFIG_VERSION}\n`);
    await file.close();
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
  }
}

// The user's own editor on a file.

/** The user's setting, else at a terminal one of the usual ones. `otherwise` says what to do without an editor. */
export async function findEditor({ home, io }: Pick<CliContext, "home" | "io">, otherwise: string): Promise<string> {
  const named = home.env("EDITOR")?.trim() || home.env("VISUAL")?.trim();
  const editor = named || (io.stdinIsTerminal ? await firstEditor(home.env("PATH") ?? "") : null);
  if (editor) return editor;
  const where = io.stdinIsTerminal ? "" : " for use without a terminal";
  throw new ExitError(1, `No editor found${where}. Set EDITOR, or ${otherwise}`);
}

async function firstEditor(path: string): Promise<string | null> {
  for (const name of ["nano", "vim", "vi", "code", "notepad"]) {
    for (const dir of path.split(delimiter)) {
      const found =
        dir !== "" &&
        (await access(join(dir, name), constants.X_OK).then(
          () => true,
          () => false,
        ));
      if (found) return name === "code" ? "code --wait" : name;
    }
  }
  return null;
}

/** The setting may carry arguments ("code --wait"), so a shell takes it apart; the path goes in as an argument of its own. */
export function runEditor(editor: string, path: string, env: Readonly<Record<string, string>>): Promise<number> {
  return new Promise((resolve, reject) => {
    const child =
      process.platform === "win32"
        ? spawn(`${editor} "${path}"`, { stdio: "inherit", env: { ...env }, shell: true })
        : spawn("/bin/sh", ["-c", `${editor} "$1"`, "sh", path], { stdio: "inherit", env: { ...env } });
    child.on("error", reject);
    child.on("exit", (code) => resolve(code ?? 1));
  });
}

// hermes config migrate, last part: settings that skills declare and nobody has set yet.

async function askForSkillSettings(ctx: CliContext): Promise<void> {
  const { home, io } = ctx;
  const { allSettings } = await import("../../skills/settings.ts");
  for (const { skill, setting, isSet, value } of await allSettings(skillsContext(ctx), "cli")) {
    if (isSet) continue;
    const otherwise = value === "" ? "Enter to skip" : `Enter for ${value}`;
    const typed = await io.question(`${setting.prompt} (skill ${skill}, ${otherwise}): `);
    if (typed === null) return; // end of input
    if (typed.trim() === "") continue;
    const path = ["skills", "config", ...setting.key.split(".")];
    await home.setConfigKey(path, typed.trim());
    io.out(`✓ Set ${path.join(".")} in ${home.display(home.paths.configFile)}\n`);
  }
}
