import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { npmRegistry } from "../../../test/support/npm-registry.ts";
import { homePaths } from "../../home/paths.ts";
import { DRIVER, loadDriver } from "./driver.ts";

const absent = () => Promise.reject(Object.assign(new Error("not here"), { code: "ERR_MODULE_NOT_FOUND" }));

/** A registry with a small package of the driver's name, and a home without it. */
async function rig(t: TestContext) {
  const { name, version } = DRIVER;
  const registry = await npmRegistry(t, [{ name, version, code: "export const chromium = 7;" }]);
  const { folder, variables, asked } = registry;
  const home = join(folder, "home");
  const told: string[] = [];
  const options = {
    home: homePaths(home, home, "default"),
    env: (variable: string) => variables[variable],
    notify: (line: string) => void told.push(line),
  };
  const driver = { ...DRIVER, integrity: registry.integrity(name), installed: absent };
  return { folder, options, variables, asked, told, driver };
}

test("the driver is the one the tests use, to the byte", async () => {
  const lock = JSON.parse(await readFile(new URL("../../../package-lock.json", import.meta.url), "utf8"));
  const { version, integrity } = lock.packages[`node_modules/${DRIVER.name}`];
  assert.deepEqual({ version, integrity }, { version: DRIVER.version, integrity: DRIVER.integrity });
});

test("a driver beside the program is taken, and nothing is installed", async (t) => {
  const { options, told, asked } = await rig(t);
  assert.ok((await loadDriver(options)).chromium);
  assert.deepEqual([told, asked], [[], []]);
});

test("the first use brings the driver into the home, once, and says so", async (t) => {
  const { options, told, asked, driver } = await rig(t);
  const both = await Promise.all([loadDriver(options, driver), loadDriver(options, driver)]);
  for (const { chromium } of both) assert.equal(chromium as unknown, 7);
  const folder = join(options.home.root, "browser-driver", DRIVER.version);
  assert.deepEqual(told, [
    `installing the browser driver playwright-core ${DRIVER.version} into ${folder} (about 14 MB, once)`,
  ]);
  assert.deepEqual(
    asked.filter((path) => path.endsWith(".tgz")),
    [`/playwright-core@${DRIVER.version}.tgz`],
  );
  assert.deepEqual(await readdir(join(folder, "..")), [DRIVER.version]);
});

test("other bytes than the expected ones are not taken, and the reason is told", async (t) => {
  const { options, driver } = await rig(t);
  const other = { ...driver, integrity: DRIVER.integrity };
  await assert.rejects(
    loadDriver(options, other),
    /^Error: No browser driver: npm could not install playwright-core: .*sha512.*\. Install it yourself: npm install --prefix/,
  );
  assert.deepEqual(await readdir(join(options.home.root, "browser-driver")), []);
});

test("without npm the user is told how to get it, and a later call tries again", async (t) => {
  const { options, variables, driver, folder } = await rig(t);
  const path = variables.PATH;
  variables.PATH = folder;
  await assert.rejects(loadDriver(options, driver), /npm, which installs it, is not on the PATH\. Install it yourself/);
  variables.PATH = path;
  assert.equal((await loadDriver(options, driver)).chromium as unknown, 7);
});
