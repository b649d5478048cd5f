// Hosts are compared as parsed names, label by label, never as pieces of a URL's text.

/** Lower-case host name without port and brackets; empty when there is none. The scheme may be missing. */
export function hostOf(url: string): string {
  const text = url.trim();
  if (text === "") return "";
  const parsed = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`);
  return parsed?.hostname.toLowerCase().replace(/^\[|\]$|\.$/g, "") ?? "";
}

export function pathOf(url: string): string {
  return (URL.parse(url.trim())?.pathname ?? "").replace(/\/+$/, "");
}

/** The host is `domain` or lies below it. `api.openai.com.evil.example` does not belong to `openai.com`. */
export function hostBelongs(host: string, domain: string): boolean {
  return host !== "" && (host === domain || host.endsWith(`.${domain}`));
}

export function isIpAddress(host: string): boolean {
  return /^\d{1,3}(\.\d{1,3}){3}$/.test(host) || host.includes(":");
}

/** `https://api.mistral.ai/v1` -> `MISTRAL_API_KEY`; null for addresses and single-label hosts. */
export function hostDerivedApiKeyName(url: string): string | null {
  const host = hostOf(url);
  if (isIpAddress(host)) return null;
  const vendor = host.split(".").at(-2);
  return vendor ? `${vendor.toUpperCase().replace(/[^A-Z0-9]/g, "_")}_API_KEY` : null;
}

/** The endpoint is this machine or a private network: no key needed, no stale timers, its window may be probed. */
export function isLocalEndpoint(url: string): boolean {
  const host = hostOf(url);
  if (host === "localhost" || host.endsWith(".localhost")) return true;
  if (/\.(docker|containers|lima)\.internal$/.test(host)) return true;
  if (host.includes(":")) return isLocalIpv6(host);
  return isIpAddress(host) && isLocalIpv4(host);
}

function isLocalIpv4(host: string): boolean {
  const [a = 0, b = 0] = host.split(".").map(Number);
  if (host === "0.0.0.0" || a === 127 || a === 10) return true;
  if (a === 172) return b >= 16 && b <= 31;
  if (a === 100) return b >= 64 && b <= 127;
  return (a === 192 && b === 168) || (a === 169 && b === 254);
}

function isLocalIpv6(host: string): boolean {
  if (host === "::1" || host === "::") return true;
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(host);
  if (mapped?.[1] && mapped[2]) {
    const bytes = [mapped[1], mapped[2]].flatMap((part) => {
      const value = Number.parseInt(part, 16);
      return [value >> 8, value & 255];
    });
    return isLocalIpv4(bytes.join("."));
  }
  return /^(fe[89ab]|f[cd])/.test(host);
}
