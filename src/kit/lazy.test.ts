import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { importDefault, lazy } from "./lazy.ts";

test("the first folder with an index file counts; what is broken is told, what is absent is null", async (t) => {
  const root = await mkdtemp(join(tmpdir(), "import-default-"));
  t.after(() => rm(root, { recursive: true }));
  const put = async (name: string, text: string) => {
    await mkdir(join(root, name));
    await writeFile(join(root, name, "index.mjs"), text);
    return join(root, name);
  };
  const one = await put("one", "export default () => 1;");
  const two = await put("two", "export default () => 2;");
  const wrong = await put("wrong", "export default 3;");
  const needy = await put("needy", 'import "./missing.mjs"; export default () => 4;');
  const none = join(root, "none");
  assert.equal((await importDefault([none, one, two], "a number"))?.(), 1);
  assert.equal(await importDefault([none], "a number"), null);
  await assert.rejects(
    importDefault([wrong], "a number"),
    /default export of .*index\.mjs must be a function that makes a number/,
  );
  await assert.rejects(importDefault([needy], "a number"), /missing\.mjs/);
});

test("a lazy value is made once, by its first use", () => {
  let made = 0;
  const value = lazy(() => {
    made++;
    return undefined;
  });
  assert.equal(made, 0);
  value();
  value();
  assert.equal(made, 1);
});
