// What file access owes the file tools, on this machine and everywhere else. Each implementation runs this suite over its own factory.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Environment, EnvironmentFiles } from "../../src/sandbox/environment.ts";
import { cleared } from "./cleared.ts";

export interface FilesSubject {
  readonly files: EnvironmentFiles;
  /** An empty, writable directory. */
  readonly directory: string;
  /** Runs a command where the files are. */
  run(command: string): Promise<string>;
  release(): Promise<void>;
}

export function filesConformance(kind: string, open: () => Promise<FilesSubject>): void {
  let subject: FilesSubject;
  before(async () => {
    subject = await open();
  });
  after(() => subject?.release());
  const at = (name: string) => `${subject.directory}/${name}`;
  const rejectsWith = (code: string) => (error: Error & { code?: string }) => {
    assert.equal(error.code, code, error.message);
    return true;
  };

  test(`${kind}: text comes back byte for byte, whatever is in it`, async () => {
    const text = "EOF\n'\"`touch marker`$(touch marker)\n\\ ünïcödé 漢字\r\n\0no newline at the end";
    for (const [name, data] of [
      ["plain", text],
      ["empty", ""],
      ["it's $HOME; *", "x"],
    ] as const) {
      await subject.files.write(at(name), data);
      assert.equal((await subject.files.read(at(name))).toString("utf8"), data);
    }
    assert.equal((await subject.run("test -e marker && echo ran")).trim(), "");
    assert.deepEqual((await subject.files.list(subject.directory)).sort(), ["empty", "it's $HOME; *", "plain"]);
  });

  test(`${kind}: a large file is read in pieces, and reading may stop early`, async () => {
    await subject.run("head -c 3000000 /dev/zero | tr '\\0' 'a' > large; head -c 3 /dev/zero | tr '\\0' '\\377' > odd");
    let length = 0;
    for await (const chunk of subject.files.chunks(at("large"))) length += chunk.length;
    assert.equal(length, 3_000_000);
    for await (const chunk of subject.files.chunks(at("large"))) {
      assert.ok(chunk.length > 0);
      break;
    }
    assert.deepEqual([...(await subject.files.read(at("odd")))], [255, 255, 255]);
  });

  test(`${kind}: facts tell files, folders and other things apart, and change with the content`, async () => {
    await subject.run("printf abc > three; mkdir folder; mkfifo pipe; ln -s three link; ln -s nowhere dangling");
    const facts = await subject.files.facts(at("three"));
    assert.deepEqual([facts?.type, facts?.size], ["file", 3]);
    assert.ok(Math.abs((facts?.mtimeMs ?? 0) - Date.now()) < 600_000);
    assert.equal((await subject.files.facts(at("folder")))?.type, "directory");
    assert.equal((await subject.files.facts(at("pipe")))?.type, "other");
    assert.equal((await subject.files.facts(at("link")))?.type, "file");
    assert.equal(await subject.files.facts(at("dangling")), null);
    assert.equal(await subject.files.facts(at("nothing")), null);
    await subject.files.write(at("three"), "abd");
    assert.notEqual((await subject.files.facts(at("three")))?.version, facts?.version);
  });

  test(`${kind}: a pipe is never waited for`, async () => {
    await assert.rejects(subject.files.read(at("pipe")));
  });

  test(`${kind}: links are resolved, also for what is not there yet`, async () => {
    await subject.run("ln -s folder alias");
    assert.equal(await subject.files.resolve(at("alias/new/deep")), at("folder/new/deep"));
    assert.equal(await subject.files.resolve(at("link")), at("three"));
    assert.equal(await subject.files.resolve(at("plain")), at("plain"));
  });

  test(`${kind}: writing keeps links and modes, and leaves nothing else behind`, async () => {
    await subject.run("echo old > script; chmod 751 script; ln -s script runner");
    await subject.files.write(at("runner"), "new\n");
    assert.equal(await subject.run("test -L runner && cat script && stat -c %a script"), "new\n751\n");
    assert.ok(!(await subject.files.list(subject.directory)).some((name) => name.endsWith(".tmp")));
  });

  test(`${kind}: folders are made, files moved and removed`, async () => {
    assert.equal(await subject.files.makeDirectory(at("a/b")), true);
    assert.equal(await subject.files.makeDirectory(at("a/b")), false);
    await subject.files.write(at("a/b/file"), "x");
    await subject.files.move(at("a/b/file"), at("a/moved"));
    assert.deepEqual(await subject.files.list(at("a/b")), []);
    await subject.files.remove(at("a/moved"));
    assert.equal(await subject.files.facts(at("a/moved")), null);
  });

  test(`${kind}: what goes wrong carries the system's code`, async () => {
    await assert.rejects(subject.files.read(at("nothing")), rejectsWith("ENOENT"));
    await assert.rejects(subject.files.list(at("nothing")), rejectsWith("ENOENT"));
    await assert.rejects(subject.files.write(at("nothing/file"), "x"), rejectsWith("ENOENT"));
    await assert.rejects(subject.files.remove(at("nothing")), rejectsWith("ENOENT"));
    await assert.rejects(subject.files.list(at("plain")), rejectsWith("ENOTDIR"));
    await assert.rejects(subject.files.move(at("plain"), at("folder")), rejectsWith("EISDIR"));
  });
}

/** The suite's subject for an environment that has files of its own. */
export async function environmentFiles(opened: {
  readonly environment: Environment;
  release(): Promise<void>;
}): Promise<FilesSubject> {
  const { environment, release } = opened;
  assert.ok(environment.files);
  const directory = `${environment.cwd}/files-of-test`;
  const run = async (command: string) => {
    const options = { timeoutMs: 30_000, signal: new AbortController().signal };
    return (
      await environment.execute(cleared(`mkdir -p ${directory} && cd ${directory}; ${command}`), {
        ...options,
        keepCwd: true,
      })
    ).output;
  };
  await run("true");
  return { files: environment.files, directory, run, release };
}
