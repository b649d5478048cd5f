import { z } from "zod";
import { register } from "./toolset/registry.ts";
import { withSkills } from "./toolset/skill-port.ts";

const parameters = z.object({
  name: z.string().describe("name, or category/name"),
  file_path: z.string().optional().describe("a linked file, e.g. references/api.md"),
});

register({
  name: "skill_view",
  toolset: "skills",
  emoji: "📚",
  description:
    "Load a skill: instructions proven for a kind of task, and the list of its linked files (references, templates, scripts, assets). " +
    "Follow what it says.",
  parameters,
  textOrigin: "local",
  handler: ({ name, file_path }, ctx) => withSkills(ctx, (skills) => skills.view({ name, filePath: file_path }, ctx)),
});
