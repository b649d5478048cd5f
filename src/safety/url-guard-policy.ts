// The user's own list of sites that are never opened: `security.website_blocklist`, with files that several homes may share.
import { readFile } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { domainToASCII } from "node:url";
import type { Logger } from "../home/log.ts";
import type { Clock } from "../kit/clock.ts";
import { hostOf, parseWebUrl } from "./url-guard.ts";

const REMEMBERED_MS = 30_000;

/** Why a site is not opened. */
export interface PolicyBlock {
  readonly url: string;
  readonly host: string;
  readonly rule: string;
  /** `config`, or the file the rule stands in. */
  readonly source: string;
  readonly message: string;
}

export interface WebsitePolicyOptions {
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
  const own = texts(domains, "domains", log).flatMap((line) => parseRule(line, "config"));
  const shared = await Promise.all(
    texts(files, "shared_files", log).map(async (name) => {
      const path = placeOf(name, { homeDir, userHome });
      try {
        return (await readFile(path, "utf8")).split(/\r?\n/).flatMap((line) => parseRule(line, path));
      } catch (error) {
        log.warn(`website policy: ${path} cannot be read; its rules are not in force`, error);
        return [];
      }
    }),
  );
  return [...own, ...shared.flat()];
}

/** At most one rule per line; comments and empty lines give none. */
function parseRule(line: string, source: string): readonly Rule[] {
  const text = line.replace(/(^|\s)#.*$/, "").trim();
  const bare = text
    .replace(/^[a-z][a-z0-9+.-]*:\/\//i, "")
    .replace(/[/?#].*$/, "")
    .replace(/:\d+$/, "");
  const onlyBelow = bare.startsWith("*.");
  const name = bare
    .replace(/^\*\./, "")
    .replace(/^www\./i, "")
    .replace(/\.+$/, "");
  const domain = domainToASCII(name) || name.toLowerCase();
  if (domain === "" || domain.includes("*")) return [];
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

function placeOf(name: string, { homeDir, userHome }: { homeDir: string; userHome: string }): string {
  if (name.startsWith("~/")) return join(userHome, name.slice(2));
  return isAbsolute(name) ? name : join(homeDir, name);
}
