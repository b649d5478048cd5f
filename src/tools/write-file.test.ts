import assert from "node:assert/strict";
import { chmod, lstat, mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { cleared } from "../../test/support/cleared.ts";
import { type FileRig, fileRig, parsed } from "../../test/support/file-workspace.ts";
import { readFile as readTool } from "./read-file.ts";
import { writeFile as writeTool } from "./write-file.ts";

let rig: FileRig;
before(async () => {
  rig = await fileRig();
});
after(() => rig.close());

const write = async (path: string, content: string, ctx = rig.context()) =>
  parsed(await writeTool({ path, content }, ctx));
const onDisk = (name: string) => readFile(rig.at(name), "utf8");

test("a new file is written with its directories", async () => {
  assert.deepEqual(await write("deep/er/a.txt", "héllo\n"), { bytes_written: 7, dirs_created: true });
  assert.equal(await onDisk("deep/er/a.txt"), "héllo\n");
  assert.deepEqual(await write("deep/er/b.txt", ""), { bytes_written: 0, dirs_created: false });
  assert.deepEqual((await readdir(rig.at("deep/er"))).sort(), ["a.txt", "b.txt"]);
});

test("a path that names a directory is refused", async () => {
  for (const path of ["new/", "~/", "/"])
    assert.match((await write(path, "x")).error, /names a directory; give the file's name too\.$/, path);
  await assert.rejects(stat(rig.at("new")));
});

test("mode, CRLF and byte order mark of the old file stay", async () => {
  await writeFile(rig.at("old.bat"), "\ufeffa\r\nb\r\n");
  await chmod(rig.at("old.bat"), 0o755);
  await write("old.bat", "x\ny\n");
  assert.equal(await onDisk("old.bat"), "\ufeffx\r\ny\r\n");
  assert.equal((await stat(rig.at("old.bat"))).mode & 0o777, 0o755);
});

test("mixed line endings are no reason to change the content", async () => {
  await writeFile(rig.at("mixed.txt"), "a\r\nb\n");
  await write("mixed.txt", "x\ny\n");
  assert.equal(await onDisk("mixed.txt"), "x\ny\n");
});

test("through a link the target is written and the link stays", async () => {
  await writeFile(rig.at("target.txt"), "old");
  await symlink("target.txt", rig.at("link.txt"));
  await write("link.txt", "new");
  assert.ok((await lstat(rig.at("link.txt"))).isSymbolicLink());
  assert.equal(await onDisk("target.txt"), "new");
});

test("a data file that is valid is not made invalid", async () => {
  for (const [name, good, bad] of [
    ["a.json", '{"a": 1}', '{"a": }'],
    ["a.yaml", "a: 1\n", "a: [1\n"],
    ["a.yml", "- x\n", "a: b: c\n"],
    ["a.toml", '[table]\nname = "x"\nbig = 9223372036854775807\n', "[table\nname = 1\n"],
  ] as const) {
    await writeFile(rig.at(name), good);
    const result = await write(name, bad);
    assert.match(result.error, /was not written: it is valid now and would become invalid (JSON|YAML|TOML)/, name);
    assert.equal(await onDisk(name), good);
  }
});

test("lint tells only of what this write brought", async () => {
  assert.match((await write("fresh.json", "{")).lint, /^invalid JSON/);
  assert.match((await write("fresh.toml", "a = 1\nb =\n")).lint, /^invalid TOML: .+ \(line 2, column \d+\)$/);
  assert.equal((await write("fresh.json", "{{")).lint, undefined);
  assert.equal((await write("fresh.json", "{}")).lint, undefined);
  assert.equal((await write("code.ts", "{")).lint, undefined);
});

test("the notice of an unchanged file and marks of secrets are not written", async () => {
  const ctx = rig.context();
  await writeFile(rig.at("secret.ini"), "A_TOKEN=abc\nb=1\n");
  const shown = parsed(await readTool({ path: "secret.ini" }, ctx)).content.replace(/^\d+\|/gm, "");
  assert.match((await write("secret.ini", shown, ctx)).error, /stands for a secret/);
  assert.equal(await onDisk("secret.ini"), "A_TOKEN=abc\nb=1\n");
  const notice = parsed(await readTool({ path: "secret.ini" }, ctx)).message;
  assert.match((await write("secret.ini", notice, ctx)).error, /notice/);
});

test("a text that is on disk with a mark already may keep it", async () => {
  await writeFile(rig.at("marked.md"), "our mark is «redacted»\n");
  assert.equal((await write("marked.md", "our mark is still «redacted»\n")).error, undefined);
});

test("protected files are refused with what, where and what to do", async () => {
  await mkdir(`${rig.userHome}/.ssh`, { recursive: true });
  assert.match((await write("~/.ssh/config", "x")).error, /^Write denied: .*\.ssh\/config is protected/);
  assert.match((await write("~/.hermes/config.yaml", "x")).error, /hermes config set/);
  assert.match((await write("/etc/hosts", "x")).error, /^Write denied/);
  assert.match((await write("/dev/full", "x")).error, /device/);
  assert.match((await write("/dev/no-such-disk", "x")).error, /part of the running system/);
  assert.match((await write("/proc/self/root/proc/no-such-switch", "x")).error, /part of the running system/);
  assert.equal((await write("~/.ssh_backup/x", "x")).error, undefined);
});

test("outside the safe roots nothing is written", async () => {
  const ctx = rig.context({ writeSafeRoots: [rig.at("deep")] });
  assert.match((await write("x.txt", "x", ctx)).error, /HERMES_WRITE_SAFE_ROOT/);
  assert.equal((await write("deep/x.txt", "x", ctx)).error, undefined);
});

test("a shell start file is written only when the command guard agrees", async () => {
  const asked: string[] = [];
  const answer = (approved: boolean) =>
    rig.context({
      guard: {
        decide: async (command) => {
          asked.push(command);
          const facts = { message: "BLOCKED: the user said no", description: null, patternKey: null };
          return approved ? { approved, ...facts, cleared: cleared(command) } : { approved, ...facts };
        },
      },
    });
  assert.match((await write("~/.bashrc", "x", answer(false))).error, /the user said no/);
  assert.equal((await write("~/.bashrc", "x", answer(true))).bytes_written, 1);
  assert.deepEqual(asked, ["tee ~/.bashrc", "tee ~/.bashrc"]);
});

test("another profile's skills need cross_profile", async () => {
  const path = "~/.hermes/profiles/other/skills/a/SKILL.md";
  assert.match((await write(path, "x")).error, /cross_profile=true/);
  const result = parsed(await writeTool({ path, content: "x", cross_profile: true }, rig.context()));
  assert.equal(result.bytes_written, 1);
});

test("a failed write names the file, never a temporary one", async () => {
  await mkdir(rig.at("taken"));
  await writeFile(rig.at("plain"), "x");
  assert.match((await write("taken", "x")).error, /directory: taken$/);
  const below = (await write("plain/below.txt", "x")).error;
  assert.match(below, /plain/);
  assert.doesNotMatch(below, /tmp-|\.tmp/);
});

test("writing after someone else's change comes with a warning", async () => {
  const ctx = rig.context();
  const sibling = rig.context();
  await writeFile(rig.at("shared.txt"), "1\n");
  await readTool({ path: "shared.txt" }, ctx);
  await write("shared.txt", "2\n", sibling);
  assert.match((await write("shared.txt", "3\n", ctx))._warning, /another agent/);
  assert.equal((await write("shared.txt", "4\n", ctx))._warning, undefined);
  await writeFile(rig.at("shared.txt"), "by hand\n");
  assert.match((await write("shared.txt", "5\n", ctx))._warning, /on disk/);
});

test("replacing a file of which only a part was read comes with a warning", async () => {
  const ctx = rig.context();
  await writeFile(rig.at("partly.txt"), "1\n2\n3\n");
  await readTool({ path: "partly.txt", limit: 1 }, ctx);
  assert.match((await write("partly.txt", "x\n", ctx))._warning, /only a part/);
});

test("writers of one file at the same time leave one whole text", async () => {
  const texts = Array.from({ length: 12 }, (_, n) => `${n}`.repeat(50_000));
  const results = await Promise.all(texts.map((text) => write("race.txt", text)));
  assert.ok(results.every((result) => result.bytes_written > 0));
  assert.ok(texts.includes(await onDisk("race.txt")));
});

test("the user is shown what changed; the result stays short", async () => {
  await writeFile(rig.at("shown.txt"), "a\nb\n");
  const diffs: string[] = [];
  const ctx = { ...rig.context(), showDiff: (diff: string) => void diffs.push(diff) };
  const result = await write("shown.txt", "a\nc\n", ctx);
  assert.match(diffs.join(""), /^--- a\/shown\.txt\n\+\+\+ b\/shown\.txt\n[\s\S]*-b\n\+c\n/);
  assert.ok(!("diff" in result));
});
