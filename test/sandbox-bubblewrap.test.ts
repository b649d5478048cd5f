import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, mkdtemp, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { type TestContext, test } from "node:test";
import { backendConformance } from "./support/backend-conformance.ts";
import { cleared } from "./support/cleared.ts";
import { missingBubblewrap, openSandbox } from "./support/engines/bubblewrap.ts";
import { withEngine } from "./support/engines/require.ts";

const { PATH = "" } = process.env;

/** A sandbox whose bwrap is a script; the real one is `bwrap` in it. */
async function openWith(t: TestContext, script: string) {
  const directory = await mkdtemp(join(tmpdir(), "hermes-bwrap-script-"));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const file = (name: string) => join(directory, name);
  await writeFile(file("bwrap"), `#!/bin/sh\nPATH=${PATH}\ncd ${directory}\n${script}\nexec bwrap "$@"\n`);
  await chmod(file("bwrap"), 0o755);
  await writeFile(file("left"), "0\n");
  const subject = await openSandbox({ environment: { PATH: `${directory}${delimiter}${PATH}` } });
  t.after(subject.release);
  return { ...subject, fail: (times: number) => writeFile(file("left"), `${times}\n`) };
}

const whileLeft = (failure: string) => `n=$(cat left); if [ "$n" -gt 0 ]; then echo $((n - 1)) > left; ${failure}; fi`;

await withEngine("bubblewrap", missingBubblewrap, () => {
  backendConformance("bubblewrap", openSandbox, { sharesFiles: true });

  const failures: readonly (readonly [string, string, RegExp])[] = [
    [
      // As bwrap says it when a container engine takes a mount away while it walks them.
      "that mounts of the machine got in the way of",
      `echo "bwrap: Can't bind mount /oldroot/ on /newroot/: Unable to apply mount flags: remount \\"/newroot/run/x\\": No such file" >&2; exit 1`,
      /Can't bind mount/,
    ],
    ["that somebody killed", "kill -9 $$", /bwrap was killed \(SIGKILL\) while it started/],
    ["that failed without a word", "exit 1", /bwrap ended with code 1\b/],
  ];
  for (const [what, failure, reason] of failures) {
    test(`a start ${what} is made again, and nothing runs twice`, async (t) => {
      const subject = await openWith(t, whileLeft(failure));
      await subject.fail(2);
      const { output, exitCode } = await subject.run("echo once >> runs; cat", "given\n");
      assert.deepEqual([output, exitCode], ["given\n", 0]);
      await subject.fail(2);
      const { files } = subject.environment;
      assert.ok(files);
      assert.equal((await files.read(join(subject.directory, "runs"))).toString(), "once\n");
      await subject.fail(2);
      const child = await subject.environment.spawn(cleared("echo on a terminal >> runs"), { pty: true });
      assert.equal(await child.exited, 0);
      await subject.fail(99);
      for (const attempt of [
        () => subject.run("echo twice >> runs"),
        () => files.read(join(subject.directory, "runs")),
        () => subject.environment.spawn(cleared("echo twice >> runs"), { pty: true }),
      ]) {
        await assert.rejects(attempt, (error: Error) => {
          assert.equal(error.name, "UserError");
          assert.match(error.message, reason);
          assert.match(error.message, /nothing was run/);
          assert.doesNotMatch(error.message, /namespaces/, "it worked a moment ago");
          return true;
        });
      }
      await subject.fail(0);
      assert.equal(await readFile(join(subject.directory, "runs"), "utf8"), "once\non a terminal\n");
    });
  }

  test("commands that start while another one ends the whole sandbox run in the next one", async (t) => {
    const subject = await openSandbox();
    t.after(subject.release);
    for (let round = 0; round < 5; round++) {
      const [ending, ...others] = await Promise.all(
        ["kill -9 -1", ...Array.from({ length: 4 }, (_, n) => `echo ${n} >> began-${round}-${n}; sleep 0.1`)].map(
          (command) => subject.run(command),
        ),
      );
      assert.ok(ending);
      for (const [n, { exitCode }] of others.entries()) {
        assert.ok(exitCode === 0 || exitCode === 137, `${exitCode}`);
        if (exitCode === 0)
          assert.equal(await readFile(join(subject.directory, `began-${round}-${n}`), "utf8"), `${n}\n`);
      }
      const after = await Promise.all([1, 2, 3].map(() => subject.run("readlink /proc/self/ns/pid")));
      assert.equal(new Set(after.map(({ output }) => output)).size, 1, "one sandbox, not one for each");
    }
  });

  test("a command that is stopped at any moment of its start leaves nothing behind", async (t) => {
    const subject = await openSandbox();
    t.after(subject.release);
    await subject.run("true");
    for (let ms = 0; ms < 60; ms += 3) {
      const result = await subject.environment.execute(cleared("sleep 4243"), {
        timeoutMs: 30_000,
        signal: AbortSignal.timeout(ms),
      });
      assert.equal(result.interrupted, true);
    }
    assert.equal(await running(subject, "sleep.4243"), "");
  });

  test("a file that nobody reads on is let go of", async (t) => {
    const subject = await openSandbox();
    t.after(subject.release);
    const path = join(subject.directory, "large-one");
    await writeFile(path, "");
    await truncate(path, 1e9);
    const { files } = subject.environment;
    assert.ok(files);
    for await (const chunk of files.chunks(path)) {
      assert.ok(chunk.length > 0);
      break;
    }
    const abort = new AbortController();
    let bytes = 0;
    await assert.rejects(async () => {
      for await (const chunk of files.chunks(path, abort.signal)) {
        bytes += chunk.length;
        abort.abort();
      }
    }, /abort/i);
    assert.ok(bytes < 5e8, "it was read to its end all the same");
    assert.equal(await running(subject, "cat.*large-one"), "");
  });
});

/** What still runs inside with this in its command line; ends may take a moment. */
async function running(subject: Awaited<ReturnType<typeof openSandbox>>, pattern: string): Promise<string> {
  const look = `for p in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $p | grep -v hermes-look | grep '${pattern}'; done; : hermes-look`;
  for (let round = 0; ; round++) {
    const { output } = await subject.run(look);
    if (output === "" || round === 100) return output;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The race that cost commands their lives: delayed here until it is lost each time. */
const DELAYED = `case " $* " in *" --pidns "*)
  exec strace -f -qq -o /dev/null -e trace=exit_group -e inject=exit_group:delay_enter=200000 bwrap "$@" ;;
esac`;

const missingStrace = async () => {
  const problem = await missingBubblewrap();
  if (problem) return problem;
  return new Promise<string | null>((resolve) => {
    execFile("strace", ["-o", "/dev/null", "true"], (error) => resolve(error ? `strace: ${error.message}` : null));
  });
};

await withEngine("strace", missingStrace, () => {
  test("a command outlives the process that led it into the sandbox, however late that one leaves", async (t) => {
    const subject = await openWith(t, DELAYED);
    const { output, exitCode } = await subject.run("echo first; sleep 0.5; echo second");
    assert.deepEqual([output, exitCode], ["first\nsecond\n", 0]);
    const child = await subject.environment.spawn(cleared("sleep 0.5; exit 3"), {});
    assert.equal(await child.exited, 3);
  });
});
