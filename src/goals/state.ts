// A standing goal as it is stored: one JSON value of the session, in the original's shape. Everything here is pure.
import { t } from "../home/language/words.ts";
import { compactDuration, dollars, plural } from "../kit/formats.ts";
import { asRecord, asText, type Json, parseJson } from "../kit/json.ts";

const DEFAULT_TURNS = 20;

const STATUSES = ["active", "paused", "done", "cleared"] as const;
type GoalStatus = (typeof STATUSES)[number];

const FIELDS = ["outcome", "verification", "constraints", "boundaries", "stop_when"] as const;
type ContractField = (typeof FIELDS)[number];
export type GoalContract = Readonly<Record<ContractField, string>>;

/** Names are the stored format. Times are Unix seconds; 0 and null mean "never" and "none". */
export interface GoalState {
  readonly goal: string;
  readonly status: GoalStatus;
  readonly turns_used: number;
  readonly max_turns: number;
  readonly created_at: number;
  readonly last_turn_at: number;
  readonly last_verdict: string | null;
  readonly last_reason: string | null;
  readonly paused_reason: string | null;
  readonly consecutive_parse_failures: number;
  readonly consecutive_transport_failures: number;
  readonly subgoals: readonly string[];
  readonly waiting_on_pid: number | null;
  readonly waiting_on_session: string | null;
  readonly waiting_until: number;
  readonly waiting_reason: string | null;
  readonly waiting_since: number;
  readonly contract: GoalContract;
}

export const NO_CONTRACT: GoalContract = {
  ...{ outcome: "", verification: "", constraints: "", boundaries: "", stop_when: "" },
};

const NO_WAIT = {
  ...{ waiting_on_pid: null, waiting_on_session: null, waiting_until: 0, waiting_reason: null, waiting_since: 0 },
};
const NO_FAILURES = { consecutive_parse_failures: 0, consecutive_transport_failures: 0 };

/** Null when it is not a goal. Older rows lack fields; those that are not ours are kept. */
export function parseGoal(json: string | null): GoalState | null {
  const row = asRecord(json === null ? null : parseJson(json));
  const goal = asText(row.goal).trim();
  const status = STATUSES.find((one) => one === row.status);
  if (goal === "" || status === undefined) return null;
  return {
    ...row,
    ...{ goal, status },
    turns_used: count(row.turns_used),
    max_turns: count(row.max_turns) || DEFAULT_TURNS,
    created_at: time(row.created_at),
    last_turn_at: time(row.last_turn_at),
    last_verdict: textOrNull(row.last_verdict),
    last_reason: textOrNull(row.last_reason),
    paused_reason: textOrNull(row.paused_reason),
    consecutive_parse_failures: count(row.consecutive_parse_failures),
    consecutive_transport_failures: count(row.consecutive_transport_failures),
    subgoals: Array.isArray(row.subgoals) ? row.subgoals.map(asText).filter((text) => text.trim() !== "") : [],
    waiting_on_pid: count(row.waiting_on_pid) || null,
    waiting_on_session: textOrNull(row.waiting_on_session),
    waiting_until: time(row.waiting_until),
    waiting_reason: textOrNull(row.waiting_reason),
    waiting_since: time(row.waiting_since),
    contract: contractOf(asRecord(row.contract)),
  };
}

const count = (value: unknown) => (typeof value === "number" && Number.isInteger(value) && value > 0 ? value : 0);
const time = (value: unknown) => (typeof value === "number" && Number.isFinite(value) && value > 0 ? value : 0);
const textOrNull = (value: unknown) => asText(value) || null;

export const contractOf = (row: Json): GoalContract => ({
  outcome: asText(row.outcome).trim(),
  verification: asText(row.verification).trim(),
  constraints: asText(row.constraints).trim(),
  boundaries: asText(row.boundaries).trim(),
  stop_when: asText(row.stop_when).trim(),
});

// Changes.

