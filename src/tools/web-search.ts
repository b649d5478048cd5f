// Search on the web. The services and their choice live in web/, loaded with the first call.
import { z } from "zod";
import { register } from "./toolset/registry.ts";

const parameters = z.object({
  query: z.string(),
  limit: z.int().optional().describe("1-100, default 5"),
});
export type WebSearchArguments = z.infer<typeof parameters>;

register({
  name: "web_search",
  readOnly: true,
  toolset: "web",
  emoji: "🔍",
  description: "Search the web: title, url and description of each hit.",
  parameters,
  requiresEnv: ["FIRECRAWL_API_KEY", "PARALLEL_API_KEY", "TAVILY_API_KEY", "EXA_API_KEY", "BRAVE_SEARCH_API_KEY"],
  textOrigin: "web",
  timeoutMs: () => 90_000,
  onInvalid: (problem) => JSON.stringify({ success: false, error: problem }),
  handler: async (args, ctx) => (await import("./web/search.ts")).searchWeb(args, ctx),
});
