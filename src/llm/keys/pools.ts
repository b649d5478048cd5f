// The keys of `auth.json`: several per provider, with a note on each that is spent. Shared by every process of the home.
import { createHash } from "node:crypto";
import { withLock } from "../../home/lock.ts";
import type { OpenHome } from "../../home/open.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Failure } from "../errors/classify.ts";
import { namedReset } from "../errors/details.ts";
import { hostBelongs, hostOf } from "../providers/hosts.ts";
import { hostsOf, isUsableKey } from "../providers/keys.ts";
import type { ResolveInput } from "../providers/resolve.ts";
import { text } from "../providers/settings.ts";
import { providerRow } from "../providers/table.ts";
import type { Target } from "../wire.ts";
import {
  type AuthFile,
  CredentialPool,
  entriesIn,
  type PoolEntry,
  type PoolStrategy,
  readAuth,
  withPool,
  writeAuth,
} from "./pool.ts";
import type { KeyPort } from "./ring.ts";

type Home = Pick<OpenHome, "paths" | "config" | "env" | "log">;

const STRATEGIES: readonly PoolStrategy[] = ["fill_first", "round_robin", "random", "least_used"];

/** The key a provider would be asked with when nothing else names one; null where there is no pool. */
export async function pooledKeys(home: Home, clock: Clock): Promise<NonNullable<ResolveInput["pooled"]> | undefined> {
  const file = await readAuth(home);
  if (!file) return undefined;
  const chosen = new Map<string, ReturnType<NonNullable<ResolveInput["pooled"]>>>();
  return (provider) => {
    if (!chosen.has(provider)) {
      const entry = poolOf(home, clock, file, provider)?.select() ?? null;
      const key = entry && keyOf(entry, home);
      chosen.set(provider, key ? { key, baseUrl: text(entry?.base_url) } : null);
    }
    return chosen.get(provider) ?? null;
  };
}

/** A key as long as a child works with it. */
export interface BorrowedKey {
  readonly target: Target;
  release(): void;
}

/** Which keys the children of this process hold, by home and provider. */
const borrowed = new WeakMap<object, Map<string, Map<string, number>>>();

function borrowedIn(home: Home, provider: string): Map<string, number> {
  const ofHome = borrowed.get(home) ?? new Map<string, Map<string, number>>();
  borrowed.set(home, ofHome);
  const held = ofHome.get(provider) ?? new Map<string, number>();
  ofHome.set(provider, held);
  return held;
}

/** The provider the user is logged in to, if that login can be used. */
export async function activeLogin(home: Home): Promise<string | null> {
  const file = await readAuth(home);
  const provider = text(file?.active_provider);
  if (!file || !provider) return null;
  return entriesIn(file, provider).some((entry) => keyOf(entry, home) !== null) ? provider : null;
}

export class CredentialPools implements KeyPort {
  readonly #home: Home;
  readonly #clock: Clock;

  constructor(home: Home, clock: Clock) {
    this.#home = home;
    this.#clock = clock;
  }

