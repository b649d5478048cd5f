import { UserError } from "../../kit/errors.ts";
import { WebError } from "../../safety/url-fetch.ts";
import { UrlRefusedError } from "../../safety/url-guard.ts";
import { hasSecretQuery, holdsSecret } from "../../safety/url-guard-secrets.ts";
import type { ToolContext } from "../toolset/context.ts";
import { toolError } from "../toolset/dispatch.ts";
import { sizeLimits } from "../toolset/results.ts";
import type { WebExtractArguments } from "../web-extract.ts";
import { openWebAccess, type WebAccess, type WebRun } from "./access.ts";
import { fitPage } from "./long-page.ts";
import { type Page, readPage } from "./page.ts";
import type { ServicePage } from "./service.ts";
import { chooseServices, type ServiceChoice } from "./services.ts";

const CHARS = { usual: 15_000, least: 2_000 };
/** Of what one result may hold: the rest is for quotes, names and marks. */
const CONTENT_SHARE = 0.8;

interface Extracted {
  readonly url: string;
  readonly title: string;
  readonly content: string;
  readonly error: string | null;
}

/** What the model reads: one entry per address, in their order. What happens to one does not touch the others. */
export async function extractPages({ urls, char_limit }: WebExtractArguments, ctx: ToolContext): Promise<string> {
  const limit = pageLimit(char_limit, urls.length, ctx.contextLength);
  try {
    const fit = async (page: Extracted, index: number): Promise<Extracted> =>
      page.error === null ? { ...page, content: await fitPage({ ...page, number: index + 1 }, limit, ctx) } : page;
    const results = await Promise.all(
      (await startReading(urls, ctx)).map(async (page, index) => fit(await page, index)),
    );
    return JSON.stringify({ results });
  } catch (error) {
    if (error instanceof UserError) return toolError(error.message);
    throw error;
  }
}

/** One page of the web in full. Rejects with a sentence for whoever asked. */
export async function readWebPage(url: string, run: WebRun): Promise<Page> {
  const [reading] = await startReading([url], run);
  const page = await reading;
  if (!page || page.error !== null) throw new WebError(page?.error ?? `${url} was not read.`);
  return page;
}

/** The pages on their way, in the order of the addresses. Rejects with `UserError` when the settings name a service that cannot be used. */
async function startReading(urls: readonly string[], run: WebRun): Promise<readonly Promise<Extracted>[]> {
  const access = openWebAccess(run);
  const choice = await chooseServices("extract", run, access);
  const allowed = await Promise.all(urls.map((url) => examine(url, access, run)));
  const fromService = askServices(
    allowed.flatMap((at) => (at.type === "anyone" ? [at.url] : [])),
    choice,
    run,
  );
  return allowed.map(async (at): Promise<Extracted> => {
    try {
      const { title, content } = await pageAt(at, { access, choice, fromService });
      return { url: at.url, title, content, error: null };
    } catch (error) {
      if (!isExpected(error)) throw error;
      return { url: at.url, title: "", content: "", error: error.message };
    }
  });
}

/** An address that was looked at: who may be asked for it. */
type Examined = { readonly url: string } & (
  | { readonly type: "anyone" }
  /** It carries a secret of its site, or lies in the local network: nobody else gets to see it. */
  | { readonly type: "only_us" }
  | { readonly type: "nobody"; readonly error: Error }
);

async function examine(url: string, access: WebAccess, { redact }: Pick<WebRun, "redact">): Promise<Examined> {
  if (holdsSecret(url, redact))
    return {
      url: redact(url),
      type: "nobody",
      error: new WebError("The address holds a key or password. It was not opened."),
    };
  try {
    const checked = await access.check(url);
    return { url, type: checked.isPrivate || hasSecretQuery(checked.url) ? "only_us" : "anyone" };
  } catch (error) {
    if (!isExpected(error)) throw error;
    return { url, type: "nobody", error };
  }
}

interface Sources {
  readonly access: WebAccess;
  readonly choice: ServiceChoice;
  readonly fromService: Promise<ReadonlyMap<string, ServicePage>>;
}

async function pageAt(at: Examined, { access, choice, fromService }: Sources): Promise<Page> {
  if (at.type === "nobody") throw at.error;
  const page = at.type === "anyone" && choice.services.length > 0 ? (await fromService).get(at.url) : undefined;
  if (page && "content" in page && page.content.trim() !== "") {
    // A service follows redirects on its own; the user's list holds for where it came out.
    if (page.finalUrl) await access.check(page.finalUrl);
    return page;
  }
  if (choice.named && page) throw new WebError("error" in page ? page.error : `${at.url} has no text.`);
  return readPage(at.url, access);
}

/** The pages of the first service that answers. Whoever is missing is read from here, unless the user chose the service. */
async function askServices(
  urls: readonly string[],
  { services, named }: ServiceChoice,
  { log }: Pick<WebRun, "log">,
): Promise<ReadonlyMap<string, ServicePage>> {
  if (urls.length === 0) return new Map();
  for (const { service, line } of services) {
    try {
      const pages = (await service.extract?.(urls, line)) ?? [];
      const missing = named ? urls.map((url) => ({ url, error: `${service.title} says nothing about the page.` })) : [];
      return new Map([...missing, ...pages].map((page) => [askedFor(page.url, urls), page]));
    } catch (error) {
      if (!isExpected(error)) throw error;
      log.warn(`web pages with ${service.title} failed: ${error.message}`);
      if (named) return new Map(urls.map((url) => [url, { url, error: error.message }]));
    }
  }
  return new Map();
}

/** Services write addresses their own way: `http://a.b` comes back as `http://a.b/`. */
function askedFor(url: string, urls: readonly string[]): string {
  const same = (text: string) => (URL.canParse(text) ? new URL(text).href : text);
  return urls.find((asked) => asked === url || same(asked) === same(url)) ?? url;
}

function pageLimit(wish: number | undefined, pages: number, contextLength: number): number {
  const room = Math.floor((sizeLimits(contextLength).perResult * CONTENT_SHARE) / pages);
  return Math.max(CHARS.least, Math.min(wish ?? CHARS.usual, room));
}

function isExpected(error: unknown): error is Error {
  return error instanceof WebError || error instanceof UrlRefusedError;
}
