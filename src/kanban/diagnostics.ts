// What looks wrong on a board, and what to do about it. Derived from its rows each time; nothing of it is stored.
import { relativeTime } from "../kit/formats.ts";
import { asRecord, parseJson } from "../kit/json.ts";
import type { Connection } from "../sessions/connection.ts";
import { eventsOf, listCards, runsOf } from "./cards.ts";
import type { Card, CardEvent, CardRun } from "./schema.ts";

export const SEVERITIES = ["warning", "error", "critical"] as const;
export type Severity = (typeof SEVERITIES)[number];

interface Diagnosis {
  readonly kind:
    | "phantom_cards"
    | "phantom_ids_in_prose"
    | "triage_without_model"
    | "repeated_failures"
    | "repeated_crashes"
    | "long_blocked"
    | "block_cycling"
    | "stranded_in_ready";
  readonly severity: Severity;
  readonly task_id: string;
  readonly title: string;
  readonly message: string;
  /** What to type, most helpful first. */
  readonly actions: readonly string[];
}

/** What a board does not know by itself. */
interface Surroundings {
  /** Unix seconds. */
  readonly now: number;
  /** A model can be asked about cards in triage. */
  readonly hasModel: boolean;
  isProfile(name: string): boolean;
}

const HOUR = 3600;
const DAY = 24 * HOUR;
const LIMITS = {
  stranded: HOUR,
  strandedLong: DAY,
  blocked: DAY,
  blockedLong: 7 * DAY,
  failures: 2,
  crashes: 2,
  cycles: 3,
};

type Finding = Pick<Diagnosis, "kind" | "severity" | "message" | "actions">;

export function diagnose(
  db: Connection,
  surroundings: Surroundings,
  { severity, card: only }: { readonly severity?: Severity | undefined; readonly card?: string | undefined } = {},
): readonly Diagnosis[] {
  const known = new Set(db.all<{ id: string }>("SELECT id FROM tasks").map(({ id }) => id));
  const least = severity === undefined ? 0 : SEVERITIES.indexOf(severity);
  return listCards(db)
    .filter(({ id }) => only === undefined || id === only)
    .flatMap((card) => {
      const facts: Facts = { card, known, runs: runsOf(db, card.id), events: eventsOf(db, card.id), ...surroundings };
      const found = CHECKS.map((check) => check(facts)).filter((one) => one !== null);
      return found.map((one): Diagnosis => ({ ...one, task_id: card.id, title: card.title }));
    })
    .filter((one) => SEVERITIES.indexOf(one.severity) >= least)
    .toSorted((one, other) => SEVERITIES.indexOf(other.severity) - SEVERITIES.indexOf(one.severity));
}

interface Facts extends Surroundings {
  readonly card: Card;
  readonly runs: readonly CardRun[];
  readonly events: readonly CardEvent[];
  readonly known: ReadonlySet<string>;
}

const CHECKS: readonly ((facts: Facts) => Finding | null)[] = [
  phantomCards,
  phantomIds,
  withoutModel,
  failing,
  crashing,
  longBlocked,
  cycling,
  stranded,
];

const since = (events: readonly CardEvent[], ...kinds: readonly string[]) =>
  events.findLast(({ kind }) => kinds.includes(kind));
const behind = (events: readonly CardEvent[], at: CardEvent | undefined, kind: string) =>
  events.filter((event) => event.kind === kind && event.id > (at?.id ?? 0));
const listOf = (value: unknown) => (Array.isArray(value) ? value.filter((one) => typeof one === "string") : []);

/** A worker named cards that it never made. */
function phantomCards({ card, events, runs, known }: Facts): Finding | null {
  const refused = behind(events, since(events, "completed", "edited"), "completion_blocked_hallucination").flatMap(
    ({ payload }) => {
      const facts = asRecord(parseJson(payload ?? "{}"));
      return listOf(facts.phantom_cards ?? facts.phantom ?? facts.ids);
    },
  );
  const named = runs.flatMap(({ metadata }) => listOf(asRecord(parseJson(metadata ?? "{}")).created_cards));
  const gone = [...new Set([...refused, ...named.filter((id) => !known.has(id))])];
  if (gone.length === 0) return null;
  return {
    kind: "phantom_cards",
    severity: "error",
    message: `its worker names cards that do not exist: ${gone.slice(0, 10).join(", ")}`,
    actions: [`hermes kanban show ${card.id}`, `hermes kanban comment ${card.id} "These cards do not exist: ..."`],
  };
}

