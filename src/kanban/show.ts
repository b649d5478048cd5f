// A board and its cards for people and for programs.

import { relativeTime } from "../kit/formats.ts";
import { parseJson } from "../kit/json.ts";
import type { Connection } from "../sessions/connection.ts";
import type { BoardFacts, Boards } from "./boards.ts";
import { cardOf, childrenOf, commentsOf, eventsOf, listCards, parentsOf, runsOf } from "./cards.ts";
import { oneLine } from "./context-text.ts";
import type { Card, CardEvent, CardRun } from "./schema.ts";

const parsed = (json: string | null) => (json === null ? null : (parseJson(json) ?? json));

/** The names of the columns; what is JSON in them is read. */
export const cardJson = (card: Card) => ({ ...card, skills: parsed(card.skills) });
export const runJson = (run: CardRun) => ({ ...run, metadata: parsed(run.metadata) });
const eventJson = (event: CardEvent) => ({ ...event, payload: parsed(event.payload) });

const SIGNS: Readonly<Record<Card["status"], string>> = {
  triage: "?",
  todo: "○",
  scheduled: "◷",
  ready: "●",
  running: "▶",
  blocked: "⏸",
  review: "◆",
  done: "✔",
  archived: "–",
};

const MOST_TITLE = 500;
/** What others wrote is one line, or lines that begin further in than ours: none of it looks like a card or a comment of its own. */
const inside = (text: string) => text.replace(/\r\n|[\n\r\v\f\x85\u2028\u2029]/g, "\n    ");

export function cardLine(card: Card, now: number): string {
  const { id, status, title, assignee, priority, created_at } = card;
  const facts = [
    assignee === null ? "nobody" : `@${oneLine(assignee)}`,
    ...(priority === 0 ? [] : [`priority ${priority}`]),
    relativeTime(created_at, now),
  ];
  return `${SIGNS[status]} ${id}  ${status.padEnd(9)}  ${oneLine(title, MOST_TITLE)}  (${facts.join(", ")})`;
}

export function runLine(run: CardRun, now: number): string {
  const { id, profile, outcome, started_at, ended_at, summary, error } = run;
  const took = ended_at === null ? "" : `, ${ended_at - started_at} s`;
  const came = [summary, error].filter((text) => text !== null).join(" · ");
  return `run ${id}  ${outcome ?? "running"}  ${oneLine(profile) || "by hand"}  ${relativeTime(started_at, now)}${took}${came === "" ? "" : `\n  ${inside(came)}`}`;
}

/** Which attempts are shown: those whose status or outcome is this one. */
interface ShownRuns {
  readonly stateType?: "status" | "outcome" | undefined;
  readonly stateName?: string | undefined;
}

export function cardText(db: Connection, id: string, now: number, { stateType, stateName }: ShownRuns = {}) {
  const isShown = (run: CardRun) =>
    stateName === undefined ||
    [stateType === "outcome" ? null : run.status, stateType === "status" ? null : run.outcome].includes(stateName);
  const card = cardOf(db, id);
  const [parents, children] = [parentsOf(db, id), childrenOf(db, id)];
  const [comments, events, runs] = [commentsOf(db, id), eventsOf(db, id, 50), runsOf(db, id).filter(isShown)];
  const whole = {
    ...{ task: cardJson(card), parents, children, comments },
    ...{ events: events.map(eventJson), runs: runs.map(runJson) },
  };
  const facts: readonly (readonly [string, string | number | null])[] = [
    ["status", card.block_kind === null ? card.status : `${card.status} (${card.block_kind})`],
    ["assignee", card.assignee ?? "nobody"],
    ["priority", card.priority === 0 ? null : card.priority],
    ["tenant", card.tenant],
    ["workspace", [card.workspace_kind, card.workspace_path].filter((one) => one !== null).join(" ")],
    ["branch", card.branch_name],
    ["model", card.model_override],
    ["limit", card.max_runtime_seconds === null ? null : `${card.max_runtime_seconds} s`],
    ["created", `${relativeTime(card.created_at, now)}${card.created_by === null ? "" : ` by ${card.created_by}`}`],
    ["waits for", parents.join(", ") || null],
    ["children", children.join(", ") || null],
    [
      "failures",
      card.consecutive_failures === 0 ? null : `${card.consecutive_failures}: ${card.last_failure_error ?? ""}`,
    ],
  ];
  const text = [
    `${card.id}  ${oneLine(card.title, MOST_TITLE)}`,
    ...facts.flatMap(([name, value]) => (value === null ? [] : [`  ${name.padEnd(10)} ${oneLine(String(value))}`])),
    ...(card.body === null ? [] : ["", `    ${inside(card.body)}`]),
    ...(card.result === null ? [] : ["", "Result:", `    ${inside(card.result)}`]),
    ...(comments.length === 0 ? [] : ["", "Comments:"]),
    ...comments.map(
      ({ author, body, created_at }) => `  ${oneLine(author)}, ${relativeTime(created_at, now)}: ${inside(body)}`,
    ),
    ...(runs.length === 0 ? [] : ["", "Attempts:"]),
    ...runs.map((run) => `  ${runLine(run, now).replaceAll("\n", "\n  ")}`),
    "",
    "Events:",
    ...events.slice(-10).map(({ kind, created_at }) => `  ${relativeTime(created_at, now)}  ${kind}`),
  ];
  return { text: text.join("\n"), whole };
}

interface BoardStats {
  readonly by_status: Readonly<Record<string, number>>;
  readonly by_assignee: readonly ReturnType<typeof assigneeRows>[number][];
}

export function statsOf(db: Connection): BoardStats {
  const rows = db.all<{ status: string; cards: number }>("SELECT status, COUNT(*) AS cards FROM tasks GROUP BY status");
  return {
    by_status: Object.fromEntries(rows.map(({ status, cards }) => [status, cards])),
    by_assignee: assigneeRows(db),
  };
}

export function statsText({ by_status, by_assignee }: BoardStats): string {
  const states = Object.entries(by_status).map(([status, cards]) => `${status.padEnd(9)} ${cards}`);
  const people = by_assignee.map(
    ({ assignee, open, running }) => `${assignee ?? "nobody"}  ${open} open, ${running} running`,
  );
  return states.length === 0 ? "No cards." : [...states, "", ...people].join("\n");
}

export function assigneeRows(
  db: Connection,
): readonly { readonly assignee: string | null; readonly open: number; readonly running: number }[] {
  return db.all(
    `SELECT assignee, SUM(status NOT IN ('done', 'archived')) AS open, SUM(status = 'running') AS running
     FROM tasks WHERE status <> 'archived' GROUP BY assignee ORDER BY assignee`,
  );
}

export async function boardRows(
  boards: Boards,
): Promise<readonly (BoardFacts & { readonly active: boolean; readonly cards: number })[]> {
  const active = await boards.active();
  return Promise.all(
    (await boards.list()).map(async (slug) => {
      const board = await boards.open(slug);
      try {
        return { ...(await boards.facts(slug)), active: slug === active, cards: listCards(board.db).length };
      } finally {
        board.close();
      }
    }),
  );
}
