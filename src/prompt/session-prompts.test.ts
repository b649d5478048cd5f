import assert from "node:assert/strict";
import { test } from "node:test";
import { aTarget } from "../../test/support/model-target.ts";
import { openRequest } from "../../test/support/open-request.ts";
import { tempHome } from "../../test/support/temp-home.ts";
import { systemClock } from "../kit/clock.ts";
import { promptSource } from "./session-prompts.ts";

test("a session that returns to an earlier model finds the bytes it was sent with there, the first prompt included", async (t) => {
  const temp = await tempHome({ "SOUL.md": "You are the first." });
  t.after(() => temp[Symbol.asyncDispose]());
  const { home, store } = await openRequest(temp);
  await store.create({ id: "s", source: "cli" });
  const tools = { definitions: [] };
  const ask = async (model: string) => {
    // Another process each time: nothing is in memory.
    const request = { home, clock: systemClock, platform: "cli" };
    const context = { request, cwd: temp.project, toolNames: [], toolsets: [], memory: null, skills: null };
    const prompt = promptSource({ ...context, startedAt: systemClock.now() / 1000 }, { store, tools });
    const target = aTarget("chat_completions", { model });
    const system = await prompt.system({ sessionId: "s", target, hasHistory: true });
    return typeof system === "string" ? system : system.text;
  };
  const first = await ask("one");
  assert.equal(await store.getValue("s", "prompts"), null, "it was kept twice");
  await temp.write("SOUL.md", "You are the second.");
  const second = await ask("two");
  await temp.write("SOUL.md", "You are the third.");
  assert.match(second, /the second/);
  assert.equal(await ask("one"), first);
  assert.equal(await ask("two"), second);
  await store.close();
  await home.close();
});
