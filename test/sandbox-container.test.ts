import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { openEnvironment, type TerminalConfig } from "../src/sandbox/open.ts";
import { missingPodman, podmanEngine } from "./support/engines/podman.ts";
import { withEngine } from "./support/engines/require.ts";
import { terminalConfig } from "./support/engines/terminal-config.ts";
import { environmentConformance } from "./support/environment-conformance.ts";
import { environmentFiles, filesConformance } from "./support/files-conformance.ts";

after(async () => (await podmanEngine().catch(() => null))?.release());

await withEngine("podman", missingPodman, () => {
  async function open(changes: Partial<TerminalConfig> = {}, environment: Record<string, string> = {}) {
    const engine = await podmanEngine();
    const home = await realpath(await mkdtemp(join(tmpdir(), "hermes-container-")));
    const config = terminalConfig({
      backend: "docker",
      docker_image: engine.image,
      docker_network: "none",
      container_memory: 512,
      docker_shm_size: "16m",
      container_disk: 0,
      ...changes,
    });
    const opened = await openEnvironment(config, {
      cwd: home,
      environment: { ...engine.env, TMPDIR: home, HERMES_DOCKER_BINARY: "podman", ...environment },
      userHome: home,
      hermesHome: { dir: home, root: home },
      unattended: true,
    });
    const release = async () => {
      await opened.cleanup();
      await rm(home, { recursive: true, force: true, maxRetries: 3 });
    };
    return { environment: opened, directory: "/root", home, engine, release };
  }

  environmentConformance("podman", open);
  filesConformance("podman", async () => environmentFiles(await open()));
});
