// A real sandbox over a made-up user: a home with planted fake keys, a profile's home, a project.
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import {
  type BubblewrapOptions,
  bubblewrapProblem,
  openBubblewrapEnvironment,
} from "../../../src/sandbox/bubblewrap.ts";
import { usable } from "./usable.ts";

export async function missingBubblewrap(): Promise<string | null> {
  const { PATH = "" } = process.env;
  return (await bubblewrapProblem({ PATH }))?.reason ?? null;
}

/** `base` must not lie below /tmp for what a user really has: the sandbox has a /tmp of its own. */
export async function openSandbox(options: Partial<BubblewrapOptions> = {}, base = tmpdir()) {
  const root = await realpath(await mkdtemp(join(base, "hermes-bwrap-")));
  const userHome = join(root, "user");
  const project = join(userHome, "project");
  const hermes = join(userHome, ".hermes");
  await mkdir(project, { recursive: true });
  await mkdir(hermes, { recursive: true });
  const { PATH = "" } = process.env;
  const environment = await openBubblewrapEnvironment({
    cwd: project,
    userHome,
    hermesHome: { dir: hermes, root: hermes },
    network: "on",
    ...options,
    environment: { PATH, HOME: userHome, TMPDIR: root, ...options.environment },
  }).catch(async (error: unknown) => {
    await rm(root, { recursive: true, force: true });
    throw error;
  });
  const used = usable(environment, () => rm(root, { recursive: true, force: true, maxRetries: 3 }));
  return { ...used, environment, directory: project, root, userHome, hermes };
}

/** Writes files below a directory, with their parents. */
export async function plant(directory: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, name)), { recursive: true });
    await writeFile(join(directory, name), text);
  }
}
