// DingTalk through the real gateway, with its stream, webhooks and API on loopback.
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  answerTurns,
  gatewayHome,
  lastSaid,
  ModelServer,
  type RunningGateway,
  startGateway,
  until,
} from "../support/gateway-rig.ts";
import { DingTalkServer } from "../support/platforms/dingtalk-server.ts";
import type { TempHome } from "../support/temp-home.ts";

const asked = (model: ModelServer, part: string) => model.requests.filter((one) => lastSaid(one).includes(part));

describe("DingTalk", () => {
  let model: ModelServer;
  let server: DingTalkServer;
  let home: TempHome;
  let gateway: RunningGateway;
  const echo = () => answerTurns(model, (request) => ({ text: `heard: ${lastSaid(request)}` }));
  const written = async (part: string) => {
    const find = () => server.sent.find(({ text }) => text.includes(part));
    await until(`"${part}" is written`, () => find() !== undefined).catch((error: Error) => {
      throw new Error(`${error.message}; there: ${JSON.stringify(server.sent)}`);
    });
    return find() ?? assert.fail();
  };
  const count = (part: string) => server.sent.filter(({ text }) => text.includes(part)).length;

  before(async () => {
    model = await ModelServer.start();
    server = await DingTalkServer.start();
    echo();
    home = await gatewayHome(model, {
      config: "platforms:\n  dingtalk:\n    extra:\n      request_timeout: 1\ndisplay:\n  busy_input_mode: queue\n",
      env: {
        ...{ DINGTALK_CLIENT_ID: DingTalkServer.ID, DINGTALK_CLIENT_SECRET: DingTalkServer.SECRET },
        ...{ DINGTALK_API_URL: server.url, DINGTALK_ALLOWED_USERS: "ann,bob" },
      },
    });
    gateway = await startGateway(home);
  });
  after(async () => {
    await gateway.kill();
    await server.close();
    await model.close();
    await home[Symbol.asyncDispose]();
    assert.deepEqual(server.violations, []);
  });
  afterEach(() => {
    echo();
    server.webhookLife = 5_400_000;
  });

  test("a message is stored, acknowledged, and answered to the webhook of its conversation", async () => {
    answerTurns(model, () => ({ text: "# Plan\n**bold**" }));
    const id = server.say("ann", "what is the plan");
    const { to, kind, param } = await written("Plan");
    assert.deepEqual([to, kind], ["webhook:cidDirect-ann==", "markdown"]);
    assert.deepEqual(param.markdown, { title: "Plan", text: "# Plan\n**bold**" });
    await until("it is acknowledged", () => server.acknowledged.includes(`push-${id}`));
  });

  test("a group needs a mention, and a stranger is not answered", async () => {
    server.say("bob", "just talking", { group: true, mentioned: false });
    server.say("eve", "let me in", { group: true, mentioned: true });
    server.say("bob", "what is for dinner", { group: true, mentioned: true });
    assert.equal((await written("dinner")).to, "webhook:cidGroup1==");
    assert.equal(asked(model, "just talking").length + asked(model, "let me in").length, 0);
  });

  test("a message that is pushed twice is answered once", async () => {
    const id = server.say("ann", "just once");
    server.say("ann", "just once", { id });
    await written("just once");
    server.say("ann", "just once", { id });
    server.say("ann", "behind it");
    await written("behind it");
    assert.equal(count("just once"), 1);
  });

  test("where the webhook is no longer valid, the answer goes over the API, with a fresh token if it takes one", async () => {
    server.webhookLife = -1;
    server.say("ann", "by the API");
    assert.deepEqual(
      [(await written("by the API")).to, (await written("by the API")).kind],
      ["user:ann", "sampleMarkdown"],
    );
    server.expireTokens();
    server.say("bob", "to the group", { group: true, mentioned: true });
    assert.equal((await written("to the group")).to, "group:cidGroup1==");
  });

  test("pictures that cannot be had and kinds nobody knows are said", async () => {
    server.say("ann", "", { data: { msgtype: "picture", content: { downloadCode: "gone" } } });
    await until(
      "the picture is named",
      () => asked(model, "[not received: file: DingTalk: no such file]").length === 1,
    );
    server.say("ann", "", { data: { msgtype: "hologram" } });
    await until("the kind is named", () => asked(model, "[unsupported: hologram]").length === 1);
  });

  test("a file of an answer is uploaded and sent", async () => {
    const path = join(home.dir, "cache", "documents", "report.txt");
    await mkdir(join(home.dir, "cache", "documents"), { recursive: true });
    await writeFile(path, "all of the report");
    answerTurns(model, () => ({ text: `here\nMEDIA:${path}` }));
    server.say("ann", "the report please");
    await until("it is sent", () => server.sent.some(({ kind }) => kind === "sampleFile"));
    const { param } = server.sent.find(({ kind }) => kind === "sampleFile") ?? assert.fail();
    assert.deepEqual([param.fileName, param.fileType], ["report.txt", "txt"]);
    assert.ok(server.files.get(String(param.mediaId))?.includes("all of the report"));
  });

  test("an answer whose fate is unknown is sent once more with a mark, and no more", async () => {
    answerTurns(model, () => ({ text: "did it arrive" }));
    const on = ({ body }: { body: Buffer }) => body.includes("did it arrive");
    server.web.faults.push({ on, what: "lose answer" }, { on, what: "hang" });
    server.say("ann", "unsure");
    await until("it came with a mark", () => count("(recovered) did it arrive") === 1);
    await sleep(1300);
    assert.equal(count("did it arrive"), 2);
  });

  test("a server in trouble is asked again", async () => {
    answerTurns(model, () => ({ text: "in spite of all" }));
    const on = ({ body }: { body: Buffer }) => body.includes("in spite");
    server.web.faults.push({ on, what: { status: 503 } });
    server.say("ann", "try hard");
    await written("in spite of all");
    assert.equal(count("in spite of all"), 1);
  });

  test("a connection that DingTalk ends, by a word or without one, is opened again", async () => {
    for (const end of [() => server.askToReconnect(), () => server.closeSockets()]) {
      end();
      await until("it is gone", () => server.connections === 0);
      await until("it is back", () => server.connections === 1);
    }
    server.say("ann", "back again");
    await written("back again");
  });

  test("a secret that is no longer accepted turns the platform off with a line that says what to do", async () => {
    server.isSecretValid = false;
    server.closeSockets();
    const line = await gateway.waitFor(/^\[DingTalk\] off: /);
    assert.match(
      line,
      /does not accept this app: .*; set DINGTALK_CLIENT_ID and DINGTALK_CLIENT_SECRET: hermes gateway setup$/,
    );
    assert.doesNotMatch(gateway.lines.join("\n"), new RegExp(DingTalkServer.SECRET));
  });
});
