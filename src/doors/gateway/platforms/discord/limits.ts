// Discord's rate limits. Routes share buckets that Discord names in its answers; each channel, server and webhook has its own. Within one,
// requests go one after the other, so that what an answer says holds for the next.
import type { Clock } from "../../../../kit/clock.ts";
import { asRecord } from "../../../../kit/json.ts";
import { retryAfter, type WebReply } from "../../web-calls.ts";

/** It would have to wait for longer than it may; nothing left. Or Discord said so, and did nothing. */
export class LimitedError extends Error {
  override name = "LimitedError";
  readonly seconds: number;
  constructor(seconds: number) {
    super("rate limited by Discord");
    this.seconds = seconds;
  }
}

export interface Limited {
  /** Method and path without ids: what Discord's buckets are made of. */
  readonly route: string;
  /** The channel, server or webhook it is about; empty: none. */
  readonly about: string;
  /** Answers to interactions are not counted with everything else. */
  readonly isUncounted: boolean;
  readonly signal: AbortSignal;
  /** Whether the caller rather waits so many milliseconds than hear of it. */
  mayWait(ms: number): boolean;
  send(): Promise<WebReply>;
}

interface Bucket {
  /** Resolves when everybody who came before is done. */
  line: Promise<void>;
  waiting: number;
  left: number;
  /** When `left` is full again. */
  until: number;
}

/** All requests of a bot together. */
const PER_SECOND = 50;
const SECOND = 1000;
/** Idle buckets are forgotten then. */
const MOST_BUCKETS = 500;

export class RateLimits {
  readonly #clock: Clock;
  /** Discord's name of the bucket of a route. */
  readonly #names = new Map<string, string>();
  readonly #buckets = new Map<string, Bucket>();
  /** No request leaves before. */
  #closedUntil = 0;
  #second = { from: 0, sent: 0 };

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Rejects with `LimitedError`, or with what `send` or the signal rejects with. */
  async run(request: Limited): Promise<WebReply> {
    const bucket = this.#bucketOf(request);
    bucket.waiting += 1;
    const before = bucket.line;
    const { promise, resolve } = Promise.withResolvers<void>();
    bucket.line = promise;
    try {
      await unlessStopped(before, request.signal);
      return await this.#inTurn(bucket, request);
    } finally {
      bucket.waiting -= 1;
      void before.then(() => resolve());
    }
  }

  #bucketOf({ route, about }: Limited): Bucket {
    const key = `${this.#names.get(route) ?? route} ${about}`;
    const known = this.#buckets.get(key);
    if (known) return known;
    if (this.#buckets.size >= MOST_BUCKETS)
      for (const [name, { waiting, until }] of this.#buckets)
        if (waiting === 0 && until <= this.#clock.now()) this.#buckets.delete(name);
    const bucket: Bucket = { line: Promise.resolve(), waiting: 0, left: 1, until: 0 };
    this.#buckets.set(key, bucket);
    return bucket;
  }

  async #inTurn(bucket: Bucket, request: Limited): Promise<WebReply> {
    for (;;) {
      request.signal.throwIfAborted();
      const wait = this.#waitFor(bucket, request);
      if (wait > 0) {
        if (!request.mayWait(wait)) throw new LimitedError(wait / SECOND);
        await this.#clock.sleep(wait, request.signal);
        continue;
      }
      if (!request.isUncounted) this.#second.sent += 1;
      const reply = await request.send();
      const again = this.#learn(bucket, request, reply);
      if (again === null) return reply;
      if (!request.mayWait(again)) throw new LimitedError(again / SECOND);
    }
  }

  #waitFor(bucket: Bucket, { isUncounted }: Limited): number {
    const now = this.#clock.now();
    if (now - this.#second.from >= SECOND) this.#second = { from: now, sent: 0 };
    const forBucket = bucket.left > 0 ? 0 : bucket.until - now;
    if (isUncounted) return Math.max(0, forBucket);
    const forAll = this.#second.sent < PER_SECOND ? 0 : this.#second.from + SECOND - now;
    return Math.max(0, forBucket, forAll, this.#closedUntil - now);
  }

  /** Milliseconds until it may be asked again; null: it was answered. */
  #learn(bucket: Bucket, { route, about }: Limited, { status, headers, json }: WebReply): number | null {
    const now = this.#clock.now();
    const number = (name: string) => Number(headers.get(name) ?? Number.NaN);
    const name = headers.get("x-ratelimit-bucket");
    const shared = name === undefined ? bucket : this.#named(name, route, about, bucket);
    const [left, seconds] = [number("x-ratelimit-remaining"), number("x-ratelimit-reset-after")];
    const known = { ...(left >= 0 && { left }), ...(seconds >= 0 && { until: now + seconds * SECOND }) };
    for (const one of [bucket, shared]) Object.assign(one, known);
    if (status !== 429) return null;
    const { retry_after: said, global: isGlobal } = asRecord(json);
    const wait = Math.max(1, (typeof said === "number" ? said : (retryAfter(headers, now) ?? 1)) * SECOND);
    if (isGlobal === true || headers.get("x-ratelimit-global") === "true") this.#closedUntil = now + wait;
    else for (const one of [bucket, shared]) Object.assign(one, { left: 0, until: now + wait });
    return wait;
  }

  /** From here on the routes of this name go through one bucket. */
  #named(name: string, route: string, about: string, bucket: Bucket): Bucket {
    this.#names.set(route, name);
    const key = `${name} ${about}`;
    const known = this.#buckets.get(key) ?? bucket;
    this.#buckets.set(key, known);
    return known;
  }
}

async function unlessStopped(work: Promise<void>, signal: AbortSignal): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>();
  const stop = () => reject(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  try {
    await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
