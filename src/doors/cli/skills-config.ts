// `hermes skills config`: switching skills off and on, everywhere or on one platform.
import type { Command } from "commander";
import { type CliContext, ExitError } from "./context.ts";
import { placeOf } from "./skills-place.ts";

interface Flags {
  readonly platform?: string;
}

export function defineConfig(command: Command, ctx: CliContext): void {
  const config = command.command("config").description("switch skills off and on");
  const platform = ["--platform <P>", "only there, e.g. telegram; without it everywhere"] as const;
  config.option(...platform).action((flags: Flags) => choose(flags, ctx));
  for (const verb of ["enable", "disable"] as const) {
    config
      .command(verb)
      .description(`${verb} skills`)
      .argument("<names...>")
      .option(...platform)
      .action((names: string[], flags: Flags, self: Command) =>
        switchSkills(verb === "disable", names, { ...self.optsWithGlobals<Flags>(), ...flags }, ctx),
      );
  }
}

async function knownSkills(ctx: CliContext) {
  const { loadCatalogue, unshadowed } = await import("../../skills/catalogue.ts");
  const place = await placeOf(ctx);
  const skills = unshadowed(await loadCatalogue(place));
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
  { platform }: Flags,
  ctx: CliContext,
): Promise<void> {
  const skills = await knownSkills(ctx);
  const unknown = names.filter((name) => !skills.some((skill) => skill.name === name || skill.dirName === name));
  // A name nobody has any more may still be taken out of the list.
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
  ctx.io.out(`${off ? "Disabled" : "Enabled"} ${where}: ${names.join(", ")}. New sessions use the change.\n`);
  const elsewhere = names.filter((name) => !off && platform !== undefined && ownList(ctx, undefined).includes(name));
  if (elsewhere.length > 0) ctx.io.out(`Still disabled everywhere: ${elsewhere.join(", ")}\n`);
}

async function choose({ platform }: Flags, ctx: CliContext): Promise<void> {
  if (!ctx.io.stdinIsTerminal)
    throw new ExitError(1, 'This asks, and there is no terminal. Use "hermes skills config enable|disable NAME".');
  const skills = await knownSkills(ctx);
  const off = new Set(ownList(ctx, platform));
  for (;;) {
    skills.forEach((skill, index) => {
      const mark = off.has(skill.name) || off.has(skill.dirName) ? " " : "✓";
      ctx.io.out(`${String(index + 1).padStart(4)} [${mark}] ${skill.name}\n`);
    });
    const answer = await ctx.io.question("Numbers to switch, Enter to save, q to leave: ");
    if (answer === null || /^q/i.test(answer.trim())) return;
    if (answer.trim() === "") break;
    for (const word of answer.split(/[\s,]+/)) {
      const skill = skills[Number(word) - 1];
      if (!skill) continue;
      const was = off.has(skill.name) || off.has(skill.dirName);
      for (const name of [skill.name, skill.dirName]) off.delete(name);
      if (!was) off.add(skill.name);
    }
  }
  await save([...off], platform, ctx);
  ctx.io.out("Saved. New sessions use the change.\n");
}
