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
export function localDate(at: number): string {
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
