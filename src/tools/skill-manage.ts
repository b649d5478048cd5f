import { z } from "zod";
import { toolError, toolResult } from "./toolset/dispatch.ts";
import { register } from "./toolset/registry.ts";

const parameters = z.object({
  action: z.enum(["create", "patch", "edit", "delete", "write_file", "remove_file"]),
  name: z.string().describe("lower-case-name, at most 64 characters"),
  content: z.string().optional().describe("create, edit: the whole SKILL.md"),
  old_string: z.string().optional().describe("patch: unique unless replace_all"),
  new_string: z.string().optional().describe("patch: empty deletes"),
  replace_all: z.boolean().optional(),
  category: z.string().optional().describe("create: folder, e.g. devops"),
  file_path: z
    .string()
    .optional()
    .describe("below references/, templates/, scripts/ or assets/; patch default: SKILL.md"),
  file_content: z.string().optional().describe("write_file"),
  absorbed_into: z.string().optional().describe("delete: the skill that now covers this one"),
});

register({
  name: "skill_manage",
  toolset: "skills",
  emoji: "📝",
  description:
    "Create and maintain skills, your procedural memory: reusable ways of doing a kind of task.\n" +
    "Create when a complex task succeeded (5+ calls), errors were overcome, a user-corrected approach worked, a non-trivial workflow was " +
    "found, or the user asks you to remember a procedure. Update when instructions are stale or wrong, on OS-specific failures, or when steps " +
    "or pitfalls were missing in use: patch at once. patch is preferred; edit rewrites all of SKILL.md.\n" +
    "Good skills: trigger conditions, numbered steps with exact commands, a pitfalls section, verification steps. Front matter: name and " +
    "description, at most 60 characters, the trigger within the first 57.\n" +
    "Ask the user before you create or delete one, unless told to. Deleted skills are archived; a pinned one cannot be deleted but improved.",
  parameters,
  verbatim: ["old_string", "new_string", "file_content"],
  textOrigin: "local",
  async handler(change, ctx) {
    if (!ctx.skills) return toolError("Skills are not available in this run.");
    return toolResult(await ctx.skills.manage(change, ctx));
  },
});
