import { execFile } from "node:child_process";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { openLocalEnvironment } from "../src/sandbox/local.ts";
import { localFiles } from "../src/tools/files/access.ts";
import { fileToolsConformance } from "./support/file-tools-conformance.ts";
import { filesConformance } from "./support/files-conformance.ts";

const execute = promisify(execFile);

filesConformance("local", async () => {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "hermes-files-")));
  return {
    files: localFiles,
    directory,
    run: async (command) => (await execute("bash", ["-c", `${command}; true`], { cwd: directory })).stdout,
    release: () => rm(directory, { recursive: true, force: true }),
  };
});

fileToolsConformance("local", async () => {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "hermes-files-")));
  const { PATH = "" } = process.env;
  const environment = await openLocalEnvironment({
    cwd: directory,
    environment: { PATH, HOME: directory, TMPDIR: directory },
  });
  return {
    environment,
    sharesFiles: true,
    async release() {
      await environment.cleanup();
      await rm(directory, { recursive: true, force: true, maxRetries: 3 });
    },
  };
});
