// The caps of `budget.*`: decided before anything leaves.
import {
  type CallPurpose,
  type CapScope,
  type Caps,
  GOAL_ACCOUNT,
  type SpendingLimit,
  type SpendingScope,
} from "../gate.ts";

/** What a call is expected to take; `usd` null = the price is unknown. */
export interface Estimate {
  readonly usd: number | null;
  readonly tokens: number;
}

/** A limit that the ledger has to look after, and which cap it comes from. */
export interface CapLimit extends SpendingLimit {
  readonly cap: CapScope;
}

const SCOPES: readonly CapScope[] = ["call", "session", "job", "goal", "day"];
const UNITS = ["usd", "tokens"] as const;

export function anyCap(caps: Caps): boolean {
  return SCOPES.some((scope) => capOf(caps, scope).usd !== null || capOf(caps, scope).tokens !== null);
}

export function anyMoneyCap(caps: Caps): boolean {
  return SCOPES.some((scope) => capOf(caps, scope).usd !== null);
}

const NONE = { usd: null, tokens: null };
const capOf = (caps: Caps, scope: CapScope) => caps[scope] ?? NONE;

/** Who pays for a call: a job of somebody's, or a goal, never both. */
const payers = ({ jobId = "" }: CallPurpose) => {
  const isGoal = jobId.startsWith(GOAL_ACCOUNT);
  return { job: jobId !== "" && !isGoal, goal: isGoal };
};

/** The sentence that refuses a call whatever was spent before: a cap of 0, or a call that is too large by itself. */
export function refusedAtOnce(purpose: CallPurpose, estimate: Estimate, caps: Caps): string | null {
  for (const scope of SCOPES) {
    if ((scope === "job" || scope === "goal") && !payers(purpose)[scope]) continue;
    for (const unit of UNITS) {
      const cap = capOf(caps, scope)[unit];
      const next = estimate[unit];
      if (cap === null) continue;
      if (cap <= 0) return capSentence(scope, unit, { spent: 0, next: 0, cap });
      if (scope === "call" && next !== null && next > cap) return capSentence(scope, unit, { spent: 0, next, cap });
    }
  }
  return null;
}

/** What this call draws on, together with others. */
export function limitsOf(purpose: CallPurpose, caps: Caps, now: Date): readonly CapLimit[] {
  const { sessionId, jobId = "" } = purpose;
  const pays = payers(purpose);
  const scopes: readonly (readonly [CapScope, SpendingScope | null])[] = [
    ["session", sessionId === null ? null : { session: sessionId }],
    ["job", pays.job ? { job: jobId } : null],
    ["goal", pays.goal ? { job: jobId } : null],
    ["day", { day: now }],
  ];
  return scopes.flatMap(([cap, scope]) => {
    const { usd, tokens } = capOf(caps, cap);
    return scope === null || (usd === null && tokens === null) ? [] : [{ cap, scope, usd, tokens }];
  });
}

const NAMES: Readonly<Record<CapScope, string>> = {
  call: "one model call",
  session: "this conversation",
  job: "this job",
  goal: "this goal",
  day: "today",
};

export function capSentence(
  scope: CapScope,
  unit: "usd" | "tokens",
  { spent, next, cap }: { readonly spent: number; readonly next: number; readonly cap: number },
): string {
  const key = scope === "goal" ? `goals.max_${unit}` : `budget.${scope}.${unit}`;
  if (cap <= 0)
    return `Nothing was sent: the cap for ${NAMES[scope]} is 0 (${key} in config.yaml). Raise it to continue.`;
  const show = (value: number) =>
    unit === "usd" ? money(value) : `${Math.round(value).toLocaleString("en-US")} tokens`;
  return `Nothing was sent: the budget of ${NAMES[scope]} would be exceeded. Spent ${show(spent)}, this call needs about ${show(next)}, the cap is ${show(cap)} (${key} in config.yaml). Raise it to continue.`;
}

function money(usd: number): string {
  const digits = usd !== 0 && usd < 0.01 ? 6 : 2;
  return `$${usd.toFixed(digits)}`;
}
