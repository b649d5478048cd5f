// A prompt built the way a conversation does it, from a home with skills on disk. Run as a program it is the first build of a fresh process.
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { defaultConfig } from "../src/home/config/schema.ts";
import { homePaths } from "../src/home/paths.ts";
import { systemClock } from "../src/kit/clock.ts";
import { buildSystemPromptParts } from "../src/prompt/build.ts";
import { gatherPromptInputs } from "../src/prompt/gather.ts";
import { visibleSkills } from "../src/skills/visible.ts";
import { someSkills } from "../test/support/prompt-inputs.ts";
import { promptRequest } from "../test/support/prompt-request.ts";
import { recordingLog } from "../test/support/tool-context.ts";

export async function writePlace(root: string, skills: number): Promise<void> {
  const home = join(root, "home", ".hermes");
  await mkdir(join(root, "w"), { recursive: true });
  for (const category of someSkills(skills)) {
    for (const { name, description } of category.skills) {
      const folder = join(home, "skills", category.name, name);
      await mkdir(folder, { recursive: true });
      const head = `---\nname: ${name}\ndescription: "${description}"\nmetadata:\n  hermes:\n    tags: [one, two]\n---\n`;
      await writeFile(join(folder, "SKILL.md"), `${head}\n# ${name}\n\n${"Do this, then that.\n".repeat(100)}`);
    }
  }
  await writeFile(join(home, "SOUL.md"), "I am a helper of few words.\n".repeat(20));
  await writeFile(join(root, "w", "AGENTS.md"), "- Run the tests before you say that it works.\n".repeat(200));
}

export function promptOf(root: string): () => Promise<string> {
  const home = join(root, "home", ".hermes");
  const config = defaultConfig();
  const place = {
    paths: homePaths(home, home, "default"),
    config: () => config,
    env: () => undefined,
    clock: systemClock,
    log: recordingLog(),
  };
  const { request, ports } = promptRequest(root);
  const skills = () => visibleSkills(place, { platform: "cli", loaded: null });
  return async () => buildSystemPromptParts(await gatherPromptInputs(request, { ...ports, skills })).full;
}

/** The least anybody has to do who wants to know that no skill changed, and what the project says: look at every file, read the two texts. */
export async function lookAtFiles(root: string): Promise<void> {
  const skills = join(root, "home", ".hermes", "skills");
  const names = await readdir(skills, { recursive: true });
  await Promise.all(names.filter((name) => name.endsWith("SKILL.md")).map((name) => stat(join(skills, name))));
  await readFile(join(root, "w", "AGENTS.md"));
  await readFile(join(root, "home", ".hermes", "SOUL.md"));
}

/** Milliseconds of the main thread: what else the machine does is not ours. */
export async function ownTime(work: () => Promise<unknown>): Promise<number> {
  const start = process.threadCpuUsage();
  await work();
  const { user, system } = process.threadCpuUsage(start);
  return (user + system) / 1000;
}

if (import.meta.main) {
  const root = process.argv[2] ?? "";
  const build = promptOf(root);
  process.stdout.write(`${await ownTime(build)}\n`);
}
