// Which hooks the user allowed for good: per event and command, for the bytes that were there then. In the file of the original, which
// reads it as before; ours adds the hash.
import { readFile } from "node:fs/promises";
import { withLock } from "../../home/lock.ts";
import { writeFileAtomic } from "../../kit/files.ts";
import { isRecord } from "../../kit/json.ts";
import type { ScriptFacts } from "./scripts.ts";
import type { ShellHook } from "./settings.ts";

export interface Approval {
  readonly event: string;
  readonly command: string;
  readonly approved_at?: unknown;
  readonly script_mtime_at_approval?: unknown;
  readonly script_sha256?: unknown;
}

export type Consent =
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
      ...(facts.sha256 === null ? {} : { script_sha256: facts.sha256 }),
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
      return {}; // half a file of somebody else's
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
