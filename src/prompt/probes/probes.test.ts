import assert from "node:assert/strict";
import { chmod } from "node:fs/promises";
import { delimiter } from "node:path";
import { type TestContext, test } from "node:test";
import { type TempTree, type TreeEntry, tempTree } from "../../../test/support/temp-tree.ts";
import { type Clock, systemClock } from "../../kit/clock.ts";
import { BACKEND_PROBE } from "../../safety/decision.ts";
import { localFiles } from "../../tools/files/access.ts";
import { programRunner, type RunProgram } from "../ports.ts";
import { BackendProbes, type HostFacts, parseBackendFacts, readHost } from "./host.ts";
import { describePython, type PythonFacts, startPythonProbe } from "./python.ts";

const healthy: PythonFacts = {
  python3: "3.11.7",
  python: "3.11.7",
  pipModule: true,
  pip: "3.11",
  externallyManaged: false,
  uv: false,
};

const lines: readonly (readonly [name: string, change: Partial<PythonFacts>, line: string | null])[] = [
  ["a healthy machine", {}, null],
  ["a healthy machine with uv and no plain python", { uv: true, python: null }, null],
  [
    "PEP 668",
    { externallyManaged: true },
    "Python toolchain: python3=3.11.7, PEP 668=yes (use a venv, uv or pipx, or pip --break-system-packages).",
  ],
  ["no pip module", { pipModule: false }, "Python toolchain: python3=3.11.7 (no pip module), pip→python3.11."],
  ["pip of another Python", { pip: "3.9" }, "Python toolchain: python3=3.11.7, pip→python3.9 (mismatch)."],
  ["3.1 is not 3.11", { pip: "3.1" }, "Python toolchain: python3=3.11.7, pip→python3.1 (mismatch)."],
  ["no pip at all", { pip: null, pipModule: false }, "Python toolchain: python3=3.11.7 (no pip module), pip=missing."],
  [
    "no Python",
    { python3: null, python: null, pipModule: false, pip: null, uv: true },
    "Python toolchain: python3=missing, pip=missing, uv=installed.",
  ],
  [
    "an old plain python",
    { python: "2.7.18", externallyManaged: true, uv: true },
    "Python toolchain: python3=3.11.7, python=2.7.18, PEP 668=yes (use a venv, uv or pipx, or pip --break-system-packages), uv=installed.",
  ],
  [
    "a Python that crashes",
    { python3: { broken: "SIGSEGV" }, python: { broken: "SIGSEGV" }, pipModule: false },
    "Python toolchain: python3=broken (SIGSEGV), python=broken (SIGSEGV), pip→python3.11.",
  ],
  [
    "a Python that crashes, and nothing else",
    { python3: { broken: "exit code 1" }, python: null, pipModule: false, pip: null },
    "Python toolchain: python3=broken (exit code 1), pip=missing.",
  ],
  [
    "a pip that fails",
    { pip: { broken: "exit code 1" } },
    "Python toolchain: python3=3.11.7, pip=broken (exit code 1).",
  ],
  [
    "python3 only",
    { python: null, pip: null },
    "Python toolchain: python3=3.11.7, python=missing (use python3), pip=missing.",
  ],
];
for (const [name, change, line] of lines) {
  test(`Python probe: ${name}`, () => assert.equal(describePython({ ...healthy, ...change }), line));
}

async function programs(t: TestContext, entries: Readonly<Record<string, TreeEntry>>): Promise<TempTree> {
  const tree = await tempTree(t, entries);
  for (const [name, entry] of Object.entries(entries)) if (typeof entry === "string") await chmod(tree.at(name), 0o755);
  return tree;
}

const probeIn = (tree: TempTree, change: { clock?: Clock; run?: RunProgram } = {}) =>
  startPythonProbe({
    run: programRunner({ PATH: "/usr/bin:/bin" }),
    files: localFiles,
    clock: systemClock,
    path: tree.at("bin"),
    delimiter: delimiter === ";" ? ";" : ":",
    safeDirectory: tree.root,
    ...change,
  });

test("the probe asks the programs on the path, and pip's first line instead of pip", async (t) => {
  const tree = await programs(t, {
    "bin/python3.11": "#!/bin/sh\nprintf '3.11.7\\n1\\n1\\n'\n",
    "bin/python3": { link: "python3.11" },
    "bin/python": "#!/bin/sh\necho 2.7.18\n",
    "bin/uv": "#!/bin/sh\n",
  });
  await tree.add({ "bin/pip": `#!${tree.at("bin/python3")}\nraise SystemExit(1)\n` });
  assert.equal(
    await probeIn(tree).line(),
    "Python toolchain: python3=3.11.7, python=2.7.18, PEP 668=yes (use a venv, uv or pipx, or pip --break-system-packages), uv=installed.",
  );
});

test("a pip that is a wrapper is asked itself", async (t) => {
  const tree = await programs(t, {
    "bin/python3": "#!/bin/sh\nprintf '3.11.7\\n1\\n0\\n'\n",
    "bin/python": { link: "python3" },
    "bin/pip": "#!/bin/sh\necho 'pip 24.0 from /x (python 3.9)'\n",
  });
  assert.equal(await probeIn(tree).line(), "Python toolchain: python3=3.11.7, pip→python3.9 (mismatch).");
});

test("a version manager's pip is the one beside the real Python", async (t) => {
  const tree = await programs(t, {
    "bin/python3": "#!/bin/sh\nprintf '3.11.7\\n1\\n0\\n1\\n'\n",
    "bin/python": { link: "python3" },
    "bin/pip": "#!/bin/sh\necho 'pip 24.0 from /x (python 2.6)'\n",
  });
  assert.equal(await probeIn(tree).line(), null);
});

