import assert from "node:assert/strict";
import { test } from "node:test";
import { providerContext, tellingProvider } from "../../../test/support/memory-provider.ts";
import { tempHome } from "../../../test/support/temp-home.ts";
import { findMemoryProvider, memoryProviderNames, registerMemoryProvider } from "./find.ts";

const CODE = `export default () => ({ name: "mine", isAvailable: () => true, initialize() {} });\n`;

test("the bundled provider, those of plugins and those of the home's folder are found; a bundled name wins", async (t) => {
  const home = await tempHome({
    "plugins/memory/mine/index.mjs": CODE,
    "plugins/memory/local/index.mjs": CODE,
    "plugins/memory/broken/index.mjs": "export default 1;\n",
    "plugins/memory/other-language/__init__.py": "pass\n",
    "plugins/memory/half/index.mjs": "export default () => ({ name: 'half' });\n",
  });
  t.after(() => home[Symbol.asyncDispose]());
  const context = providerContext(home.dir);
  t.after(registerMemoryProvider("ours", () => tellingProvider().provider));
  assert.equal((await findMemoryProvider("local", context))?.name, "local");
  assert.equal((await findMemoryProvider("mine", context))?.name, "mine");
  assert.equal((await findMemoryProvider("ours", context))?.name, "telling");
  assert.equal(await findMemoryProvider("nobody", context), null);
  assert.equal(await findMemoryProvider("../mine", context), null);
  await assert.rejects(
    findMemoryProvider("broken", context),
    /default export of \S+broken\/index\.mjs must be a function that makes a memory provider, \(context\) => /,
  );
  await assert.rejects(
    findMemoryProvider("half", context),
    /"half" lacks isAvailable, initialize; its function must be \(context\) => /,
  );
  assert.deepEqual(await memoryProviderNames(context), ["local", "broken", "half", "mine", "ours"]);
});

const misshapen: readonly (readonly [what: string, code: string, said: RegExp])[] = [
  ["a provider itself", "export default { name: 'm' };", /must be a function that makes a memory provider/],
  [
    "a function that makes nothing",
    "export default () => {};",
    /"m" lacks name, isAvailable, initialize; its function must be/,
  ],
  [
    "a plugin's register(ctx)",
    "export default (ctx) => ctx.registerMemoryProvider('m', () => ({}));",
    /is a plugin's register\(ctx\), but must make the provider itself: \(context\) => /,
  ],
  [
    "a function that fails for reasons of its own",
    "export default () => { throw new Error('no key'); };",
    /^Error: no key$/,
  ],
];
for (const [what, code, said] of misshapen) {
  test(`a folder whose default export is ${what} is refused in words that help`, async (t) => {
    const home = await tempHome({ "plugins/memory/m/index.mjs": `${code}\n` });
    t.after(() => home[Symbol.asyncDispose]());
    await assert.rejects(findMemoryProvider("m", providerContext(home.dir)), said);
  });
}

test("a provider in the package's plugin folder wins over one of that name in the home's", async (t) => {
  const home = await tempHome({
    "plugins/memory/mine/index.mjs": CODE,
    "package/memory/mine/index.mjs": CODE.replace('"mine"', '"theirs"'),
    "package/memory/more/index.mjs": CODE,
  });
  t.after(() => home[Symbol.asyncDispose]());
  const context = providerContext(home.dir, { packagePlugins: home.at("package") });
  assert.equal((await findMemoryProvider("mine", context))?.name, "theirs");
  assert.deepEqual(await memoryProviderNames(context), ["local", "mine", "more"]);
});
