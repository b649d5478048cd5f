// One gateway per home, one poller per bot: who is running, how the next one takes over, and the notes one process leaves for another.
// The lock decides (the kernel frees it with the process); `gateway.pid` names who holds it, under the original's names.
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { uptime } from "node:os";
import { join, resolve } from "node:path";
import { LockTimeoutError, withLock } from "../../home/lock.ts";
import type { OpenHome } from "../../home/open.ts";
import { inProfile } from "../../home/paths.ts";
import { gatewayProcess } from "../../home/profiles.ts";
import { type Clock, systemClock } from "../../kit/clock.ts";
import { codeOf, isMissing, UserError } from "../../kit/errors.ts";
import { writeFileAtomic } from "../../kit/files.ts";
import { isRecord, type Json, parseJson } from "../../kit/json.ts";
import { isSameProcess, processFacts } from "../../kit/pid.ts";

const KIND = "hermes-gateway";
const PLANNED_SECONDS = 60;
const TERM_MS = 10_000;
const KILL_MS = 5000;
const LOOK_AGAIN_MS = 100;
/** How long a gateway that is just starting may take to write its name. */
const NAMED_MS = 2000;

type Home = Pick<OpenHome, "paths">;

/** A process, told apart from a later one with its id. */
export interface GatewayProcess {
  readonly pid: number;
  readonly startTime: number | null;
}

/** The right to be the gateway of a home, until the process ends. */
interface Instance {
  /** The last gateway ended without cutting a turn off. */
  readonly lastWasClean: boolean;
  /** For the next gateway: nothing was cut off. */
  markCleanShutdown(): Promise<void>;
  release(): Promise<void>;
}

class AlreadyRunningError extends UserError {
  override name = "AlreadyRunningError";
  constructor(pid: number | null, { paths }: Home) {
    const who = pid === null ? "another process holds its lock" : `process ${pid}`;
    super(
      inProfile(
        paths,
        `The gateway of this profile is already running (${who}). Stop it with "hermes gateway stop", or replace it: hermes gateway run --replace`,
      ),
    );
  }
}

interface TakeOptions {
  /** Ends a running gateway first. */
  readonly replace?: boolean | undefined;
  readonly clock: Clock;
}

/** Throws a `UserError` that names the running process when there is one and it is not to be replaced. */
export async function takeInstance(home: OpenHome, { replace = false, clock }: TakeOptions): Promise<Instance> {
  let free = await tryLock(home);
  const running = await whoRuns(home, free !== null, clock);
  if (free === null || running !== null) {
    await free?.();
    if (!replace || running === null) throw new AlreadyRunningError(running?.pid ?? null, home);
    await takeOver(home, running, clock);
    free = await tryLock(home, KILL_MS);
    if (free === null) throw new AlreadyRunningError((await runningGatewayOf(home))?.pid ?? null, home);
  }
  const release = free;
  try {
    await writePidFile(home);
  } catch (error) {
    await release();
    throw error;
  }
  const clean = home.paths.at(".clean_shutdown");
  const lastWasClean = (await readRecord(clean)) !== null;
  await rm(clean, { force: true });
  return {
    lastWasClean,
    markCleanShutdown: () => writeRecord(clean, { at: isoTime(clock.now()) }),
    async release() {
      const named = await readRecord(pidFile(home));
      if (named?.pid === process.pid) await rm(pidFile(home), { force: true });
      await release();
    },
  };
}

/** The gateway of this home, if one is running. */
export async function runningGatewayOf({ paths }: Home): Promise<GatewayProcess | null> {
  const named = await gatewayProcess(paths.dir);
  if (named !== null) return named;
  // Somebody removed the pid file: the state file names the process too.
  const state = await readRecord(paths.at("gateway_state.json"));
  const { pid, start_time, gateway_state } = state ?? {};
  if (typeof pid !== "number" || typeof start_time !== "number") return null;
  if (gateway_state === "stopped" || gateway_state === "startup_failed") return null;
  return (await isSameProcess(pid, start_time)) ? { pid, startTime: start_time } : null;
}

/**
 * The gateway in our way. Whoever holds the lock is one, and has a moment to say its name. Where the lock is free, a process counts only
 * if it is the one in the file beyond doubt: the original's gateway does not take this lock, and ids are used again.
 */
async function whoRuns(home: Home, isFree: boolean, clock: Clock): Promise<GatewayProcess | null> {
  const deadline = clock.now() + NAMED_MS;
  for (;;) {
    const found = await runningGatewayOf(home);
    if (isFree) return found?.startTime == null || found.pid === process.pid ? null : found;
    if (found !== null || clock.now() > deadline) return found;
    await clock.sleep(LOOK_AGAIN_MS);
  }
}

const pidFile = ({ paths }: Home) => paths.at("gateway.pid");

async function writePidFile(home: Home): Promise<void> {
  await rm(pidFile(home), { force: true }); // we hold the lock: what it names is gone
  try {
    await writeFile(pidFile(home), `${JSON.stringify(await ownProcess())}\n`, { flag: "wx", mode: 0o600 });
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
    throw new AlreadyRunningError((await runningGatewayOf(home))?.pid ?? null, home);
  }
}

