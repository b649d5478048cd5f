import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { displayPath, resolveHomeDir } from "./paths.ts";
import { ProfileError, profileName, selectProfile } from "./profiles.ts";

const osHome = mkdtempSync(join(tmpdir(), "hermes-profiles-"));
after(() => rmSync(osHome, { recursive: true, force: true }));
const root = join(osHome, ".hermes");
mkdirSync(join(root, "profiles", "coder"), { recursive: true });
mkdirSync(join(root, "profiles", "second"), { recursive: true });

const select = (argv: readonly string[], env: Record<string, string> = {}) =>
  selectProfile({ argv, env, osHome, platform: "linux" });

for (const name of ["coder", "a", "a_b-c", "x".repeat(64), "0", " Coder "]) {
  test(`"${name}" is a profile name`, () => assert.equal(profileName(name), name.trim().toLowerCase()));
}
for (const name of ["x.y", "../x", "a b", "名", "x".repeat(65), "-a", "_a", "", "no:xdist"]) {
  test(`"${name}" is no profile name`, () => assert.equal(profileName(name), null));
}

const scans: readonly [argv: string[], profile: string, rest: string[]][] = [
  [["-p", "coder", "chat"], "coder", ["chat"]],
  [["chat", "--profile", "coder", "-q", "hi"], "coder", ["chat", "-q", "hi"]],
  [["--profile=coder"], "coder", []],
  [["chat", "-p", "Coder"], "coder", ["chat"]],
  [["-p", "coder", "-p", "second", "x"], "coder", ["x"]],
  [["-z", "-p", "coder", "hi"], "coder", ["-z", "hi"]],
  [["-z", "--profile=coder", "hi"], "coder", ["-z", "hi"]],
  [["-z", "-p coder", "hi"], "default", ["-z", "-p coder", "hi"]],
  [["-z", "hi", "-p", "coder"], "coder", ["-z", "hi"]],
  [["-c", "-p", "coder"], "coder", ["-c"]],
  [["-c", "my", "proj", "-p", "coder"], "coder", ["-c", "my", "proj"]],
  [["--", "-p", "coder"], "default", ["--", "-p", "coder"]],
  [["mcp", "add", "x", "--args", "-p", "coder"], "default", ["mcp", "add", "x", "--args", "-p", "coder"]],
  [["-p", "coder", "mcp", "add", "x", "--args", "-p", "80"], "coder", ["mcp", "add", "x", "--args", "-p", "80"]],
  [["safety", "check", "mkdir", "-p", "coder"], "default", ["safety", "check", "mkdir", "-p", "coder"]],
  [["safety", "check", "--json", "-p", "coder", "ls"], "coder", ["safety", "check", "--json", "ls"]],
  [["-p"], "default", ["-p"]],
  [["-p", "no:xdist"], "default", ["-p", "no:xdist"]],
  [["-p", "default", "status"], "default", ["status"]],
];
for (const [argv, profile, rest] of scans) {
  test(`hermes ${argv.join(" ")} is profile ${profile}`, () => {
    const selection = select(argv);
    assert.equal(selection.paths.profile, profile);
    assert.deepEqual(selection.argv, rest);
    assert.equal(selection.paths.dir, profile === "default" ? root : join(root, "profiles", profile));
  });
}

test("a profile that does not exist is refused with the way to create it", () => {
  assert.throws(
    () => select(["-p", "nobody"]),
    (error: unknown) => {
      assert.ok(error instanceof ProfileError);
      assert.equal(error.message, "Profile 'nobody' does not exist. Create it with: hermes profile create nobody");
      return true;
    },
  );
});

test("the sticky profile is used without a flag, and loses against one", (t) => {
  writeFileSync(join(root, "active_profile"), "second\n");
  t.after(() => rmSync(join(root, "active_profile")));
  assert.equal(select([]).paths.profile, "second");
  assert.equal(select(["-p", "coder"]).paths.profile, "coder");
  assert.equal(select(["-p", "default"]).paths.dir, root);
  assert.equal(select([], { HERMES_HOME: join(root, "profiles", "coder") }).paths.profile, "coder");
});

test("a sticky profile whose directory is gone warns and leaves the default usable", (t) => {
  writeFileSync(join(root, "active_profile"), "gone");
  t.after(() => rmSync(join(root, "active_profile")));
  const { paths, warnings } = select([]);
  assert.equal(paths.dir, root);
  assert.match(warnings[0] ?? "", /'gone' no longer exists/);
});

const homes: readonly [given: string | undefined, dir: string, rootDir: string, profile: string][] = [
  [undefined, root, root, "default"],
  ["   ", root, root, "default"],
  ["~/.hermes", root, root, "default"],
  [join(root, "profiles", "coder"), join(root, "profiles", "coder"), root, "coder"],
  ["/srv/h", "/srv/h", "/srv/h", "default"],
  ["/srv/h/profiles/x", "/srv/h/profiles/x", "/srv/h", "x"],
  [join(root, "deep", "er"), join(root, "deep", "er"), root, "custom"],
];
for (const [given, dir, rootDir, profile] of homes) {
  test(`HERMES_HOME ${JSON.stringify(given)} is ${profile} in its root`, () => {
    const { paths } = select([], given === undefined ? {} : { HERMES_HOME: given });
    assert.deepEqual([paths.dir, paths.root, paths.profile], [dir, rootDir, profile]);
  });
}

test("Windows keeps the home under the local application data", () => {
  const dir = resolveHomeDir({ env: { LOCALAPPDATA: "/data" }, osHome: "/u", platform: "win32" });
  assert.equal(dir, join("/data", "hermes"));
});

test("paths below the user's home are shown with a tilde", () => {
  assert.equal(displayPath("/home/me/.hermes/x", "/home/me"), "~/.hermes/x");
  assert.equal(displayPath("/home/me", "/home/me"), "~");
  assert.equal(displayPath("/home/meandyou", "/home/me"), "/home/meandyou");
});