  async others(target: Target): Promise<number> {
    const file = await readAuth(this.#home);
    const pool = file && poolOf(this.#home, this.#clock, file, target.provider, target);
    if (!pool) return 0;
    return pool.available().filter((entry) => keyOf(entry, this.#home) !== target.apiKey).length;
  }

  async rotate(target: Target, failure: Failure): Promise<Target | null> {
    if ((await readAuth(this.#home)) === null) return null;
    try {
      return await withLock(this.#home.paths.at("auth.lock"), () => this.#rotate(target, failure));
    } catch (error) {
      this.#home.log.warn("auth.json could not be written; the key in use stays", error);
      return null;
    }
  }

  async renew(target: Target): Promise<Target | null> {
    const row = providerRow(target.provider);
    if (!row || (await readAuth(this.#home)) === null) return null;
    try {
      return await withLock(this.#home.paths.at("auth.lock"), async () => {
        const file = await readAuth(this.#home);
        const pool = file && poolOf(this.#home, this.#clock, file, target.provider, target);
        const entry = pool?.entries.find((one) => keyOf(one, this.#home) === target.apiKey);
        if (!pool || !entry || variableOf(entry) !== null) return null;
        const { renewLogin } = await import("./renew-login.ts");
        const change = await renewLogin(entry, row, { fetch, now: () => this.#clock.now() });
        const renewed = change && pool.renew(entry.id, change);
        if (!renewed) return null;
        await this.#write(file, target.provider, pool);
        return moved(target, renewed, this.#home);
      });
    } catch (error) {
      this.#home.log.warn(`the login of ${target.provider} could not be renewed`, error);
      return null;
    }
  }

  async used(target: Target): Promise<void> {
    if ((await readAuth(this.#home)) === null) return;
    try {
      await withLock(this.#home.paths.at("auth.lock"), async () => {
        const file = await readAuth(this.#home);
        const pool = file && poolOf(this.#home, this.#clock, file, target.provider, target);
        const entry = pool?.entries.find((one) => keyOf(one, this.#home) === target.apiKey);
        if (!pool || !entry) return;
        pool.countUse(entry.id);
        await this.#write(file, target.provider, pool);
      });
    } catch (error) {
      this.#home.log.warn("auth.json could not be written; the next process may take the same key", error);
    }
  }

  /** The target with a key that no other child holds, as long as there are enough. Null: its key is of no pool. */
  async borrow(target: Target): Promise<BorrowedKey | null> {
    const file = await readAuth(this.#home);
    const pool = file && poolOf(this.#home, this.#clock, file, target.provider, target);
    // A key that was given by hand is the one to use.
    if (!pool?.entries.some((entry) => keyOf(entry, this.#home) === target.apiKey)) return null;
    const borrowed = pool.borrow();
    const changed = borrowed && moved(target, borrowed.entry, this.#home);
    if (changed) return { target: changed, release: borrowed.release };
    borrowed?.release();
    return null;
  }

  async #write(file: AuthFile, provider: string, pool: CredentialPool): Promise<void> {
    await writeAuth(this.#home, withEntries(file, provider, pool.entries));
  }

  async #rotate(target: Target, failure: Failure): Promise<Target | null> {
    // Read again under the lock: another process may have used the next key up meanwhile.
    const file = await readAuth(this.#home);
    const pool = file && poolOf(this.#home, this.#clock, file, target.provider, target);
    if (!pool) return null;
    const spent = pool.entries.find((entry) => keyOf(entry, this.#home) === target.apiKey);
    if (spent) pool.use(spent.id);
    const next = spent ? pool.markExhaustedAndRotate(explain(failure, this.#clock.now())) : pool.select();
    await this.#write(file, target.provider, pool);
    return next && moved(target, next, this.#home);
  }
}

/** Null for a provider without entries. With `target`: only keys that may be sent where its requests go. */
function poolOf(home: Home, clock: Clock, file: AuthFile, provider: string, target?: Target): CredentialPool | null {
  const row = providerRow(provider);
  const listed = entriesIn(file, provider);
  if (!row || row.id === "custom" || listed.length === 0) return null;
  const entries = [...listed, ...fromEnvironment(listed, row.keyEnv, home)]
    .map((entry) => freshened(entry, home))
    .filter((entry) => keyOf(entry, home) !== null && (!target || moved(target, entry, home) !== null));
  const wanted = text(home.config().credential_pool_strategies[provider]);
  const strategy = STRATEGIES.find((one) => one === wanted) ?? "fill_first";
  return new CredentialPool({
    ...{ provider, entries, strategy, borrowed: borrowedIn(home, provider) },
    now: () => clock.now(),
    random: () => clock.random(),
  });
}

/** Keys of variables belong to the pool too: by name and fingerprint, their value stays where it is. */
function fromEnvironment(listed: readonly PoolEntry[], names: readonly string[], home: Home): readonly PoolEntry[] {
  return names
    .filter((name) => isUsableKey(home.env(name)) && !listed.some((entry) => entry.source === `env:${name}`))
    .map((name) => ({
      id: digest(name).slice(0, 6),
      label: name,
      auth_type: "api_key",
      priority: 0,
      source: `env:${name}`,
      fingerprint: digest(home.env(name) ?? ""),
      request_count: 0,
    }));
}

/** Another key behind the same variable starts with a clean sheet. */
function freshened(entry: PoolEntry, home: Home): PoolEntry {
  const name = variableOf(entry);
  const value = name === null ? undefined : home.env(name);
  if (!isUsableKey(value) || entry.fingerprint === digest(value)) return entry;
  return { ...entry, fingerprint: digest(value), last_status: null, last_error_reset_at: null };
}

function keyOf(entry: PoolEntry, home: Home): string | null {
  const name = variableOf(entry);
  const key = name === null ? entry.access_token : home.env(name);
  return isUsableKey(key) ? key.trim() : null;
}

function variableOf({ source }: PoolEntry): string | null {
  return source?.startsWith("env:") ? source.slice("env:".length) : null;
}

/** The target with this entry's key; null when that key may not go there. */
function moved(target: Target, entry: PoolEntry, home: Home): Target | null {
  const row = providerRow(target.provider);
  const key = keyOf(entry, home);
  if (!row || key === null) return null;
  const own = text(entry.base_url);
  const hosts = [...hostsOf(row, (name) => home.env(name)), ...(own ? [hostOf(own)] : [])];
  const baseUrl = own?.replace(/(?<!\/)\/+$/, "") ?? target.baseUrl;
  if (!hosts.some((host) => hostBelongs(hostOf(baseUrl), host))) return null;
  return { ...target, apiKey: key, keyHosts: hosts, baseUrl };
}

function explain({ error, classified }: Failure, now: number) {
  const reset = namedReset(error, now);
  return {
    statusCode: classified.statusCode,
    errorContext: {
      reason: classified.reason,
      message: classified.message,
      // At least a second: a rest of no length would hand out the same key again.
      reset_at: reset === null ? undefined : Math.max(reset, now / 1000 + 1),
    },
  };
}

/** Changed entries take the place of the old ones; what is not ours stays as it is. */
function withEntries(file: AuthFile, provider: string, changed: readonly PoolEntry[]): AuthFile {
  const listed = entriesIn(file, provider);
  const updated = listed.map((entry) => changed.find(({ id }) => id === entry.id) ?? entry);
  const added = changed.filter((entry) => !listed.some(({ id }) => id === entry.id));
  return withPool(file, provider, [...updated, ...added]);
}

function digest(value: string): string {
  return createHash("sha256").update(value).digest("hex").slice(0, 12);
}
