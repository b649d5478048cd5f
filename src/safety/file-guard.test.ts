import assert from "node:assert/strict";
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createFileGuard, type FileGuard, type FileVerdict } from "./file-guard.ts";

let dir: string;
let root: string;
let profile: string;
let guard: FileGuard;
before(async () => {
  dir = await realpath(await mkdtemp(join(tmpdir(), "hermes-guard-")));
  root = join(dir, ".hermes");
  profile = join(root, "profiles", "work");
  await mkdir(join(dir, ".ssh"), { recursive: true });
  await mkdir(join(dir, "project"), { recursive: true });
  await mkdir(join(profile, "skills"), { recursive: true });
  await writeFile(join(root, ".env"), "A=b");
  await symlink(join(dir, ".ssh"), join(dir, "project", "innocent"));
  await symlink(join(root, ".env"), join(dir, "project", "settings.txt"));
  await symlink(join(dir, ".bashrc"), join(dir, "project", "rc"));
  guard = await createFileGuard({ userHome: dir, profileHome: profile, rootHome: root });
});
after(() => rm(dir, { recursive: true, force: true }));

const at = (path: string) => (path.startsWith("/") ? path : join(dir, path));
const messageOf = (verdict: FileVerdict) => (verdict.type === "deny" ? verdict.message : verdict.type);

const unwritable = [
  ..."authorized_keys id_rsa id_ed25519 config other deep/file".split(" ").map((name) => `.ssh/${name}`),
  ..." .netrc .pgpass .npmrc .pypirc .git-credentials .aws/credentials .gnupg/x .kube/config .docker/config.json .azure/x"
    .trim()
    .split(" "),
  ...".config/gh/hosts.yml .config/gcloud/x /etc/sudoers /etc/passwd /etc/shadow /etc/hosts /etc/sudoers.d/x".split(
    " ",
  ),
  ..."/etc/systemd/system/x /boot/grub.cfg /usr/lib/systemd/x /private/etc/hosts /var/run/docker.sock /run/docker.sock".split(
    " ",
  ),
  ...".env .anthropic_oauth.json auth.json config.yaml state.db context_trust.json shell-hooks-allowlist.json"
    .split(" ")
    .flatMap((name) => [`.hermes/${name}`, `.hermes/profiles/work/${name}`, `.hermes/profiles/other/${name}`]),
  ..."mcp-tokens/x pairing/x sessions/x.json"
    .split(" ")
    .flatMap((name) => [`.hermes/${name}`, `.hermes/profiles/work/${name}`]),
  ..."CONFIG.YAML Auth.json state.db-journal checkpoints/store/config browser-driver/1/index.mjs"
    .split(" ")
    .map((name) => `.hermes/${name}`),
  "project/innocent/authorized_keys",
  "project/settings.txt",
  "project/../.ssh/x",
];

test("credentials, system files and Hermes' own files are never written, also through links", async () => {
  for (const path of unwritable)
    assert.match(
      messageOf(await guard.canWrite(at(path), { crossProfile: true })),
      /^Write denied: .* protected/,
      path,
    );
});

const writable = [
  ".ssh_backup/x",
  ".sshx",
  "project/.env",
  "project/config.yaml",
  "project/file.ts",
  ".awsome/x",
  ".npmrc.bak",
  ".hermes/workspace/notes.md",
  ".hermes/profiles/work/workspace/x",
  "project/.github/x.yml",
  "project/.gitignore",
  "project/git/hooks/x",
  ".local/share/notes/x",
  "/usr/share/x",
  "/var/tmp/x",
  "/etcetera/x",
];

test("what merely looks alike is free", async () => {
  for (const path of writable) assert.equal(messageOf(await guard.canWrite(at(path))), "allow", path);
});

test("a refusal names the place behind a link and says what to do", async () => {
  const message = messageOf(await guard.canWrite(at("project/settings.txt")));
  assert.ok(message.includes(at("project/settings.txt")) && message.includes(join(root, ".env")), message);
  assert.match(messageOf(await guard.canWrite(join(root, "config.yaml"))), /hermes config set/);
});

test("shell start files are asked for like the command that writes them, also through a link", async () => {
  assert.deepEqual(await guard.canWrite(at(".bashrc")), { type: "ask", command: "tee ~/.bashrc" });
  assert.deepEqual(await guard.canWrite(at("project/rc")), { type: "ask", command: "tee ~/.bashrc" });
  assert.deepEqual(await guard.canWrite(at(".zshenv")), { type: "ask", command: "tee ~/.zshenv" });
  assert.equal((await guard.canWrite(at("project/.bashrc"))).type, "allow");
});

