// The same call sent twice is answered once: the second one waits for the first, or gets what it came to.
import { createHash } from "node:crypto";
import type { Clock } from "../../kit/clock.ts";
import { ApiError, type Reply } from "./contract.ts";

const KEPT_MS = 300_000;
const MOST = 1000;
const LONGEST_KEY = 256;

interface Kept {
  readonly fingerprint: string;
  readonly reply: Promise<Reply>;
  /** Null while it runs. */
  endedAt: number | null;
}

/**
 * - Calls with one key and one fingerprint share one run of `work`; a key that comes with another fingerprint is refused.
 * - What fails is not kept: the next call tries again. A call without a key is simply made.
 */
export class Idempotency {
  readonly #clock: Pick<Clock, "now">;
  readonly #kept = new Map<string, Kept>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  async run(key: string, fingerprintNow: () => string, work: () => Promise<Reply>): Promise<Reply> {
    if (key === "") return work();
    if (key.length > LONGEST_KEY)
      throw new ApiError(400, `Idempotency-Key must have at most ${LONGEST_KEY} characters`, {
        param: "Idempotency-Key",
      });
    this.#forget();
    const fingerprint = fingerprintNow();
    const known = this.#kept.get(key);
    if (known && known.fingerprint !== fingerprint)
      throw new ApiError(422, "this Idempotency-Key came with another body before; use a new key for a new request", {
        code: "idempotency_key_reused",
        param: "Idempotency-Key",
      });
    if (known) return known.reply;
    const reply = work();
    const kept: Kept = { fingerprint, reply, endedAt: null };
    this.#kept.set(key, kept);
    const settle = ({ status }: Pick<Reply, "status">) => {
      kept.endedAt = this.#clock.now();
      if (status >= 400 && this.#kept.get(key) === kept) this.#kept.delete(key);
    };
    reply.then(settle, () => settle({ status: 500 }));
    return reply;
  }

  #forget(): void {
    const now = this.#clock.now();
    for (const [key, { endedAt }] of this.#kept)
      if (endedAt !== null && (now - endedAt > KEPT_MS || this.#kept.size >= MOST)) this.#kept.delete(key);
  }
}

/** What makes two bodies the same request. */
export function fingerprintOf(
  route: string,
  body: Readonly<Record<string, unknown>>,
  fields: readonly string[],
): string {
  const facts = fields.map((field) => [field, body[field] ?? null]);
  return createHash("sha256")
    .update(JSON.stringify([route, facts]))
    .digest("hex");
}
