import { z } from "zod";
import { toolError, toolResult } from "./toolset/dispatch.ts";
import { register } from "./toolset/registry.ts";

const parameters = z.object({
  name: z.string().describe("name, or category/name"),
  file_path: z.string().optional().describe("a linked file, e.g. references/api.md"),
});

register({
  name: "skill_view",
  readOnly: true,
  toolset: "skills",
  emoji: "📚",
  description:
    "Load a skill: instructions proven for a kind of task, and the list of its linked files (references, templates, scripts, assets). " +
    "Follow what it says.",
  parameters,
  textOrigin: "local",
  async handler({ name, file_path }, ctx) {
    if (!ctx.skills) return toolError("Skills are not available in this run.");
    return toolResult(await ctx.skills.view({ name, filePath: file_path }, ctx));
  },
});
