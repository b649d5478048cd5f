// A plugin that never comes back costs its deadline, once.
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { OfferedTool } from "../src/plugins/active-plugin.ts";
import type { Factory } from "../src/plugins/contract.ts";
import { PluginHost } from "../src/plugins/host.ts";
import { jumpingClock } from "./support/memory-provider.ts";
import { recordingLog } from "./support/tool-context.ts";

async function hostOf(t: TestContext, plugins: Readonly<Record<string, string>>) {
  const folder = await mkdtemp(join(tmpdir(), "hermes-plugins-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  for (const [name, code] of Object.entries(plugins)) {
    await mkdir(join(folder, name), { recursive: true });
    await writeFile(join(folder, name, "plugin.yaml"), `name: ${name}\nversion: 1.0.0\n`);
    await writeFile(join(folder, name, "index.mjs"), code);
  }
  const clock = jumpingClock();
  const tools: string[] = [];
  const offered: OfferedTool[] = [];
  const factories: Factory[] = [];
  const made = (create: Factory) => {
    factories.push(create);
    return () => undefined;
  };
  const host = new PluginHost({
    ...{ clock, log: recordingLog(), hermesHome: folder, profileName: "default", env: () => undefined },
    roots: { bundled: null, home: folder, project: null, packages: [] },
    outlineFile: join(folder, "outlines.json"),
    settings: () => ({ enabled: Object.keys(plugins), disabled: [], entries: {} }),
    conversation: () => null,
    sinks: {
      tool(tool) {
        const { name } = tool;
        offered.push(tool);
        tools.push(name);
        return () => void tools.splice(tools.indexOf(name), 1);
      },
      memoryProvider: (_name, create) => made(create),
      contextEngine: (_name, create) => made(create),
      provider: () => () => undefined,
    },
  });
  /** Lets time pass until the work is done. */
  const overTime = async <T>(work: Promise<T>): Promise<T> => {
    let done = false;
    const settled = work.finally(() => {
      done = true;
    });
    settled.catch(() => undefined); // told below
    while (!done) await clock.pass(1000);
    return settled;
  };
  return { host, tools, offered, factories, overTime };
}

const TOOL = `ctx.registerTool({ name: "t_tool", description: "x", handler: () => "x" });`;

test("a register that hangs is given up after its deadline; the others are there, and it is not tried again", async (t) => {
  const { host, tools, overTime } = await hostOf(t, {
    a_hangs: `export default (ctx) => { ${TOOL.replace("t_tool", "t_never")} return new Promise(() => {}); };`,
    b_works: `export default (ctx) => { ${TOOL} };`,
  });
  await overTime(host.refresh());
  assert.deepEqual(tools, ["t_tool"]);
  assert.match(host.takeLines().join("\n"), /Plugin "a_hangs" could not be loaded: it did not register within 10 s/);
  await host.refresh();
  assert.deepEqual(host.takeLines(), [], "the second look costs no deadline and says nothing");
});

test("a hook that hangs is left alone after its deadline, and the next event does not wait for it again", async (t) => {
  const { host, overTime } = await hostOf(t, {
    a_hangs: `export default (ctx) => ctx.registerHook("pre_tool_call", () => new Promise(() => {}));`,
    b_works: `export default (ctx) => ctx.registerHook("pre_tool_call", () => "here");`,
  });
  await overTime(host.refresh());
  assert.deepEqual(await overTime(host.hooks.emit("pre_tool_call", {})), ["here"]);
  assert.match(host.takeLines().join("\n"), /plugin "a_hangs": hook pre_tool_call did not respond within 10 s/);
  assert.deepEqual(await host.hooks.emit("pre_tool_call", {}), ["here"], "time stands still and it answers");
  assert.deepEqual(host.takeLines(), []);
});

test("a tool that never says whether it is available is not; a memory or an engine that is never made is given up", async (t) => {
  const { host, offered, factories, overTime } = await hostOf(t, {
    a_hangs: `export default (ctx) => {
      ctx.registerTool({ name: "t_mute", description: "x", available: () => new Promise(() => {}), handler: () => "x" });
      ctx.registerMemoryProvider("t_mem", () => new Promise(() => {}));
      ctx.registerContextEngine("t_eng", () => new Promise(() => {}));
    };`,
  });
  await overTime(host.refresh());
  assert.equal(await overTime(offered[0]?.available?.() ?? Promise.resolve(true)), false);
  assert.equal(await offered[0]?.available?.(), false, "time stands still and nobody waits");
  for (const [at, what] of [/make the memory provider t_mem within 10 s/, /make the context engine t_eng/].entries())
    await assert.rejects(overTime(Promise.resolve(factories[at]?.({} as never))), what); // nothing of the place is read
});
