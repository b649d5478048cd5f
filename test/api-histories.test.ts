// What calls of clients leave in the log: nothing, as long as nothing is wrong.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, beforeEach, test } from "node:test";
import { type ApiRig, apiRig, lastText } from "./support/api-rig.ts";

let rig: ApiRig;
before(async () => {
  rig = await apiRig();
  await rig.home.write("trusted_folders.json", "{}");
});
after(() => rig[Symbol.asyncDispose]());
beforeEach(() => {
  rig.model.clear().otherwise(({ body }) => ({ text: `you said ${lastText(body.messages)}` }));
});

/** What was logged by now. */
async function errors(): Promise<string> {
  await rig.logged();
  return readFile(rig.home.at("logs", "errors.log"), "utf8").catch(() => "");
}
/** Users and the agent in turn, the user first and last. */
const chat = (...said: readonly string[]) =>
  rig.call("POST", "/v1/chat/completions", {
    messages: said.map((content, at) => ({ role: at % 2 === 0 ? "user" : "assistant", content })),
  });

test("that the start folder is not trusted stands in the log once, however many calls there are", async () => {
  for (const text of ["one", "two", "three"]) assert.equal((await chat(text)).status, 200);
  assert.equal((await errors()).match(/is not trusted/g)?.length, 1);
});
