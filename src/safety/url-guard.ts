// Which addresses of the web a tool may open. A name is resolved here and nowhere else: whoever connects afterwards uses the addresses
// that were checked, so that a second answer of the name server changes nothing.

import { readFile } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { domainToASCII } from "node:url";
import ipaddr from "ipaddr.js";
import type { Logger } from "../home/log.ts";
import type { Clock } from "../kit/clock.ts";
import { UserError } from "../kit/errors.ts";
import { redactPhones } from "./redact-shapes.ts";

type UrlRefusal = "not_a_url" | "scheme" | "credentials" | "metadata" | "private" | "unknown_host" | "policy";

/** An address that is not opened. The message is for the model and the user: what, why, and what would allow it. */
export class UrlRefusedError extends UserError {
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
const MAX_ADDRESSES = 8;

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
  return { url, addresses: addresses.slice(0, MAX_ADDRESSES), isPrivate };
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
  if (url.hostname.endsWith(".")) url.hostname = url.hostname.replace(/(?<!\.)\.+$/, "");
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

// What an IP address is: out on the internet, near, or where a cloud machine keeps its keys.

/** `none`: not an IP address at all. */
type AddressKind = "public" | "private" | "metadata" | "none";

const METADATA = new Set([
  ...["169.254.169.254", "169.254.170.2", "169.254.169.253", "fd00:ec2::254"],
  "100.100.100.200", // Alibaba
  "168.63.129.16", // Azure
  "192.0.0.192", // Oracle
]);

export function addressKind(text: string): AddressKind {
  if (!ipaddr.isValid(text)) return "none";
  const address = embedded(ipaddr.process(text));
  if (METADATA.has(address.toString())) return "metadata";
  if (address.range() !== "unicast") return "private";
  // Only this part of IPv6 was ever given out; the rest is reserved though its range has no name.
  return address.kind() === "ipv6" && (address.toByteArray()[0] ?? 0) >> 5 !== 1 ? "private" : "public";
}

/** Gateways reach the IPv4 address that these IPv6 addresses carry inside, so that one counts. */
function embedded(address: ipaddr.IPv4 | ipaddr.IPv6): ipaddr.IPv4 | ipaddr.IPv6 {
  if (address.kind() === "ipv4") return address;
  const bytes = address.toByteArray();
  const four = (start: number) => ipaddr.fromByteArray(bytes.slice(start, start + 4));
  switch (address.range()) {
    case "rfc6052":
      return isWellKnownNat64(bytes) ? four(12) : address;
    case "rfc6145":
      return four(12);
    case "6to4": {
      // Relays for this are gone; what is left of it is a disguise.
      const inner = four(2);
      return METADATA.has(inner.toString()) ? inner : address;
    }
    default:
      return address;
  }
}

/** 64:ff9b::/96; its neighbour 64:ff9b:1::/48 is for local use. */
function isWellKnownNat64(bytes: readonly number[]): boolean {
  return bytes.slice(4, 12).every((byte) => byte === 0);
}

// The user's own list of sites that are never opened: `security.website_blocklist`, with files that several homes may share.

const REMEMBERED_MS = 30_000;

/** Why a site is not opened. */
interface PolicyBlock {
  readonly url: string;
  readonly host: string;
  readonly rule: string;
  /** `config`, or the file the rule stands in. */
  readonly source: string;
  readonly message: string;
}

interface WebsitePolicyOptions {
  /** `security.website_blocklist` as the user wrote it. */
  settings(): Readonly<Record<string, unknown>>;
  /** Relative names of shared files are below it. */
  readonly homeDir: string;
  /** What `~/` stands for. */
  readonly userHome: string;
  readonly clock: Clock;
  readonly log: Logger;
}

interface Rule {
  /** As it is compared: lower case, without `www.`. */
  readonly domain: string;
  readonly onlyBelow: boolean;
  readonly text: string;
  readonly source: string;
}

/** Rules are read anew at most every 30 seconds. A file that cannot be read costs a warning; the other rules stay. */
export class WebsitePolicy {
  readonly #options: WebsitePolicyOptions;
  #rules: Promise<readonly Rule[]> | null = null;
  #readAt = 0;

  constructor(options: WebsitePolicyOptions) {
    this.#options = options;
  }

  /** Null: the site may be opened as far as this list goes. */
  async check(address: string | URL): Promise<PolicyBlock | null> {
    const rules = await this.#current();
    if (rules.length === 0) return null;
    const host = hostOf(parseWebUrl(address));
    const rule = rules.find((candidate) => matches(host, candidate));
    if (!rule) return null;
    const message = `Blocked by website policy: '${host}' matched rule '${rule.text}' from ${rule.source}`;
    return { url: String(address), host, rule: rule.text, source: rule.source, message };
  }

