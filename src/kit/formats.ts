// Numbers and times as people read them in a narrow place.

/** `45s`, `12m`, `3h`, `3h 5m`, `1.5d`. */
export function compactDuration(seconds: number): string {
  if (seconds < 60) return `${Math.round(seconds)}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86_400) {
    const minutes = Math.floor((seconds % 3600) / 60);
    return `${Math.floor(seconds / 3600)}h${minutes > 0 ? ` ${minutes}m` : ""}`;
  }
  return `${(seconds / 86_400).toFixed(1)}d`;
}

/** `5s`, `1m`, `1m 1s`, `1h 0m`, `1h 1m 1s`, `1d 0h 0m`. */
export function exactDuration(seconds: number): string {
  const whole = Math.floor(seconds);
  const [d, h, m, s] = [
    Math.floor(whole / 86_400),
    Math.floor((whole % 86_400) / 3600),
    Math.floor((whole % 3600) / 60),
    whole % 60,
  ];
  if (d > 0) return `${d}d ${h}h ${m}m`;
  const tail = s > 0 ? ` ${s}s` : "";
  if (h > 0) return `${h}h ${m}m${tail}`;
  return m > 0 ? `${m}m${tail}` : `${s}s`;
}

const UNITS: readonly (readonly [number, string])[] = [
  [1e9, "B"],
  [1e6, "M"],
  [1e3, "K"],
];

/** Three significant digits: `999`, `1K`, `1.23K`, `12.4K`, `200K`, `1.23M`. */
export function tokenCount(tokens: number): string {
  const [size, unit] = UNITS.find(([limit]) => tokens >= limit) ?? [1, ""];
  if (size === 1) return String(Math.round(tokens));
  return `${Number((tokens / size).toPrecision(3))}${unit}`;
}

/** `500`, `8.2K`, `128K`, `131.1K`, `1M`. */
export function contextSize(tokens: number): string {
  const [size, unit] = UNITS.find(([limit]) => tokens >= limit) ?? [1, ""];
  if (size === 1) return String(tokens);
  return `${Number((tokens / size).toFixed(1))}${unit}`;
}

/** Ten cells, filled in proportion. */
export function percentBar(percent: number): string {
  const clamped = Math.min(100, Math.max(0, percent));
  const filled = roundHalfToEven(clamped / 10);
  return "█".repeat(filled) + "░".repeat(10 - filled);
}

function roundHalfToEven(value: number): number {
  const floor = Math.floor(value);
  if (value - floor !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}

/** `$0.0042`, `$1.23`; small sums keep their digits. */
export function dollars(usd: number): string {
  return usd > 0 && usd < 0.01 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(2)}`;
}

/** `1 skill`, `3 skills`. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** Letters that take two cells of a terminal: Han, Kana, Hangul and their full-width signs. */
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/gu;

/** The cells of a short label of ours; for text of others the terminal's own measure is exact. */
export const wideLength = (text: string) => text.length + (text.match(WIDE)?.length ?? 0);

export const padWide = (text: string, cells: number) => text + " ".repeat(Math.max(0, cells - wideLength(text)));

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long ago, in words for a list. Both in Unix seconds; `?` when there is no time. */
export function relativeTime(at: number | null | undefined, now: number): string {
  if (at === null || at === undefined || !Number.isFinite(at)) return "?";
  const seconds = now - at;
  if (seconds < MINUTE) return "just now";
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)}m ago`;
  if (seconds < DAY) return `${Math.floor(seconds / HOUR)}h ago`;
  if (seconds < 2 * DAY) return "yesterday";
  if (seconds < 7 * DAY) return `${Math.floor(seconds / DAY)}d ago`;
  return localDate(at);
}

/** `YYYY-MM-DD` in local time. */
function localDate(at: number): string {
  const date = new Date(at * 1000);
  const two = (part: number) => String(part).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** `YYYY-MM-DD HH:MM` in local time. */
export function localMinute(at: number): string {
  const date = new Date(at * 1000);
  const two = (part: number) => String(part).padStart(2, "0");
  return `${localDate(at)} ${two(date.getHours())}:${two(date.getMinutes())}`;
}
