import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { openEnvironment, type TerminalConfig } from "../src/sandbox/open.ts";
import { missingBubblewrap } from "./support/engines/bubblewrap.ts";
import { withEngine } from "./support/engines/require.ts";
import { terminalConfig } from "./support/engines/terminal-config.ts";

async function place(t: TestContext) {
  const root = await realpath(await mkdtemp(join(tmpdir(), "hermes-open-")));
  t.after(() => rm(root, { recursive: true, force: true }));
  return root;
}

async function open(
  t: TestContext,
  changes: Partial<TerminalConfig>,
  { unattended = false, environment = {} }: { unattended?: boolean; environment?: Record<string, string> } = {},
) {
  const root = await place(t);
  const { PATH = "" } = process.env;
  const opened = await openEnvironment(terminalConfig(changes), {
    cwd: root,
    environment: { PATH, HOME: root, TMPDIR: root, ...environment },
    userHome: root,
    hermesHome: { dir: join(root, ".hermes"), root: join(root, ".hermes") },
    unattended,
  });
  t.after(() => opened.cleanup());
  return opened;
}

/** A folder with one program that says something and fails. */
async function failing(t: TestContext, name: string, says: string): Promise<string> {
  const bin = join(await place(t), "bin");
  await mkdir(bin);
  await writeFile(join(bin, "message"), says);
  await writeFile(join(bin, name), `#!/bin/sh\ncat ${join(bin, "message")} >&2\nexit 1\n`);
  await chmod(join(bin, name), 0o755);
  return bin;
}

test("without further settings commands run on this machine", async (t) => {
  assert.equal((await open(t, {})).kind, "local");
});

test("auto without a working bwrap is local and says why", async (t) => {
  const environment = await open(t, { sandbox: "auto" }, { environment: { PATH: "/nowhere" } });
  assert.deepEqual([environment.kind, environment.noSandbox], ["local", "the program bwrap is not on PATH"]);
  const broken = `${await failing(t, "bwrap", "no permissions to create a new namespace")}:/usr/bin:/bin`;
  const second = await open(t, { sandbox: "auto" }, { environment: { PATH: broken } });
  assert.deepEqual(
    [second.kind, second.noSandbox],
    ["local", `bwrap cannot create one on this machine: no permissions to create a new namespace`],
  );
});

test("no sandbox is looked for where none is wanted", async (t) => {
  assert.equal((await open(t, {})).noSandbox, undefined);
});

await withEngine("bubblewrap", missingBubblewrap, () => {
  const wanted: readonly Partial<TerminalConfig>[] = [
    { sandbox: "auto" },
    { sandbox: "on" },
    { backend: "auto" },
    { backend: "bubblewrap" },
  ];
  for (const settings of wanted) {
    test(`${JSON.stringify(settings)} is a sandbox, with the network for who began the run`, async (t) => {
      const network = { sandbox_network: "on", sandbox_network_unattended: "off" } as const;
      const attended = await open(t, { ...settings, ...network });
      assert.equal(attended.kind, "bubblewrap");
      assert.equal(attended.isolated, false, "the project is really there, so approval applies");
      assert.equal(attended.confinement?.network, "on");
      const unattended = await open(t, { ...settings, ...network }, { unattended: true });
      assert.equal(unattended.confinement?.network, "off");
    });
  }
});

const missing: readonly (readonly [string, Partial<TerminalConfig>, Record<string, string>, RegExp])[] = [
  [
    "a sandbox that must be there, without bwrap",
    { sandbox: "on" },
    { PATH: "/nowhere" },
    /bwrap is not on PATH.*apt install bubblewrap.*terminal\.sandbox off/s,
  ],
  [
    "docker without docker and podman",
    { backend: "docker" },
    { PATH: "/nowhere" },
    /neither docker nor podman.*Install one/s,
  ],
  [
    "a docker binary that is not there",
    { backend: "docker" },
    { HERMES_DOCKER_BINARY: "/no/docker" },
    /HERMES_DOCKER_BINARY is \/no\/docker/,
  ],
  ["ssh without a host", { backend: "ssh" }, {}, /no host is set.*terminal\.ssh_host/s],
  ["ssh without ssh", { backend: "ssh", ssh_host: "h" }, { PATH: "/nowhere" }, /program ssh is not on PATH/],
  ["a backend of another version", { backend: "modal" }, {}, /does not support. Choose local, docker or ssh/],
  [
    "a credential outside the home",
    { backend: "docker", credential_files: ["../.ssh/id"] },
    { HERMES_DOCKER_BINARY: "/bin/true" },
    /not inside the Hermes home/,
  ],
];
for (const [what, changes, environment, message] of missing) {
  test(`${what} is an error that says what to do, never a silent local run`, async (t) => {
    await assert.rejects(open(t, changes, { environment }), (error: Error) => {
      assert.equal(error.name, "UserError");
      assert.match(error.message, message);
      return true;
    });
  });
}

const said: readonly (readonly [string, string, RegExp])[] = [
  [
    "no daemon",
    "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
    /docker daemon does not respond.*systemctl start docker/s,
  ],
  [
    "no right to it",
    "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock",
    /Add yourself to the docker group/,
  ],
  [
    "no image",
    "Unable to find image 'a/b:c' locally\ndocker: Error response from daemon: pull access denied for a/b",
    /The image a\/b:c is missing.*docker pull a\/b:c/s,
  ],
  [
    "no init program",
    "Error: container-init binary not found on the host: stat /usr/libexec/podman/catatonit",
    /apt install catatonit/,
  ],
  [
    "something else",
    "the moon is in the wrong phase",
    /could not start a container of a\/b:c: the moon is in the wrong phase/,
  ],
];
for (const [what, text, message] of said) {
  test(`docker that has ${what} is told in words that lead further`, async (t) => {
    const PATH = `${await failing(t, "docker", text)}:/usr/bin:/bin`;
    const opening = open(t, { backend: "docker", docker_image: "a/b:c" }, { environment: { PATH } });
    await assert.rejects(opening, (error: Error) => {
      assert.match(error.message, message);
      return true;
    });
  });
}