test("programs that are there and fail are told as they are, not as missing", async (t) => {
  const crashing = await programs(t, {
    "bin/python3": "#!/bin/sh\nkill -SEGV $$\n",
    "bin/python": { link: "python3" },
    "bin/pip": "#!/bin/sh\nexit 3\n",
  });
  const line = "Python toolchain: python3=broken (SIGSEGV), pip=broken (exit code 3).";
  assert.equal(await probeIn(crashing).line(), line);
  const shims = await programs(t, { "bin/python3": "#!/bin/sh\necho 'not installed here' >&2; exit 127\n" });
  assert.equal(await probeIn(shims).line(), "Python toolchain: python3=missing, pip=missing.");
});

test("a healthy set-up says nothing", async (t) => {
  const tree = await programs(t, {
    "bin/python3": "#!/bin/sh\nprintf '3.12.1\\n1\\n0\\n'\n",
    "bin/python": { link: "python3" },
    "bin/pip": "#!/bin/sh\necho 'pip 24.0 from /x (python 3.12)'\n",
  });
  assert.equal(await probeIn(tree).line(), null);
});

test("a slow probe is waited for once, and its answer serves later builds", async (t) => {
  const tree = await tempTree(t, { "bin/python3": "x" });
  const answer = Promise.withResolvers<void>();
  const sleeps: number[] = [];
  const clock: Clock = { ...systemClock, sleep: async (ms) => void sleeps.push(ms) };
  const run: RunProgram = async () => {
    await answer.promise;
    return { exitCode: 0, stdout: "3.11.7\n0\n0\n", stderr: "", timedOut: false };
  };
  const probe = probeIn(tree, { clock, run });
  assert.equal(await probe.line(), null);
  assert.equal(await probe.line(), null);
  assert.deepEqual(sleeps, [2000]);
  answer.resolve();
  while ((await probe.line()) === null) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(
    await probe.line(),
    "Python toolchain: python3=3.11.7 (no pip module), python=missing (use python3), pip=missing.",
  );
});

test("a probe that fails says nothing", async (t) => {
  const tree = await tempTree(t, { "bin/python3": "x" });
  assert.equal(await probeIn(tree, { run: () => Promise.reject(new Error("no")) }).line(), null);
});

const host: HostFacts = { platform: "linux", type: "Linux", release: "6.1.0", env: () => undefined };
const hosts: readonly (readonly [name: string, change: Partial<HostFacts>, version: string, expected: object])[] = [
  ["Linux", {}, "Linux version 6.1.0", { hostName: "Linux (6.1.0)" }],
  [
    "WSL by its kernel",
    { release: "5.15.1-Microsoft-standard" },
    "",
    { hostName: "WSL (Windows Subsystem for Linux)", hostKind: "wsl" },
  ],
  [
    "WSL by /proc/version",
    {},
    "Linux (Microsoft@x)",
    { hostName: "WSL (Windows Subsystem for Linux)", hostKind: "wsl" },
  ],
  ["macOS", { platform: "darwin", release: "24.1.0" }, "", { hostName: "macOS (24.1.0)" }],
  ["Windows", { platform: "win32", release: "10.0" }, "", { hostName: "Windows (10.0)", hostKind: "windows" }],
  ["FreeBSD", { platform: "freebsd", type: "FreeBSD", release: "14" }, "", { hostName: "FreeBSD (14)" }],
  [
    "Termux by its prefix",
    { platform: "android", env: (name) => (name === "PREFIX" ? "/data/data/com.termux/files/usr" : undefined) },
    "",
    { hostName: "Termux (Android)", hostKind: "termux" },
  ],
  [
    "Termux by its version",
    { env: (name) => (name === "TERMUX_VERSION" ? "0.118" : undefined) },
    "",
    { hostName: "Termux (Android)", hostKind: "termux" },
  ],
];
for (const [name, change, version, expected] of hosts) {
  test(`this host is ${name}`, async () => {
    const facts = async () => ({ type: "file", size: 0, mtimeMs: 0, version: "1" }) as const; // as /proc says
    async function* chunks() {
      yield Buffer.from(version);
    }
    assert.deepEqual(await readHost({ ...host, ...change }, { facts, chunks }), expected);
  });
}

test("the probe of a backend is one command that a real shell answers", async (t) => {
  const tree = await tempTree(t);
  const run = programRunner({ PATH: "/usr/bin:/bin", HOME: "/home/me" });
  const { stdout } = await run("/bin/sh", ["-c", BACKEND_PROBE.text], { cwd: tree.root, timeoutMs: 4000 });
  const facts = parseBackendFacts(stdout);
  assert.equal(facts?.cwd, tree.root);
  assert.equal(facts?.home, "/home/me");
  assert.notEqual(facts?.os, "");
});

test("a backend is asked once per directory, also when it does not answer", async () => {
  const probes = new BackendProbes();
  let asked = 0;
  const ask = async () => {
    asked++;
    return asked === 1 ? "os=Linux\nkernel=6\nhome=/root\ncwd=/w\nuser=root\n" : null;
  };
  assert.deepEqual(await probes.facts("docker", "/w", ask), {
    os: "Linux",
    kernel: "6",
    user: "root",
    home: "/root",
    cwd: "/w",
  });
  await probes.facts("docker", "/w", ask);
  assert.equal(await probes.facts("docker", "/x", ask), null);
  assert.equal(await probes.facts("docker", "/x", ask), null);
  assert.equal(await probes.facts("ssh", "/x", () => Promise.reject(new Error("down"))), null);
  assert.equal(asked, 2);
});
