import type { CacheTtl } from "../cache-control.ts";

const OFF = ["off", "false", "disabled", "no", "none"];

/** `prompt_caching.cache_ttl` in every way it is written; a word nobody knows counts as the default, with a warning. */
export function readCacheTtl(value: unknown): { readonly ttl: CacheTtl; readonly warning: string | null } {
  if (value === undefined) return { ttl: "5m", warning: null };
  if (value === null || value === false) return { ttl: "off", warning: null };
  const word = String(value).trim().toLowerCase();
  if (word === "5m" || word === "1h") return { ttl: word, warning: null };
  if (OFF.includes(word)) return { ttl: "off", warning: null };
  const shown = JSON.stringify(value);
  return { ttl: "5m", warning: `prompt_caching.cache_ttl: ${shown} is not known; 5m is used. Legal: 5m, 1h, off.` };
}
