// Search and pages by whatever a plugin brings. Its code is not ours: what it gives is checked, and what it throws is a reason.
import { z } from "zod";
import { UserError } from "../../kit/errors.ts";
import { WebError } from "../../safety/url-fetch.ts";
import { findProvider, providerNames } from "../extra-providers.ts";
import type { WebService } from "./service.ts";

const hits = z.array(z.object({ url: z.string(), title: z.string().nullish(), description: z.string().nullish() }));
const pages = z.array(
  z.union([
    z.object({ url: z.string(), title: z.string().nullish(), content: z.string(), finalUrl: z.string().optional() }),
    z.object({ url: z.string(), error: z.string() }),
  ]),
);

export const broughtNames = () => providerNames("web_search");

/** Null when no plugin brings one of this name. It is handed the query or the addresses, and `{limit, signal}` or `{signal}`. */
export async function findBrought(name: string, signal: AbortSignal): Promise<WebService | null> {
  if (!broughtNames().includes(name)) return null;
  const found = ((await findProvider("web_search", name)) ?? {}) as { search?: unknown; extract?: unknown }; // whatever the plugin handed over
  const { search, extract } = found;
  if (typeof search !== "function" && typeof extract !== "function")
    throw new UserError(`"${name}", which a plugin brings, has neither search() nor extract().`);
  const ask = async <Shape extends z.ZodType>(shape: Shape, call: () => unknown): Promise<z.infer<Shape>> => {
    let given: unknown;
    try {
      given = await call();
    } catch (error) {
      signal.throwIfAborted();
      throw new WebError(`"${name}", which a plugin brings, failed: ${error instanceof Error ? error.message : error}`);
    }
    const parsed = shape.safeParse(given);
    if (parsed.success) return parsed.data;
    throw new WebError(`"${name}", which a plugin brings, answered something that is not a result.`);
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
