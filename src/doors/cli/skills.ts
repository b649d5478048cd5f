// `hermes skills`: what the agent knows how to do, and what came with the program.

import { readFile, stat } from "node:fs/promises";
import { resolve } from "node:path";
import type { Command } from "commander";
import { messageOf } from "../../kit/errors.ts";
import { plural } from "../../kit/formats.ts";
import type { Skill } from "../../skills/catalogue.ts";
import { loadCatalogue, unshadowed } from "../../skills/catalogue.ts";
import { safePath, skillFiles } from "../../skills/files.ts";
import { skillsContext } from "../../skills/open.ts";
import { provenanceOf } from "../../skills/provenance.ts";
import { disabledSkills, fitsOs, isDisabled } from "../../skills/requirements.ts";
import { diagnoseSkills, pathName, resolveSkill } from "../../skills/resolve.ts";
import { categoryLabel } from "../../skills/snapshot.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { printJson, tick } from "./present.ts";
import { defineBundled } from "./skills-bundled.ts";

interface Flags {
  readonly platform: string;
  readonly json?: true;
  readonly file?: string;
}

export function define(command: Command, ctx: CliContext): void {
  command.description("list, view, check, enable and disable skills");
  command
    .command("list", { isDefault: true })
    .description("list skills with category, description and origin")
    .option("--platform <P>", "as seen by this platform, e.g. cli, telegram", "cli")
    .option("--json", "machine-readable")
    .action((flags: Flags) => list(flags, ctx));
  command
    .command("view")
    .description("show a skill or one of its files")
    .argument("<name>", "name, or category/name")
    .argument("[file]", "e.g. references/api.md")
    .action((name: string, file: string | undefined) => view(name, file, ctx));
  command
    .command("scan")
    .description("scan a skill folder for security problems; exit code 0 safe, 1 caution, 2 dangerous, 3 error")
    .argument("<dir>")
    .option("--json", "machine-readable")
    .action((dir: string, flags: Flags) => scan(dir, flags, ctx));
  command
    .command("doctor")
    .description("find skills that are broken or unreachable")
    .action(() => doctor(ctx));
  defineBundled(command, ctx);
  defineConfig(command, ctx);
}

async function list({ platform, json }: Flags, ctx: CliContext): Promise<void> {
  const context = skillsContext(ctx);
  const disabled = disabledSkills(context.config(), platform);
  const rows = await Promise.all(
    [...unshadowed(await loadCatalogue(context))].sort(byCategory).map(async (skill) => ({
      name: skill.name,
      category: skill.category,
      description: skill.description || skill.summary,
      source: await provenanceOf(skill, context),
      enabled: !isDisabled(skill, disabled),
      supported: fitsOs(skill.platforms),
      path: skill.dir,
      problems: skill.problems,
    })),
  );
  if (json) return printJson(ctx, { platform, skills: rows });
  if (rows.length === 0) ctx.io.out("No skills. To add the bundled ones: hermes skills opt-in --sync\n");
  const width = Math.max(0, ...rows.map(({ name }) => name.length));
  let heading: string | null = null;
  for (const row of rows) {
    const category = categoryLabel(row.category);
    if (category !== heading) ctx.io.out(`${heading === null ? "" : "\n"}${category}\n`);
    heading = category;
    const mark = row.enabled && row.supported ? "✓" : "✗";
    const note = row.supported ? "" : " (not for this system)";
    const room = Math.max(20, ctx.io.columns - width - 18);
    ctx.io.out(`  ${mark} ${row.name.padEnd(width)}  ${cut(row.description, room)}  [${row.source}]${note}\n`);
  }
  if (rows.length > 0) ctx.io.out(`\n${plural(rows.length, "skill")}. hermes skills view NAME shows one.\n`);
  for (const { path, problems } of rows) {
    for (const problem of problems) ctx.io.err(`${ctx.home.display(path)}: ${problem}\n`);
  }
}

function byCategory(a: Skill, b: Skill): number {
  const key = ({ category, name }: Skill) => `${category ?? ""}\0${name}`;
  return key(a) < key(b) ? -1 : 1;
}

function cut(text: string, room: number): string {
  const line = text.replace(/\s+/g, " ");
  return line.length > room ? `${line.slice(0, room - 1).trimEnd()}…` : line;
}

async function view(name: string, file: string | undefined, ctx: CliContext): Promise<void> {
  const context = skillsContext(ctx);
  const found = await resolveSkill(name, await loadCatalogue(context), context);
  if (found.type === "bad_name") throw new ExitError(1, `${name}: ${found.reason}.`);
  if (found.type === "not_found")
    throw new ExitError(1, `There is no skill "${name}". "hermes skills list" shows the skills.`);
  if (found.type === "ambiguous")
    throw new ExitError(1, `Several skills are called "${name}": ${found.matches.map(pathName).join(", ")}`);
  const { skill } = found;
  const safe = await safePath(skill.dir, file ?? "SKILL.md");
  if (safe.type === "refused") throw new ExitError(1, `${safe.reason}. Give the path of a file inside the skill.`);
  const text = await readFile(safe.absolute, "utf8").catch(() => null);
  if (text === null) {
    const names = Object.values(await skillFiles(skill.dir)).flat();
    throw new ExitError(1, `Skill "${skill.name}" has no file "${safe.path}". It has: ${names.join(", ")}`);
  }
  ctx.io.out(text.endsWith("\n") ? text : `${text}\n`, { asIs: true });
  if (file !== undefined) return;
  ctx.io.err(`\n${ctx.home.display(skill.dir)}\n`);
  for (const path of Object.values(await skillFiles(skill.dir)).flat())
    if (path !== "SKILL.md") ctx.io.err(`  ${path}\n`);
}

