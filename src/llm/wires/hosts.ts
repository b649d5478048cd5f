import { hostBelongs, hostOf } from "../providers/hosts.ts";

/** True when the URL's host is one of the domains, or lies below one. */
export function isHost(url: string, ...domains: readonly string[]): boolean {
  const host = hostOf(url);
  return domains.some((domain) => hostBelongs(host, domain));
}

/** Adds a path to a base URL that may end in a slash, carry a query, or name the endpoint already. */
export function joinUrl(baseUrl: string, path: string): string {
  const [base = "", query] = baseUrl.trim().split("?", 2);
  const trimmed = base.replace(/\/+$/, "");
  const url = trimmed.endsWith(path) ? trimmed : trimmed + path;
  return query === undefined ? url : `${url}?${query}`;
}
