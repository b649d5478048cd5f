// A user's world in a temporary folder: an operating-system home, a Hermes home below it, a project folder.
import { copyFile, mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface TempHome extends AsyncDisposable {
  readonly osHome: string;
  /** HERMES_HOME. */
  readonly dir: string;
  /** Where commands are typed. */
  readonly project: string;
  at(...parts: string[]): string;
  write(name: string, text: string): Promise<void>;
}

export async function tempHome(files: Readonly<Record<string, string>> = {}): Promise<TempHome> {
  const osHome = await realpath(await mkdtemp(join(tmpdir(), "hermes-test-")));
  const dir = join(osHome, ".hermes");
  const project = join(osHome, "project");
  await mkdir(dir, { mode: 0o700 });
  await mkdir(project);
  const home: TempHome = {
    osHome,
    dir,
    project,
    at: (...parts) => join(dir, ...parts),
    async write(name, text) {
      await mkdir(join(dir, name, ".."), { recursive: true });
      await writeFile(join(dir, name), text);
    },
    [Symbol.asyncDispose]: () => rm(osHome, { recursive: true, force: true, maxRetries: 3 }),
  };
  if ("config.yaml" in files) await seedProbe(dir);
  for (const [name, text] of Object.entries({ ...decided(project), ...files })) await home.write(name, text);
  return home;
}

/** A home in which the program was started once, made once for a run of all tests. */
const startedHome = process.env.HERMES_TEST_STARTED;

/** What this machine's Python can do costs three starts of Python to find out; it is looked for anew where PATH is another one. */
export async function seedProbe(dir: string): Promise<void> {
  if (!startedHome) return;
  const probe = join("cache", "python-probe.json");
  await mkdir(join(dir, "cache"), { recursive: true, mode: 0o700 });
  await copyFile(join(startedHome, probe), join(dir, probe)).catch(() => undefined); // this machine has none, or it was asked too late
}

/** Tests of the question about a new folder write this file themselves, or remove it. */
const decided = (project: string) => ({
  "trusted_folders.json": JSON.stringify({ [project]: { at: "2026-01-01T00:00:00.000Z", by: "test" } }),
});

/** The config that points a home at the fake model server. */
export function modelConfig(
  server: { url: string; origin: string },
  mode: "chat_completions" | "codex_responses" | "anthropic_messages" = "chat_completions",
  contextLength = 128_000,
): string {
  const baseUrl = mode === "anthropic_messages" ? server.origin : server.url;
  return `model:\n  default: fake-model\n  provider: custom\n  base_url: ${baseUrl}\n  api_key: test-key-1234567890\n  api_mode: ${mode}\n  context_length: ${contextLength}\n`;
}