/** This process, as the files of a gateway name one. */
export async function ownProcess(): Promise<Json & { readonly pid: number; readonly start_time: number | null }> {
  const facts = await processFacts(process.pid);
  return { pid: process.pid, kind: KIND, argv: process.argv, start_time: facts?.startTime ?? null };
}

/** Null when somebody else has it. Held until it is released, or the process ends. */
async function tryLock(home: Home, waitMs = 0): Promise<(() => Promise<void>) | null> {
  const path = home.paths.at("gateway.lock");
  await emptyForeignLock(path);
  const held = Promise.withResolvers<void>();
  const taken = Promise.withResolvers<boolean>();
  const over = withLock(
    path,
    () => {
      taken.resolve(true);
      return held.promise;
    },
    { waitMs },
  ).catch((error: unknown) => {
    if (error instanceof LockTimeoutError) taken.resolve(false);
    else taken.reject(error);
  });
  if (!(await taken.promise)) return null;
  return async () => {
    held.resolve();
    await over;
  };
}

/** The original keeps text in a file of this name. Ours has no bytes, and a database of other bytes cannot be locked. */
async function emptyForeignLock(path: string): Promise<void> {
  const size = await stat(path).then(
    (found) => found.size,
    () => 0,
  );
  if (size > 0) await truncate(path, 0);
}

// Ending another gateway. The note tells it that this was planned.

type Note = "stop" | "takeover";
const NOTES: Readonly<Record<Note, string>> = {
  stop: ".gateway-planned-stop.json",
  takeover: ".gateway-takeover.json",
};

async function takeOver(home: OpenHome, target: GatewayProcess, clock: Clock): Promise<void> {
  await endGateway(home, target, { note: "takeover", waitMs: TERM_MS, clock });
  await freeBots(target, stateDirOf(home));
}

interface EndOptions {
  readonly note: Note;
  /** How long it may take before it is killed. */
  readonly waitMs: number;
  readonly clock: Clock;
}

/** Resolves when the process is gone: asked first, killed when the time is up. Throws a `UserError` when it may not be ended. */
export async function endGateway(
  home: Home,
  target: GatewayProcess,
  { note, waitMs, clock }: EndOptions,
): Promise<"ended" | "killed"> {
  const path = home.paths.at(NOTES[note]);
  await writeRecord(path, {
    target_pid: target.pid,
    target_start_time: target.startTime,
    replacer_pid: process.pid,
    written_at: isoTime(clock.now()),
  });
  // Windows has no SIGTERM that can be caught: there the gateway looks for the note.
  if (process.platform !== "win32") signal(target, "SIGTERM");
  const isAsked = await isGoneWithin(target, waitMs, clock);
  if (!isAsked) signal(target, "SIGKILL");
  if (isAsked || (await isGoneWithin(target, KILL_MS, clock))) {
    await rm(path, { force: true });
    return isAsked ? "ended" : "killed";
  }
  throw new UserError(`The gateway (process ${target.pid}) does not end. End it yourself, then try again.`);
}

/** Asks a gateway to start again. */
export const askForRestart = (target: GatewayProcess): void => signal(target, "SIGUSR2");

function signal({ pid }: GatewayProcess, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (codeOf(error) === "ESRCH") return;
    if (codeOf(error) !== "EPERM") throw error;
    throw new UserError(`The gateway (process ${pid}) belongs to another user; run this command as that user.`);
  }
}

export async function isGoneWithin({ pid, startTime }: GatewayProcess, ms: number, clock: Clock): Promise<boolean> {
  const deadline = clock.now() + ms;
  while (await isSameProcess(pid, startTime)) {
    if (clock.now() >= deadline) return false;
    await clock.sleep(LOOK_AGAIN_MS);
  }
  return true;
}

/** Whether somebody has planned the end of this process; the note counts once. */
export async function plannedEnd(home: Home, clock: Clock): Promise<{ note: Note; by: number } | null> {
  const own = await ownProcess();
  for (const note of ["takeover", "stop"] as const) {
    const path = home.paths.at(NOTES[note]);
    const found = await readRecord(path);
    if (found?.target_pid !== own.pid) continue;
    const isOurs = found.target_start_time == null || found.target_start_time === own.start_time;
    const age = clock.now() - Date.parse(String(found.written_at));
    if (!isOurs || !(Math.abs(age) <= PLANNED_SECONDS * 1000)) continue;
    await rm(path, { force: true });
    return { note, by: Number(found.replacer_pid) };
  }
  return null;
}

// That a gateway ended to start again, and who asked for it in a chat: the next one tells that it is back.

interface RestartRequester {
  readonly platform: string;
  readonly chat_id: string;
  readonly thread_id?: string | undefined;
}

/** Without anybody who asked in a chat: what such a one has left stays. */
export async function noteRestart({ paths }: Home, who?: RestartRequester): Promise<void> {
  const path = paths.at(".restart_notify.json");
  if (who || (await readRecord(path)) === null) await writeRecord(path, { ...who });
}

