// What the sandbox costs: opening it, and every command and file in it, against the same machine as it is.
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { defaultConfig } from "../src/home/config/schema.ts";
import type { Environment } from "../src/sandbox/environment.ts";
import { openEnvironment } from "../src/sandbox/open.ts";
import { registry } from "../src/tools/toolset/registry.ts";
import { createToolState } from "../src/tools/toolset/session-tools.ts";
import { cleared } from "../test/support/cleared.ts";
import { dispatch } from "../test/support/dispatch.ts";
import { toolContext } from "../test/support/tool-context.ts";
import "../src/tools/read-file.ts";
import { repeat, row } from "./measure.ts";

const ROUNDS = 15;
const { PATH = "" } = process.env;
const root = await realpath(await mkdtemp("/var/tmp/hermes-bench-sandbox-"));
const project = join(root, "user/project");
await mkdir(join(root, "user/.hermes"), { recursive: true });
await mkdir(join(project, ".git"), { recursive: true });
await writeFile(join(project, ".git/config"), "");
await writeFile(join(project, "a.txt"), "a line\n".repeat(100));

const open = (sandbox: "off" | "on", network: "on" | "off" = "on") => {
  const { terminal } = defaultConfig();
  return openEnvironment(
    { terminal: { ...terminal, sandbox, sandbox_network: network } },
    {
      cwd: project,
      environment: { PATH, HOME: join(root, "user"), TMPDIR: root },
      userHome: join(root, "user"),
      hermesHome: { dir: join(root, "user/.hermes"), root: join(root, "user/.hermes") },
      unattended: false,
    },
  );
};

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

const opening = (sandbox: "off" | "on") =>
  repeat(ROUNDS, async () => {
    let opened: Environment | null = null;
    const ms = await timed(async () => {
      opened = await open(sandbox);
      await opened.execute(cleared("true"), { timeoutMs: 30_000, signal: new AbortController().signal });
    });
    await (opened as Environment | null)?.cleanup();
    return ms;
  });

const inside = async (sandbox: "off" | "on", network: "on" | "off" = "on") => {
  const environment = await open(sandbox, network);
  const ctx = toolContext({ homeDir: join(root, "user/.hermes"), environment, state: createToolState() });
  const { signal } = ctx;
  await environment.execute(cleared("true"), { timeoutMs: 30_000, signal });
  const command = await repeat(ROUNDS, () =>
    timed(() => environment.execute(cleared("true"), { timeoutMs: 30_000, signal })),
  );
  let line = 0;
  const file = await repeat(ROUNDS, () =>
    timed(() => dispatch(registry, "read_file", { path: "a.txt", offset: ++line, limit: 1 }, ctx)),
  );
  await environment.cleanup();
  return { command, file };
};

try {
  await opening("off");
  const [plainOpen, boxOpen] = [await opening("off"), await opening("on")];
  row("open and run a first command", `${boxOpen.toFixed(0)} ms`, boxOpen / plainOpen, 6, "plain local");
  const [plain, box, cut] = [await inside("off"), await inside("on"), await inside("on", "off")];
  row("one more command", `${box.command.toFixed(0)} ms`, box.command / plain.command, 5, "plain local");
  row("one more command, network off", `${cut.command.toFixed(0)} ms`, cut.command / plain.command, 6, "plain local");
  row("read_file of one line", `${box.file.toFixed(1)} ms`, box.file / plain.command, 8, "a plain command");
} finally {
  await rm(root, { recursive: true, force: true });
}