export function newGoal(
  { goal, contract }: { readonly goal: string; readonly contract: GoalContract },
  { now, maxTurns }: { readonly now: number; readonly maxTurns: number },
): GoalState {
  return {
    ...{ goal, contract, status: "active", turns_used: 0, max_turns: maxTurns, created_at: now, last_turn_at: 0 },
    ...{ last_verdict: null, last_reason: null, paused_reason: null, subgoals: [] },
    ...NO_FAILURES,
    ...NO_WAIT,
  };
}

export const isOpen = (
  state: GoalState | null,
): state is GoalState & { readonly status: Extract<GoalStatus, "active" | "paused"> } =>
  state?.status === "active" || state?.status === "paused";

export const paused = (state: GoalState, reason: string): GoalState => ({
  ...state,
  ...NO_WAIT,
  ...{ status: "paused", paused_reason: reason },
});

/** The whole budget again; what failed before does not count any more. */
export const resumed = (state: GoalState): GoalState => ({
  ...state,
  ...NO_FAILURES,
  ...NO_WAIT,
  ...{ status: "active", turns_used: 0, paused_reason: null },
});

export const cleared = (state: GoalState): GoalState => ({ ...state, ...NO_WAIT, status: "cleared" });

/** What a goal may wait for. */
export type WaitTarget =
  | { readonly pid: number }
  | { readonly process: string }
  /** Unix seconds. */
  | { readonly until: number };

export function waiting(state: GoalState, target: WaitTarget, reason: string, now: number): GoalState {
  return {
    ...state,
    ...NO_WAIT,
    ...("pid" in target ? { waiting_on_pid: target.pid } : {}),
    ...("process" in target ? { waiting_on_session: target.process } : {}),
    ...("until" in target ? { waiting_until: target.until } : {}),
    ...{ waiting_reason: reason, waiting_since: now },
  };
}

export const notWaiting = (state: GoalState): GoalState => ({ ...state, ...NO_WAIT });

export function waitTargetOf(state: GoalState): WaitTarget | null {
  if (state.waiting_on_session !== null) return { process: state.waiting_on_session };
  if (state.waiting_on_pid !== null) return { pid: state.waiting_on_pid };
  return state.waiting_until > 0 ? { until: state.waiting_until } : null;
}

// The contract.

const PREFIXES: Readonly<Record<ContractField, string>> = {
  outcome: "outcome|goal|done|done when",
  verification: "verification|verify|verified by|evidence|proof",
  constraints: "constraint|constraints|preserve|must not|do not change",
  boundaries: "boundaries|boundary|scope|allowed|files",
  stop_when: "stop when|stop_when|blocked|stop if blocked|give up when",
};
const FIELD_OF: ReadonlyMap<string, ContractField> = new Map(
  FIELDS.flatMap((field) => PREFIXES[field].split("|").map((prefix) => [prefix, field] as const)),
);

/** `prefix: value` lines are fields, the others the headline. */
export function readContract(text: string): { readonly goal: string; readonly contract: GoalContract } {
  const found: Record<ContractField, string[]> = {
    ...{ outcome: [], verification: [], constraints: [], boundaries: [], stop_when: [] },
  };
  const headline: string[] = [];
  for (const line of text.split("\n").map((one) => one.trim())) {
    const [, prefix = "", value = ""] = /^([A-Za-z_ ]{1,20}?)\s*:\s*(\S.*)$/.exec(line) ?? [];
    const field = FIELD_OF.get(prefix.toLowerCase().replace(/\s+/g, " "));
    if (field) found[field].push(value);
    else if (line !== "") headline.push(line);
  }
  const joined = (field: ContractField) => found[field].join(" ");
  const contract = Object.fromEntries(FIELDS.map((field) => [field, joined(field)])) as GoalContract; // each of the fields
  return { goal: headline.join(" ") || text.trim(), contract };
}

const LABELS: Readonly<Record<ContractField, string>> = {
  ...{ outcome: "Outcome", verification: "Verification", constraints: "Constraints", boundaries: "Boundaries" },
  stop_when: "Stop when blocked",
};

