import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { openSshEnvironment } from "../src/sandbox/ssh.ts";
import { withEngine } from "./support/engines/require.ts";
import { missingSshd, type SshServer, sshServer } from "./support/engines/sshd.ts";
import { terminalConfig } from "./support/engines/terminal-config.ts";
import { environmentConformance } from "./support/environment-conformance.ts";
import { environmentFiles, filesConformance } from "./support/files-conformance.ts";

await withEngine("an ssh server", missingSshd, () => {
  let starting: Promise<SshServer> | null = null;
  const serving = () => {
    starting ??= sshServer();
    return starting;
  };
  after(async () => (await starting)?.release());

  async function open() {
    const server = await serving();
    const directory = await realpath(await mkdtemp(join(tmpdir(), "hermes-ssh-")));
    const { PATH = "" } = process.env;
    const { terminal } = terminalConfig({
      backend: "ssh",
      ssh_host: "127.0.0.1",
      ssh_port: server.port,
      ssh_user: server.user,
      ssh_key: server.key,
      cwd: directory,
    });
    const environment = await openSshEnvironment(terminal, {
      cwd: directory,
      environment: { PATH, TMPDIR: server.root },
      userHome: server.root,
      hermesHome: { dir: server.root, root: server.root },
      unattended: true,
      sshArguments: server.sshArguments,
    });
    const release = async () => {
      await environment.cleanup();
      await rm(directory, { recursive: true, force: true });
    };
    return { environment, directory, release };
  }

  environmentConformance("ssh", open);
  filesConformance("ssh", async () => environmentFiles(await open()));
});