test("skills, memories and jobs are written by their tools alone, the code of plugins by nobody", async () => {
  for (const name of ["skills/a/SKILL.md", "memories/MEMORY.md", "cron/jobs.json", "skills/.hub/x"])
    assert.match(messageOf(await guard.canWrite(join(profile, name))), /^Write denied: .* protected/, name);
  assert.match(messageOf(await guard.canWrite(join(profile, "memories/USER.md"))), /its own tools \(memory/);
  for (const name of ["plugins/a/index.mjs", "hooks/x.sh"])
    assert.match(messageOf(await guard.canWrite(join(profile, name))), /runs inside Hermes/, name);
  assert.deepEqual(await guard.canWrite(join(profile, "SOUL.md")), { type: "ask", command: "tee ~/.hermes/SOUL.md" });
});

test("another profile's skills, jobs and memories need cross_profile, and then a yes", async () => {
  for (const path of [
    ".hermes/skills/x",
    ".hermes/profiles/other/skills/x",
    ".hermes/profiles/other/cron/jobs.json",
    ".hermes/memories/USER.md",
  ]) {
    assert.match(messageOf(await guard.canWrite(at(path))), /belongs to the profile .*cross_profile=true/, path);
    assert.equal((await guard.canWrite(at(path), { crossProfile: true })).type, "ask", path);
  }
  const main = await createFileGuard({ userHome: dir, profileHome: root, rootHome: root });
  assert.match(messageOf(await main.canWrite(at(".hermes/skills/x"))), /^Write denied: .* protected/);
  assert.match(messageOf(await main.canWrite(at(".hermes/profiles/work/skills/x"))), /profile "work"/);
  assert.match(messageOf(await main.canWrite(at(".hermes/profiles/work/plugins/x"), { crossProfile: true })), /denied/);
});

test("with safe roots nothing outside them is written", async () => {
  const narrow = await createFileGuard({
    userHome: dir,
    profileHome: profile,
    rootHome: root,
    writeSafeRoots: [at("project"), at("elsewhere")],
  });
  assert.equal((await narrow.canWrite(at("project/a/b"))).type, "allow");
  assert.equal((await narrow.canWrite(at("elsewhere/a"))).type, "allow");
  for (const path of ["projects/x", "file", "project/../x"])
    assert.match(messageOf(await narrow.canWrite(at(path))), /outside HERMES_WRITE_SAFE_ROOT/, path);
  assert.match(messageOf(await narrow.canWrite(at("project/innocent/x"))), /denied/);
  const homely = await createFileGuard({
    ...{ userHome: dir, profileHome: profile, rootHome: root },
    writeSafeRoots: ["~/project"],
  });
  assert.equal((await homely.canWrite(at("project/a"))).type, "allow");
  assert.match(messageOf(await homely.canWrite(at("x"))), /outside/);
});

test("a link does not lead out of the safe roots, whatever it is made of", async () => {
  const open = (writeSafeRoots: readonly string[]) =>
    createFileGuard({ userHome: dir, profileHome: profile, rootHome: root, writeSafeRoots });
  await mkdir(at("outer/deep"), { recursive: true });
  await mkdir(at("inner"));
  await writeFile(at("outer/note.txt"), "x");
  const links: readonly (readonly [name: string, to: string, written: string, target: string])[] = [
    ["folder", at("outer"), "folder/new.txt", "outer/new.txt"],
    ["file", at("outer/note.txt"), "file", "outer/note.txt"],
    ["relative", "../outer", "relative/new.txt", "outer/new.txt"],
    ["dangling", at("outer/not-yet"), "dangling", "outer/not-yet"],
    ["chain", at("inner/folder"), "chain/deep/new.txt", "outer/deep/new.txt"],
  ];
  for (const [name, to] of links) await symlink(to, at(`inner/${name}`));
  const narrow = await open([at("inner")]);
  for (const [, , written, target] of links) {
    const message = messageOf(await narrow.canWrite(at(`inner/${written}`)));
    assert.ok(message.includes(`${at(`inner/${written}`)} (which is ${at(target)}) is outside HERMES_WRITE`), message);
  }
  assert.equal((await narrow.canWrite(at("inner/new.txt"))).type, "allow");
  // The other way round: what is inside may be reached by a link, and a root may be one.
  await symlink(at("inner"), at("door"));
  assert.equal((await narrow.canWrite(at("door/new.txt"))).type, "allow");
  const linked = await open([at("door")]);
  assert.equal((await linked.canWrite(at("inner/new.txt"))).type, "allow");
  assert.match(messageOf(await linked.canWrite(at("door/folder/new.txt"))), /outside HERMES_WRITE_SAFE_ROOT/);
});

test("a link into another profile's skills, jobs or memories needs cross_profile as well", async () => {
  const other = join(root, "profiles", "other");
  for (const area of ["skills", "cron", "memories"]) {
    await mkdir(join(other, area), { recursive: true });
    await symlink(join(other, area), at(`project/their-${area}`));
    const path = at(`project/their-${area}/x`);
    const message = messageOf(await guard.canWrite(path));
    assert.ok(message.includes(`(which is ${join(other, area, "x")}) belongs to the profile "other"`), message);
    assert.equal((await guard.canWrite(path, { crossProfile: true })).type, "ask");
  }
  await symlink(join(profile, "skills"), at("project/my-skills"));
  assert.match(messageOf(await guard.canWrite(at("project/my-skills/x"))), /^Write denied: .* protected/);
});

const unreadable = [
  ...".env auth.json auth.lock .anthropic_oauth.json webhook_subscriptions.json auth/google_oauth.json mcp-tokens/x skills/.hub/x"
    .split(" ")
    .flatMap((name) => [`.hermes/${name}`, `.hermes/profiles/work/${name}`]),
  ...".env .env.local .env.development .env.production .env.test .env.staging .envrc"
    .split(" ")
    .map((n) => `project/${n}`),
  "project/settings.txt",
];
const readable = [
  ..."project/.env.example project/env project/.env.sample project/x.env project/.environment".split(" "),
  ".hermes/config.yaml",
  ".hermes/skills/a/SKILL.md",
  "project/auth.json",
  ".env/bin/python",
];

test("files of secrets are not read, also through links; templates are", async () => {
  for (const path of unreadable) {
    assert.match(messageOf(await guard.canRead(at(path))), /^Read denied: /, path);
    if (path !== "project/settings.txt") assert.ok(guard.isUnreadable(at(path)), path);
  }
  for (const path of readable) {
    assert.equal(messageOf(await guard.canRead(at(path))), "allow", path);
    assert.ok(!guard.isUnreadable(at(path)), path);
  }
});
