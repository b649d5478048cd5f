// How the program was installed, and whether there is a newer one.
import { readFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { OpenHome } from "../home/open.ts";
import { installRoot, VERSION } from "../home/paths.ts";
import type { Clock } from "../kit/clock.ts";
import { exists, writeFileAtomic } from "../kit/files.ts";
import { plural } from "../kit/formats.ts";
import { parseJson } from "../kit/json.ts";
import { mapping } from "../llm/providers/settings.ts";
import { programRunner } from "../prompt/ports.ts";

export const PACKAGE = "hermes-ts";
const LOOK_MS = 60_000;
const LOOK_AGAIN_MS = 24 * 60 * 60_000;
export const QUIET = ["--no-update-notifier", "--no-audit", "--no-fund"];

interface Place {
  readonly home: Pick<OpenHome, "paths">;
  readonly clock: Clock;
}

/** How this copy of the program came here. */
export type Installation =
  /** `built`: a build lies next to the source, and is made anew. */
  | { readonly kind: "git"; readonly root: string; readonly built: boolean }
  /** `prefix` null: it is a package of a project, not of the whole machine. */
  | { readonly kind: "npm"; readonly root: string; readonly prefix: string | null }
  | { readonly kind: "unknown"; readonly root: string };

export async function installation(root: string): Promise<Installation> {
  if (await exists(join(root, ".git"))) {
    const built = await exists(join(root, "dist", "main.js"));
    return { kind: "git", root, built };
  }
  if (basename(dirname(root)) !== "node_modules") return { kind: "unknown", root };
  const above = dirname(dirname(root));
  const isGlobal = basename(above) === "lib" || !(await exists(join(above, "package.json")));
  return { kind: "npm", root, prefix: isGlobal ? (basename(above) === "lib" ? dirname(above) : above) : null };
}

interface UpdateState {
  /** What can be had: a version, or how many commits there are. */
  readonly available: string;
  readonly isBehind: boolean;
}

export type Run = (program: string, args: readonly string[], cwd: string, ms?: number) => Promise<string>;

export function runner(home: Pick<OpenHome, "environment">): Run {
  const run = programRunner(home.environment());
  return async (program, args, cwd, ms = LOOK_MS) => {
    const result = await run(program, args, { cwd, timeoutMs: ms, env: { GIT_TERMINAL_PROMPT: "0" } });
    if (result.exitCode === 0) return result.stdout.trim();
    const why = result.timedOut
      ? "no answer in time"
      : result.exitCode === null
        ? `${program} is not installed`
        : (result.stderr
            .trim()
            .split("\n")
            .find((line) => line.trim() !== "") ?? `exit code ${result.exitCode}`);
    throw new Error(`${program} ${args[0]}: ${why}`);
  };
}

/** Asks the registry that npm is set up with, or the remote of the clone. */
export async function lookForUpdate(where: Installation, run: Run): Promise<UpdateState> {
  if (where.kind === "git") {
    await run("git", ["fetch", "--quiet"], where.root);
    const count = Number(await run("git", ["rev-list", "--count", "HEAD..@{upstream}"], where.root));
    return { available: `${plural(count, "new commit")}`, isBehind: count > 0 };
  }
  const answer = parseJson(await run("npm", ["view", PACKAGE, "version", "--json", ...QUIET], where.root));
  if (typeof answer !== "string" || !/^\d+\.\d+\.\d+/.test(answer))
    throw new Error("npm view: the registry returned no version");
  return { available: answer, isBehind: isNewer(answer, VERSION) };
}

/** Of two versions; what stands behind a `-` comes before the version itself. */
export function isNewer(one: string, other: string): boolean {
  const parts = (text: string) => {
    const [numbers = "", early] = text.split("-", 2);
    return [...numbers.split(".").map(Number), early === undefined ? 1 : 0];
  };
  const [left, right] = [parts(one), parts(other)];
  const at = left.findIndex((part, index) => part !== right[index]);
  return at >= 0 && (left[at] ?? 0) > (right[at] ?? 0);
}

// What the last look found, for `hermes version` and the screen: nobody is asked there.

const CACHE = ".update_check";

export async function remember(state: UpdateState, { home, clock }: Place): Promise<void> {
  const text = JSON.stringify({ checked_at: clock.now() / 1000, version: VERSION, ...state });
  // A home that cannot be written forgets it, that is all.
  await writeFileAtomic(join(home.paths.root, CACHE), `${text}\n`, { mode: 0o600 }).catch(() => undefined);
}

interface KnownUpdate {
  readonly checkedAt: number;
  /** Null: this was the newest one. */
  readonly available: string | null;
}

/** Null when nobody has looked with this version. */
export async function knownUpdate(home: Place["home"]): Promise<KnownUpdate | null> {
  const kept = mapping(parseJson(await readFile(join(home.paths.root, CACHE), "utf8").catch(() => "")));
  if (kept.version !== VERSION || typeof kept.checked_at !== "number") return null;
  return { checkedAt: kept.checked_at * 1000, available: kept.isBehind === true ? String(kept.available) : null };
}

/**
 * What a start may tell: what an earlier look found, and with `updates.check` what is found now, a day after the last look at the earliest.
 * A look that fails says nothing; it is made again at the next start.
 */
export async function updateAtStart(
  place: Place & { readonly home: OpenHome },
  root = installRoot(),
): Promise<string | null> {
  const { home, clock } = place;
  const known = await knownUpdate(home);
  const isOld = known === null || clock.now() - known.checkedAt > LOOK_AGAIN_MS;
  if (!isOld || home.managed || !home.config().updates.check) return known?.available ?? null;
  const where = await installation(root);
  if (where.kind === "unknown") return null;
  try {
    const state = await lookForUpdate(where, runner(home));
    await remember(state, place);
    return state.isBehind ? state.available : null;
  } catch (error) {
    home.log.warn("no newer version could be looked for", error);
    return known?.available ?? null;
  }
}