  #current(): Promise<readonly Rule[]> {
    const now = this.#options.clock.now();
    if (this.#rules === null || now - this.#readAt >= REMEMBERED_MS || now < this.#readAt) {
      this.#rules = readRules(this.#options);
      this.#readAt = now;
    }
    return this.#rules;
  }
}

async function readRules({ settings, homeDir, userHome, log }: WebsitePolicyOptions): Promise<readonly Rule[]> {
  const { enabled, domains, shared_files: files } = settings();
  if (enabled !== true) return [];
  const parse = (line: string, source: string) => parseRule(line, source, log);
  const own = texts(domains, "domains", log).flatMap((line) => parse(line, "config"));
  const shared = await Promise.all(
    texts(files, "shared_files", log).map(async (name) => {
      const path = pathOf(name, { homeDir, userHome });
      try {
        return (await readFile(path, "utf8")).split(/\r?\n/).flatMap((line) => parse(line, path));
      } catch (error) {
        log.warn(`website policy: ${path} cannot be read; its rules are not in force`, error);
        return [];
      }
    }),
  );
  return [...own, ...shared.flat()];
}

/** At most one rule per line; comments and empty lines give none. */
function parseRule(line: string, source: string, log: Logger): readonly Rule[] {
  const text = line.replace(/(^|\s)#.*$/, "").trim();
  const bare = text
    .replace(/^[a-z][a-z0-9+.-]*:\/\//i, "")
    .replace(/[/?#][\s\S]*$/, "")
    .replace(/:\d+$/, "");
  const onlyBelow = bare.startsWith("*.");
  const name = bare
    .replace(/^\*\./, "")
    .replace(/^www\./i, "")
    .replace(/(?<!\.)\.+$/, "");
  const domain = domainToASCII(name) || name.toLowerCase();
  if (domain === "" || domain.includes("*")) {
    if (text !== "") log.warn(`website policy: "${text}" in ${source} is not a domain; it blocks nothing`);
    return [];
  }
  return [{ domain, onlyBelow, text: onlyBelow ? `*.${domain}` : domain, source }];
}

function matches(host: string, { domain, onlyBelow }: Rule): boolean {
  return host.endsWith(`.${domain}`) || (!onlyBelow && host === domain);
}

function texts(value: unknown, key: string, log: Logger): readonly string[] {
  if (value === undefined || value === null) return [];
  const list = Array.isArray(value) ? value : [value];
  const good = list.filter((item): item is string => typeof item === "string");
  if (good.length < list.length) log.warn(`security.website_blocklist.${key} in config.yaml must be a list of texts`);
  return good;
}

function pathOf(name: string, { homeDir, userHome }: { homeDir: string; userHome: string }): string {
  if (name.startsWith("~/")) return join(userHome, name.slice(2));
  return isAbsolute(name) ? name : join(homeDir, name);
}

// Secrets that would leave with an address or a query. A page can ask the agent to "look up" a key; this is where that ends.

const SECRET_NAME =
  /(?:^|[_.-])(?:api[_-]?key|key|token|secret|password|passwd|pwd|credentials?|auth|authorization|sig|signature|sid|session[_-]?id|jwt)$/i;
// Words of OAuth that every link of a sign-in page carries, and that are worth nothing alone.
const HARMLESS = /^(?:code|state)$/i;

/** A key of this home, or something that has the form of one, stands in the text, plain or percent-encoded. */
export function holdsSecret(text: string, redact: (text: string) => string): boolean {
  // Word by word: a word for itself is masked for what it is, not for the name in front of it.
  return text.split(/[\s/?&=#;,"'<>()]+/).some((word) => isMasked(word, redact) || isMasked(decode(word), redact));
}

/** The query has a part whose name says that its value is a secret, e.g. of a signed address. */
export function hasSecretQuery(url: URL): boolean {
  return [...url.searchParams].some(
    ([name, value]) =>
      value !== "" && !HARMLESS.test(name) && SECRET_NAME.test(name.replace(/([a-z])([A-Z])/g, "$1_$2")),
  );
}

/** Phone numbers are masked in what is shown, but looking one up is what people do. */
const isMasked = (word: string, redact: (text: string) => string) => word !== "" && redact(word) !== redactPhones(word);

function decode(word: string): string {
  try {
    return decodeURIComponent(word.replaceAll("+", " "));
  } catch {
    return word; // a stray percent sign
  }
}
