import assert from "node:assert/strict";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { test } from "node:test";
import { missingBubblewrap, openSandbox } from "./support/engines/bubblewrap.ts";
import { withEngine } from "./support/engines/require.ts";
import { placeConformance } from "./support/place-conformance.ts";

await withEngine("bubblewrap", missingBubblewrap, () => {
  placeConformance("bubblewrap", openSandbox, { sharesFiles: true });

  test("a start that mounts of the machine got in the way of is made again, and nothing runs twice", async (t) => {
    const directory = await mkdtemp(join(tmpdir(), "hermes-bwrap-moved-"));
    t.after(() => rm(directory, { recursive: true, force: true }));
    const left = join(directory, "left");
    const { PATH = "" } = process.env;
    // Each start fails twice, as bwrap does when a container engine takes a mount away while it walks them.
    await writeFile(
      join(directory, "bwrap"),
      `#!/bin/sh
n=$(cat ${left})
if [ "$n" -gt 0 ]; then
  echo $((n - 1)) > ${left}
  echo "bwrap: Can't bind mount /oldroot/ on /newroot/: Unable to apply mount flags: remount \\"/newroot/run/x\\": No such file or directory" >&2
  exit 1
fi
PATH=${PATH} exec bwrap "$@"
`,
    );
    await chmod(join(directory, "bwrap"), 0o755);
    const fail = (times: number) => writeFile(left, `${times}\n`);
    await fail(2);
    const subject = await openSandbox({ environment: { PATH: `${directory}${delimiter}${PATH}` } });
    t.after(subject.release);
    await fail(2);
    const { output, exitCode } = await subject.run("echo once >> runs; cat", "given\n");
    assert.deepEqual([output, exitCode], ["given\n", 0]);
    await fail(2);
    const files = subject.environment.files;
    assert.equal((await files?.read(join(subject.directory, "runs")))?.toString(), "once\n");
    await fail(99);
    await assert.rejects(subject.run("echo twice >> runs"), /Can't bind mount/);
    await fail(0);
    assert.equal(await readFile(join(subject.directory, "runs"), "utf8"), "once\n");
  });
});
