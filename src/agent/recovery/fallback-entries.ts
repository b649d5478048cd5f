// `fallback_providers`: who may answer when the conversation's own model cannot.

import type { AuxPlace } from "../../llm/auxiliary/contract.ts";
import { mapping, text } from "../../llm/providers/settings.ts";

export interface FallbackEntries {
  readonly entries: readonly AuxPlace[];
  /** One line for each entry that cannot be used as it is written. */
  readonly ignored: readonly string[];
}

/** A list of `{provider, model, base_url?, api_key?, key_env?}`; one such mapping alone is taken as a list of one. */
export function readFallbacks(given: unknown): FallbackEntries {
  const list = Array.isArray(given) ? given : given === undefined || given === null ? [] : [given];
  const entries: AuxPlace[] = [];
  const ignored: string[] = [];
  for (const [index, item] of list.entries()) {
    const entry = mapping(item);
    const baseUrl = text(entry.base_url);
    const provider = text(entry.provider) ?? (baseUrl ? "custom" : undefined);
    const model = text(entry.model);
    if (provider === undefined || model === undefined) {
      const lacks = provider === undefined ? "provider" : "model";
      ignored.push(`fallback_providers[${index}] has no ${lacks} and is ignored.`);
      continue;
    }
    const keyEnv = text(entry.key_env) ?? text(entry.api_key_env);
    entries.push({ provider, model, baseUrl, apiKey: text(entry.api_key), keyEnv, apiMode: text(entry.api_mode) });
  }
  return { entries, ignored };
}
