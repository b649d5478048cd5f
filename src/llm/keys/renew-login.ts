// A login's token that ran out is exchanged for a fresh one, as OAuth describes it (grant type `refresh_token`).

import { MAX_ANSWER_BYTES, textOf } from "../../kit/http.ts";
import { hostBelongs, hostOf, isLocalEndpoint } from "../providers/hosts.ts";
import { mapping, text } from "../providers/settings.ts";
import type { ProviderRow } from "../providers/table.ts";
import type { PoolEntry } from "./pool.ts";

const PATIENCE_MS = 15_000;

/** Where logins of a provider are renewed, for entries that do not say it themselves. */
const ISSUERS: Readonly<Record<string, { readonly tokenUrl: string; readonly clientId: string }>> = {
  "openai-codex": { tokenUrl: "https://auth.openai.com/oauth/token", clientId: "app_EMoamEEZ73f0CkXaXp7hrann" },
};

interface RenewPorts {
  readonly fetch: typeof globalThis.fetch;
  /** Milliseconds. */
  now(): number;
}

/** What changes in the entry. Null: it is no login, or nobody knows where to renew it. Throws when the issuer says no. */
export async function renewLogin(
  entry: PoolEntry,
  row: ProviderRow,
  { fetch, now }: RenewPorts,
): Promise<Partial<PoolEntry> | null> {
  const issuer = ISSUERS[row.id];
  const tokenUrl = text(entry.token_url) ?? issuer?.tokenUrl;
  const clientId = text(entry.client_id) ?? issuer?.clientId;
  const refresh_token = text(entry.refresh_token);
  if (!tokenUrl || !clientId || !refresh_token || !mayGoTo(tokenUrl, row, issuer?.tokenUrl)) return null;
  const response = await fetch(tokenUrl, {
    method: "POST",
    // A token must not follow a redirect to another host.
    redirect: "error",
    signal: AbortSignal.timeout(PATIENCE_MS),
    headers: { "content-type": "application/x-www-form-urlencoded", accept: "application/json" },
    body: new URLSearchParams({ grant_type: "refresh_token", refresh_token, client_id: clientId }).toString(),
  });
  if (!response.ok) throw new Error(`${hostOf(tokenUrl)} did not renew the login: HTTP ${response.status}`);
  const answer = mapping(JSON.parse(await textOf(response, MAX_ANSWER_BYTES)));
  const access_token = text(answer.access_token);
  if (!access_token) throw new Error(`${hostOf(tokenUrl)} renewed the login without a token`);
  const { expires_in } = answer;
  return {
    access_token,
    refresh_token: text(answer.refresh_token) ?? refresh_token,
    expires_at: typeof expires_in === "number" ? Math.round(now() / 1000 + expires_in) : null,
    last_status: "ok",
    last_error_reset_at: null,
  };
}

/** The token that renews a login is worth more than the login: it goes to the provider's own hosts, and never in the clear. */
function mayGoTo(tokenUrl: string, row: ProviderRow, known: string | undefined): boolean {
  if (tokenUrl === known) return true;
  if (!/^https:\/\//i.test(tokenUrl) && !isLocalEndpoint(tokenUrl)) return false;
  return row.hosts.some((domain) => hostBelongs(hostOf(tokenUrl), domain));
}
