// What the prompt's readers may use of this machine: its files behind the deny list, git and python, the skills.
import { readFile } from "node:fs/promises";
import { delimiter } from "node:path";
import { writeFileAtomic } from "../kit/files.ts";
import { makeDirectories } from "../kit/make-directories.ts";
import { visibleSkills } from "../skills/visible.ts";
import type { PromptPorts } from "./gather.ts";
import type { PromptPlace } from "./open.ts";
import { rememberedPythonProbe } from "./probes/python-memory.ts";
import { readingPorts } from "./reading-ports.ts";

export async function promptPorts(place: PromptPlace): Promise<PromptPorts> {
  const { home, clock, platform } = place.wish;
  const { environment, files, isDenied, run, scan, trusted } = await readingPorts(home);
  const { skills } = place;
  const probeFile = home.paths.at("cache", "python-probe.json");
  return {
    files,
    isDenied,
    run,
    scan,
    trusted,
    clock,
    python: rememberedPythonProbe(
      {
        run,
        files,
        clock,
        path: environment.PATH ?? "",
        delimiter: delimiter === ";" ? ";" : ":",
        safeDirectory: home.paths.dir,
      },
      {
        read: () => readFile(probeFile, "utf8"),
        async write(text) {
          await makeDirectories(home.paths.cacheDir, 0o700);
          await writeFileAtomic(probeFile, text);
        },
      },
    ),
    ...(place.externalMemory ? { externalMemory: place.externalMemory } : {}),
    ...(skills
      ? {
          async skills() {
            const loaded = { tools: new Set(place.toolNames), toolsets: new Set(place.toolsets) };
            return visibleSkills(skills.place, { platform, loaded });
          },
        }
      : {}),
  };
}
