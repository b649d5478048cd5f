import type { Clock } from "../kit/clock.ts";

export type SessionIdKind = "session" | "gateway" | "background";

/** `YYYYMMDD_HHMMSS_<6 hex>` in local time; 8 hex for a chat, `bg_HHMMSS_<6 hex>` for a background task. */
export function newSessionId(clock: Pick<Clock, "now" | "random">, kind: SessionIdKind = "session"): string {
  const at = new Date(clock.now());
  const two = (part: number) => String(part).padStart(2, "0");
  const date = `${at.getFullYear()}${two(at.getMonth() + 1)}${two(at.getDate())}`;
  const time = `${two(at.getHours())}${two(at.getMinutes())}${two(at.getSeconds())}`;
  if (kind === "background") return `bg_${time}_${hex(clock, 6)}`;
  return `${date}_${time}_${hex(clock, kind === "gateway" ? 8 : 6)}`;
}

function hex(clock: Pick<Clock, "random">, digits: number): string {
  return Math.floor(clock.random() * 16 ** digits)
    .toString(16)
    .padStart(digits, "0");
}
