import { z } from "zod";
import { toolError, toolResult } from "./toolset/dispatch.ts";
import { register } from "./toolset/registry.ts";

register({
  name: "skills_list",
  readOnly: true,
  toolset: "skills",
  emoji: "📚",
  description:
    "List skills: name, full description, category. The skills in the system prompt are the same list, shortened; call this for a whole " +
    "description or for skills added since the conversation began.",
  parameters: z.object({ category: z.string().optional().describe("only this category") }),
  textOrigin: "local",
  deferred: true,
  async handler(request, ctx) {
    if (!ctx.skills) return toolError("Skills are not available in this run.");
    return toolResult(await ctx.skills.list(request, ctx));
  },
});
