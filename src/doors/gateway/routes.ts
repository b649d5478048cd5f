// Which conversation belongs to a chat. The table and the fields are the original's: both programs find each other's chats.
import { mkdir, readFile, realpath } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "../../home/config/schema.ts";
import type { Logger } from "../../home/log.ts";
import type { OpenHome } from "../../home/open.ts";
import type { Clock } from "../../kit/clock.ts";
import { codeOf } from "../../kit/errors.ts";
import { writeFileAtomic } from "../../kit/files.ts";
import { parseJson } from "../../kit/json.ts";
import { newSessionId } from "../../sessions/session-id.ts";
import type { EndReason } from "../../sessions/store.ts";
import type { Finish, WorkStore } from "../../sessions/work.ts";
import type { ChatSource } from "./chat.ts";
import { asTable } from "./settings.ts";

/** What is known of a chat. Fields that nobody here reads are kept as they are. */
export interface ChatEntry extends Readonly<Record<string, unknown>> {
  readonly session_key: string;
  readonly session_id: string;
  /** Local time without an offset, as the original writes it. */
  readonly created_at: string;
  readonly updated_at: string;
  readonly origin?: ChatSource;
  readonly suspended?: boolean;
  readonly resume_pending?: boolean;
  readonly resume_reason?: string | null;
  readonly last_resume_marked_at?: string | null;
  readonly expiry_finalized?: boolean;
  readonly last_prompt_tokens?: number;
  readonly model_override?: ModelOverride | null;
}

/** What `/model` chose for a chat. Never a key. */
interface ModelOverride {
  readonly model: string;
  readonly provider?: string;
  readonly base_url?: string;
}

type ResetReason = Extract<EndReason, "suspended" | "idle" | "daily">;

interface ResetPolicy {
  readonly mode: "idle" | "daily" | "both" | "none";
  readonly idleMinutes: number;
  /** Local time. */
  readonly atHour: number;
}

/** Of the platform, then of the kind of chat, then for all. */
export function resetPolicy(config: Config, source: Pick<ChatSource, "platform" | "chat_type">): ResetPolicy {
  const { session_reset: general, platforms } = config;
  const table = asTable(general);
  const own = asTable(asTable(platforms[source.platform]).session_reset);
  const kind = asTable(asTable(table.by_chat_type)[source.chat_type]);
  const said = (key: string) => own[key] ?? kind[key];
  const mode = said("mode");
  return {
    mode: mode === "idle" || mode === "daily" || mode === "both" || mode === "none" ? mode : general.mode,
    idleMinutes: Number(said("idle_minutes") ?? general.idle_minutes),
    atHour: Number(said("at_hour") ?? general.at_hour),
  };
}

/** Whether the next message begins a new conversation. A time that cannot be read is a recent one: nothing is thrown away for it. */
export function resetDue(entry: ChatEntry, policy: ResetPolicy, now: Date): ResetReason | null {
  if (entry.suspended) return "suspended";
  if (entry.resume_pending || policy.mode === "none") return null;
  const updated = new Date(entry.updated_at).getTime();
  if (Number.isNaN(updated)) return null;
  if (policy.mode !== "daily" && now.getTime() - updated > policy.idleMinutes * 60_000) return "idle";
  if (policy.mode === "idle") return null;
  const boundary = new Date(now);
  boundary.setHours(policy.atHour, 0, 0, 0);
  if (now < boundary) boundary.setDate(boundary.getDate() - 1);
  return updated < boundary.getTime() ? "daily" : null;
}

export function localIso(ms: number): string {
  const at = new Date(ms);
  const two = (part: number) => String(part).padStart(2, "0");
  const date = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return `${date}T${time}.${String(at.getMilliseconds()).padStart(3, "0")}000`;
}

interface RoutesOptions {
  readonly home: OpenHome;
  readonly work: WorkStore;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The entries of this home, one row written per change; `sessions.json` follows for older versions. */
export class Routes {
  readonly #options: RoutesOptions;
  readonly #scope: string;
  #written = 0;

  private constructor(options: RoutesOptions, scope: string) {
    this.#options = options;
    this.#scope = scope;
  }

