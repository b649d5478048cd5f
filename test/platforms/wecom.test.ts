// WeCom through the real gateway, with its long connection on loopback.
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
import { WeComServer } from "../support/platforms/wecom-server.ts";
import type { TempHome } from "../support/temp-home.ts";

const asked = (model: ModelServer, part: string) => model.requests.filter((one) => lastSaid(one).includes(part));

describe("WeCom", () => {
  let model: ModelServer;
  let server: WeComServer;
  let home: TempHome;
  let gateway: RunningGateway;
  const echo = () => answerTurns(model, (request) => ({ text: `heard: ${lastSaid(request)}` }));
  const written = async (part: string) => {
    const find = () => server.sent.find(({ content }) => content.includes(part));
    await until(`"${part}" is written`, () => find() !== undefined).catch((error: Error) => {
      throw new Error(`${error.message}; there: ${JSON.stringify(server.sent)}`);
    });
    return find() ?? assert.fail();
  };
  const count = (part: string) => server.sent.filter(({ content }) => content.includes(part)).length;

  before(async () => {
    model = await ModelServer.start();
    server = await WeComServer.start();
    echo();
    home = await gatewayHome(model, {
      config: "platforms:\n  wecom:\n    extra:\n      request_timeout: 1\ndisplay:\n  busy_input_mode: queue\n",
      env: {
        ...{ WECOM_BOT_ID: WeComServer.BOT, WECOM_SECRET: WeComServer.SECRET, WECOM_WEBSOCKET_URL: server.url },
        WECOM_ALLOWED_USERS: "ann,bob",
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
  afterEach(() => echo());

  test("a message is answered with Markdown", async () => {
    answerTurns(model, () => ({ text: "# Plan\n**bold**" }));
    server.say("ann", "what is the plan");
    assert.deepEqual(await written("Plan"), { chat: "ann", type: "markdown", content: "# Plan\n**bold**" });
  });

  test("a group is answered in the group, without our name in the text", async () => {
    server.say("bob", "@Hermes what is for dinner", { group: "wrGroup1" });
    const { chat, content } = await written("dinner");
    assert.deepEqual([chat, content], ["wrGroup1", "heard: what is for dinner"]);
  });

  test("a message that is pushed twice is answered once, a stranger not at all", async () => {
    const frame = server.say("ann", "just once");
    server.push(frame);
    server.say("eve", "let me in");
    await written("just once");
    server.push(frame);
    server.say("ann", "behind it");
    await written("behind it");
    assert.equal(count("just once"), 1);
    assert.deepEqual(asked(model, "let me in"), []);
  });

  test("a file is decrypted, and what a message quotes comes with it", async () => {
    answerTurns(model, () => ({ text: "read it" }));
    const file = server.file(Buffer.from("%PDF-1.4 readable"));
    server.say("ann", "", {
      body: { msgtype: "file", file, quote: { msgtype: "text", text: { content: "the earlier one" } } },
    });
    await until("the model is asked", () => asked(model, "the earlier one").length === 1);
    assert.match(lastSaid(asked(model, "the earlier one")[0] ?? assert.fail()), /application\/pdf/);
    server.say("ann", "", { body: { msgtype: "image", image: { ...file, url: `${file.url}0` } } });
    await until("what is missing is said", () => asked(model, "[not received: image: ").length === 1);
    await until("both are answered", () => count("read it") === 2);
  });

  test("a file of an answer is uploaded in pieces and sent", async () => {
    const path = join(home.dir, "cache", "documents", "big.txt");
    await mkdir(join(home.dir, "cache", "documents"), { recursive: true });
    await writeFile(path, "x".repeat(700_000));
    answerTurns(model, () => ({ text: `here\nMEDIA:${path}` }));
    server.say("ann", "the file please");
    await until("it is sent", () => server.sent.some(({ type }) => type === "file"));
    const [upload] = server.uploads.values();
    assert.deepEqual([upload?.name, upload?.chunks.map(({ length }) => length)], ["big.txt", [524_288, 175_712]]);
  });

  test("an answer whose fate is unknown is sent once more with a mark, and no more", async () => {
    answerTurns(model, () => ({ text: "did it arrive" }));
    server.faults.push({ cmd: "aibot_send_msg", what: "no answer" });
    server.say("ann", "unsure");
    await until("it came with a mark", () => count("(recovered) did it arrive") === 1);
    await sleep(300);
    assert.equal(count("did it arrive"), 2);
  });

  test("trouble is tried again, and what is refused for good is not", async () => {
    answerTurns(model, () => ({ text: "in spite of all" }));
    server.faults.push({ cmd: "aibot_send_msg", what: { errcode: -1, errmsg: "system busy" } });
    server.say("ann", "try hard");
    await written("in spite of all");
    assert.equal(count("in spite of all"), 1);
  });

  test("a connection that is closed is opened again", async () => {
    server.closeSocket();
    await until("it is gone", () => !server.isConnected);
    await until("it is back", () => server.isConnected);
    server.say("ann", "back again");
    await written("back again");
  });

  test("a secret that is no longer accepted turns the platform off with a line that says what to do", async () => {
    server.isSecretValid = false;
    server.closeSocket();
    const line = await gateway.waitFor(/^\[WeCom\] off: /);
    assert.match(
      line,
      /does not accept this bot: invalid bot_id or secret \(853000\); set WECOM_BOT_ID and WECOM_SECRET: hermes gateway setup$/,
    );
    assert.doesNotMatch(gateway.lines.join("\n"), new RegExp(WeComServer.SECRET));
  });
});