/** One line for each field that says something. */
export const contractLines = (contract: GoalContract): readonly string[] =>
  FIELDS.flatMap((field) => (contract[field] === "" ? [] : [`- ${LABELS[field]}: ${contract[field]}`]));

// What the model and the user read.

/** The first line of a message that the agent gets from its goal. */
const CONTINUING = "[Continuing toward your standing goal]";

export function continuationText(state: GoalState): string {
  const contract = contractLines(state.contract);
  const subgoals = state.subgoals.map((text, at) => `${at + 1}. ${text}`);
  return [
    CONTINUING,
    `Goal: ${state.goal}`,
    ...(contract.length > 0 ? ["", "Contract:", ...contract] : []),
    ...(subgoals.length > 0 ? ["", "Also required:", ...subgoals] : []),
    "",
    "Take the next concrete step toward this goal now. If it is done, say so and stop. If you are blocked or need the user, say so and stop.",
    ...(contract.length > 0
      ? [
          "Before you say that it is done, show the evidence that the contract asks for, and check that no constraint is broken.",
        ]
      : []),
  ].join("\n");
}

const turns = ({ turns_used, max_turns }: GoalState) => `${turns_used}/${max_turns}`;

/** `spent`: null where it is not known. */
export function statusLine(state: GoalState, now: number, spent: number | null = null): string {
  const facts = [
    t("{turns} turns", { turns: turns(state) }),
    ...(state.subgoals.length > 0 ? [plural(state.subgoals.length, "subgoal")] : []),
    ...(contractLines(state.contract).length > 0 ? [t("contract")] : []),
    ...(spent ? [dollars(spent)] : []),
  ].join(", ");
  const { goal } = state;
  switch (state.status) {
    case "done":
      return t("✓ Goal achieved ({facts}): {goal}", { facts, goal });
    case "paused": {
      const reason = state.paused_reason ?? t("by you");
      return t("⏸ Goal paused, {reason} ({facts}): {goal}", { reason, facts, goal });
    }
    case "cleared":
      return t("No goal is set. /goal <text> sets one.");
    case "active":
      return waitTargetOf(state) === null
        ? t("⊙ Goal active ({facts}): {goal}", { facts, goal })
        : t("⏳ Goal parked {why} ({facts}): {goal}", { why: parkedWhy(state, now), facts, goal });
  }
}

/** A few cells for a status line; null: there is nothing to work toward. */
export function goalGauge(state: GoalState | null): string | null {
  if (!isOpen(state)) return null;
  return `${state.status === "paused" ? "⏸" : waitTargetOf(state) === null ? "⊙" : "⏳"} ${turns(state)}`;
}

export const parkedLine = (state: GoalState, now: number) => t("⏳ Goal parked {why}.", { why: parkedWhy(state, now) });

/** Joins "Goal parked". */
function parkedWhy(state: GoalState, now: number): string {
  const target = waitTargetOf(state);
  const reason = state.waiting_reason ? `: ${state.waiting_reason}` : "";
  if (target === null) return "";
  if ("until" in target)
    return `${t("for another {time}", { time: compactDuration(Math.max(0, target.until - now)) })}${reason}`;
  const what =
    "pid" in target
      ? t("until process {id} ends", { id: target.pid })
      : t("until {id} ends or prints what it waits for", { id: target.process });
  return `${what}, ${t("since {time}", { time: compactDuration(Math.max(0, now - state.waiting_since)) })}${reason}`;
}

export const continuingLine = (state: GoalState, reason: string) =>
  t("↻ Continuing toward goal ({turns}): {reason}", { turns: turns(state), reason });

export const achievedLine = (reason: string) => t("✓ Goal achieved: {reason}", { reason });

export const pausedLine = (state: GoalState) =>
  t("⏸ Goal paused — {turns} turns used. {reason}. /goal resume continues, /goal clear drops it.", {
    turns: turns(state),
    reason: state.paused_reason ?? "",
  });