  /** What an older version wrote into `sessions.json` since counts, key by key. */
  static async open(options: RoutesOptions): Promise<Routes> {
    const { sessionsDir } = options.home.paths;
    await mkdir(sessionsDir, { recursive: true, mode: 0o700 });
    const routes = new Routes(options, await realpath(sessionsDir));
    await routes.#takeOver(join(sessionsDir, "sessions.json"));
    return routes;
  }

  async get(key: string): Promise<ChatEntry | null> {
    const route = await this.#options.work.route(this.#scope, key);
    return route === null ? null : (route.entry as ChatEntry); // its key and id are looked at by `isEntry` where it comes from outside
  }

  async all(): Promise<readonly ChatEntry[]> {
    return (await this.#options.work.routes(this.#scope)).map(({ entry }) => entry).filter(isEntry);
  }

  async put(entry: ChatEntry): Promise<void> {
    await this.#options.work.setRoute(this.#scope, { sessionKey: entry.session_key, entry });
  }

  /** For the transaction that ends a turn. */
  asRoute(entry: ChatEntry): NonNullable<Finish["route"]> {
    return { scope: this.#scope, sessionKey: entry.session_key, entry };
  }

  async remove(key: string): Promise<void> {
    await this.#options.work.removeRoute(this.#scope, key);
  }

  /** An entry for a chat that has none, or whose conversation is over: the rest of what is known of it stays. */
  begin(key: string, source: ChatSource, before: ChatEntry | null, why?: ResetReason | "session_reset"): ChatEntry {
    const { clock } = this.#options;
    const now = localIso(clock.now());
    return {
      metadata: {},
      ...before,
      session_key: key,
      session_id: newSessionId(clock, "gateway"),
      created_at: now,
      updated_at: now,
      display_name: source.chat_name ?? source.user_name ?? source.chat_id ?? "",
      platform: source.platform,
      chat_type: source.chat_type,
      ...{ input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0, total_tokens: 0 },
      ...{ last_prompt_tokens: 0, estimated_cost_usd: 0, cost_status: "unknown" },
      ...{ expiry_finalized: false, suspended: false, resume_pending: false, resume_reason: null },
      last_resume_marked_at: null,
      is_fresh_reset: why !== undefined,
      was_auto_reset: why !== undefined && why !== "session_reset",
      auto_reset_reason: why === undefined || why === "session_reset" ? null : why,
      reset_had_activity: Number(before?.total_tokens ?? 0) > 0,
      prev_session_id: before?.session_id ?? null,
      origin: source,
    };
  }

  /** At most once a minute, and at a clean stop. */
  async mirror({ now = false } = {}): Promise<void> {
    const { home, clock, log } = this.#options;
    if (!home.config().gateway.write_sessions_json || (!now && clock.now() - this.#written < 60_000)) return;
    this.#written = clock.now();
    const entries = Object.fromEntries((await this.all()).map((entry) => [entry.session_key, entry]));
    const path = join(home.paths.sessionsDir, "sessions.json");
    try {
      await writeFileAtomic(path, `${JSON.stringify(entries, null, 2)}\n`, { mode: 0o600 });
    } catch (error) {
      log.warn("sessions.json, which older versions read, could not be written", error);
    }
  }

  async #takeOver(path: string): Promise<void> {
    const { log } = this.#options;
    const text = await readFile(path, "utf8").catch((error: unknown) => {
      if (codeOf(error) !== "ENOENT") log.warn("sessions.json of an older version could not be read", error);
      return "{}";
    });
    const written = Object.entries(asTable(parseJson(text))).filter(([key]) => !key.startsWith("_"));
    for (const [key, value] of written) {
      if (!isEntry(value)) continue;
      const known = await this.get(key);
      if (known === null || String(known.updated_at) < value.updated_at) await this.put({ ...value, session_key: key });
    }
  }
}

function isEntry(value: unknown): value is ChatEntry {
  const { session_id: id, session_key: key, updated_at: at } = asTable(value);
  return (
    typeof id === "string" && id !== "" && typeof at === "string" && (key === undefined || typeof key === "string")
  );
}
