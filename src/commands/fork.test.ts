import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { commandRig } from "../../test/support/command-rig.ts";
import { ModelServer } from "../../test/support/model-server/server.ts";
import { modelConfig } from "../../test/support/temp-home.ts";
import { textOf } from "../llm/messages.ts";

describe("/fork", () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
    server.otherwise({ text: "sure" });
  });
  after(() => server.close());
  const rigOf = (t: Parameters<typeof commandRig>[0]) => commandRig(t, { "config.yaml": modelConfig(server) });
  const saidIn = async (rig: Awaited<ReturnType<typeof rigOf>>, id: string) =>
    (await rig.ctx.store.load(id)).map(({ content }) => textOf(content));

  test("a branch ends before the message that was picked, which is in the input; the original stays", async (t) => {
    const rig = await rigOf(t);
    await rig.type("/tree");
    assert.equal(rig.text(), "Nothing to branch from yet.");
    for (const text of ["alpha one", "beta two", "gamma three"]) await rig.chat(text);
    await rig.type("/title Talk");
    rig.text();
    const original = rig.ctx.conversation.agent.sessionId;
    const before = await saidIn(rig, original);
    rig.picks.push(null);
    await rig.type("/fork");
    assert.equal(
      rig.text(),
      "Fork before which message? This conversation is not changed.: (after the last answer: copy the whole conversation) | gamma three | beta two | alpha one",
    );
    assert.equal(rig.ctx.conversation.agent.sessionId, original, "cancelled");
    rig.picks.push("beta");
    await rig.type("/tree");
    assert.match(rig.text(), /switched to .*\nThis is a branch of Talk, called Talk #2\.\ninput: beta two$/);
    const branch = rig.ctx.conversation.agent.sessionId;
    assert.deepEqual(await saidIn(rig, branch), ["alpha one", "sure"]);
    assert.deepEqual(await saidIn(rig, original), before);
    await rig.chat("another beta");
    const sent = server.last.body.messages.filter((message: { role: string }) => message.role === "user");
    assert.deepEqual(
      sent.map((message: { content: string }) => message.content),
      ["alpha one", "another beta"],
    );
    await rig.type("/fork My way");
    assert.match(rig.text(), /This is a branch of Talk #2, called My way\.$/, "a name takes the whole conversation");
    assert.equal((await saidIn(rig, rig.ctx.conversation.agent.sessionId)).length, 4);
  });

  test("messages from before a compression can be picked, and each is listed once", async (t) => {
    const rig = await rigOf(t);
    for (let n = 1; n <= 8; n++) await rig.chat(`message ${n} ${"lorem ".repeat(200)}`);
    const original = rig.ctx.conversation.agent.sessionId;
    server.script({ text: "A SUMMARY" });
    await rig.type("/compress");
    const shorter = rig.ctx.conversation.agent.sessionId;
    assert.notEqual(shorter, original);
    rig.text();
    rig.picks.push("message 4");
    await rig.type("/fork");
    const [list = ""] = rig.text().split("\n");
    assert.deepEqual(
      list.match(/message \d/g),
      [8, 7, 6, 5, 4, 3, 2, 1].map((n) => `message ${n}`),
    );
    assert.ok(!list.includes("SUMMARY"), "nobody said that");
    const branch = rig.ctx.conversation.agent.sessionId;
    assert.equal((await rig.ctx.store.get(branch))?.parentSessionId, original);
    assert.equal((await saidIn(rig, branch)).length, 6);
    assert.equal(
      await rig.ctx.store.tip(original),
      (await rig.ctx.store.list()).find(({ chain }) => chain[0] === original)?.id,
    );
    await rig.ctx.resumeSession(shorter);
    rig.picks.push("message 8");
    await rig.type("/fork");
    const late = await rig.ctx.store.get(rig.ctx.conversation.agent.sessionId);
    assert.equal(late?.parentSessionId, shorter, "what was carried on is taken from where the conversation stands");
  });
});
