// The skills that came with the program: what the user changed, and whether they come at all.
import type { Command } from "commander";
import { type CliContext, ExitError } from "./context.ts";
import { placeOf } from "./skills-place.ts";

export function defineBundled(command: Command, ctx: CliContext): void {
  command
    .command("list-modified")
    .description("shipped skills that you changed; updates leave them alone")
    .option("--json", "machine-readable")
    .action(({ json }: { json?: true }) => listModified(json === true, ctx));
  command
    .command("diff")
    .description("your changes to a shipped skill")
    .argument("<name>")
    .action((name: string) => diff(name, ctx));
  command
    .command("reset")
    .description("accept your version of a shipped skill until the next update, or bring the shipped one back")
    .argument("<name>")
    .option("--restore", "bring the shipped version back; yours goes to the archive")
    .option("-y, --yes", "do not ask")
    .action((name: string, flags: { restore?: true; yes?: true }) => reset(name, flags, ctx));
  command
    .command("opt-out")
    .description("no shipped skills in this home from now on")
    .option("--remove", "also remove those you did not change")
    .action(({ remove }: { remove?: true }) => optOut(remove === true, ctx));
  command
    .command("opt-in")
    .description("shipped skills come again with the next start")
    .option("--sync", "bring them now")
    .action(({ sync }: { sync?: true }) => optIn(sync === true, ctx));
}

async function listModified(json: boolean, ctx: CliContext): Promise<void> {
  const { modifiedSkills } = await import("../../skills/bundled-edits.ts");
  const names = (await modifiedSkills(await placeOf(ctx))).map(({ name }) => name);
  if (json) ctx.io.out(`${JSON.stringify({ modified: names }, null, 2)}\n`);
  else
    ctx.io.out(
      names.length > 0 ? names.map((name) => `${name}\n`).join("") : "You changed none of the shipped skills.\n",
    );
}

async function shipped(name: string, ctx: CliContext) {
  const { findBundled } = await import("../../skills/bundled-edits.ts");
  const place = await placeOf(ctx);
  const skill = await findBundled(name, place);
  if (!skill) throw new ExitError(1, `The program ships no skill "${name}".`);
  return { place, skill };
}

async function diff(name: string, ctx: CliContext): Promise<void> {
  const { diffBundled } = await import("../../skills/bundled-edits.ts");
  const { place, skill } = await shipped(name, ctx);
  ctx.io.out((await diffBundled(skill, place)) || `Your copy of ${skill.name} is the shipped one.\n`);
}

async function reset(name: string, flags: { restore?: true; yes?: true }, ctx: CliContext): Promise<void> {
  const { acceptBundled, restoreBundled } = await import("../../skills/bundled-edits.ts");
  const { exists } = await import("../../skills/skill-copy.ts");
  const { place, skill } = await shipped(name, ctx);
  if (!flags.restore) {
    if (!(await exists(`${place.paths.skillsDir}/${skill.path}`)))
      throw new ExitError(
        1,
        `You have no copy of ${skill.name}. "hermes skills reset ${name} --restore" brings it back.`,
      );
    await acceptBundled(skill, place);
    ctx.io.out(`Your version of ${skill.name} stays until the program ships a changed one, which then replaces it.\n`);
    return;
  }
  if (!flags.yes) {
    const answer = await ctx.io.question(`Bring the shipped ${skill.name} back? Yours goes to the archive. [y/N] `);
    if (answer === null && !ctx.io.stdinIsTerminal)
      throw new ExitError(1, "This asks first, and there is no terminal to ask at. Add --yes.");
    if (!/^y(es)?$/i.test(answer?.trim() ?? "")) {
      ctx.io.out("Nothing was changed.\n");
      return;
    }
  }
  const archived = await restoreBundled(skill, place);
  const where = archived === null ? "" : ` Your version is in ${ctx.home.display(archived)}.`;
  ctx.io.out(`The shipped ${skill.name} is back.${where}\n`);
}

async function optOut(remove: boolean, ctx: CliContext): Promise<void> {
  const edits = await import("../../skills/bundled-edits.ts");
  const removed = await edits.optOut(await placeOf(ctx), { remove });
  ctx.io.out('No shipped skills come into this home from now on. "hermes skills opt-in" undoes it.\n');
  if (removed.length > 0) ctx.io.out(`Removed: ${removed.join(", ")}\n`);
}

async function optIn(sync: boolean, ctx: CliContext): Promise<void> {
  const edits = await import("../../skills/bundled-edits.ts");
  const place = await placeOf(ctx);
  await edits.optIn(place);
  if (!sync) {
    ctx.io.out("Shipped skills come with the next start.\n");
    return;
  }
  const { syncBundledSkills } = await import("../../skills/bundled.ts");
  const { total_bundled, ...lists } = await syncBundledSkills(place);
  for (const [what, names] of Object.entries(lists)) {
    if (names.length > 0 && what !== "skipped") ctx.io.out(`${what.replace("_", " ")}: ${names.join(", ")}\n`);
  }
  ctx.io.out(`${total_bundled} shipped skills.\n`);
  if (lists.failed.length > 0) throw new ExitError(1, "Not all of them could be brought.");
}
