// A temporary directory with a tool context that stands in it, for tests of the file tools.
import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { homePaths } from "../../src/home/paths.ts";
import { createRedactor } from "../../src/safety/redact.ts";
import type { ToolContext } from "../../src/tools/toolset/context.ts";
import { toolContext } from "./tool-context.ts";

export interface FileRig {
  /** The working directory. */
  readonly dir: string;
  readonly userHome: string;
  readonly ctx: ToolContext;
  at(...parts: string[]): string;
  /** Another agent in the same directory. */
  context(given?: Partial<ToolContext>): ToolContext;
  close(): Promise<void>;
}

export async function fileRig(given: Partial<ToolContext> = {}): Promise<FileRig> {
  const base = await realpath(await mkdtemp(join(tmpdir(), "hermes-files-")));
  const dir = join(base, "project");
  const userHome = join(base, "user");
  const home = join(userHome, ".hermes");
  await mkdir(dir, { recursive: true });
  await mkdir(home, { recursive: true });
  const redactor = createRedactor({ enabled: true, knownSecrets: () => [] });
  const context = (own: Partial<ToolContext> = {}) => {
    const plain = toolContext();
    return toolContext({
      home: homePaths(home, home, "default"),
      environment: { ...plain.environment, cwd: dir, home: userHome },
      redact: redactor,
      redactFile: redactor.forFile,
      ...given,
      ...own,
    });
  };
  return {
    dir,
    userHome,
    ctx: context(),
    at: (...parts) => join(dir, ...parts),
    context,
    close: () => rm(base, { recursive: true, force: true }),
  };
}

/** A tool's result, read as the JSON value it is: tests look at fields of any shape. */
export function parsed(output: unknown): ReturnType<typeof JSON.parse> {
  return JSON.parse(String(output));
}
