// Which addresses of the web a tool may open. A name is resolved here and nowhere else: whoever connects afterwards uses the addresses
// that were checked, so that a second answer of the name server changes nothing.
import { addressKind } from "./url-guard-address.ts";

export type UrlRefusal = "not_a_url" | "scheme" | "credentials" | "metadata" | "private" | "unknown_host" | "policy";

/** An address that is not opened. The message is for the model and the user: what, why, and what would allow it. */
export class UrlRefusedError extends Error {
  override name = "UrlRefusedError";
  readonly kind: UrlRefusal;
  constructor(kind: UrlRefusal, message: string) {
    super(message);
    this.kind = kind;
  }
}

export interface CheckedUrl {
  readonly url: URL;
  /** Where to connect, and nowhere else. Empty only behind a proxy that knows a name which is not known here. */
  readonly addresses: readonly string[];
  /** At least one address is of the local network; only where that is allowed. */
  readonly isPrivate: boolean;
}

export interface UrlGuardOptions {
  /** `security.allow_private_urls`. Metadata services stay closed all the same. */
  readonly allowPrivate: boolean;
  /** A proxy makes the connection: it may know names that this machine does not. */
  readonly proxied?: boolean;
  /** All addresses of a name; rejects when there is none. */
  resolve(host: string): Promise<readonly string[]>;
}

const METADATA_HOSTS = new Set(["metadata.google.internal", "metadata.goog"]);
const MOST_ADDRESSES = 8;

/** Resolves to what may be opened; rejects with `UrlRefusedError`. */
export async function checkUrl(address: string | URL, options: UrlGuardOptions): Promise<CheckedUrl> {
  const url = parseWebUrl(address);
  const host = hostOf(url);
  if (METADATA_HOSTS.has(host)) throw refusedMetadata(host);
  const addresses = await addressesOf(host, options);
  const kinds = addresses.map(addressKind);
  if (kinds.includes("metadata")) throw refusedMetadata(host);
  const isPrivate = kinds.includes("private");
  if (isPrivate && !options.allowPrivate)
    throw new UrlRefusedError(
      "private",
      `Blocked: ${host} is an address of this machine or its local network. To allow such addresses set security.allow_private_urls: true in config.yaml.`,
    );
  return { url, addresses: addresses.slice(0, MOST_ADDRESSES), isPrivate };
}

/** An http(s) address with its host in the one form it is compared in. Odd spellings of numbers are plain addresses afterwards. */
export function parseWebUrl(address: string | URL): URL {
  const text = String(address).trim();
  const url = URL.canParse(text) ? new URL(text) : null;
  if (!url)
    throw new UrlRefusedError(
      "not_a_url",
      `Not a web address: ${shorten(text)}. Give a full one, such as https://example.com/page.`,
    );
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new UrlRefusedError("scheme", `Only http and https addresses can be opened, not ${url.protocol}`);
  if (url.username !== "" || url.password !== "")
    throw new UrlRefusedError("credentials", "The address holds a user name or password. Leave that part out.");
  // `example.com.` is the same place as `example.com`, and certificates know only the latter.
  if (url.hostname.endsWith(".")) url.hostname = url.hostname.replace(/\.+$/, "");
  if (url.hostname === "") throw new UrlRefusedError("not_a_url", `The address has no host: ${shorten(text)}`);
  return url;
}

/** The host without the brackets of an IPv6 address. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, "").toLowerCase();
}

async function addressesOf(host: string, { proxied, resolve }: UrlGuardOptions): Promise<readonly string[]> {
  if (addressKind(host) !== "none") return [host];
  try {
    const found = await resolve(host);
    if (found.length > 0) return found;
  } catch (error) {
    if (!(error instanceof Error) || !("code" in error)) throw error;
  }
  if (proxied) return [];
  throw new UrlRefusedError("unknown_host", `Host not found: ${host}. Check the spelling and the network.`);
}

function refusedMetadata(host: string): UrlRefusedError {
  return new UrlRefusedError(
    "metadata",
    `Blocked: ${host} is a cloud metadata service. It is never opened, whatever the settings say.`,
  );
}

const shorten = (text: string) => (text.length > 200 ? `${text.slice(0, 200)}…` : text);
