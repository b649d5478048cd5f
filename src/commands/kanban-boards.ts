// `hermes kanban boards`: which boards there are, and which one is meant.
import type { Command } from "commander";
import type { Boards } from "../kanban/boards.ts";
import { boardRows } from "../kanban/show.ts";
import { plural } from "../kit/formats.ts";
import type { KanbanWorld } from "./kanban.ts";

export function defineBoards(command: Command, boards: () => Boards, world: KanbanWorld): void {
  const out: KanbanWorld["out"] = (...said) => world.out(...said);
  command
    .command("list", { isDefault: true })
    .description("list the boards")
    .option("--all", "include archived cards")
    .option("--json", "machine-readable")
    .action(async (flags: { readonly all?: true; readonly json?: true }) => {
      const rows = (await boardRows(boards())).filter(({ archived }) => flags.all || !archived);
      if (flags.json) return out(`${JSON.stringify(rows, null, 2)}\n`, { asIs: true });
      for (const { slug, name, active, cards } of rows)
        out(`${active ? "*" : " "} ${slug}  ${name}  ${plural(cards, "card")}\n`, { asIs: true });
    });
  command
    .command("create")
    .description("create a board")
    .argument("<slug>", "its short name: small letters, digits, - and _")
    .option("--name <TEXT>", "its display name")
    .option("--description <TEXT>", "what it is for")
    .option("--icon <TEXT>", "its icon, such as an emoji")
    .option("--color <TEXT>", "its colour")
    .option("--switch", "make it the active one")
    .option("--default-workdir <FOLDER>", "the folder for cards that name none")
    .action(async (slug: string, flags: { readonly switch?: true; readonly defaultWorkdir?: string }) => {
      const { switch: isActive, defaultWorkdir, ...facts } = flags;
      await boards().create(slug, { ...facts, ...(defaultWorkdir ? { default_workdir: defaultWorkdir } : {}) });
      if (isActive) await boards().switchTo(slug);
      out(`✓ The board ${slug} was created.\n`);
    });
  command
    .command("rm")
    .description("remove a board; its folder is kept among the archived ones")
    .argument("<slug>", "the board")
    .option("--delete", "delete its folder for good")
    .action(async (slug: string, flags: { readonly delete?: true }) => {
      const kept = await boards().remove(slug, { forGood: flags.delete === true });
      out(
        kept === null
          ? `✓ The board ${slug} is gone.\n`
          : `✓ The board ${slug} is in ${world.home.display(kept)} now.\n`,
      );
    });
  command
    .command("switch")
    .description("make another board the active one")
    .argument("<slug>", "the board")
    .action(async (slug: string) => {
      await boards().switchTo(slug);
      out(`✓ The board ${slug} is the active one.\n`);
    });
  command
    .command("show")
    .description("show the active board")
    .action(async () => out(`${await boards().active()}\n`));
  command
    .command("rename")
    .description("change the display name of a board")
    .argument("<slug>", "the board")
    .argument("<name...>", "the name")
    .action(async (slug: string, words: readonly string[]) => {
      await boards().change(slug, { name: words.join(" ") });
      out(`✓ The board ${slug} is called ${words.join(" ")}.\n`);
    });
  command
    .command("set-default-workdir")
    .description("set the folder for cards that name none; leave it out to clear it")
    .argument("<slug>", "the board")
    .argument("[folder]", "the folder")
    .action(async (slug: string, folder: string | undefined) => {
      await boards().change(slug, { default_workdir: folder ?? null });
      out(folder ? `✓ Cards of ${slug} work in ${folder}.\n` : `✓ Cards of ${slug} have no folder of their own.\n`);
    });
}
