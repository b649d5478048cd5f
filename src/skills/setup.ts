// Getting a skill ready as it is loaded: missing secrets are asked for where somebody can type them unseen.
import type { FrontMatter } from "../kit/front-matter-plain.ts";
import { checkRequirements, type Readiness } from "./requirements.ts";
import type { SkillsPlace } from "./roots.ts";
import type { SkillRun } from "./run.ts";
import type { ViewPorts } from "./view.ts";

/** The skill loads in every case; the values never reach the model. */
export async function prepareSkill(
  fields: FrontMatter,
  place: SkillsPlace,
  run: SkillRun,
  ports: Pick<ViewPorts, "setEnv" | "passThrough">,
): Promise<{ readonly readiness: Readiness; readonly skipped: boolean }> {
  let readiness = await checkRequirements(fields, place);
  let skipped = false;
  if (readiness.missingVariables.length > 0 && run.interactive && run.chat === undefined && ports.setEnv) {
    for (const { name, prompt, help } of readiness.missingVariables) {
      const question = { kind: "secret", name, prompt: help === undefined ? prompt : `${prompt} (${help})` } as const;
      const { text } = await run.ask(question, run.signal);
      if (text === null || text.trim() === "") skipped = true;
      else await ports.setEnv(name, text.trim());
    }
    readiness = await checkRequirements(fields, place);
  }
  const set = readiness.variables.map(({ name }) => name).filter((name) => place.env(name));
  if (set.length > 0) ports.passThrough?.(set);
  return { readiness, skipped };
}
