// Several keys of one provider: which one is used next, and how long an exhausted one rests. Pure; pools.ts reads and writes the file.

import { readFile } from "node:fs/promises";
import { withLock } from "../../home/lock.ts";
import type { OpenHome } from "../../home/open.ts";
import { codeOf, UserError } from "../../kit/errors.ts";
import { writeFileAtomic } from "../../kit/files.ts";
import type { ClassifiedError } from "../errors/classify.ts";
import { extractRetryDelaySeconds, parseAbsoluteTimestamp } from "../errors/details.ts";
import { mapping, text } from "../providers/settings.ts";

/** One entry of `credential_pool.<provider>` in auth.json. Times are Unix seconds. */
export interface PoolEntry {
  readonly id: string;
  readonly label?: string;
  readonly auth_type?: "api_key" | "oauth";
  readonly priority?: number;
  readonly source?: string;
  readonly access_token?: string;
  readonly refresh_token?: string | null;
  readonly expires_at?: number | string | null;
  readonly base_url?: string | null;
  /** Of a login: where it is renewed, and as whom. */
  readonly token_url?: string | null;
  readonly client_id?: string | null;
  readonly last_status?: "ok" | "exhausted" | null;
  readonly last_status_at?: number | null;
  readonly last_error_code?: number | null;
  readonly last_error_reason?: string | null;
  readonly last_error_message?: string | null;
  readonly last_error_reset_at?: number | null;
  readonly request_count?: number;
  /** When it last answered for a conversation, where the strategy asks for that. */
  readonly last_used_at?: number | null;
  /** Of a key in a variable: shows whether it is still the same one. */
  readonly fingerprint?: string;
}

export type PoolStrategy = "fill_first" | "round_robin" | "random" | "least_used";

interface PoolErrorContext {
  readonly reason?: string;
  readonly message?: string;
  readonly reset_at?: unknown;
  readonly resets_at?: unknown;
  readonly retry_until?: unknown;
}

const COOLDOWN_401 = 5 * 60;
const COOLDOWN = 60 * 60;

export class CredentialPool {
  readonly provider: string;
  readonly #strategy: PoolStrategy;
  readonly #now: () => number;
  readonly #random: () => number;
  readonly #borrowed: Map<string, number>;
  #entries: readonly PoolEntry[];
  #currentId: string | null = null;

  /** `now` in milliseconds. */
  constructor(options: {
    readonly provider: string;
    readonly entries: readonly PoolEntry[];
    readonly strategy?: PoolStrategy;
    readonly now?: () => number;
    readonly random?: () => number;
    /** How many children hold each entry, by id; handed in where pools come and go while keys are borrowed. */
    readonly borrowed?: Map<string, number>;
  }) {
    this.provider = options.provider;
    this.#entries = options.entries.map((entry) => ({ ...entry }));
    this.#strategy = options.strategy ?? "fill_first";
    this.#now = options.now ?? Date.now;
    this.#random = options.random ?? Math.random;
    this.#borrowed = options.borrowed ?? new Map();
  }

  /** The entries as they stand now, to be written back. */
  get entries(): readonly PoolEntry[] {
    return this.#entries;
  }

  get current(): PoolEntry | null {
    return this.#entries.find((entry) => entry.id === this.#currentId) ?? null;
  }

  /** This entry's key is the one in use. */
  use(id: string): void {
    this.#currentId = id;
  }

  /** Usable entries by priority. */
  available(): readonly PoolEntry[] {
    const now = this.#now() / 1000;
    return this.#entries.filter((entry) => restsUntil(entry) <= now).toSorted(byOrder);
  }

  /** The entry for the next request, or null when all rest. Counts the use. */
  select(): PoolEntry | null {
    const usable = this.available();
    const chosen = this.#choose(usable);
    this.#currentId = chosen?.id ?? null;
    if (!chosen) return null;
    const recovered =
      chosen.last_status === "exhausted" ? ({ last_status: "ok", last_error_reset_at: null } as const) : {};
    return this.#change(chosen.id, { ...recovered, request_count: (chosen.request_count ?? 0) + 1 });
  }

  /** The login of this entry was renewed. */
  renew(id: string, change: Partial<PoolEntry>): PoolEntry | null {
    return this.#change(id, change);
  }

  /** This entry answered for a conversation that begins. */
  countUse(id: string): void {
    const entry = this.#entries.find((one) => one.id === id);
    if (entry) this.#change(id, { request_count: (entry.request_count ?? 0) + 1, last_used_at: this.#now() / 1000 });
  }

