import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { homePaths } from "../../home/paths.ts";
import { DRIVER, loadDriver } from "./driver.ts";

const absent = () => Promise.reject(Object.assign(new Error("not here"), { code: "ERR_MODULE_NOT_FOUND" }));

/** A registry on loopback with a small package of the driver's name, and a home without it. */
async function rig(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), "hermes-driver-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await mkdir(join(folder, "package"));
  const text = {
    "package.json": JSON.stringify({ ...DRIVER, main: "index.mjs" }),
    "index.mjs": "export const chromium = 7;",
  };
  for (const [name, content] of Object.entries(text)) await writeFile(join(folder, "package", name), content);
  await promisify(execFile)("tar", ["-czf", "package.tgz", "package"], { cwd: folder });
  const tarball = await readFile(join(folder, "package.tgz"));
  const integrity = `sha512-${createHash("sha512").update(tarball).digest("base64")}`;
  const asked: string[] = [];
  const registry = createServer((request, response) => {
    asked.push(request.url ?? "");
    if (request.url?.endsWith(".tgz")) return response.end(tarball);
    const { name, version } = DRIVER;
    const dist = { tarball: `${url}/${name}.tgz`, integrity };
    response.setHeader("content-type", "application/json");
    response.end(
      JSON.stringify({ name, "dist-tags": { latest: version }, versions: { [version]: { name, version, dist } } }),
    );
  });
  await new Promise<void>((resolve) => registry.listen(0, "127.0.0.1", resolve));
  t.after(() => registry.close());
  const url = `http://127.0.0.1:${(registry.address() as AddressInfo).port}`; // listening on TCP
  const variables: Record<string, string | undefined> = {
    ...{ PATH: process.env.PATH, HOME: folder, npm_config_registry: url, npm_config_cache: join(folder, "cache") },
  };
  const home = join(folder, "home");
  const told: string[] = [];
  const options = {
    home: homePaths(home, home, "default"),
    env: (name: string) => variables[name],
    notify: (line: string) => void told.push(line),
  };
  return { folder, options, variables, asked, told, driver: { ...DRIVER, integrity, installed: absent } };
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
    ["/playwright-core.tgz"],
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
