import { z } from "zod";
import { register } from "./toolset/registry.ts";
import { withSkills } from "./toolset/skill-port.ts";

register({
  name: "skills_list",
  toolset: "skills",
  emoji: "📚",
  description:
    "List skills: name, full description, category. The skills in the system prompt are the same list, shortened; call this for a whole " +
    "description or for skills added since the conversation began.",
  parameters: z.object({ category: z.string().optional().describe("only this category") }),
  textOrigin: "local",
  deferred: true,
  handler: (request, ctx) => withSkills(ctx, (skills) => skills.list(request, ctx)),
});
