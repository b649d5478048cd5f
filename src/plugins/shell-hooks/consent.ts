// Which hooks the user allowed for good: per event and command, for the bytes that were there then. In the file of the original, which
// reads it as before; ours adds the hash.

import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { isAbsolute, join, resolve } from "node:path";
import { withLock } from "../../home/lock.ts";
import { writeFileAtomic } from "../../kit/files.ts";
import { isRecord } from "../../kit/json.ts";
import type { ShellHook } from "./run.ts";

interface Approval {
  readonly event: string;
  readonly command: string;
  readonly approved_at?: unknown;
  readonly script_mtime_at_approval?: unknown;
  readonly script_sha256?: unknown;
}

type Consent =
  | { readonly type: "given" }
  | { readonly type: "none" }
  /** Given once, for other bytes than are there now. */
  | { readonly type: "outdated" };

export class ConsentStore {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async all(): Promise<readonly Approval[]> {
    return approvalsIn(await this.#read());
  }

  async consentFor({ event, command }: Pick<ShellHook, "event" | "command">, facts: ScriptFacts): Promise<Consent> {
    const approval = (await this.all()).find((one) => one.event === event && one.command === command);
    if (!approval) return { type: "none" };
    return { type: covers(approval, facts) ? "given" : "outdated" };
  }

  async approve(
    { event, command }: Pick<ShellHook, "event" | "command">,
    facts: ScriptFacts,
    now: number,
  ): Promise<void> {
    const approval: Approval = {
      event,
      command,
      approved_at: new Date(now).toISOString(),
      script_mtime_at_approval: facts.mtimeMs === null ? null : new Date(facts.mtimeMs).toISOString(),
      script_sha256: facts.sha256 ?? undefined,
    };
    await this.#change((list) => [...list.filter((one) => one.event !== event || one.command !== command), approval]);
  }

  /** Takes back every consent that `matches`; resolves to how many there were. */
  async revoke(matches: (approval: Approval) => boolean): Promise<number> {
    let gone = 0;
    await this.#change((list) => {
      const left = list.filter((one) => !matches(one));
      gone = list.length - left.length;
      return left;
    });
    return gone;
  }

  async #change(change: (list: readonly Approval[]) => readonly Approval[]): Promise<void> {
    await withLock(`${this.#path}.lock`, async () => {
      const kept = await this.#read();
      const approvals = change(approvalsIn(kept));
      await writeFileAtomic(this.#path, `${JSON.stringify({ ...kept, approvals }, null, 2)}\n`, { mode: 0o600 });
    });
  }

  /** A file that cannot be read is consent to nothing. */
  async #read(): Promise<Readonly<Record<string, unknown>>> {
    const text = await readFile(this.#path, "utf8").catch(() => "{}"); // none yet
    try {
      const value: unknown = JSON.parse(text);
      return isRecord(value) ? value : {};
    } catch {
      return {}; // an incomplete file of another process
    }
  }
}

function approvalsIn({ approvals }: Readonly<Record<string, unknown>>): readonly Approval[] {
  return Array.isArray(approvals) ? approvals.filter(isApproval) : [];
}

function isApproval(value: unknown): value is Approval {
  return isRecord(value) && typeof value.event === "string" && typeof value.command === "string";
}

function covers(approval: Approval, facts: ScriptFacts): boolean {
  if (typeof approval.script_sha256 === "string") return approval.script_sha256 === facts.sha256;
  // Written by the original, which knew the time alone.
  if (facts.mtimeMs === null) return true;
  const then = timeOf(approval.script_mtime_at_approval);
  return then !== null && Math.abs(then - facts.mtimeMs) < 1000;
}

/** ISO text, or seconds since the epoch. */
function timeOf(value: unknown): number | null {
  if (typeof value === "number") return value * 1000;
  const time = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isNaN(time) ? null : time;
}

// Which files a hook's command runs, and what is in them: consent is for these bytes.

export interface ScriptFacts {
  readonly files: readonly string[];
  /** Of all of them together; null when the command names no file of the user's. */
  readonly sha256: string | null;
  /** The newest change, in milliseconds since the epoch. */
  readonly mtimeMs: number | null;
}

/** Programs of the system change with its updates; nobody is asked again because of them. */
const SYSTEM = /^\/(?:bin|sbin|usr\/(?!local\/)|lib|nix|opt\/homebrew)/;
const LARGEST = 50 * 1024 * 1024;

/** A word of the command line as a path, with the user's home in place of `~`. */
export function expandHome(word: string, osHome: string): string {
  return word === "~" || word.startsWith("~/") ? join(osHome, word.slice(1)) : word;
}

export async function scriptFacts(
  argv: readonly string[],
  context: { readonly cwd: string; readonly osHome: string },
): Promise<ScriptFacts> {
  const hash = createHash("sha256");
  const files: string[] = [];
  let mtimeMs: number | null = null;
  for (const [index, word] of argv.entries()) {
    const expanded = expandHome(word, context.osHome);
    // A bare program name is looked up in PATH, never here.
    if (index === 0 && !expanded.includes("/")) continue;
    const path = isAbsolute(expanded) ? expanded : resolve(context.cwd, expanded);
    if (SYSTEM.test(path)) continue;
    const facts = await stat(path).catch(() => null); // an argument that is no file
    if (!facts?.isFile() || facts.size > LARGEST) continue;
    files.push(path);
    hash.update(`${path}\n`).update(await readFile(path));
    mtimeMs = Math.max(mtimeMs ?? 0, facts.mtimeMs);
  }
  return { files, sha256: files.length === 0 ? null : hash.digest("hex"), mtimeMs };
}
