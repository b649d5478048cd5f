// Which service answers: the one the settings name, or those there are keys for.

import { z } from "zod";
import { messageOf, UserError } from "../../kit/errors.ts";
import { WebError } from "../../safety/url-fetch.ts";
import { findProvider, providerNames } from "../toolset/availability.ts";
import { openWebAccess, type WebAccess, type WebRun } from "./access.ts";
import { brave, ddgs, exa, firecrawl, parallel, searxng, tavily } from "./engines.ts";
import { type OpenService, openService, type WebService } from "./service.ts";

/** In the order in which they are taken when nothing is chosen. */
const SERVICES: readonly WebService[] = [firecrawl, parallel, tavily, exa, searxng, brave, ddgs];
const ALIASES: Readonly<Record<string, string>> = { "brave-free": "brave", duckduckgo: "ddgs", searx: "searxng" };
/** Pages are fetched from here, without a service. */
const DIRECT = new Set(["local", "direct"]);

type Ability = "search" | "extract";

export interface ServiceChoice {
  /** Tried in this order. Empty: no service reads pages, we do. */
  readonly services: readonly OpenService[];
  /** The user named the service: nobody else gets the question. */
  readonly named: boolean;
}

/** Rejects with `UserError` when the settings name a service that cannot be used. */
export async function chooseServices(
  ability: Ability,
  run: WebRun,
  access: WebAccess = openWebAccess(run),
): Promise<ServiceChoice> {
  const { web } = run.config;
  const special = ability === "search" ? web.search_backend : web.extract_backend;
  const name = canonical(special || web.backend);
  const settingsOf = (service: WebService) => ({ baseUrl: baseUrlOf(service, run), key: keyOf(service, run) });
  const open = (service: WebService) => openService(service, access, settingsOf(service));
  if (name === "") return { services: automatic(ability, run).map(open), named: false };
  if (ability === "extract" && DIRECT.has(name)) return { services: [], named: true };
  const key = special ? `web.${ability}_backend` : "web.backend";
  const own = SERVICES.find((candidate) => candidate.name === name);
  const service = own ?? (await findInPlugins((special || web.backend).trim(), run.signal));
  if (!service) throw new UserError(`${key} is "${name}", which is not a service. Use ${names(ability)}.`);
  if (!service[ability]) {
    // One service for everything, and it only searches: pages are read from here.
    if (!special) return { services: [], named: true };
    throw new UserError(`${key} is "${name}", which cannot do that. Use ${names(ability)}.`);
  }
  if (own && !isSetUp(own, run)) throw new UserError(`${key} is "${name}", but ${missing(service)} is not set.`);
  return { services: [open(service)], named: true };
}

function automatic(ability: Ability, run: WebRun): readonly WebService[] {
  const ready = SERVICES.filter((service) => service[ability] && isSetUp(service, run));
  // Who runs a search engine of their own does not want their questions elsewhere because it is down.
  return ready.includes(searxng) ? ready.filter((service) => service !== ddgs) : ready;
}

function isSetUp(service: WebService, run: WebRun): boolean {
  if (service.keyName === undefined) return (baseUrlOf(service, run) || service.baseUrl) !== "";
  return keyOf(service, run) !== "" || (service === firecrawl && baseUrlOf(service, run) !== "");
}

const keyOf = ({ keyName }: WebService, run: WebRun) =>
  keyName === undefined ? "" : (run.env?.(keyName) ?? "").trim();

function baseUrlOf({ name }: WebService, { config }: WebRun): string {
  const settings: unknown = config.web[name];
  const { base_url: url } = (settings ?? {}) as { base_url?: unknown }; // every service has a section
  return typeof url === "string" ? url.trim() : "";
}

function missing({ name, keyName }: WebService): string {
  return keyName ?? `web.${name}.base_url`;
}

function canonical(name: string): string {
  const lower = name.trim().toLowerCase();
  return ALIASES[lower] ?? lower;
}

function names(ability: Ability): string {
  const able = SERVICES.filter((service) => service[ability]).map(({ name }) => name);
  return [...able, ...pluginNames(), ...(ability === "extract" ? ["local"] : [])].join(", ");
}

// Search and pages by services that plugins provide. Their code is not ours: what it returns is checked, and what it throws is a reason.

const hits = z.array(z.object({ url: z.string(), title: z.string().nullish(), description: z.string().nullish() }));
const pages = z.array(
  z.union([
    z.object({ url: z.string(), title: z.string().nullish(), content: z.string(), finalUrl: z.string().optional() }),
    z.object({ url: z.string(), error: z.string() }),
  ]),
);

const pluginNames = () => providerNames("web_search");

/** Null when no plugin provides one of this name. It gets the query or the addresses, and `{limit, signal}` or `{signal}`. */
async function findInPlugins(name: string, signal: AbortSignal): Promise<WebService | null> {
  if (!pluginNames().includes(name)) return null;
  const found = ((await findProvider("web_search", name)) ?? {}) as { search?: unknown; extract?: unknown }; // whatever the plugin handed over
  const { search, extract } = found;
  if (typeof search !== "function" && typeof extract !== "function")
    throw new UserError(`"${name}", which a plugin provides, has neither search() nor extract().`);
  const ask = async <Shape extends z.ZodType>(shape: Shape, call: () => unknown): Promise<z.infer<Shape>> => {
    let given: unknown;
    try {
      given = await call();
    } catch (error) {
      signal.throwIfAborted();
      throw new WebError(`"${name}", which a plugin provides, failed: ${messageOf(error)}`);
    }
    const parsed = shape.safeParse(given);
    if (parsed.success) return parsed.data;
    throw new WebError(`"${name}", which a plugin provides, answered something that is not a result.`);
  };
  return {
    name,
    title: name,
    baseUrl: "",
    ...(typeof search === "function"
      ? {
          async search(query, limit) {
            const list = await ask(hits, () => search.call(found, query, { limit, signal }));
            return list.map(({ url, title, description }) => ({
              url,
              title: title ?? "",
              description: description ?? "",
            }));
          },
        }
      : {}),
    ...(typeof extract === "function"
      ? {
          async extract(urls) {
            const list = await ask(pages, () => extract.call(found, urls, { signal }));
            return list.map((page) => ("error" in page ? page : { ...page, title: page.title ?? "" }));
          },
        }
      : {}),
  } satisfies WebService;
}
