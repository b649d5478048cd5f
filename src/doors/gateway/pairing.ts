// Strangers who ask to be let in. They get a code, the owner approves it on the command line. The files are the original's.
import { createHash, randomBytes, randomInt, timingSafeEqual } from "node:crypto";
import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { withLock } from "../../home/lock.ts";
import type { OpenHome } from "../../home/open.ts";
import { type HomePaths, profileCommand } from "../../home/paths.ts";
import type { Clock } from "../../kit/clock.ts";
import { codeOf } from "../../kit/errors.ts";
import { writeFileAtomic } from "../../kit/files.ts";
import { isRecord, parseJson } from "../../kit/json.ts";
import { canonicalId } from "./chat.ts";

const LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const CODE_LENGTH = 8;
const CODE_SECONDS = 3600;
const ASK_AGAIN_SECONDS = 600;
const MOST_PENDING = 3;
const MOST_WRONG = 5;
const LOCKED_SECONDS = 3600;

interface PendingPerson {
  readonly platform: string;
  readonly request_id: string;
  readonly user_id: string;
  readonly user_name: string;
  readonly age_minutes: number;
}

interface ApprovedPerson {
  readonly platform: string;
  readonly user_id: string;
  readonly user_name: string;
  readonly approved_at: number;
}

type Approval =
  /** With where they asked, if that is known: they are told there. */
  | { readonly type: "approved"; readonly person: ApprovedPerson; readonly asked: AskedIn | null }
  | { readonly type: "wrong" }
  /** Too many wrong codes; a right one does not count either until then. */
  | { readonly type: "locked"; readonly until: number };

/** The bot and the chat somebody asked in: some platforms have chats whose id is not that of the person. */
interface AskedIn {
  readonly account: string;
  readonly chatId: string;
  readonly threadId?: string | undefined;
}

interface PendingRow {
  readonly user_id: string;
  readonly user_name: string;
  readonly account?: unknown;
  readonly chat_id?: unknown;
  readonly thread_id?: unknown;
  readonly created_at: number;
  readonly salt: string;
  readonly hash: string;
}

type Table = Readonly<Record<string, unknown>>;

/**
 * - Codes are never stored, only their salted hashes; nobody but the stranger sees one.
 * - Every change happens under the lock of the folder: several processes may serve and approve at once.
 */
export class Pairing {
  readonly #paths: Pick<HomePaths, "at">;
  readonly #clock: Clock;

  constructor(paths: Pick<HomePaths, "at">, clock: Clock) {
    this.#paths = paths;
    this.#clock = clock;
  }

