// Workers as processes: started in a group of their own, recognised again, stopped for good, and what they leave in the log.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { type FileHandle, mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { OpenHome } from "../home/open.ts";
import { installRoot } from "../home/paths.ts";
import { profileDir } from "../home/profiles.ts";
import type { Clock } from "../kit/clock.ts";
import { codeOf } from "../kit/errors.ts";
import { parseJson } from "../kit/json.ts";
import { processFacts } from "../kit/pid.ts";
import type { ExitFacts } from "./board-view.ts";
import type { BoardPlace } from "./boards.ts";
import type { WorkerIdentity } from "./runs.ts";
import type { Card } from "./schema.ts";

/** One attempt, all that its process is told. */
export interface WorkerTask {
  readonly card: Card;
  readonly run: number;
  readonly lock: string;
  /** Who works: the profile. */
  readonly profile: string;
  readonly place: BoardPlace;
  readonly workspace: { readonly path: string; readonly branch: string | null };
  /** It looks at what another one did. */
  readonly isReview: boolean;
}

const REVIEW_SKILL = "sdlc-review";

/** This program, as the profile of the card. */
export function workerCommand({ card, profile, isReview }: WorkerTask): readonly string[] {
  const named = parseJson(card.skills ?? "[]");
  const skills = [...(Array.isArray(named) ? named.map(String) : []), ...(isReview ? [REVIEW_SKILL] : [])];
  const { model_override: model, provider_override: provider, reasoning_effort: reasoning } = card;
  return [
    ...[process.execPath, join(installRoot(), "bin", "hermes.mjs"), "-p", profile, "--cli", "--accept-hooks"],
    ...skills.flatMap((skill) => ["--skills", skill]),
    ...(model === null ? [] : ["-m", model, ...(provider === null ? [] : ["--provider", provider])]),
    ...(reasoning === null ? [] : ["--reasoning", reasoning]),
    ...["chat", ...(card.goal_mode ? ["-Q"] : []), "-q", `work kanban task ${card.id}`],
  ];
}

/** Of the worker that started this process, or of a chat; nothing of it is the next one's. */
const NOT_HANDED_ON =
  /^HERMES_(?:KANBAN_(?:TASK|WORKSPACE|RUN_ID|CLAIM_LOCK|DB|BOARD|WORKSPACES_ROOT|BRANCH|GOAL_MODE|GOAL_MAX_TURNS)|SESSION_\w+|TENANT|PROFILE|HOME|GATEWAY_DETACHED|CRON_\w+)$/;
/** A command ends so long before its worker has to. */
const COMMAND_MARGIN = 30;

export function workerEnvironment(home: OpenHome, task: WorkerTask): Readonly<Record<string, string>> {
  const { card, place, workspace, profile } = task;
  // It is this program: keys that other children are not given are for it as well.
  const keys = home.withheld().filter((name) => home.override(name) !== undefined);
  const base = Object.entries(home.environment(keys)).filter(([name]) => !NOT_HANDED_ON.test(name));
  const most = card.max_runtime_seconds === null ? null : Math.max(1, card.max_runtime_seconds - COMMAND_MARGIN);
  const timeout = most === null ? null : String(Math.min(most, home.config().terminal.timeout));
  return {
    ...Object.fromEntries(base),
    ...{ HERMES_HOME: profileDir(home.paths.root, profile), HERMES_PROFILE: profile, HERMES_SESSION_SOURCE: "kanban" },
    ...{ HERMES_KANBAN_TASK: card.id, HERMES_KANBAN_RUN_ID: String(task.run), HERMES_KANBAN_CLAIM_LOCK: task.lock },
    ...{ HERMES_KANBAN_BOARD: place.slug, HERMES_KANBAN_DB: place.database },
    ...{ HERMES_KANBAN_WORKSPACES_ROOT: place.workspaces, HERMES_KANBAN_WORKSPACE: workspace.path },
    TERMINAL_CWD: workspace.path,
    ...(workspace.branch === null ? {} : { HERMES_KANBAN_BRANCH: workspace.branch }),
    ...(card.goal_mode ? { HERMES_KANBAN_GOAL_MODE: "1" } : {}),
    ...(card.goal_max_turns === null ? {} : { HERMES_KANBAN_GOAL_MAX_TURNS: String(card.goal_max_turns) }),
    ...(card.tenant === null ? {} : { HERMES_TENANT: card.tenant }),
    ...(timeout === null ? {} : { TERMINAL_TIMEOUT: timeout, TERMINAL_MAX_FOREGROUND_TIMEOUT: String(most) }),
  };
}

export const logOf = (place: Pick<BoardPlace, "logs">, card: string) => join(place.logs, `${card}.log`);

interface LogLimits {
  readonly largest: number;
  readonly backups: number;
}

async function openLog(path: string, { largest, backups }: LogLimits): Promise<FileHandle> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const size = await stat(path).then(
    (found) => found.size,
    () => 0, // the first one
  );
  if (size > largest) {
    for (let at = backups - 1; at > 0; at--) await rename(`${path}.${at}`, `${path}.${at + 1}`).catch(() => undefined); // there were not so many yet
    await (backups > 0 ? rename(path, `${path}.1`) : rm(path));
  }
  return open(path, "a", 0o600);
}

