import { UserError } from "../../kit/errors.ts";
import { WebError } from "../../safety/url-fetch.ts";
import { holdsSecret } from "../../safety/url-guard.ts";
import type { WebSearchArguments } from "../web-search.ts";
import { openWebAccess, type WebAccess, type WebRun } from "./access.ts";
import { decodeEntities } from "./plain-text.ts";
import type { OpenService, WebHit } from "./service.ts";
import { chooseServices } from "./services.ts";

const DESCRIPTION_CHARS = 500;

/** What the model reads. Never rejects for what a service did; only an interrupt ends it early. */
export async function searchWeb({ query, limit = 5 }: WebSearchArguments, run: WebRun): Promise<string> {
  const words = query.trim();
  if (words === "") return failure("The query is empty.");
  if (holdsSecret(words, run.redact)) return failure("The query holds a key or password. It was not sent to anybody.");
  try {
    const access = openWebAccess(run);
    const { services } = await chooseServices("search", run, access);
    const hits = await firstAnswer(services, words, clamp(limit), run);
    const web = (await openable(hits, access)).slice(0, clamp(limit));
    return JSON.stringify({ success: true, data: { web: web.map((hit, index) => ({ ...hit, position: index + 1 })) } });
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return failure(error.message);
  }
}

const clamp = (limit: number) => Math.min(100, Math.max(1, Math.trunc(limit)));

/** The services one after another until one answers. If none does, the error names them all. */
async function firstAnswer(
  services: readonly OpenService[],
  query: string,
  limit: number,
  { log }: WebRun,
): Promise<readonly WebHit[]> {
  const complaints: string[] = [];
  for (const { service, line } of services) {
    try {
      return ((await service.search?.(query, limit, line)) ?? []).flatMap(tidy);
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      log.warn(`web search with ${service.title} failed: ${error.message}`);
      complaints.push(error.message);
    }
  }
  throw new WebError(complaints.join(" "));
}

/** One line each, without markup. What is no web address is no result. */
function tidy({ title, url, description }: WebHit): readonly WebHit[] {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) return [];
  const short = plain(description);
  return [
    {
      title: plain(title) || url,
      url,
      description:
        short.length > DESCRIPTION_CHARS
          ? `${short.slice(0, DESCRIPTION_CHARS).replace(/[\uD800-\uDBFF]$/, "")}…`
          : short,
    },
  ];
}

function plain(text: string): string {
  const bare = text.replace(/<\/?[a-z][^>]{0,200}>/gi, "");
  return decodeEntities(bare).replace(/\s+/g, " ").trim();
}

/** Without the sites that the user closed. Names are not looked up: nothing is opened here. */
async function openable(hits: readonly WebHit[], access: WebAccess): Promise<readonly WebHit[]> {
  const closed = await Promise.all(hits.map(({ url }) => access.isClosed(url)));
  return hits.filter((_, index) => !closed[index]);
}

const failure = (error: string) => JSON.stringify({ success: false, error });
