import assert from "node:assert/strict";
import { stat, writeFile } from "node:fs/promises";
import { type TestContext, test } from "node:test";
import { tempHome } from "../../test/support/temp-home.ts";
import { contextTrustFile, readContextTrust, trustContextFile, untrustContextFile } from "./context-trust.ts";

async function temporary(t: TestContext) {
  const home = await tempHome();
  t.after(() => home[Symbol.asyncDispose]());
  return home;
}

const entry = (path: string, digit = "a") => ({
  path,
  sha256: digit.repeat(64),
  ids: ["role_hijack"],
  trusted_at: "2026-01-02T03:04:05.000Z",
});

test("one entry per path, newest bytes, sorted, for the owner's eyes", async (t) => {
  const home = await temporary(t);
  for (const each of [entry("/b"), entry("/a"), entry("/b", "c")]) await trustContextFile(home, each);
  assert.deepEqual(await readContextTrust(home), [entry("/a"), entry("/b", "c")]);
  assert.equal((await stat(contextTrustFile(home))).mode & 0o777, 0o600);
  assert.equal(await untrustContextFile(home, "/a"), true);
  assert.equal(await untrustContextFile(home, "/a"), false);
  assert.deepEqual(await readContextTrust(home), [entry("/b", "c")]);
});

test("what is missing, damaged or not an entry trusts nobody", async (t) => {
  const home = await temporary(t);
  assert.deepEqual(await readContextTrust(home), []);
  for (const text of ["nonsense", "{}", '[1, null, {"path":"/a"}, {"path":"/a","sha256":"short"}]']) {
    await writeFile(contextTrustFile(home), text);
    assert.deepEqual(await readContextTrust(home), []);
  }
});
