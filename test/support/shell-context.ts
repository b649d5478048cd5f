// A tool context whose commands run in a real local environment below a temporary directory.
import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { openLocalEnvironment } from "../../src/sandbox/local.ts";
import type { ToolContext } from "../../src/tools/toolset/context.ts";
import { createToolState } from "../../src/tools/toolset/session-tools.ts";
import { toolContext } from "./tool-context.ts";

/** Programs put into `bin` come first on PATH. */
export async function shellContext(t: TestContext, given: Partial<ToolContext> = {}) {
  const root = await realpath(await mkdtemp(join(tmpdir(), "hermes-shell-")));
  const project = join(root, "project");
  const bin = join(root, "bin");
  await Promise.all([mkdir(project), mkdir(bin)]);
  const PATH = `${bin}:${process.env.PATH}`;
  const environment = await openLocalEnvironment({ environment: { PATH, HOME: root, TMPDIR: root }, cwd: project });
  const state = createToolState();
  t.after(async () => {
    await state.dispose();
    await environment.cleanup();
    await rm(root, { recursive: true, force: true, maxRetries: 3 });
  });
  return { ctx: toolContext({ homeDir: root, environment, state, ...given }), root, project, bin, environment };
}
