// What the file tools owe in every environment: they act where the commands run. Each environment runs this suite over its own factory.
import assert from "node:assert/strict";
import { access } from "node:fs/promises";
import { posix } from "node:path";
import { after, before, test } from "node:test";
import type { Environment } from "../../src/sandbox/environment.ts";
import { localFiles } from "../../src/tools/files/access.ts";
import { walkerOver } from "../../src/tools/files/search.ts";
import { forgetReads } from "../../src/tools/files/workspace.ts";
import { patch } from "../../src/tools/patch.ts";
import { readFile } from "../../src/tools/read-file.ts";
import { searchFiles } from "../../src/tools/search-files.ts";
import type { ToolContext } from "../../src/tools/toolset/context.ts";
import { createToolState } from "../../src/tools/toolset/session-tools.ts";
import { writeFile } from "../../src/tools/write-file.ts";
import { cleared } from "./cleared.ts";
import { parsed } from "./file-workspace.ts";
import { toolContext } from "./tool-context.ts";

export interface FileToolsSubject {
  readonly environment: Environment;
  /** Whether what is written there is this machine's own file of the same path. */
  readonly sharesFiles: boolean;
  release(): Promise<void>;
}

export function fileToolsConformance(kind: string, open: () => Promise<FileToolsSubject>): void {
  let subject: FileToolsSubject;
  let start: string;
  before(async () => {
    subject = await open();
    start = `${subject.environment.cwd}/file-tools-of-test`;
    await run(`mkdir -p ${start} && cd ${start}`);
  });
  after(() => subject?.release());

  const run = async (command: string) => {
    const options = { timeoutMs: 30_000, signal: new AbortController().signal };
    const { exitCode, output } = await subject.environment.execute(cleared(command), options);
    assert.equal(exitCode, 0, `${command}: ${output}`);
    return output;
  };
  /** A tool's answer, which must not be an error. */
  const done = async (answer: ReturnType<typeof writeFile>) => {
    const result = parsed(await answer);
    assert.equal(result.error, undefined, JSON.stringify(result));
    return result;
  };
  const context = (given: Partial<ToolContext> = {}) =>
    toolContext({ environment: subject.environment, state: createToolState(), homeDir: "/nowhere/.hermes", ...given });

  test(`${kind}: a file is written, read and found where commands run`, async () => {
    const ctx = context();
    const text = "one\n'two' $HOME `x` 漢字\nEOF\n";
    assert.equal((await done(writeFile({ path: "new/dir/a.txt", content: text }, ctx))).dirs_created, true);
    assert.equal(await run("cat new/dir/a.txt"), text);
    assert.equal(
      (await done(readFile({ path: "new/dir/a.txt" }, ctx))).content,
      "1|one\n2|'two' $HOME `x` 漢字\n3|EOF",
    );
    const here = await access(`${start}/new/dir/a.txt`).then(
      () => true,
      () => false,
    );
    assert.equal(here, subject.sharesFiles);
  });

  test(`${kind}: relative paths follow the shell's directory, ~ is the home there`, async () => {
    const ctx = context();
    await run(`mkdir -p sub && cd sub`);
    await done(writeFile({ path: "here.txt", content: "x" }, ctx));
    await run("cd ..");
    assert.equal(await run("cat sub/here.txt"), "x");
    const missing = parsed(await readFile({ path: "~/not-there-at-all.txt" }, ctx));
    assert.equal(missing.error, "File not found: ~/not-there-at-all.txt");
    assert.equal((await done(readFile({ path: posix.join(start, "sub/here.txt") }, ctx))).content, "1|x");
  });

  test(`${kind}: a byte order mark, CRLF, modes and links of the old file are kept`, async () => {
    const ctx = context();
    await run(
      "printf '\\357\\273\\277a\\r\\nb\\r\\n' > dressed.txt; chmod 640 dressed.txt; ln -s dressed.txt linked.txt",
    );
    assert.equal((await done(readFile({ path: "dressed.txt" }, ctx))).content, "1|a\n2|b");
    assert.equal((await done(writeFile({ path: "linked.txt", content: "c\nd\n" }, ctx))).bytes_written, 9);
    assert.equal(await run("test -L linked.txt && cat dressed.txt && stat -c %a dressed.txt"), "\ufeffc\r\nd\r\n640\n");
  });

  test(`${kind}: what a command changed meanwhile is noticed`, async () => {
    const ctx = context();
    await run("echo first > stale.txt");
    await done(readFile({ path: "stale.txt" }, ctx));
    const again = await done(readFile({ path: "stale.txt" }, ctx));
    assert.equal(again.status, "unchanged", JSON.stringify(again));
    assert.equal(await run("echo second, longer > stale.txt; cat stale.txt"), "second, longer\n");
    const written = parsed(await writeFile({ path: "stale.txt", content: "third\n" }, ctx));
    assert.match(written._warning ?? JSON.stringify(written), /changed on disk/);
    forgetReads(ctx.state);
    assert.equal((await done(readFile({ path: "stale.txt" }, ctx))).content, "1|third");
  });

  test(`${kind}: a patch changes, adds, moves and removes there, all or none`, async () => {
    const ctx = context();
    await run("printf 'alpha\\nbeta\\n' > p.txt; printf 'old\\n' > gone.txt; printf 'm\\n' > from.txt");
    const replaced = parsed(await patch({ path: "p.txt", old_string: "beta", new_string: "gamma" }, ctx));
    assert.equal(replaced.success, true, replaced.error);
    const body =
      "*** Update File: p.txt\n@@\n-alpha\n+delta\n*** Delete File: gone.txt\n*** Move File: from.txt -> moved/to.txt\n";
    const broken = parsed(await patch({ mode: "patch", patch: `${body}*** Delete File: never.txt\n` }, ctx));
    assert.match(broken.error, /no files were modified/);
    const many = parsed(await patch({ mode: "patch", patch: `${body}*** Add File: added.txt\n+new` }, ctx));
    assert.equal(many.success, true, many.error);
    assert.equal(
      await run("cat p.txt moved/to.txt added.txt; ls gone.txt from.txt 2>/dev/null || true"),
      "delta\ngamma\nm\nnew\n",
    );
  });

  test(`${kind}: broken syntax is reported, near names are offered, binary files are not shown`, async () => {
    const ctx = context();
    await done(writeFile({ path: "data.json", content: "{}" }, ctx));
    assert.match(parsed(await writeFile({ path: "data.json", content: "{" }, ctx)).error, /invalid JSON/);
    assert.deepEqual(parsed(await readFile({ path: "dta.json" }, ctx)).similar_files, ["data.json"]);
    await run("printf 'a\\0b' > blob; mkfifo fifo");
    assert.match(parsed(await readFile({ path: "blob" }, ctx)).error, /binary/);
    assert.match(parsed(await readFile({ path: "fifo" }, ctx)).error, /not a regular file/);
    assert.match(parsed(await readFile({ path: "sub" }, ctx)).error, /is a directory/);
  });

  test(`${kind}: devices and secrets are refused there, behind links too`, async () => {
    const ctx = context();
    await run(
      "ln -s /dev/zero zero; ln -s zero zero2; ln -s /proc/self/environ env2; ln -s ~/.ssh keys; echo A=1 > .env; ln -s .env settings; " +
        "ln -s loop2 loop1; ln -s loop1 loop2",
    );
    for (const path of ["zero", "zero2", "env2", "/dev/stdin", "/proc/self/fd/0"])
      assert.match(parsed(await readFile({ path }, ctx)).error, /device or a window/, path);
    for (const path of [".env", "settings", "~/.hermes/.env", "~/.hermes/auth.json"])
      assert.match(parsed(await readFile({ path }, ctx)).error, /Read denied/, path);
    for (const path of ["keys/authorized_keys", "~/.ssh/config", "/etc/hermes-test", "~/.hermes/config.yaml"])
      assert.match(parsed(await writeFile({ path, content: "x" }, ctx)).error, /Write denied/, path);
    assert.match(parsed(await readFile({ path: "loop1" }, ctx)).error, /circle/);
    const denying = {
      decide: async () => ({ approved: false as const, message: "no", description: null, patternKey: null }),
    };
    assert.equal(parsed(await writeFile({ path: "~/.bashrc", content: "x" }, context({ guard: denying }))).error, "no");
    const narrow = context({ writeSafeRoots: [`${start}/sub`] });
    assert.match(parsed(await writeFile({ path: "outside.txt", content: "x" }, narrow)).error, /WRITE_SAFE_ROOT/);
    assert.equal((await done(writeFile({ path: "sub/inside.txt", content: "x" }, narrow))).bytes_written, 1);
    await run("mkdir -p beyond; ln -s ../beyond sub/way-out");
    const beyond = parsed(await writeFile({ path: "sub/way-out/x.txt", content: "x" }, narrow));
    assert.match(beyond.error, /beyond\/x\.txt\) is outside HERMES_WRITE_SAFE_ROOT/);
    assert.equal(await run("ls beyond"), "");
  });

  for (const engine of ["its own choice", "the walker"])
    test(`${kind}: search with ${engine} finds lines and files, newest first, without hidden, ignored and blocked ones`, async () => {
      await run(
        `(rm -rf tree; mkdir -p tree/sub/deep tree/ignored tree/.hidden && cd tree && git init -q . 2>/dev/null || mkdir -p .git
echo 'ignored/' > .gitignore; echo '*.skip' > sub/.ignore
for f in a.ts sub/b.ts sub/deep/c.ts ignored/d.ts .hidden/e.ts sub/f.skip .env.local; do echo "needle $f" > $f; done
printf 'one\\r\\nneedle two\\r\\nthree\\n' > 'it is.txt'; printf 'needle\\0' > bin
touch -t 202001010000 a.ts; touch -t 202101010000 sub/b.ts; touch -t 202201010000 sub/deep/c.ts)`,
      );
      const walker = engine === "the walker" ? walkerOver(subject.environment.files ?? localFiles) : undefined;
      const search = async (args: Parameters<typeof searchFiles>[0]) =>
        parsed(await searchFiles({ path: "tree", ...args }, context(), walker));
      const found = await search({ pattern: "needle \\w", context: 1 });
      assert.deepEqual(
        found.matches?.map(({ path, line }: { path: string; line: number }) => `${path}:${line}`),
        ["tree/a.ts:1", "tree/it is.txt:2", "tree/sub/b.ts:1", "tree/sub/deep/c.ts:1"],
        found.error,
      );
      assert.deepEqual(found.matches[1].before, ["one"]);
      assert.deepEqual((await search({ pattern: "*.ts", target: "files" })).files, [
        "tree/sub/deep/c.ts",
        "tree/sub/b.ts",
        "tree/a.ts",
      ]);
      assert.equal((await search({ pattern: "needle", path: "tree/sub/b.ts" })).total_count, 1);
      assert.match((await search({ pattern: "(" })).error, /not understood/);
      assert.match((await search({ pattern: "x", path: "tre" })).error, /Path not found/);
    });
}
