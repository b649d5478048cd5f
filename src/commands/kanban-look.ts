// The commands of `hermes kanban` that only read.
import { type Command, Option } from "commander";
import { cardOf, listCards, runsOf } from "../kanban/cards.ts";
import { type BoardFile, STATUSES } from "../kanban/schema.ts";
import { assigneeRows, cardJson, cardLine, cardText, runJson, runLine } from "../kanban/show.ts";
import type { KanbanWorld } from "./kanban.ts";

interface ListFlags {
  readonly mine?: true;
  readonly assignee?: string;
  readonly status?: string;
  readonly tenant?: string;
  readonly session?: string;
  readonly archived?: true;
  readonly workflowTemplateId?: string;
  readonly stepKey?: string;
  readonly sort?: "priority" | "created" | "updated";
  readonly json?: true;
}

interface ShowFlags {
  readonly stateType?: "status" | "outcome";
  readonly stateName?: string;
  readonly json?: true;
}

interface Looking {
  onBoard<T>(work: (board: BoardFile) => Promise<T> | T): Promise<T>;
  readonly world: KanbanWorld;
}

export function defineLooks(command: Command, { onBoard, world }: Looking): void {
  const out: KanbanWorld["out"] = (...said) => world.out(...said);
  const json = (child: Command) => child.option("--json", "machine-readable");
  const data = (value: unknown) => out(`${JSON.stringify(value, null, 2)}\n`, { asIs: true });

  json(command.command("list", { isDefault: true }).alias("ls"))
    .description("list the cards")
    .option("--mine", "only those of this profile")
    .option("--assignee <PROFILE>", "only those of this profile")
    .addOption(new Option("--status <STATUS>", "only those in this state").choices([...STATUSES]))
    .option("--tenant <NAME>", "only those of this tenant")
    .option("--session <ID>", "only those that this conversation made")
    .option("--archived", "include archived cards")
    .option("--workflow-template-id <ID>", "only those of this workflow (set by other programs)")
    .option("--step-key <KEY>", "only those at this step of a workflow")
    .addOption(
      new Option("--sort <ORDER>", "the order").choices(["priority", "created", "updated"]).default("priority"),
    )
    .action(async (flags: ListFlags) => {
      const { mine, json: asJson, ...filter } = flags;
      const assignee = mine ? world.home.paths.profile : filter.assignee;
      const cards = await onBoard((board) => listCards(board.db, { ...filter, assignee }));
      if (asJson) return data(cards.map(cardJson));
      if (cards.length === 0) return out("No cards. Create one: hermes kanban create TITLE --assignee PROFILE\n");
      for (const card of cards) out(`${cardLine(card, world.clock.now() / 1000)}\n`, { asIs: true });
    });
  json(command.command("show"))
    .description("show a card with its comments, its attempts and what happened to it")
    .argument("<id>", "the card")
    .addOption(new Option("--state-type <TYPE>", "what --state-name names").choices(["status", "outcome"]))
    .option("--state-name <NAME>", "only attempts in this state, such as crashed")
    .action((id: string, { json: asJson, ...shown }: ShowFlags) =>
      onBoard((board) => {
        const { text, whole: all } = cardText(board.db, id, world.clock.now() / 1000, shown);
        if (asJson) data(all);
        else out(`${text}\n`, { asIs: true });
      }),
    );
  json(command.command("runs"))
    .description("show the attempts at a card")
    .argument("<id>", "the card")
    .action((id: string, { json: asJson }: { readonly json?: true }) =>
      onBoard((board) => {
        cardOf(board.db, id);
        const runs = runsOf(board.db, id);
        if (asJson) return data(runs.map(runJson));
        if (runs.length === 0) return out("Nobody has worked on it yet.\n");
        for (const run of runs) out(`${runLine(run, world.clock.now() / 1000)}\n`, { asIs: true });
      }),
    );
  json(command.command("assignees"))
    .description("list who has cards, and how many")
    .action(({ json: asJson }: { readonly json?: true }) =>
      onBoard((board) => {
        const rows = assigneeRows(board.db);
        if (asJson) return data(rows);
        for (const { assignee, open, running } of rows)
          out(`${assignee ?? "nobody"}  ${open} open, ${running} running\n`);
      }),
    );
}