/** Handed out once. Null: nobody asked for a restart; `by` is null when it was asked for elsewhere than in a chat. */
export async function takeRestartNote({ paths }: Home): Promise<{ readonly by: RestartRequester | null } | null> {
  const path = paths.at(".restart_notify.json");
  const found = await readRecord(path);
  await rm(path, { force: true });
  const { platform, chat_id, thread_id } = found ?? {};
  if (found === null) return null;
  if (typeof platform !== "string" || chat_id == null) return { by: null };
  return { by: { platform, chat_id: String(chat_id), ...(thread_id == null ? {} : { thread_id: String(thread_id) }) } };
}

// Locks of bots, for all homes of this machine: two pollers with one token take each other's messages away.

type BotLock = { readonly type: "taken"; release(): Promise<void> } | { readonly type: "held"; readonly by: number };

/** The folder that `lockBot` is handed. */
export function stateDirOf(home: Pick<OpenHome, "env" | "osHome">): string {
  const given = [home.env("HERMES_GATEWAY_LOCK_DIR"), home.env("XDG_STATE_HOME")].find((dir) => dir?.trim());
  return given === undefined ? join(home.osHome, ".local", "state") : resolve(given.trim());
}

/** What this process holds: another adapter with the same token is refused too, and a file with our id that is not here is stale. */
const heldHere = new Set<string>();

export async function lockBot(
  scope: string,
  identity: string,
  { stateDir, home }: { readonly stateDir: string; readonly home?: string },
): Promise<BotLock> {
  const folder = botFolder(stateDir);
  const hash = createHash("sha256").update(identity).digest("hex").slice(0, 16);
  const path = join(folder, `${scope}-${hash}.lock`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return withLock(join(folder, ".lock.db"), async () => {
    const holder = await holderOf(path);
    if (holder !== null) return { type: "held", by: holder };
    // The words it was started with stay out: other programs read this folder.
    const { argv: _, ...own } = await ownProcess();
    const record = { ...own, scope, metadata: { home: home ?? null }, updated_at: isoTime(systemClock.now()) };
    await writeRecord(path, record);
    heldHere.add(path);
    return { type: "taken", release: () => unlockBot(path, record) };
  });
}

const botFolder = (stateDir: string) => join(stateDir, "hermes", "gateway-locks");

/** Null when nobody has it: the file is missing or says nothing, or its process is gone, another one, or stopped. */
async function holderOf(path: string): Promise<number | null> {
  const found = await readRecord(path);
  const pid = Number(found?.pid);
  if (!Number.isInteger(pid) || pid <= 0) return null;
  if (pid === process.pid) return heldHere.has(path) ? pid : null;
  const facts = await processFacts(pid);
  if (facts === null || facts.isStopped) return null;
  const startTime = typeof found?.start_time === "number" ? found.start_time : null;
  if (startTime !== null && facts.startTime !== null) return startTime === facts.startTime ? pid : null;
  return (await isOlderThanBoot(path)) ? null : pid;
}

/** Where the system does not tell when a process began: what was written before the machine did is stale. */
async function isOlderThanBoot(path: string): Promise<boolean> {
  const { mtimeMs } = await stat(path);
  return mtimeMs < systemClock.now() - uptime() * 1000;
}

async function unlockBot(path: string, own: Json): Promise<void> {
  if (!heldHere.delete(path)) return;
  await withLock(join(path, "..", ".lock.db"), async () => {
    const found = await readRecord(path);
    // While we were stopped, somebody may have taken it.
    if (found?.pid === own.pid && found?.start_time === own.start_time) await rm(path, { force: true });
  });
}

/** Removes the locks of a gateway that was ended. */
async function freeBots({ pid, startTime }: GatewayProcess, stateDir: string): Promise<void> {
  const folder = botFolder(stateDir);
  const names = await readdir(folder).catch(() => []);
  for (const name of names.filter((one) => one.endsWith(".lock"))) {
    const found = await readRecord(join(folder, name));
    if (found?.pid === pid && (startTime === null || found.start_time === startTime))
      await rm(join(folder, name), { force: true });
  }
}

// Small files of one JSON object.

/** Null when it is missing or holds anything else. */
async function readRecord(path: string): Promise<Json | null> {
  try {
    const value = parseJson(await readFile(path, "utf8"));
    return isRecord(value) ? value : null;
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

const writeRecord = (path: string, record: Json): Promise<void> =>
  writeFileAtomic(path, `${JSON.stringify(record)}\n`, { mode: 0o600 });

/** With the offset of this machine's time zone, as in the original's files. */
export function isoTime(ms: number): string {
  const minutes = -new Date(ms).getTimezoneOffset();
  const local = new Date(ms + minutes * 60_000).toISOString().slice(0, -1);
  const two = (value: number) => String(Math.floor(Math.abs(value))).padStart(2, "0");
  return `${local}${minutes < 0 ? "-" : "+"}${two(minutes / 60)}:${two(minutes % 60)}`;
}
