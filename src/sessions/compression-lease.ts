// Who may summarise a session. The newer original keeps such leases in `compression_locks`; other files in `state_meta`.
import { randomBytes } from "node:crypto";
import { parseJson } from "./content.ts";
import type { StoreCore } from "./core.ts";
import { readMeta, setMeta } from "./upgrade.ts";

interface Lease {
  readonly holder: string;
  readonly expiresAt: number;
}

const metaKey = (sessionId: string) => `compression_lock:${sessionId}`;

export const newHolder = (pid: number) => `pid=${pid}:${randomBytes(6).toString("hex")}`;

/** Inside a transaction. True when `holder` has the lease now. */
export function takeLease(core: StoreCore, sessionId: string, holder: string, seconds: number): boolean {
  const held = readLease(core, sessionId);
  if (held && held.holder !== holder && held.expiresAt > core.now() && !isDead(held.holder)) return false;
  const expiresAt = core.now() + seconds;
  if (core.shape.tables.has("compression_locks")) {
    core.db.run(
      "INSERT OR REPLACE INTO compression_locks (session_id, holder, acquired_at, expires_at) VALUES (?, ?, ?, ?)",
      sessionId,
      holder,
      core.now(),
      expiresAt,
    );
  } else {
    setMeta(core.db, metaKey(sessionId), JSON.stringify({ holder, expiresAt } satisfies Lease));
  }
  return true;
}

/** Only the holder's own lease goes. */
export function dropLease(core: StoreCore, sessionId: string, holder: string): void {
  if (readLease(core, sessionId)?.holder !== holder) return;
  if (core.shape.tables.has("compression_locks")) {
    core.db.run("DELETE FROM compression_locks WHERE session_id = ?", sessionId);
  } else {
    core.db.run("DELETE FROM state_meta WHERE key = ?", metaKey(sessionId));
  }
}

function readLease(core: StoreCore, sessionId: string): Lease | null {
  if (core.shape.tables.has("compression_locks")) {
    const row = core.db.get<{ holder: string; expires_at: number }>(
      "SELECT holder, expires_at FROM compression_locks WHERE session_id = ?",
      sessionId,
    );
    return row ? { holder: row.holder, expiresAt: row.expires_at } : null;
  }
  const value = parseJson(readMeta(core.db, metaKey(sessionId)) ?? "null");
  if (typeof value !== "object" || value === null || !("holder" in value) || !("expiresAt" in value)) return null;
  return { holder: String(value.holder), expiresAt: Number(value.expiresAt) };
}

/** A process of this machine that is gone cannot release what it holds. */
export function isDead(holder: string): boolean {
  const pid = Number(/^pid=(\d+)/.exec(holder)?.[1]);
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "ESRCH";
  }
}
