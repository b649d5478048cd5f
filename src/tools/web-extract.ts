// The text of web pages. How a page is fetched and read lives in web/, loaded with the first call.
import { z } from "zod";
import { register } from "./toolset/registry.ts";

const parameters = z.object({
  urls: z
    .array(z.string())
    .max(5)
    .refine((urls) => urls.length > 0, "give at least one"),
  char_limit: z.int().optional().describe("Per page, default 15000"),
});
export type WebExtractArguments = z.infer<typeof parameters>;

register({
  name: "web_extract",
  readOnly: true,
  toolset: "web",
  emoji: "📄",
  description: "Read web pages as Markdown; long ones are cut, with the path of the full text.",
  parameters,
  textOrigin: "web",
  timeoutMs: (_args, config) => (config.web.summarize ? config.auxiliary.web_extract.timeout + 120 : 120) * 1000,
  handler: async (args, ctx) => (await import("./web/extract.ts")).extractPages(args, ctx),
});
