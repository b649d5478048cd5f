import assert from "node:assert/strict";
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { findForbiddenDevice, isForbiddenDevice } from "./file-guard.ts";
import { expandPath, hasTraversalComponent, resolveLinks } from "./paths.ts";

let dir: string;
before(async () => {
  dir = await realpath(await mkdtemp(join(tmpdir(), "hermes-paths-")));
  await mkdir(join(dir, "a/b"), { recursive: true });
  await writeFile(join(dir, "a/b/file"), "x");
  await symlink(join(dir, "a"), join(dir, "link"));
  await symlink("a/b/new", join(dir, "dangling"));
  await symlink("nowhere/deep", join(dir, "dangling-dir"));
  await symlink("loop2", join(dir, "loop1"));
  await symlink("loop1", join(dir, "loop2"));
  await symlink("/dev/zero", join(dir, "zero"));
  await symlink("zero", join(dir, "zero-again"));
  await symlink("/proc/self/environ", join(dir, "environ"));
  await symlink("/dev", join(dir, "devices"));
});
after(() => rm(dir, { recursive: true, force: true }));

test("only a part that is exactly two dots is a traversal", () => {
  for (const path of ["..", "../a", "a/../b", "a/..", "a\\..\\b"]) assert.ok(hasTraversalComponent(path), path);
  for (const path of ["a/..b", "...", "a/...", "a..b/c", ""]) assert.ok(!hasTraversalComponent(path), path);
});

test("home and relative paths become absolute", () => {
  assert.equal(expandPath("~", "/w", "/home/u"), "/home/u");
  assert.equal(expandPath("~/x", "/w", "/home/u"), "/home/u/x");
  assert.equal(expandPath("a/../b", "/w", "/home/u"), "/w/b");
  assert.equal(expandPath("/x//y/", "/w", "/home/u"), "/x/y");
});

test("links are followed also where the path does not exist yet", async () => {
  assert.equal(await resolveLinks(join(dir, "link/b/file")), join(dir, "a/b/file"));
  assert.equal(await resolveLinks(join(dir, "link/new/deep")), join(dir, "a/new/deep"));
  assert.equal(await resolveLinks(join(dir, "dangling")), join(dir, "a/b/new"));
  assert.equal(await resolveLinks(join(dir, "dangling-dir/file")), join(dir, "nowhere/deep/file"));
});

test("a circle of links is an error that says so", async () => {
  await assert.rejects(resolveLinks(join(dir, "loop1")), /circle/);
  await assert.rejects(resolveLinks(join(dir, "loop1/x")), /circle/);
});

const forbidden = [
  ..."/dev/zero /dev/random /dev/urandom /dev/full /dev/stdin /dev/tty /dev/console /dev/stdout /dev/stderr".split(" "),
  ..."/dev/fd/0 /dev/fd/1 /dev/fd/2 /proc/self/fd/0 /proc/1/fd/2 /proc/self/environ /proc/42/cmdline".split(" "),
  ..."/proc/self/maps /proc/self/smaps /proc/self/smaps_rollup /proc/self/numa_maps /proc/1/mem".split(" "),
  ..."/proc/self/auxv /proc/self/pagemap /proc/self/task/7/environ".split(" "),
];
const permitted =
  "/dev/null /dev/fd/3 /proc/cpuinfo /proc/meminfo /proc/self/status /proc/self/fd/10 /tmp/dev/zero".split(" ");

test("devices and windows into processes are told from other files", () => {
  for (const path of forbidden) assert.ok(isForbiddenDevice(path), path);
  for (const path of permitted) assert.ok(!isForbiddenDevice(path), path);
});

test("a device is found behind links, at every hop", async () => {
  for (const name of ["zero", "zero-again", "environ", "devices/zero"])
    assert.notEqual(await findForbiddenDevice(join(dir, name)), null, name);
  assert.equal(await findForbiddenDevice(join(dir, "a/b/file")), null);
  assert.equal(await findForbiddenDevice("/dev/stdin"), "/dev/stdin");
});