const EXIT = { safe: 0, caution: 1, dangerous: 2 } as const;

async function scan(given: string, { json }: Flags, ctx: CliContext): Promise<void> {
  const { formatScan, scanSkill } = await import("../../skills/scan/scan.ts");
  const dir = resolve(ctx.cwd, given);
  const isDirectory = await stat(dir).then(
    (facts) => facts.isDirectory(),
    () => false,
  );
  if (!isDirectory) throw new ExitError(3, `${given} is not a folder. Give the folder of a skill.`);
  let result: Awaited<ReturnType<typeof scanSkill>>;
  try {
    result = await scanSkill(dir);
  } catch (error) {
    throw new ExitError(3, `${given} cannot be scanned: ${messageOf(error)}`);
  }
  ctx.io.out(json ? `${JSON.stringify(result, null, 2)}\n` : `${formatScan(result)}\n`);
  if (EXIT[result.verdict] > 0) throw new ExitError(EXIT[result.verdict]);
}

async function doctor(ctx: CliContext): Promise<void> {
  const { count, problems } = await diagnoseSkills(skillsContext(ctx));
  for (const problem of problems) ctx.io.out(`✗ ${problem}\n`);
  if (problems.length > 0) throw new ExitError(1, `${plural(problems.length, "problem")}.`);
  ctx.io.out(`✓ ${plural(count, "skill")}, no problems.\n`);
}

// `hermes skills config`: switching skills off and on, everywhere or on one platform.

interface ConfigFlags {
  readonly platform?: string;
}

function defineConfig(command: Command, ctx: CliContext): void {
  const config = command.command("config").description("enable or disable skills");
  const platform = ["--platform <P>", "only on this platform, e.g. telegram (default: everywhere)"] as const;
  config.option(...platform).action((flags: ConfigFlags) => choose(flags, ctx));
  for (const verb of ["enable", "disable"] as const) {
    config
      .command(verb)
      .description(`${verb} skills`)
      .argument("<names...>")
      .option(...platform)
      .action((names: string[], flags: ConfigFlags, self: Command) =>
        switchSkills(verb === "disable", names, { ...self.optsWithGlobals<ConfigFlags>(), ...flags }, ctx),
      );
  }
}

async function knownSkills(ctx: CliContext) {
  const context = skillsContext(ctx);
  const skills = unshadowed(await loadCatalogue(context));
  return [...skills].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The names switched off here, and nothing of the other list. */
function ownList(ctx: CliContext, platform: string | undefined): string[] {
  const { disabled, platform_disabled } = ctx.home.config().skills;
  const value: unknown = platform === undefined ? disabled : platform_disabled[platform];
  const items = Array.isArray(value) ? value : [value];
  return items.filter((item): item is string => typeof item === "string" && item !== "");
}

async function save(names: readonly string[], platform: string | undefined, ctx: CliContext): Promise<void> {
  const key = platform === undefined ? ["skills", "disabled"] : ["skills", "platform_disabled", platform];
  await ctx.home.setConfigKey(key, [...new Set(names)].sort());
}

async function switchSkills(
  off: boolean,
  names: readonly string[],
  { platform }: ConfigFlags,
  ctx: CliContext,
): Promise<void> {
  const skills = await knownSkills(ctx);
  const unknown = names.filter((name) => !skills.some((skill) => skill.name === name || skill.dirName === name));
  // The name of a removed skill can still be taken off the list.
  const wrong = off ? unknown : unknown.filter((name) => !ownList(ctx, platform).includes(name));
  if (wrong.length > 0)
    throw new ExitError(
      1,
      `There is no skill ${wrong.join(", ")}. Nothing was changed. "hermes skills list" shows the names.`,
    );
  const aliases = new Set(
    names.flatMap((name) => {
      const skill = skills.find((one) => one.name === name || one.dirName === name);
      return skill ? [name, skill.name, skill.dirName] : [name];
    }),
  );
  const rest = ownList(ctx, platform).filter((name) => !aliases.has(name));
  await save(off ? [...rest, ...names] : rest, platform, ctx);
  const where = platform === undefined ? "everywhere" : `on ${platform}`;
  ctx.io.out(
    `${off ? "Disabled" : "Enabled"} ${where}: ${names.join(", ")}. The change applies to new conversations.\n`,
  );
  const elsewhere = names.filter((name) => !off && platform !== undefined && ownList(ctx, undefined).includes(name));
  if (elsewhere.length > 0) ctx.io.out(`Still disabled everywhere: ${elsewhere.join(", ")}\n`);
}

async function choose({ platform }: ConfigFlags, ctx: CliContext): Promise<void> {
  const skills = await knownSkills(ctx);
  const off = ownList(ctx, platform);
  const isOff = ({ name, dirName }: Skill) => off.includes(name) || off.includes(dirName);
  const on = await tick(ctx, {
    title: `Skills ${platform === undefined ? "everywhere" : `on ${platform}`}`,
    otherwise: '"hermes skills config enable|disable NAME"',
    checked: new Set(skills.filter((skill) => !isOff(skill))),
    choices: skills.map((skill) => ({ label: skill.name, value: skill })),
  });
  if (on === null) return;
  const names = new Set(on.flatMap(({ name, dirName }) => [name, dirName]));
  const added = skills.filter((skill) => !on.includes(skill) && !isOff(skill)).map(({ name }) => name);
  await save([...off.filter((name) => !names.has(name)), ...added], platform, ctx);
  ctx.io.out("Saved. The change applies to new conversations.\n");
}
