import { z } from "zod";
import type { ServiceLine, WebService } from "../service.ts";

const found = z.object({
  results: z.array(
    z.object({
      url: z.string(),
      title: z.string().nullish(),
      text: z.string().nullish(),
      highlights: z.array(z.string()).nullish(),
    }),
  ),
});
const pages = found.extend({
  statuses: z
    .array(z.object({ id: z.string(), status: z.string(), error: z.object({ tag: z.string().nullish() }).nullish() }))
    .nullish(),
});

export const exa: WebService = {
  name: "exa",
  title: "Exa",
  keyName: "EXA_API_KEY",
  baseUrl: "https://api.exa.ai",
  async search(query, limit, line) {
    const { results } = await line.json("/search", found, {
      headers: authorized(line),
      body: { query, numResults: limit, contents: { highlights: true } },
    });
    return results.map(({ url, title, highlights, text }) => ({
      url,
      title: title ?? "",
      description: highlights?.join(" … ") || text || "",
    }));
  },
  async extract(urls, line) {
    const { results, statuses } = await line.json("/contents", pages, {
      headers: authorized(line),
      body: { urls, text: true },
    });
    const failed = (statuses ?? []).filter(({ status }) => status === "error");
    return [
      ...results.map(({ url, title, text }) => ({ url, title: title ?? "", content: text ?? "" })),
      ...failed.map(({ id, error }) => ({
        url: id,
        error: `Exa could not read the page (${error?.tag ?? "no reason given"})`,
      })),
    ];
  },
};

const authorized = ({ key }: ServiceLine) => ({ "x-api-key": key });
