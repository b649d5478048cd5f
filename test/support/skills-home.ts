// A home with skills in it, for tests of the skills room.
import { after } from "node:test";
import { configSchema } from "../../src/home/config/schema.ts";
import { homePaths } from "../../src/home/paths.ts";
import { systemClock } from "../../src/kit/clock.ts";
import type { SkillsContext } from "../../src/skills/roots.ts";
import { type TempHome, tempHome } from "./temp-home.ts";
import { type LogLine, recordingLog } from "./tool-context.ts";

export interface SkillsHome extends SkillsContext {
  readonly home: TempHome;
  readonly logged: readonly LogLine[];
  /** config.yaml's `skills` section. */
  settings: Record<string, unknown>;
  readonly variables: Record<string, string>;
  at(...parts: string[]): string;
  write(name: string, text: string): Promise<void>;
}

const homes: TempHome[] = [];
after(() => Promise.all(homes.map((home) => home[Symbol.asyncDispose]())));

/** Removed when the test file is through. `files` are relative to the home; a value without a line break is the description of a small skill. */
export async function skillsHome(files: Readonly<Record<string, string>> = {}): Promise<SkillsHome> {
  const home = await tempHome();
  homes.push(home);
  const logged: LogLine[] = [];
  const place: SkillsHome = {
    home,
    logged,
    settings: {},
    variables: { HOME: home.osHome },
    paths: homePaths(home.dir, home.dir, "default"),
    config: () => configSchema.parse({ skills: place.settings }),
    env: (name) => place.variables[name],
    clock: systemClock,
    log: recordingLog(logged),
    at: (...parts) => home.at(...parts),
    async write(name, text) {
      const skill = /([^/]+)\/SKILL\.md$/.exec(name)?.[1];
      await home.write(name, skill !== undefined && !text.includes("\n") ? skillText(skill, text) : text);
    },
  };
  for (const [name, text] of Object.entries(files)) await place.write(name, text);
  return place;
}

export function skillText(name: string, description: string, extra = "", body = `# ${name}\n\nDo it.\n`): string {
  return `---\nname: ${name}\ndescription: ${JSON.stringify(description)}\n${extra}---\n\n${body}`;
}
