import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { FileWriteError, isWithin, writeFileAtomic } from "./files.ts";

let dir: string;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), "hermes-atomic-"));
});
after(() => rm(dir, { recursive: true, force: true }));

const modeOf = async (path: string) => (await stat(path)).mode & 0o777;

test("a new file gets the asked mode and nothing else is left behind", async () => {
  const folder = join(dir, "new");
  await mkdir(folder);
  await writeFileAtomic(join(folder, "secret"), "s3", { mode: 0o600 });
  assert.equal(await readFile(join(folder, "secret"), "utf8"), "s3");
  assert.equal(await modeOf(join(folder, "secret")), 0o600);
  assert.deepEqual(await readdir(folder), ["secret"]);
});

test("an existing file keeps its mode unless another is asked for", async () => {
  const path = join(dir, "kept");
  await writeFile(path, "old");
  await chmod(path, 0o664);
  await writeFileAtomic(path, "new");
  assert.equal(await readFile(path, "utf8"), "new");
  assert.equal(await modeOf(path), 0o664);
  await writeFileAtomic(path, "newer", { mode: 0o600 });
  assert.equal(await modeOf(path), 0o600);
});

test("a mode for new files leaves existing ones alone", async () => {
  const path = join(dir, "born-private");
  await writeFileAtomic(path, "1", { newMode: 0o600 });
  assert.equal(await modeOf(path), 0o600);
  await chmod(path, 0o640);
  await writeFileAtomic(path, "2", { newMode: 0o600 });
  assert.equal(await modeOf(path), 0o640);
});

test("a pipe is written to and stays a pipe", async () => {
  const path = join(dir, "pipe");
  await promisify(execFile)("mkfifo", [path]);
  const [read] = await Promise.all([readFile(path, "utf8"), writeFileAtomic(path, pieces())]);
  assert.equal(read, "one two");
  assert.ok((await stat(path)).isFIFO());
});

async function* pieces() {
  yield "one ";
  yield "two";
}

test("a file made of pieces is whole or not there", async () => {
  const path = join(dir, "in-pieces");
  await writeFileAtomic(path, pieces());
  assert.equal(await readFile(path, "utf8"), "one two");
  const broken = async function* () {
    yield "half";
    throw new Error("no more");
  };
  await assert.rejects(writeFileAtomic(path, broken()), /in-pieces: no more/);
  assert.equal(await readFile(path, "utf8"), "one two");
});

test("a symlink survives and its target is replaced", async () => {
  const target = join(dir, "target");
  const link = join(dir, "link");
  await writeFile(target, "old");
  await symlink("target", link);
  await writeFileAtomic(link, "new");
  assert.ok((await lstat(link)).isSymbolicLink());
  assert.equal(await readFile(target, "utf8"), "new");
});

test("a dangling symlink survives and its target is created", async () => {
  const link = join(dir, "dangling");
  await symlink("born-later", link);
  await writeFileAtomic(link, "x");
  assert.ok((await lstat(link)).isSymbolicLink());
  assert.equal(await readFile(join(dir, "born-later"), "utf8"), "x");
});

test("a failed write leaves the target as it was, no temporary file, and an error that names the target", async () => {
  const folder = join(dir, "fails");
  await mkdir(join(folder, "busy", "inside"), { recursive: true });
  await assert.rejects(writeFileAtomic(join(folder, "busy"), "x"), (error: unknown) => {
    assert.ok(error instanceof FileWriteError);
    assert.match(error.message, /^Cannot write .*\/busy: it is a directory$/);
    return true;
  });
  assert.deepEqual(await readdir(folder), ["busy"]);
});

test("a missing directory is named", async () => {
  const path = join(dir, "nowhere", "file");
  await assert.rejects(writeFileAtomic(path, "x"), {
    message: `Cannot write ${path}: the directory ${join(dir, "nowhere")} does not exist`,
  });
});

test("writers at the same time leave one of the whole texts", async () => {
  const path = join(dir, "contended");
  const texts = Array.from({ length: 20 }, (_, index) => String(index).repeat(5000));
  await Promise.all(texts.map((text) => writeFileAtomic(path, text)));
  assert.ok(texts.includes(await readFile(path, "utf8")));
});

test("a directory contains itself and what is below, not what begins alike", () => {
  assert.ok(isWithin("/a/b", "/a/b") && isWithin("/a/b/c", "/a/b") && isWithin("/a", "/"));
  assert.ok(!isWithin("/a/bc", "/a/b") && !isWithin("/a", "/a/b"));
});
