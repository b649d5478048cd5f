import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { openAgent } from "../src/agent/open.ts";
import type { OpenRequest } from "../src/agent/open-request.ts";
import type { UserInput } from "../src/llm/messages.ts";
import { ModelServer } from "./support/model-server/server.ts";
import { openRequest } from "./support/open-request.ts";
import { modelConfig, tempHome } from "./support/temp-home.ts";

let server: ModelServer;
before(async () => {
  server = await ModelServer.start();
});
after(() => server.close());

/** One turn of a conversation opened like this; the request that reached the server, and what the store keeps. */
async function talk(given: Partial<OpenRequest>, input: UserInput) {
  await using temp = await tempHome({
    "config.yaml": modelConfig(server),
    "SOUL.md": "You are Heron, a quiet bird.",
  });
  await writeFile(join(temp.project, "AGENTS.md"), "Always build with ninja.");
  const { home, store, request } = await openRequest(temp);
  server.script({ text: "yes" });
  const opened = await openAgent({ ...request, ...given });
  for await (const _ of opened.agent.run(input)) {
    // played to its end
  }
  const { sessionId } = opened.agent;
  const stored = await store.load(sessionId);
  const row = await store.get(sessionId);
  const lane = await store.takeLane(sessionId, "elsewhere:1:x");
  await opened.close("cli_close");
  await store.close();
  await home.close();
  const messages: { role: string; content: string }[] = server.last.body.messages;
  return { messages, stored, row, lane };
}

test("a client's own history is the conversation so far, and is not stored again", async () => {
  const history = [
    { role: "user", content: "My name is Ada." },
    { role: "assistant", content: "Good day, Ada." },
  ] as const;
  const { messages, stored } = await talk({ history }, { text: "And?" });
  assert.deepEqual(
    messages.filter(({ role }) => role !== "system").map(({ content }) => content),
    ["My name is Ada.", "Good day, Ada.", "And?"],
  );
  assert.deepEqual(
    stored.map(({ content }) => content),
    ["And?", "yes"],
  );
});

test("SOUL.md can speak where no project file is read", async () => {
  const plain = await talk({ ignoreRules: true }, { text: "hi" });
  assert.doesNotMatch(plain.messages[0]?.content ?? "", /Heron|ninja/);
  const itself = await talk({ ignoreRules: true, soulIdentity: true }, { text: "hi" });
  assert.match(itself.messages[0]?.content ?? "", /Heron/);
  assert.doesNotMatch(itself.messages[0]?.content ?? "", /ninja/);
});

test("a note goes out in front of the message and is kept nowhere", async () => {
  const { messages, stored } = await talk({}, { text: "What now?", note: "[The chat was quiet for two days.]" });
  assert.equal(messages.at(-1)?.content, "[The chat was quiet for two days.]\n\nWhat now?");
  assert.equal(stored[0]?.content, "What now?");
});

test("whose conversation it is stands in its row", async () => {
  const { row } = await talk({ sender: { userId: "u-17", userName: "Ada" }, sessionKey: "x:dm:u-17" }, { text: "hi" });
  assert.equal(row?.userId, "u-17");
});

test("whoever opens a conversation holds its lane for each turn; what was delegated is written in its parent's", async () => {
  const said = ["hi", "yes"];
  for (const start of [undefined, { origin: "background" } as const]) {
    const { stored, row, lane } = await talk({ ...(start ? { start } : {}) }, { text: "hi" });
    assert.deepEqual(
      stored.map(({ content }) => content),
      said,
    );
    assert.ok(lane.type === "taken" && lane.lease.lane === row?.id);
    assert.equal(lane.lease.token, 2, "it was held before");
  }
  const { stored, lane } = await talk({ start: { origin: "subagent", delegatedFrom: "parent" } }, { text: "hi" });
  assert.deepEqual(
    stored.map(({ content }) => content),
    said,
  );
  assert.ok(lane.type === "taken");
  assert.equal(lane.lease.token, 1, "whoever delegates holds it");
});