  /** The key in use is spent: it rests, the next one takes over. */
  markExhaustedAndRotate(failure: {
    readonly statusCode?: number;
    readonly errorContext?: PoolErrorContext;
  }): PoolEntry | null {
    const current = this.current ?? this.select();
    if (!current) return null;
    const { statusCode, errorContext = {} } = failure;
    const now = this.#now() / 1000;
    this.#change(current.id, {
      last_status: "exhausted",
      last_status_at: now,
      last_error_code: statusCode ?? null,
      last_error_reason: errorContext.reason ?? null,
      last_error_message: errorContext.message ?? null,
      last_error_reset_at: resetTime(errorContext, now),
    });
    return this.select();
  }

  /** A key for a child agent: one nobody else holds if there is one, else one that few hold. */
  borrow(): { readonly entry: PoolEntry; release(): void } | null {
    const held = ({ id }: PoolEntry) => this.#borrowed.get(id) ?? 0;
    const [entry] = this.available().toSorted((a, b) => held(a) - held(b));
    if (!entry) return null;
    this.#borrowed.set(entry.id, held(entry) + 1);
    let over = false;
    const release = () => {
      if (!over) this.#borrowed.set(entry.id, held(entry) - 1);
      over = true;
    };
    return { entry, release };
  }

  #choose(usable: readonly PoolEntry[]): PoolEntry | undefined {
    switch (this.#strategy) {
      case "random":
        return usable[Math.floor(this.#random() * usable.length)];
      case "least_used":
        return usable.toSorted((a, b) => (a.request_count ?? 0) - (b.request_count ?? 0))[0];
      case "round_robin": {
        const last = this.current;
        // A new process has no key in use: it takes the one that has waited longest.
        if (!last) return usable.toSorted((a, b) => (a.last_used_at ?? 0) - (b.last_used_at ?? 0))[0];
        return usable.find((entry) => byOrder(entry, last) > 0) ?? usable[0];
      }
      default:
        return usable[0];
    }
  }

  #change(id: string, change: Partial<PoolEntry>): PoolEntry | null {
    this.#entries = this.#entries.map((entry) => (entry.id === id ? { ...entry, ...change } : entry));
    return this.#entries.find((entry) => entry.id === id) ?? null;
  }
}

type PoolAction = "retry_same" | "refresh" | "rotate" | "leave";

/** What the pool does about a failure. `again` = this key failed the same way just before. */
export function poolAction(
  failure: Pick<ClassifiedError, "reason" | "statusCode"> & { /** All the server said. */ readonly said: string },
  facts: { readonly again: boolean; readonly canRefresh: boolean },
): PoolAction {
  switch (failure.reason) {
    case "billing":
      return "rotate";
    case "rate_limit":
      return facts.again || /usage_limit_reached/i.test(failure.said) ? "rotate" : "retry_same";
    case "auth":
      // A 403 is about what the account may do; a fresh token may do no more.
      if (failure.statusCode === 403) return "leave";
      return facts.canRefresh && !facts.again ? "refresh" : "rotate";
    default:
      return "leave";
  }
}

/** Unix seconds; 0 for a key that may be used. */
export function restsUntil(entry: PoolEntry): number {
  if (entry.last_status !== "exhausted") return 0;
  if (entry.last_error_reset_at) return entry.last_error_reset_at;
  return (entry.last_status_at ?? 0) + (entry.last_error_code === 401 ? COOLDOWN_401 : COOLDOWN);
}

function resetTime(context: PoolErrorContext, now: number): number | null {
  for (const value of [context.reset_at, context.resets_at, context.retry_until]) {
    const time = parseAbsoluteTimestamp(value);
    if (time !== null) return time;
  }
  const delay = extractRetryDelaySeconds(context.message ?? "");
  return delay === null ? null : now + delay;
}

/** By priority, entries of one priority by id. */
function byOrder(a: PoolEntry, b: PoolEntry): number {
  return (a.priority ?? 0) - (b.priority ?? 0) || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

// `auth.json`: keys and logins of providers. Written by several processes, so every change is made under its lock, and whole.

type Home = Pick<OpenHome, "paths" | "log">;
export type AuthFile = Readonly<Record<string, unknown>>;

/** Null where there is none, or none that can be read. */
export async function readAuth(home: Home): Promise<AuthFile | null> {
  try {
    return mapping(JSON.parse(await readFile(home.paths.at("auth.json"), "utf8")));
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    home.log.warn("auth.json cannot be read; its keys are not used", error);
    return null;
  }
}

/** Empty where there is none. Rejects with a `UserError` where the file is there and cannot be read. */
export async function openAuth(home: Pick<Home, "paths">): Promise<AuthFile> {
  try {
    return mapping(JSON.parse(await readFile(home.paths.at("auth.json"), "utf8")));
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : null;
    if (code === "ENOENT") return {};
    // The words of a parser quote the file, and with it keys.
    throw new UserError(
      `${home.paths.at("auth.json")} cannot be read (${code ?? "it is not JSON"}); its keys are not used. Fix or remove it.`,
    );
  }
}

/** Rejects like `openAuth`: a file that cannot be read is not written over. */
export async function editAuth(home: Home, change: (file: AuthFile) => AuthFile): Promise<void> {
  await withLock(home.paths.at("auth.lock"), async () => writeAuth(home, change(await openAuth(home))));
}

/** To be called under the lock. */
export async function writeAuth(home: Home, file: AuthFile): Promise<void> {
  await writeFileAtomic(home.paths.at("auth.json"), `${JSON.stringify(file, null, 2)}\n`, { mode: 0o600 });
}

export function entriesIn(file: AuthFile, provider: string): readonly PoolEntry[] {
  const list = mapping(file.credential_pool)[provider];
  if (!Array.isArray(list)) return [];
  return list.filter((entry): entry is PoolEntry => text(mapping(entry).id) !== undefined);
}

export function withPool(file: AuthFile, provider: string, entries: readonly PoolEntry[]): AuthFile {
  return { ...file, credential_pool: { ...mapping(file.credential_pool), [provider]: entries } };
}
