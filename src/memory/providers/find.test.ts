import assert from "node:assert/strict";
import { test } from "node:test";
import { providerPlace, tellingProvider } from "../../../test/support/memory-provider.ts";
import { tempHome } from "../../../test/support/temp-home.ts";
import { findMemoryProvider, memoryProviderNames, registerMemoryProvider } from "./find.ts";

const CODE = `export default () => ({ name: "mine", isAvailable: () => true, initialize() {} });\n`;

test("the bundled provider, those of plugins and those of the home's folder are found; a bundled name wins", async (t) => {
  const home = await tempHome({
    "plugins/memory/mine/index.mjs": CODE,
    "plugins/memory/local/index.mjs": CODE,
    "plugins/memory/broken/index.mjs": "export default 1;\n",
    "plugins/memory/half/index.mjs": "export default () => ({ name: 'half' });\n",
  });
  t.after(() => home[Symbol.asyncDispose]());
  const place = providerPlace(home.dir);
  t.after(registerMemoryProvider("ours", () => tellingProvider().provider));
  assert.equal((await findMemoryProvider("local", place))?.name, "local");
  assert.equal((await findMemoryProvider("mine", place))?.name, "mine");
  assert.equal((await findMemoryProvider("ours", place))?.name, "telling");
  assert.equal(await findMemoryProvider("nobody", place), null);
  assert.equal(await findMemoryProvider("../mine", place), null);
  await assert.rejects(findMemoryProvider("broken", place), /has no default export/);
  await assert.rejects(findMemoryProvider("half", place), /lacks isAvailable, initialize/);
  assert.deepEqual(await memoryProviderNames(place), ["local", "broken", "half", "mine", "ours"]);
});

test("a provider in the package's plugin folder wins over one of that name in the home's", async (t) => {
  const home = await tempHome({
    "plugins/memory/mine/index.mjs": CODE,
    "package/memory/mine/index.mjs": CODE.replace('"mine"', '"theirs"'),
    "package/memory/more/index.mjs": CODE,
  });
  t.after(() => home[Symbol.asyncDispose]());
  const place = providerPlace(home.dir, { packagePlugins: home.at("package") });
  assert.equal((await findMemoryProvider("mine", place))?.name, "theirs");
  assert.deepEqual(await memoryProviderNames(place), ["local", "mine", "more"]);
});
