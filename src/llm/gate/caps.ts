// The caps of `budget.*`: decided before anything leaves.
import type { CallPurpose, CapScope, Caps, Ledger } from "../gate.ts";

/** What a call is expected to take; `usd` null = the price is unknown. */
export interface Estimate {
  readonly usd: number | null;
  readonly tokens: number;
}

interface Reservation extends Estimate {
  readonly purpose: CallPurpose;
}

const SCOPES: readonly CapScope[] = ["call", "session", "job", "day"];

export function anyCap(caps: Caps): boolean {
  return SCOPES.some((scope) => caps[scope].usd !== null || caps[scope].tokens !== null);
}

export function anyMoneyCap(caps: Caps): boolean {
  return SCOPES.some((scope) => caps[scope].usd !== null);
}

/** Keeps the promise of calls that have left but are not in the books yet, so that parallel calls cannot pass one cap together. */
export class CapKeeper {
  readonly #ledger: Ledger;
  readonly #open = new Set<Reservation>();
  #queue: Promise<unknown> = Promise.resolve();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** Null = go, with the room reserved until `release`; else the sentence that refuses. One decision at a time. */
  admit(
    purpose: CallPurpose,
    estimate: Estimate,
    caps: Caps,
    now: Date,
  ): Promise<{ refusal: string } | { release(): void }> {
    const decision = this.#queue.then(async () => {
      const refusal = await this.#refusal(purpose, estimate, caps, now);
      if (refusal) return { refusal };
      const reservation = { ...estimate, purpose };
      this.#open.add(reservation);
      return { release: () => void this.#open.delete(reservation) };
    });
    this.#queue = decision.catch(() => undefined);
    return decision;
  }

  async #refusal(purpose: CallPurpose, estimate: Estimate, caps: Caps, now: Date): Promise<string | null> {
    for (const scope of SCOPES) {
      const { usd, tokens } = caps[scope];
      if ((usd === null && tokens === null) || (scope === "job" && !purpose.jobId)) continue;
      for (const [cap, unit] of [
        [usd, "usd"],
        [tokens, "tokens"],
      ] as const) {
        if (cap !== null && cap <= 0) return sentence(scope, unit, 0, 0, cap);
      }
      const spent = await this.#spent(scope, purpose, now);
      if (!spent) continue;
      if (usd !== null && estimate.usd !== null && spent.usd + estimate.usd > usd) {
        return sentence(scope, "usd", spent.usd, estimate.usd, usd);
      }
      if (tokens !== null && spent.tokens + estimate.tokens > tokens) {
        return sentence(scope, "tokens", spent.tokens, estimate.tokens, tokens);
      }
    }
    return null;
  }

  /** What the books say plus what is under way; null when the scope does not apply to this call. */
  async #spent(scope: CapScope, purpose: CallPurpose, now: Date): Promise<{ usd: number; tokens: number } | null> {
    if (scope === "call") return { usd: 0, tokens: 0 };
    if (scope === "day") return this.#sum({ day: now }, () => true);
    const { sessionId, jobId } = purpose;
    if (scope === "job") return jobId ? this.#sum({ job: jobId }, (other) => other.jobId === jobId) : null;
    // One gate serves a conversation with its sub-agents, which have sessions of their own; only the prompts of a batch share one, by job.
    return sessionId ? this.#sum({ session: sessionId }, (other) => other.jobId === jobId) : null;
  }

  async #sum(scope: Parameters<Ledger["spent"]>[0], same: (purpose: CallPurpose) => boolean) {
    const booked = await this.#ledger.spent(scope);
    const open = [...this.#open].filter((reservation) => same(reservation.purpose));
    return {
      usd: open.reduce((sum, { usd }) => sum + (usd ?? 0), booked.usd),
      tokens: open.reduce((sum, { tokens }) => sum + tokens, booked.tokens),
    };
  }
}

const NAMES: Readonly<Record<CapScope, string>> = {
  call: "one model call",
  session: "this conversation",
  job: "this job",
  day: "today",
};

function sentence(scope: CapScope, unit: "usd" | "tokens", spent: number, next: number, cap: number): string {
  const key = `budget.${scope}.${unit}`;
  if (cap <= 0) return `Nothing was sent: the cap for ${NAMES[scope]} is 0 (${key} in config.yaml). Raise it to go on.`;
  const show = (value: number) =>
    unit === "usd" ? money(value) : `${Math.round(value).toLocaleString("en-US")} tokens`;
  return `Nothing was sent: the budget of ${NAMES[scope]} would be exceeded. Spent ${show(spent)}, this call needs about ${show(next)}, the cap is ${show(cap)} (${key} in config.yaml). Raise it to go on.`;
}

function money(usd: number): string {
  const digits = usd !== 0 && usd < 0.01 ? 6 : 2;
  return `$${usd.toFixed(digits)}`;
}