  async isPaired(platform: string, userId: string): Promise<boolean> {
    return Object.keys(await this.#read(platform, "approved")).some((id) => same(platform, id, userId));
  }

  /** A new code for a stranger; null when they asked a short while ago, or too many wait already. */
  async request(platform: string, userId: string, userName: string, asked?: AskedIn): Promise<string | null> {
    return this.#locked(async () => {
      const limits = await this.#limits();
      const person = `${platform}:${canonicalId(platform, userId)}`;
      if (this.#now - Number(limits[person] ?? 0) < ASK_AGAIN_SECONDS) return null;
      const pending = this.#fresh(await this.#read(platform, "pending"));
      const others = Object.entries(pending).filter(([, row]) => !same(platform, row.user_id, userId));
      if (others.length >= MOST_PENDING) return null;
      const code = Array.from({ length: CODE_LENGTH }, () => LETTERS[randomInt(LETTERS.length)]).join("");
      const salt = randomBytes(16).toString("hex");
      const row = {
        ...{ user_id: userId, user_name: userName, created_at: this.#now, salt, hash: hashOf(salt, code) },
        ...(asked && { account: asked.account, chat_id: asked.chatId }),
        ...(asked?.threadId && { thread_id: asked.threadId }),
      };
      await this.#write(platform, "pending", { ...Object.fromEntries(others), [randomBytes(4).toString("hex")]: row });
      await this.#writeLimits({ ...this.#inForce(limits), [person]: this.#now });
      return code;
    });
  }

  /** By the code, or by the id that `list` shows. */
  async approve(platform: string, codeOrId: string): Promise<Approval> {
    return this.#locked(async () => {
      const limits = await this.#limits();
      const until = Number(limits[lockout(platform)] ?? 0);
      if (until > this.#now) return { type: "locked", until };
      const pending = this.#fresh(await this.#read(platform, "pending"));
      const given = codeOrId.trim();
      const found = Object.entries(pending).find(
        ([id, row]) => id === given.toLowerCase() || equal(row.hash, hashOf(row.salt, given.toUpperCase())),
      );
      if (!found) {
        await this.#countWrong(platform, limits);
        return { type: "wrong" };
      }
      const [id, row] = found;
      const { user_id, user_name } = row;
      const person = { platform, user_id, user_name, approved_at: this.#now };
      const approved = await this.#read(platform, "approved");
      await this.#write(platform, "approved", { ...approved, [user_id]: { user_name, approved_at: this.#now } });
      await this.#write(platform, "pending", Object.fromEntries(Object.entries(pending).filter(([key]) => key !== id)));
      await this.#writeLimits({ ...limits, [failures(platform)]: 0 });
      return { type: "approved", person, asked: askedIn(row) };
    });
  }

  /** False when there is no such person. */
  async revoke(platform: string, userId: string): Promise<boolean> {
    return this.#locked(async () => {
      const approved = await this.#read(platform, "approved");
      const left = Object.entries(approved).filter(([id]) => !same(platform, id, userId));
      if (left.length === Object.keys(approved).length) return false;
      await this.#write(platform, "approved", Object.fromEntries(left));
      return true;
    });
  }

  /** Resolves to how many there were. */
  async clearPending(platform?: string): Promise<number> {
    return this.#locked(async () => {
      let count = 0;
      for (const name of platform === undefined ? await this.#platforms() : [platform]) {
        count += Object.keys(await this.#read(name, "pending")).length;
        await this.#write(name, "pending", {});
      }
      return count;
    });
  }

  async list(platform?: string): Promise<{ pending: readonly PendingPerson[]; approved: readonly ApprovedPerson[] }> {
    const pending: PendingPerson[] = [];
    const approved: ApprovedPerson[] = [];
    for (const name of platform === undefined ? await this.#platforms() : [platform]) {
      for (const [id, row] of Object.entries(this.#fresh(await this.#read(name, "pending")))) {
        const { user_id, user_name, created_at } = row;
        const age_minutes = Math.floor((this.#now - created_at) / 60);
        pending.push({ platform: name, request_id: id, user_id, user_name, age_minutes });
      }
      for (const [user_id, row] of Object.entries(await this.#read(name, "approved"))) {
        const facts = isRecord(row) ? row : {};
        const user_name = String(facts.user_name ?? "");
        approved.push({ platform: name, user_id, user_name, approved_at: Number(facts.approved_at ?? 0) });
      }
    }
    return { pending, approved };
  }

  get #now(): number {
    return Math.floor(this.#clock.now() / 1000);
  }

  /** Requests that can still be approved, and are whole. */
  #fresh(table: Table): Record<string, PendingRow> {
    const rows = Object.entries(table).filter((entry): entry is [string, PendingRow] => isPending(entry[1]));
    return Object.fromEntries(rows.filter(([, { created_at }]) => this.#now - created_at < CODE_SECONDS));
  }

  /** Without strangers whose time is over: their number has no bound. */
  #inForce(limits: Table): Table {
    const isKept = ([key, at]: [string, unknown]) => key.startsWith("_") || this.#now - Number(at) < ASK_AGAIN_SECONDS;
    return Object.fromEntries(Object.entries(limits).filter(isKept));
  }

  async #countWrong(platform: string, limits: Table): Promise<void> {
    const wrong = Number(limits[failures(platform)] ?? 0) + 1;
    const isLocked = wrong >= MOST_WRONG;
    await this.#writeLimits({
      ...limits,
      [failures(platform)]: isLocked ? 0 : wrong,
      ...(isLocked && { [lockout(platform)]: this.#now + LOCKED_SECONDS }),
    });
  }

  // The files: `<platform>-pending.json`, `-approved.json`, `_rate_limits.json`.

  /** Older homes have them in `pairing/`. */
  async #folder(): Promise<string> {
    const old = this.#paths.at("pairing");
    const names = await readdir(old).catch(() => []);
    return names.some((name) => name.endsWith(".json")) ? old : this.#paths.at("platforms", "pairing");
  }

  async #platforms(): Promise<readonly string[]> {
    const names = await readdir(await this.#folder()).catch(() => []);
    return [...new Set(names.flatMap((name) => /^(.+)-(?:pending|approved)\.json$/.exec(name)?.[1] ?? []))].sort();
  }

  async #locked<T>(work: () => Promise<T>): Promise<T> {
    const folder = await this.#folder();
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return withLock(join(folder, ".lock.db"), work);
  }

  #read = async (platform: string, kind: "pending" | "approved"): Promise<Table> =>
    readTable(join(await this.#folder(), `${platform}-${kind}.json`));

  #write = async (platform: string, kind: "pending" | "approved", table: Table): Promise<void> =>
    writeTable(join(await this.#folder(), `${platform}-${kind}.json`), table);

  #limits = async (): Promise<Table> => readTable(join(await this.#folder(), "_rate_limits.json"));
  #writeLimits = async (table: Table): Promise<void> =>
    writeTable(join(await this.#folder(), "_rate_limits.json"), table);
}

/** What to say of chat platforms that nobody may use yet: there is no list of people, and nobody was approved. Empty: there are none. */
export async function closedDoors(
  platforms: readonly { readonly name: string; readonly trustsTransport?: boolean }[],
  { env, paths }: Pick<OpenHome, "env" | "paths">,
  clock: Clock,
): Promise<readonly string[]> {
  const isSet = (name: string) => (env(name) ?? "").trim() !== "";
  if (["GATEWAY_ALLOWED_USERS", "GATEWAY_ALLOW_ALL_USERS"].some(isSet)) return [];
  const { approved } = await new Pairing(paths, clock).list();
  const closed = platforms.filter(({ name, trustsTransport }) => {
    if (trustsTransport || approved.some(({ platform }) => platform === name)) return false;
    return !PEOPLE.some((list) => isSet(`${name.toUpperCase()}_${list}`));
  });
  if (closed.length === 0) return [];
  const names = closed.map(({ name }) => name).join(", ");
  return [
    `nobody may use the bot on ${names} yet: strangers get a pairing code, which you approve with ${profileCommand(paths, "pairing approve")}`,
  ];
}

const PEOPLE = ["ALLOWED_USERS", "ALLOW_ALL_USERS", "GROUP_ALLOWED_USERS", "GROUP_ALLOWED_CHATS"];

/** A file that is there and cannot be read lets nobody in and is not written over. */
async function readTable(path: string): Promise<Table> {
  try {
    const table = parseJson(await readFile(path, "utf8"));
    if (isRecord(table)) return table;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return {};
    throw error;
  }
  throw new Error(`${path} is not a list of people; move it away to start a new one`);
}

const writeTable = (path: string, table: Table) =>
  writeFileAtomic(path, `${JSON.stringify(table, null, 2)}\n`, { mode: 0o600 });

function isPending(row: unknown): row is PendingRow {
  if (!isRecord(row)) return false;
  const { user_id, created_at, salt, hash } = row;
  return [user_id, salt, hash].every((value) => typeof value === "string") && typeof created_at === "number";
}

function askedIn({ account, chat_id, thread_id }: PendingRow): AskedIn | null {
  if (typeof account !== "string" || typeof chat_id !== "string") return null;
  return { account, chatId: chat_id, ...(typeof thread_id === "string" ? { threadId: thread_id } : {}) };
}

// Names of the original. Keys of people begin with their platform: nobody can be called so.
const failures = (platform: string) => `_failures:${platform}`;
const lockout = (platform: string) => `_lockout:${platform}`;

const hashOf = (salt: string, code: string) => createHash("sha256").update(`${salt}${code}`).digest("hex");

function equal(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

const same = (platform: string, one: string, other: string) =>
  canonicalId(platform, one) === canonicalId(platform, other);
