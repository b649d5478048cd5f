// Histories that clients keep themselves: they may branch, be edited and begin alike, and none of that is a fault to be logged.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, beforeEach, describe, test } from "node:test";
import { type ApiRig, apiRig, lastText } from "./support/api-rig.ts";
import { runHermes } from "./support/run-hermes.ts";

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
const respond = async (body: object) => (await rig.call("POST", "/v1/responses", body)).json;
const sessionOf = ({ headers }: { readonly headers: Headers }) => headers.get("x-hermes-session-id") ?? "";

/** Users and the agent in turn, the user first and last. */
const chat = (...said: readonly string[]) =>
  rig.call("POST", "/v1/chat/completions", {
    messages: said.map((content, at) => ({ role: at % 2 === 0 ? "user" : "assistant", content })),
  });

/** Where the prefix broke and why, call by call. */
async function breaks(id: string): Promise<(readonly [owner: string | null, cause: string | null])[]> {
  const { stdout } = await runHermes(["prompt", "blame", id, "--json"], { home: rig.home });
  const { rows } = JSON.parse(stdout);
  return rows
    .filter(({ task }: { task: string }) => task === "main")
    .map((row: { broke_owner: string | null; cause: string | null }) => [row.broke_owner, row.cause]);
}

test("that the start folder is not trusted stands in the log once, however many calls there are", async () => {
  for (const text of ["one", "two", "three"]) assert.equal((await chat(text)).status, 200);
  assert.equal((await errors()).match(/is not trusted/g)?.length, 1);
});

describe("a branch that the client chose is a named cause and no error", () => {
  test("two answers to one stored response", async () => {
    const first = await rig.call("POST", "/v1/responses", { input: "begin" });
    await respond({ input: "left", previous_response_id: first.json.id });
    await respond({ input: "right", previous_response_id: first.json.id });
    assert.deepEqual(await breaks(sessionOf(first)), [
      [null, null],
      [null, null],
      ["message 2 (user)", "client"],
    ]);
    assert.doesNotMatch(await errors(), /ERROR/);
  });

  test("an earlier answer that was edited, and the same chat once more", async () => {
    const first = await chat("hi");
    await chat("hi", "you said hi", "and now?");
    await chat("hi", "you said hello", "and now?");
    await chat("hi");
    assert.deepEqual(await breaks(sessionOf(first)), [
      [null, null],
      [null, null],
      ["message 1 (assistant)", "client"],
      ["message 1 (gone)", "client"],
    ]);
    assert.doesNotMatch(await errors(), /ERROR/);
  });
});

test("a conversation that goes on as it was answered announces nothing: what we would change in it is an error", async () => {
  const id = sessionOf(await chat("go on"));
  const announced = async () => ((await rig.store.getValue(id, "prefix")) as { causes: string[] }).causes.length;
  const before = await announced();
  await chat("go on", "you said go on", "and now?");
  assert.equal(await announced(), before);
  await chat("go on", "you said: go on", "and now?");
  assert.equal(await announced(), before + 1);
});
