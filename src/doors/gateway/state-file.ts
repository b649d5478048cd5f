// What the gateway tells about itself while it runs (`gateway_state.json`), and what others make of it: `hermes gateway status`.
import { readFile } from "node:fs/promises";
import type { Logger } from "../../home/log.ts";
import type { OpenHome } from "../../home/open.ts";
import { inProfile, VERSION } from "../../home/paths.ts";
import { type Clock, systemClock } from "../../kit/clock.ts";
import { isMissing, messageOf } from "../../kit/errors.ts";
import { writeFileAtomic } from "../../kit/files.ts";
import { plural } from "../../kit/formats.ts";
import { asList, asRecord, type Json, parseJson } from "../../kit/json.ts";
import type { SessionStore } from "../../sessions/store.ts";
import type { WorkCounts, WorkStore } from "../../sessions/work.ts";
import { isoTime, ownProcess, runningGatewayOf } from "./instance.ts";
import { closedDoors } from "./pairing.ts";
import { builtinPlatforms } from "./registry.ts";
import type { ServiceState } from "./services.ts";
import { GatewaySettings } from "./settings.ts";

type GatewayState = "starting" | "running" | "degraded" | "draining" | "stopped" | "startup_failed";
type PlatformState = "connecting" | "connected" | "disconnected" | "retrying" | "paused" | "fatal";

/** Times are Unix seconds here and ISO texts in the file. */
interface PlatformPatch {
  readonly enabled?: boolean;
  /** Another state than before sets `since`. */
  readonly state?: PlatformState;
  readonly account?: string | null;
  readonly since?: number | null;
  readonly error_code?: string | null;
  readonly error_message?: string | null;
  readonly retry_at?: number | null;
  readonly listening?: string | null;
  readonly last_inbound_at?: number | null;
  readonly last_outbound_at?: number | null;
}

export interface StatePatch {
  readonly gateway_state?: GatewayState;
  readonly exit_reason?: string | null;
  readonly restart_requested?: boolean;
  /** Turns that run. */
  readonly active_agents?: number;
  /** Turns that wait until one of those ends. */
  readonly waiting?: number;
  readonly cron?: {
    readonly ticking: boolean;
    readonly last_tick_at: number | null;
    readonly next_run_at: number | null;
    readonly running: number;
    readonly lag_seconds: number;
  };
  readonly warnings?: readonly string[];
  /** Added to what is known of each; null removes one. */
  readonly platforms?: Readonly<Record<string, PlatformPatch | null>>;
}

const STATE_FILE = "gateway_state.json";
const BETWEEN_WRITES_MS = 250;

/**
 * The state file of the gateway that runs here.
 *
 * - `update` never waits and never throws: the file follows, each time whole. Another state is written at once, traffic a few times a second.
 * - After `flush` it says what was last said.
 */
export class StateFile {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #about: Json;
  /** As people are told: without secrets, with the profile in commands. */
  readonly #told: (text: string) => string;
  #state: Required<StatePatch> & { readonly platforms: Readonly<Record<string, PlatformPatch>> };
  #updated: Readonly<Record<string, number>> = {};
  #isDirty = false;
  #writtenAt = 0;
  #writing: Promise<void> | null = null;
  #hurry = new AbortController();

