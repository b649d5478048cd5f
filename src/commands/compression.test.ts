import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { commandRig } from "../../test/support/command-rig.ts";
import { ModelServer } from "../../test/support/model-server/server.ts";
import { modelConfig } from "../../test/support/temp-home.ts";

describe("/compress and /pin", () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  beforeEach(() => void server.clear().otherwise({ text: `ok ${"word ".repeat(300)}` }));
  after(() => server.close());

  const longTalk = async (t: Parameters<typeof commandRig>[0], turns: number) => {
    const rig = await commandRig(t, { "config.yaml": modelConfig(server) });
    for (let n = 0; n < turns; n++) await rig.chat(`about /srv/file${n}.txt ${"lorem ".repeat(300)}`);
    rig.text();
    return rig;
  };

  test("a short conversation is left alone", async (t) => {
    const rig = await longTalk(t, 1);
    await rig.type("/compress");
    assert.match(rig.text(), /too little to compress/);
  });

  test("sizes are shown before anything is done; lost facts are named; /undo reverts it", async (t) => {
    const rig = await longTalk(t, 8);
    const asked = server.requests.length;
    const { agent } = rig.ctx.conversation;
    const old = agent.sessionId;
    await rig.type("/compact --preview");
    assert.match(
      rig.text(),
      /Now: +16 messages, about [\d.]+K? tokens, [\d.]+K? of them for prompt and tools\nKept: +\d+ messages.*\nDropped: +\d+ messages.*\nNothing was changed\./,
    );
    assert.equal(server.requests.length, asked);

    server.script({ text: "NOTES" });
    await rig.type("/compress the files");
    const told = rig.text();
    assert.match(told, /16 messages, about \S+ tokens → \d+ messages, about \S+ tokens, \d+\.\d s/);
    assert.match(told, /Not in the summary[\s\S]*\/srv\/file2\.txt/);
    assert.match(JSON.stringify(server.last.body), /focus on: \\"the files\\"/);
    assert.notEqual(agent.sessionId, old);

    await rig.type("/undo");
    assert.match(rig.text(), /Compression undone/);
    assert.equal(agent.sessionId, old);
    assert.equal((await rig.ctx.store.load(old)).length, 16);

    server.script({ text: "NOTES" });
    await rig.type("/compress");
    const [first] = await rig.ctx.store.load(agent.sessionId);
    assert.match(String(first?.content), /^about \/srv\/file0\.txt/, "the beginning is protected as the first time");
    rig.text();
    await rig.type("/usage");
    assert.match(rig.text(), /^Compressions: {3}1$/m);
    rig.answers.push("once");
    await rig.type("/branch");
    await rig.chat("in a copy");
    await rig.type("/usage");
    assert.match(rig.text(), /^Compressions: {3}0$/m, "a copy was not compressed");
  });

  test("the last turns can be kept exactly; nonsense is refused", async (t) => {
    const rig = await longTalk(t, 8);
    server.script({ text: "NOTES" });
    await rig.type("/compress here 1");
    assert.match(rig.text(), /16 messages.*→ 6 messages/);
    await rig.type("/compress here soon");
    assert.match(rig.text(), /takes a number of messages to keep, not "soon"/);
  });

  test("a summary that fails is told, and nothing changes", async (t) => {
    const rig = await longTalk(t, 8);
    const old = rig.ctx.conversation.agent.sessionId;
    server.otherwise({ fault: "status", status: 500 });
    await rig.type("/compress");
    server.clear();
    assert.match(rig.text(), /Not compressed: .*500.*unchanged/);
    assert.equal(rig.ctx.conversation.agent.sessionId, old);
  });

  test("lines are pinned, listed, removed, refused when there are too many, and stand in the summary", async (t) => {
    const rig = await longTalk(t, 8);
    await rig.type("/pin");
    assert.match(rig.text(), /Nothing pinned/);
    await rig.type("/pin never push to main");
    await rig.type("/pin use tabs");
    assert.equal(rig.text(), "1. never push to main\n1. never push to main\n2. use tabs");
    await rig.type("/pin remove 2");
    await rig.type("/pin remove 7");
    await rig.type("/pin remove");
    assert.match(rig.text(), /No longer pinned: use tabs[\s\S]*no pinned line 7[\s\S]*remove needs the number/);
    await rig.type(`/pin ${"x".repeat(8000)}`);
    assert.match(rig.text(), /too much to pin/);
    server.script({ text: "NOTES" });
    await rig.type("/compress");
    const { sessionId } = rig.ctx.conversation.agent;
    assert.match(JSON.stringify(await rig.ctx.store.load(sessionId)), /## Pinned\\n- never push to main/);
  });

  test("the demo writes no summaries", async (t) => {
    const rig = await commandRig(t);
    for (let n = 0; n < 8; n++) await rig.chat(`hello ${n} ${"word ".repeat(300)}`);
    rig.text();
    await rig.type("/compress");
    assert.match(rig.text(), /Not compressed: .*no model can be asked/);
  });
});
