// How full a store is, in words for the prompt and for results.

/** `67% — 1,474/2,200 chars` */
export function longUsage(current: number, limit: number): string {
  const percent = limit > 0 ? Math.min(100, Math.floor((100 * current) / limit)) : 100;
  return `${percent}% — ${shortUsage(current, limit)} chars`;
}

/** `1,474/2,200` */
export function shortUsage(current: number, limit: number): string {
  return `${withCommas(current)}/${withCommas(limit)}`;
}

// Not toLocaleString: its first call loads locale data for tens of milliseconds, and every start of an agent counts its memory.
export function withCommas(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ",");
}
