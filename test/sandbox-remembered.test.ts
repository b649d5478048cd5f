// The second start of a sandbox in one home starts no program until a command is there.
import assert from "node:assert/strict";
import { chmod, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { openBubblewrapEnvironment } from "../src/sandbox/bubblewrap.ts";
import { findProgram } from "../src/sandbox/child-env.ts";
import { cleared } from "./support/cleared.ts";
import { missingBubblewrap } from "./support/engines/bubblewrap.ts";
import { withEngine } from "./support/engines/require.ts";
import { tempTree } from "./support/temp-tree.ts";

await withEngine("bubblewrap", missingBubblewrap, () => {
  /** A bwrap in front of the real one, which counts how often it is started. */
  async function world(t: TestContext) {
    const tree = await tempTree(t, { "home/project/x": "", "home/.hermes/cache/x": "", "bin/x": "" });
    const { PATH = "" } = process.env;
    const real = await findProgram("bwrap", PATH);
    const program = (text: string) => writeFile(tree.at("bin/bwrap"), `#!/bin/sh\n${text}\n`);
    await program(`echo x >> ${tree.at("starts")}\nexec ${real} "$@"`);
    await chmod(tree.at("bin/bwrap"), 0o755);
    const hermes = tree.at("home/.hermes");
    const open = async () => {
      const environment = await openBubblewrapEnvironment({
        cwd: tree.at("home/project"),
        userHome: tree.at("home"),
        hermesHome: { dir: hermes, root: hermes },
        network: "on",
        environment: { PATH: `${tree.at("bin")}:${PATH}`, HOME: tree.at("home"), TMPDIR: tree.root },
      });
      t.after(() => environment.cleanup());
      return environment;
    };
    const starts = async () => (await readFile(tree.at("starts"), "utf8").catch(() => "")).length / 2;
    const remembered = () => stat(join(hermes, "cache", "sandbox-works")).then(Boolean, () => false);
    return { open, starts, program, remembered };
  }

  const run = { timeoutMs: 30_000, signal: new AbortController().signal };

  test("what worked once is not tried again before a command needs it", async (t) => {
    const { open, starts } = await world(t);
    await open();
    const before = await starts();
    assert.ok(before > 0);
    const again = await open();
    assert.equal(await starts(), before);
    assert.equal((await again.execute(cleared("echo inside; touch ~/outside"), run)).output.split("\n")[0], "inside");
    assert.ok((await starts()) > before);
  });

  test("another bwrap is tried anew", async (t) => {
    const { open, starts, program } = await world(t);
    await open();
    const before = await starts();
    await program("echo no >&2; exit 1");
    await assert.rejects(open(), /no/);
    assert.equal(await starts(), before);
  });

  test("one that does not work after all runs nothing and is forgotten", async (t) => {
    const { open, program, remembered } = await world(t);
    await open();
    const second = await open();
    assert.equal(await remembered(), true);
    await program("echo broken >&2; exit 1");
    await assert.rejects(second.execute(cleared("echo outside"), run), /Could not enter the sandbox.*broken/s);
    await assert.rejects(second.files.read("/etc/hostname"), /Could not enter the sandbox/);
    assert.equal(await remembered(), false);
  });
});