interface StartedWorker extends WorkerIdentity {
  /** It may begin: until then, and without the one who started it for ever, it has done nothing. */
  go(): void;
  /** It never begins. */
  cancel(): void;
}

/** Waits for one line, and ends where none comes: whoever started it died before it was written down whose process this is. */
const GATE = 'read -r go && exec "$@" </dev/null';
const MOST_EXITS = 1000;
const FIRST_LOOK_MS = 50;
const TERM_MS = 5000;
const KILL_MS = 2000;

/** The workers that this process started, and how to tell and stop any other. */
export class Workers {
  /** Of the newest of them: most are asked about once, and some never. */
  readonly #exits = new Map<string, ExitFacts>();
  readonly #clock: Clock;
  readonly #ended: () => void;

  /** `ended`: one of them ended. */
  constructor(clock: Clock, ended: () => void = () => undefined) {
    this.#clock = clock;
    this.#ended = ended;
  }

  /** Rejects when there can be no such process. */
  async start(
    command: readonly string[],
    {
      cwd,
      env,
      log,
    }: { cwd: string; env: Readonly<Record<string, string>>; log: { readonly path: string } & LogLimits },
  ): Promise<StartedWorker> {
    const file = await openLog(log.path, log);
    try {
      const hasGate = process.platform !== "win32";
      const [program = "", ...words] = hasGate ? ["/bin/sh", "-c", GATE, "hermes-worker", ...command] : command;
      const child = spawn(program, words, {
        ...{ cwd, env, detached: true, windowsHide: true },
        stdio: [hasGate ? "pipe" : "ignore", file.fd, file.fd],
      });
      const pid = await new Promise<number>((resolve, reject) => {
        child.on("error", reject);
        child.on("spawn", () => resolve(child.pid ?? 0));
      });
      const who = { pid, startTime: await startTimeOf(pid) };
      this.#follow(child, who);
      child.stdin?.on("error", () => undefined); // it ended before it began; its exit code says so
      return {
        ...who,
        go: () => child.stdin?.end("go\n"),
        cancel: () => void (hasGate ? child.stdin?.end() : child.kill()),
      };
    } finally {
      await file.close();
    }
  }

  #follow(child: ChildProcess, who: WorkerIdentity): void {
    child.on("exit", (code, signal) => {
      this.#exits.set(nameOf(who), { code, signal });
      for (const name of this.#exits.keys()) if (this.#exits.size > MOST_EXITS) this.#exits.delete(name);
      this.#ended();
    });
    child.unref();
  }

  exitOf(who: WorkerIdentity): ExitFacts | null {
    return this.#exits.get(nameOf(who)) ?? null;
  }

  /** What became of it is written down. */
  forget(who: WorkerIdentity): void {
    this.#exits.delete(nameOf(who));
  }

  /**
   * Whether the process is that worker, and not a later one with its number. Where nobody wrote down when it began, its environment has to
   * name the card.
   */
  async lives(who: WorkerIdentity, card: string): Promise<boolean> {
    if ((await processFacts(who.pid)) === null) return false;
    if (who.startTime !== null) return (await startTimeOf(who.pid)) === who.startTime;
    if (process.platform !== "linux") return true;
    const variables = await readFile(`/proc/${who.pid}/environ`, "utf8").catch(() => ""); // gone, or another user's
    return variables.split("\0").includes(`HERMES_KANBAN_TASK=${card}`);
  }

  /** SIGTERM to its group, then SIGKILL. False: it lives still. */
  async stop(who: WorkerIdentity, card: string): Promise<boolean> {
    // Nothing tells it from a stranger with its number.
    if (who.startTime === null && process.platform !== "linux") return !(await this.lives(who, card));
    for (const [signal, ms] of [
      ["SIGTERM", TERM_MS],
      ["SIGKILL", KILL_MS],
    ] as const) {
      if (!(await this.lives(who, card))) return true;
      signalGroup(who.pid, signal);
      const until = this.#clock.now() + ms;
      while ((await this.lives(who, card)) && this.#clock.now() < until) await this.#clock.sleep(FIRST_LOOK_MS);
    }
    return !(await this.lives(who, card));
  }
}

const nameOf = ({ pid, startTime }: WorkerIdentity) => `${pid}:${startTime}`;

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  for (const target of process.platform === "win32" ? [pid] : [-pid, pid])
    try {
      process.kill(target, signal);
      return;
    } catch (error) {
      if (codeOf(error) === "EPERM") return; // not ours to end; it is held for as long as it lives
    }
}

/** Null where the system does not say. */
async function startTimeOf(pid: number): Promise<number | null> {
  const facts = await processFacts(pid);
  if (facts?.startTime != null || process.platform === "linux" || process.platform === "win32")
    return facts?.startTime ?? null;
  return new Promise((resolve) => {
    execFile("ps", ["-o", "lstart=", "-p", String(pid)], { env: { LC_ALL: "C", TZ: "UTC" } }, (_error, said) => {
      const at = Date.parse(`${said.trim()} UTC`);
      resolve(Number.isNaN(at) ? null : at / 1000);
    });
  });
}
