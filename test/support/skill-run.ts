// The skill tools over a real home, called the way the model calls them.
import { openSkills } from "../../src/skills/open.ts";
import type { ToolContext } from "../../src/tools/toolset/context.ts";
import { registry } from "../../src/tools/toolset/registry.ts";
import { dispatch } from "./dispatch.ts";
import "../../src/tools/skill-manage.ts";
import "../../src/tools/skill-view.ts";
import "../../src/tools/skills-list.ts";
import type { SkillsHome } from "./skills-home.ts";
import { toolContext } from "./tool-context.ts";

// biome-ignore lint/suspicious/noExplicitAny: a tool's answer, as loose as the model sees it
export type Answer = any; // see above

export interface SkillTools {
  list(args?: Record<string, unknown>): Promise<Answer>;
  view(args: Record<string, unknown>): Promise<Answer>;
  manage(args: Record<string, unknown>): Promise<Answer>;
  readonly skills: ReturnType<typeof openSkills>;
  readonly context: ToolContext;
}

export function skillTools(place: SkillsHome, given: Partial<ToolContext> = {}): SkillTools {
  const skills = openSkills({
    home: {
      paths: place.paths,
      config: place.config,
      env: place.env,
      setEnv: async (name, value) => {
        place.variables[name] = value;
      },
      log: place.log as never, // a logger without files
    },
    clock: place.clock,
  });
  const context = toolContext({ homeDir: place.home.dir, skills, ...given });
  const call =
    (name: string) =>
    async (args: Record<string, unknown> = {}) =>
      JSON.parse((await dispatch(registry, name, args, context)) as string);
  return { list: call("skills_list"), view: call("skill_view"), manage: call("skill_manage"), skills, context };
}
