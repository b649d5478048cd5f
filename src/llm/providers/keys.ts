// A key goes to the host it was issued for and nowhere else.
import type { Target } from "../wire.ts";
import { hostBelongs, hostDerivedApiKeyName, hostOf, isLocalEndpoint } from "./hosts.ts";
import { ProviderError } from "./settings.ts";
import { LMSTUDIO_KEY, NO_KEY, PROVIDERS, type ProviderRow } from "./table.ts";

export type EnvLookup = (name: string) => string | undefined;

/** A key with the hosts it may be sent to (they and their subdomains). */
export interface BoundKey {
  readonly key: string;
  readonly hosts: readonly string[];
  readonly source: string;
}

const PLACEHOLDER =
  /^(changeme|change[-_]me|your[-_]?api[-_]?key([-_]here)?|dummy|none|null|undefined|placeholder|todo|xxx.*|<.*>|\.{3,}|\*+)$/i;

/** What is left in `.env` templates is no key. */
export function isUsableKey(value: string | undefined | null): value is string {
  const text = value?.trim() ?? "";
  return text.length >= 4 && !PLACEHOLDER.test(text);
}

/** The first usable key of a provider's variables. */
export function keyFromEnv(names: readonly string[], env: EnvLookup): { key: string; name: string } | null {
  for (const name of names) {
    const value = env(name);
    if (isUsableKey(value)) return { key: value.trim(), name };
  }
  return null;
}

/** Hosts of a built-in provider, widened by the URL variable that belongs to its key. */
export function hostsOf(row: ProviderRow, env: EnvLookup): readonly string[] {
  const paired = row.baseUrlEnv && !row.strictHosts ? hostOf(env(row.baseUrlEnv) ?? "") : "";
  return paired ? [...row.hosts, paired] : row.hosts;
}

/** The key that an endpoint of no built-in provider may get from the environment: its own vendor's, by host. */
export function keyForHost(baseUrl: string, env: EnvLookup): BoundKey | null {
  const host = hostOf(baseUrl);
  for (const row of PROVIDERS) {
    const hosts = row.auth === "api_key" ? row.hosts : [];
    const found = hosts.some((domain) => hostBelongs(host, domain)) ? keyFromEnv(row.keyEnv, env) : null;
    if (found) return { key: found.key, hosts, source: `env:${found.name}` };
  }
  const derived = hostDerivedApiKeyName(baseUrl);
  if (!derived || vendorKeyNames.has(derived)) return null;
  const found = keyFromEnv([derived], env);
  return found ? { key: found.key, hosts: [host], source: `env:${derived}` } : null;
}

// `openai.example` must not receive OPENAI_API_KEY just because its name says so.
const vendorKeyNames = new Set(PROVIDERS.flatMap((row) => row.keyEnv));

/** Key shapes that name their issuer; the last line of defence when a target carries no binding. */
const ISSUERS: readonly (readonly [RegExp, readonly string[]])[] = [
  [/^sk-or-/, ["openrouter.ai"]],
  [/^sk-ant-/, ["anthropic.com"]],
];

/** Throws `ProviderError` (`key_host_mismatch`) when a request to this target would carry a key of another host. */
export function assertKeyBelongs(target: Pick<Target, "baseUrl" | "apiKey" | "provider" | "keyHosts">): void {
  if (target.apiKey === "" || target.apiKey === NO_KEY || target.apiKey === LMSTUDIO_KEY) return;
  const host = hostOf(target.baseUrl);
  const allowed = target.keyHosts ?? ISSUERS.find(([shape]) => shape.test(target.apiKey))?.[1];
  if (!allowed || allowed.some((domain) => hostBelongs(host, domain))) return;
  throw new ProviderError(
    "key_host_mismatch",
    `Nothing was sent: the key of provider "${target.provider}" belongs to ${allowed.join(", ")}, but the request would go to ${host || target.baseUrl}. Give that endpoint a key of its own (\`model.api_key\` or \`providers.<name>.key_env\` in config.yaml).`,
  );
}

export function needsNoKey(baseUrl: string): boolean {
  return baseUrl.startsWith("demo:") || isLocalEndpoint(baseUrl);
}
