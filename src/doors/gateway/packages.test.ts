import assert from "node:assert/strict";
import { readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { npmRegistry } from "../../../test/support/npm-registry.ts";
import { homePaths } from "../../home/paths.ts";
import { PlatformError } from "./contract.ts";
import { installPackages, loadPackage, missingPackages } from "./packages.ts";

/** What Node says about a package that is not beside the program. */
const absent = () => Promise.reject(Object.assign(new Error("not here"), { code: "ERR_MODULE_NOT_FOUND" }));

const PLATFORM = { name: "paper", label: "Paper", packages: { "@paper/mail-client": "2.0.0", "paper-text": "1.0.0" } };

async function rig(t: TestContext) {
  const registry = await npmRegistry(t, [
    {
      ...{ name: "@paper/mail-client", version: "2.0.0", dependencies: { "paper-stamp": "^1.0.0" } },
      code: 'export { stamp } from "paper-stamp"; export const version = 2;',
    },
    {
      ...{ name: "paper-stamp", version: "1.4.0", code: "export const stamp = 7;" },
      scripts: { postinstall: "touch ../../ran" },
    },
    { name: "paper-text", version: "1.0.0", code: "export const text = (s) => s;" },
    { name: "paper-text", version: "3.0.0", code: "export const text = (s) => s + s;" },
  ]);
  const dir = join(registry.folder, "home");
  const paths = homePaths(join(dir, "profiles", "work"), dir, "work");
  const home = { paths, env: (name: string) => registry.variables[name] };
  const told: string[] = [];
  const load = (name: string) => loadPackage(PLATFORM, name, absent, home);
  const install = (platform = PLATFORM) => installPackages(platform, home, (text) => void told.push(text));
  return { ...registry, home, told, load, install, place: join(dir, "packages", "paper") };
}

const missing = (text: RegExp) => (error: unknown) => {
  assert.ok(error instanceof PlatformError);
  assert.deepEqual([error.code, error.retryable], ["package_missing", false]);
  assert.match(error.message, text);
  return true;
};

test("a package beside the program is taken as it is", async (t) => {
  const { home } = await rig(t);
  assert.equal(await loadPackage(PLATFORM, "paper-text", async () => 42, home), 42);
});

test("what breaks while a package is loaded is not taken for a missing one", async (t) => {
  const { home } = await rig(t);
  const broken = () => Promise.reject(new SyntaxError("odd"));
  await assert.rejects(loadPackage(PLATFORM, "paper-text", broken, home), SyntaxError);
});

test("one that is nowhere is fatal for its platform, with the line that installs it", async (t) => {
  const { load, home } = await rig(t);
  await assert.rejects(
    load("paper-text"),
    missing(/^the package paper-text is not installed; install it with: hermes -p work gateway setup paper$/),
  );
  assert.deepEqual(await missingPackages(PLATFORM, home), ["@paper/mail-client", "paper-text"]);
});

test("npm installs exact versions with what they need, runs no scripts of theirs, and all profiles load them", async (t) => {
  const { load, install, told, place, home } = await rig(t);
  await install();
  assert.deepEqual(told, [`installing @paper/mail-client, paper-text into ${place}`]);
  const mail = (await load("@paper/mail-client")) as { stamp: number; version: number };
  assert.deepEqual([mail.stamp, mail.version], [7, 2]);
  const { text } = (await load("paper-text")) as { text(s: string): string };
  assert.equal(text("a"), "a", "1.0.0 although 3.0.0 is the newest");
  await assert.rejects(stat(join(place, "ran")), { code: "ENOENT" });
  assert.deepEqual(await missingPackages(PLATFORM, home), []);
  assert.deepEqual(await readdir(join(place, "..")), ["paper"], "no rest of the installation");
  await install();
  assert.equal(told.length, 1, "nothing to do");
});

test("another version than the one this program was made for is installed again", async (t) => {
  const { load, install } = await rig(t);
  await install({ ...PLATFORM, packages: { ...PLATFORM.packages, "paper-text": "3.0.0" } });
  await assert.rejects(load("paper-text"), missing(/installed as 3\.0\.0, and 1\.0\.0 is needed; install it with/));
  await install();
  assert.ok(await load("paper-text"));
});

test("a package whose files are damaged is fatal too, and says what is wrong", async (t) => {
  const { load, install, place } = await rig(t);
  await install();
  await rm(join(place, "node_modules", "paper-stamp"), { recursive: true });
  await assert.rejects(load("@paper/mail-client"), missing(/cannot be loaded \(Cannot find package 'paper-stamp'/));
});

test("an installation that fails leaves what was there, and says how to do it by hand", async (t) => {
  const { load, install, place, home, variables } = await rig(t);
  await install();
  const before = await readFile(join(place, "package.json"), "utf8");
  const gone = { ...PLATFORM, packages: { ...PLATFORM.packages, "paper-text": "9.9.9" } };
  await assert.rejects(
    install(gone),
    /The packages of Paper were not installed: npm failed: .*9\.9\.9.*hermes -p work gateway setup paper.*npm install --prefix/,
  );
  assert.equal(await readFile(join(place, "package.json"), "utf8"), before);
  assert.ok(await load("paper-text"));
  assert.deepEqual(await readdir(join(place, "..")), ["paper"]);
  variables.PATH = home.paths.dir;
  await assert.rejects(install(gone), /npm, which installs them, is not on the PATH/);
});

test("two installations at once end with a whole folder", async (t) => {
  const { load, install, place } = await rig(t);
  await Promise.all([install(), install()]);
  assert.ok(await load("@paper/mail-client"));
  assert.deepEqual(await readdir(join(place, "..")), ["paper"]);
});

test("a damaged folder is replaced, also where the versions in it are right", async (t) => {
  const { load, install, place, home } = await rig(t);
  await install();
  await rm(join(place, "node_modules", "paper-stamp"), { recursive: true });
  assert.deepEqual(await missingPackages(PLATFORM, home), ["@paper/mail-client"]);
  await install();
  await stat(join(place, "node_modules", "paper-stamp"));
  await rm(join(place, "node_modules", "paper-text"), { recursive: true });
  await install();
  assert.ok(await load("paper-text"));
});
