// Hosts are compared as parsed names, never as substrings: `api.openai.com.evil.example` is not OpenAI.

export function hostOf(url: string): string {
  const parsed = URL.parse(url.includes("://") ? url : `https://${url}`);
  return parsed?.hostname.toLowerCase() ?? "";
}

/** True when the URL's host is `domain` itself or below it. */
export function isHost(url: string, ...domains: readonly string[]): boolean {
  const host = hostOf(url);
  return domains.some((domain) => host === domain || host.endsWith(`.${domain}`));
}

/** Adds a path to a base URL that may end in a slash, carry a query, or name the endpoint already. */
export function joinUrl(baseUrl: string, path: string): string {
  const [base = "", query] = baseUrl.trim().split("?", 2);
  const trimmed = base.replace(/\/+$/, "");
  const url = trimmed.endsWith(path) ? trimmed : trimmed + path;
  return query === undefined ? url : `${url}?${query}`;
}