function phantomIds({ card, runs, known }: Facts): Finding | null {
  const prose = [card.result, ...runs.map(({ summary }) => summary)].join("\n");
  const gone = [...new Set(prose.match(/\bt_[0-9a-f]{8}\b/g) ?? [])].filter((id) => !known.has(id));
  if (gone.length === 0) return null;
  return {
    kind: "phantom_ids_in_prose",
    severity: "warning",
    message: `its summary or result mentions cards that do not exist: ${gone.slice(0, 10).join(", ")}`,
    actions: [`hermes kanban edit ${card.id} --summary TEXT`],
  };
}

function withoutModel({ card, hasModel }: Facts): Finding | null {
  const failed = card.last_failure_error;
  if (card.status !== "triage" || (hasModel && failed === null)) return null;
  return {
    kind: "triage_without_model",
    severity: hasModel ? "warning" : "error",
    message: hasModel
      ? `it could not be split: ${failed}`
      : "it is in triage, and no model is connected that could read it",
    actions: hasModel
      ? [`hermes kanban decompose ${card.id}`, `hermes kanban specify ${card.id}`]
      : ["hermes model", "hermes config set auxiliary.kanban_decomposer.model MODEL"],
  };
}

function failing({ card }: Facts): Finding | null {
  const { id, consecutive_failures: failures, last_failure_error: error, assignee } = card;
  if (failures < LIMITS.failures) return null;
  return {
    kind: "repeated_failures",
    severity: failures >= 2 * LIMITS.failures ? "critical" : "error",
    message: `it failed ${failures} times in a row, last with: ${error ?? "no reason given"}`,
    actions: [
      `hermes kanban log ${id}`,
      ...(assignee === null ? [] : [`hermes -p ${assignee} doctor`]),
      ...[`hermes kanban reassign ${id} PROFILE --reclaim`, `hermes kanban unblock ${id}`],
    ],
  };
}

function crashing({ card, runs }: Facts): Finding | null {
  if (card.status === "done") return null;
  const ended = runs.filter(({ outcome }) => outcome !== null);
  const last = ended.findLastIndex(({ outcome }) => outcome !== "crashed");
  const crashes = ended.slice(last + 1);
  if (crashes.length < LIMITS.crashes) return null;
  return {
    kind: "repeated_crashes",
    severity: crashes.length > LIMITS.crashes ? "critical" : "error",
    message: `its last ${crashes.length} attempts crashed: ${crashes.at(-1)?.error ?? "no reason given"}`,
    actions: [`hermes kanban log ${card.id}`, `hermes kanban set-model ${card.id} MODEL`],
  };
}

function longBlocked({ card, events, now }: Facts): Finding | null {
  const at = since(events, "blocked", "gave_up", "status")?.created_at;
  if (card.status !== "blocked" || at === undefined || now - at < LIMITS.blocked) return null;
  return {
    kind: "long_blocked",
    severity: now - at >= LIMITS.blockedLong ? "error" : "warning",
    message: `it was blocked ${relativeTime(at, now)}, and nobody unblocked it`,
    actions: [
      `hermes kanban show ${card.id}`,
      `hermes kanban comment ${card.id} ANSWER`,
      `hermes kanban unblock ${card.id}`,
    ],
  };
}

function cycling({ card, events }: Facts): Finding | null {
  const unblocked = behind(events, since(events, "completed", "specified", "decomposed"), "unblocked");
  if (card.status === "done" || unblocked.length < LIMITS.cycles) return null;
  return {
    kind: "block_cycling",
    severity: "warning",
    message: `it was blocked and unblocked ${unblocked.length} times; nobody answered what it is blocked for`,
    actions: [
      `hermes kanban show ${card.id}`,
      `hermes kanban comment ${card.id} ANSWER`,
      `hermes kanban archive ${card.id}`,
    ],
  };
}

function stranded({ card, events, now, isProfile }: Facts): Finding | null {
  if (card.status !== "ready") return null;
  const at = events.findLast(({ kind }) => kind !== "commented")?.created_at ?? card.created_at;
  if (now - at < LIMITS.stranded) return null;
  const { id, assignee } = card;
  const why =
    assignee === null
      ? "nobody is assigned"
      : isProfile(assignee)
        ? "no worker was started"
        : `${assignee} is no profile, so people have to take it`;
  return {
    kind: "stranded_in_ready",
    severity: now - at >= LIMITS.strandedLong ? "error" : "warning",
    message: `it became ready ${relativeTime(at, now)}: ${why}`,
    actions:
      assignee !== null && isProfile(assignee)
        ? ["hermes gateway status", "hermes kanban dispatch --dry-run"]
        : [`hermes kanban assign ${id} PROFILE`],
  };
}