  private constructor(home: OpenHome, about: Json, { clock, log }: { readonly clock: Clock; readonly log: Logger }) {
    this.#path = home.paths.at(STATE_FILE);
    this.#clock = clock;
    this.#log = log;
    this.#told = (text) => home.redact(inProfile(home.paths, text));
    this.#about = { ...about, version: VERSION, profile: home.paths.profile, started_at: isoTime(clock.now()) };
    this.#state = {
      ...{ gateway_state: "starting", exit_reason: null, restart_requested: false },
      ...{ active_agents: 0, waiting: 0 },
      cron: { ticking: false, last_tick_at: null, next_run_at: null, running: 0, lag_seconds: 0 },
      ...{ warnings: [], platforms: {} },
    };
  }

  /** Begins a new file: what the last gateway said about itself is over. */
  static async open(home: OpenHome, options: { readonly clock: Clock; readonly log: Logger }): Promise<StateFile> {
    const file = new StateFile(home, await ownProcess(), options);
    file.update({});
    await file.flush();
    return file;
  }

  update({ platforms = {}, ...patch }: StatePatch): void {
    const known: Record<string, PlatformPatch> = { ...this.#state.platforms };
    const now = this.#clock.now() / 1000;
    const { gateway_state: state, active_agents: turns } = patch;
    let isNews =
      (state !== undefined && state !== this.#state.gateway_state) ||
      (turns !== undefined && turns > 0 !== this.#state.active_agents > 0);
    for (const [name, change] of Object.entries(platforms)) {
      const isOther = change === null || (change.state !== undefined && change.state !== known[name]?.state);
      isNews ||= isOther;
      if (change === null) delete known[name];
      else known[name] = { ...known[name], ...(isOther ? { since: now } : {}), ...change };
    }
    this.#updated = { ...this.#updated, ...Object.fromEntries(Object.keys(platforms).map((name) => [name, now])) };
    const next = { ...this.#state, ...patch, platforms: known };
    // One that had started without a connection is whole with its first.
    const isWhole = next.gateway_state === "degraded" && Object.values(known).some((one) => one.state === "connected");
    this.#state = isWhole ? { ...next, gateway_state: "running" } : next;
    this.#isDirty = true;
    if (isNews) this.#hurry.abort();
    this.#writing ??= this.#follow().finally(() => {
      this.#writing = null;
    });
  }

  async flush(): Promise<void> {
    this.#hurry.abort();
    while (this.#writing) await this.#writing;
  }

  async #follow(): Promise<void> {
    while (this.#isDirty) {
      const pause = this.#writtenAt + BETWEEN_WRITES_MS - this.#clock.now();
      if (pause > 0) await this.#clock.sleep(pause, this.#hurry.signal).catch(() => undefined); // somebody waits for it
      this.#hurry = new AbortController();
      this.#isDirty = false;
      this.#writtenAt = this.#clock.now();
      try {
        await writeFileAtomic(this.#path, `${JSON.stringify(this.#contents(), null, 1)}\n`, { mode: 0o600 });
      } catch (error) {
        this.#log.error(`the state of the gateway is not written: ${messageOf(error)}`);
      }
    }
  }

  #contents(): Json {
    const { platforms, waiting, cron, exit_reason, warnings, ...rest } = this.#state;
    const clean = (text: string | null | undefined) => (text == null ? null : this.#told(text));
    return {
      ...this.#about,
      ...rest,
      exit_reason: clean(exit_reason),
      warnings: warnings.map(clean),
      turns: { running: rest.active_agents, waiting },
      cron: { ...cron, last_tick_at: timeText(cron.last_tick_at), next_run_at: timeText(cron.next_run_at) },
      platforms: Object.fromEntries(
        Object.entries(platforms).map(([name, one]) => [
          name,
          platformRow({ ...one, error_message: clean(one.error_message) }, this.#updated[name]),
        ]),
      ),
      updated_at: isoTime(this.#clock.now()),
    };
  }
}

const timeText = (seconds: number | null | undefined) => (seconds == null ? null : isoTime(seconds * 1000));

function platformRow(one: PlatformPatch, updatedAt: number | undefined): Json {
  return {
    enabled: one.enabled ?? true,
    state: one.state ?? "disconnected",
    account: one.account ?? null,
    since: timeText(one.since),
    error_code: one.error_code ?? null,
    error_message: one.error_message ?? null,
    retry_at: timeText(one.retry_at),
    listening: one.listening ?? null,
    last_inbound_at: timeText(one.last_inbound_at),
    last_outbound_at: timeText(one.last_outbound_at),
    updated_at: timeText(updatedAt),
  };
}

// Reading it, in another process or in this one.

export interface PlatformStatus {
  readonly enabled: boolean;
  readonly state: string;
  readonly account: string | null;
  readonly since: string | null;
  readonly error_code: string | null;
  readonly error_message: string | null;
  readonly retry_at: string | null;
  readonly listening: string | null;
  readonly last_inbound_at: string | null;
  readonly last_outbound_at: string | null;
  readonly queued: number;
  readonly pending: number;
}

/** `hermes gateway status --json`, and the health page of the API. */
export interface GatewayStatus {
  readonly running: boolean;
  readonly pid: number | null;
  readonly profile: string;
  readonly home: string;
  readonly version: string;
  readonly state: string;
  readonly started_at: string | null;
  readonly updated_at: string | null;
  readonly exit_reason: string | null;
  readonly restart_requested: boolean;
  readonly turns: { readonly running: number; readonly waiting: number; readonly max: number };
  readonly inbox: { readonly queued: number; readonly oldest_seconds: number | null; readonly dead: number };
  readonly outbox: {
    readonly pending: number;
    readonly sending: number;
    readonly oldest_seconds: number | null;
    readonly dead: number;
  };
  readonly cron: {
    readonly ticking: boolean;
    readonly last_tick_at: string | null;
    readonly next_run_at: string | null;
    readonly running: number;
    readonly lag_seconds: number;
  };
  readonly platforms: Readonly<Record<string, PlatformStatus>>;
  readonly service: ServiceState;
  readonly warnings: readonly string[];
}

/** The same object whether a gateway runs or not. */
export async function readStatus(
  home: OpenHome,
  store: SessionStore,
  clock: Clock = systemClock,
): Promise<GatewayStatus> {
  const { serviceState } = await import("./services.ts");
  const work = await store.work();
  const [running, file, counts] = await Promise.all([runningGatewayOf(home), readState(home), work.counts()]);
  const said = running !== null && Number(file.pid) === running.pid ? file : null;
  const { inbox, outbox } = counts;
  const age = (seconds: number | null) =>
    seconds === null ? null : Math.max(0, Math.round(clock.now() / 1000 - seconds));
  const turns = asRecord(said?.turns);
  const cron = asRecord(said?.cron);
  const { state, exit_reason } = stateOf(file, running !== null, said !== null);
  const platforms = await platformsOf(home, { file, isLive: said !== null, counts, clock });
  return {
    running: running !== null,
    pid: running?.pid ?? null,
    profile: home.paths.profile,
    home: home.paths.dir,
    version: textOr(said?.version) ?? VERSION,
    state,
    started_at: textOr(said?.started_at),
    updated_at: textOr(file.updated_at),
    exit_reason,
    restart_requested: said?.restart_requested === true,
    turns: {
      running: numberOr(turns.running),
      waiting: numberOr(turns.waiting),
      max: home.config().gateway.max_concurrent_turns,
    },
    inbox: { queued: inbox.queued, oldest_seconds: age(inbox.oldest), dead: inbox.dead },
    outbox: {
      ...{ pending: outbox.pending, sending: outbox.sending },
      oldest_seconds: age(outbox.oldest),
      dead: outbox.dead,
    },
    cron: {
      ticking: cron.ticking === true,
      last_tick_at: textOr(cron.last_tick_at),
      next_run_at: textOr(cron.next_run_at),
      running: numberOr(cron.running),
      lag_seconds: numberOr(cron.lag_seconds),
    },
    platforms: platforms.rows,
    service: await serviceState(home),
    warnings: [
      ...(said === null ? platforms.problems : asList(said.warnings).map(String)),
      ...platforms.closed,
      ...(await deadLetters(work, outbox.dead)),
    ],
  };
}

/** Of any home: its gateway, and in a word how it is. */
export async function savedState(home: Pick<OpenHome, "paths">): Promise<{
  readonly pid: number | null;
  readonly state: string;
  /** Those that are connected. */
  readonly platforms: readonly string[];
}> {
  const [running, file] = await Promise.all([runningGatewayOf(home), readState(home)]);
  const isLive = running !== null && Number(file.pid) === running.pid;
  const connected = Object.entries(asRecord(file.platforms)).filter(([, row]) => asRecord(row).state === "connected");
  return {
    pid: running?.pid ?? null,
    state: stateOf(file, running !== null, isLive).state,
    platforms: isLive ? connected.map(([name]) => name) : [],
  };
}

/** A gateway that is gone and did not say so has crashed; one that has not written yet is starting. */
function stateOf(file: Json, isRunning: boolean, isLive: boolean): Pick<GatewayStatus, "state" | "exit_reason"> {
  const state = textOr(file.gateway_state);
  if (isRunning) return { state: isLive ? (state ?? "starting") : "starting", exit_reason: null };
  if (state === null) return { state: "stopped", exit_reason: null };
  if (state === "stopped" || state === "startup_failed") return { state, exit_reason: textOr(file.exit_reason) };
  return { state: "stopped", exit_reason: "crashed" };
}

async function platformsOf(
  home: OpenHome,
  {
    file,
    isLive,
    counts,
    clock,
  }: { readonly file: Json; readonly isLive: boolean; readonly counts: WorkCounts; readonly clock: Clock },
): Promise<{ rows: GatewayStatus["platforms"]; problems: readonly string[]; closed: readonly string[] }> {
  const settings = await GatewaySettings.open(home);
  const known = asRecord(file.platforms);
  const problems: string[] = [];
  const builtin = await builtinPlatforms();
  const enabled = builtin.flatMap((entry) => {
    const { on, problem } = settings.enabled(entry);
    if (problem !== undefined) problems.push(`${entry.label}: ${problem}`);
    return on || problem !== undefined ? [entry.name] : [];
  });
  const names = [...new Set([...Object.keys(known), ...enabled, ...Object.keys(counts.platforms)])].sort();
  const rows = names.map((name): [string, PlatformStatus] => {
    const said = asRecord(known[name]);
    const { queued = 0, pending = 0 } = counts.platforms[name] ?? {};
    const row = {
      enabled: isLive && said.enabled !== undefined ? said.enabled === true : enabled.includes(name),
      state: textOr(said.state) ?? "disconnected",
      account: textOr(said.account),
      since: textOr(said.since),
      error_code: textOr(said.error_code),
      error_message: textOr(said.error_message),
      retry_at: textOr(said.retry_at),
      listening: textOr(said.listening),
      last_inbound_at: textOr(said.last_inbound_at),
      last_outbound_at: textOr(said.last_outbound_at),
      ...{ queued, pending },
    };
    return [name, isLive ? row : ended(row)];
  });
  const served = names.filter((name) => rows.some(([one, { enabled: isOn }]) => one === name && isOn));
  const closed = await closedDoors(
    served.map((name) => builtin.find((entry) => entry.name === name) ?? { name }),
    home,
    clock,
  );
  return { rows: Object.fromEntries(rows), problems, closed };
}

/** Of a gateway that is gone: nothing is connected and nothing will be tried again, but why it failed is still true. */
function ended(row: PlatformStatus): PlatformStatus {
  const state = row.state === "fatal" || row.state === "paused" ? row.state : "disconnected";
  return { ...row, state, since: state === row.state ? row.since : null, retry_at: null, listening: null };
}

/** Why messages were given up, the newest first. */
async function deadLetters(work: WorkStore, count: number): Promise<readonly string[]> {
  if (count === 0) return [];
  const rows = await work.deadLetters({ limit: 3 });
  const reasons = new Set(rows.map(({ platform, error }) => `${platform}: ${error ?? "no reason known"}`));
  return [`${plural(count, "message")} could not be sent: ${[...reasons].join("; ")}`];
}

async function readState({ paths }: Pick<OpenHome, "paths">): Promise<Json> {
  try {
    return asRecord(parseJson(await readFile(paths.at(STATE_FILE), "utf8")));
  } catch (error) {
    if (isMissing(error)) return {};
    throw error;
  }
}

const textOr = (value: unknown) => (typeof value === "string" ? value : null);
const numberOr = (value: unknown) => (typeof value === "number" ? value : 0);
