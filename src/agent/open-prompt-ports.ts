// What the prompt's readers may use of this machine: its files behind the deny list, git and python, the skills.
import { mkdir, readFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { delimiter } from "node:path";
import { readContextTrust } from "../home/context-trust.ts";
import { writeFileAtomic } from "../kit/atomic-file.ts";
import { createDenyList } from "../prompt/files/deny-list.ts";
import type { PromptPorts } from "../prompt/gather.ts";
import { hostFiles } from "../prompt/ports/file-access.ts";
import { programRunner } from "../prompt/ports/run-program.ts";
import { rememberedPythonProbe } from "../prompt/probes/python-memory.ts";
import { createFileGuard } from "../safety/file-guard.ts";
import { scanForThreats } from "../safety/threats/scan.ts";
import { childEnvironment } from "../sandbox/child-env.ts";
import { visibleSkills } from "../skills/visible.ts";
import type { PromptPlace } from "./open-prompt.ts";

export async function promptPorts(place: PromptPlace): Promise<PromptPorts> {
  const { home, clock, platform } = place.wish;
  const environment = childEnvironment(home.environment());
  const userHome = environment.HOME ?? userInfo().homedir;
  const guard = await createFileGuard({ userHome, profileHome: home.paths.dir, rootHome: home.paths.root });
  const { isDenied } = await createDenyList(guard, userHome);
  const run = programRunner(environment);
  const { skills } = place;
  const trusted = new Set((await readContextTrust(home.paths)).map(({ sha256 }) => sha256));
  const probeFile = home.paths.at("cache", "python-probe.json");
  return {
    files: hostFiles,
    isDenied,
    run,
    scan: (text) => scanForThreats(text, "context"),
    trusted,
    clock,
    python: rememberedPythonProbe(
      {
        run,
        files: hostFiles,
        clock,
        path: environment.PATH ?? "",
        delimiter: delimiter === ";" ? ";" : ":",
        safeDirectory: home.paths.dir,
      },
      {
        read: () => readFile(probeFile, "utf8"),
        async write(text) {
          await mkdir(home.paths.cacheDir, { recursive: true, mode: 0o700 });
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
