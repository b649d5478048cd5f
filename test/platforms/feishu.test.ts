// Feishu through the real gateway, with its open interface, persistent connection and calls of webhooks on loopback.
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  answerTurns,
  type GatewayHomeOptions,
  gatewayHome,
  lastSaid,
  ModelServer,
  type RunningGateway,
  startGateway,
  typed,
  until,
} from "../support/gateway-rig.ts";
import { type FeishuMessage, FeishuServer } from "../support/platforms/feishu-server.ts";
import type { TempHome } from "../support/temp-home.ts";

interface World extends AsyncDisposable {
  readonly server: FeishuServer;
  readonly model: ModelServer;
  readonly home: TempHome;
  readonly gateway: RunningGateway;
  written(part: string): Promise<FeishuMessage>;
  count(part: string): number;
}

async function world(options: Partial<GatewayHomeOptions> = {}): Promise<World> {
  const model = await ModelServer.start();
  const server = await FeishuServer.start();
  echo(model);
  const home = await gatewayHome(model, {
    ...options,
    config: `platforms:\n  feishu:\n    extra:\n      request_timeout: 1\n${options.config ?? ""}`,
    env: {
      ...{ FEISHU_APP_ID: FeishuServer.APP, FEISHU_APP_SECRET: FeishuServer.SECRET, FEISHU_DOMAIN: server.url },
      ...{ FEISHU_ALLOWED_USERS: "ou_ann,ou_bob", ...options.env },
    },
  });
  const gateway = await startGateway(home);
  return {
    ...{ server, model, home, gateway },
    async written(part) {
      const find = () => server.sent.find((message) => server.textOf(message).includes(part));
      await until(`"${part}" is written`, () => find() !== undefined).catch((error: Error) => {
        throw new Error(`${error.message}; there: ${JSON.stringify(server.sent.map((one) => server.textOf(one)))}`);
      });
      return find() ?? assert.fail();
    },
    count: (part) => server.sent.filter((message) => server.textOf(message).includes(part)).length,
    async [Symbol.asyncDispose]() {
      await gateway.kill();
      await server.close();
      await model.close();
      await home[Symbol.asyncDispose]();
      assert.deepEqual(server.violations, []);
    },
  };
}

const echo = (model: ModelServer) => answerTurns(model, (request) => ({ text: `heard: ${lastSaid(request)}` }));
const asked = (model: ModelServer, part: string) => model.requests.filter((one) => lastSaid(one).includes(part));

describe("Feishu", () => {
  let one: World;
  before(async () => {
    one = await world({ env: { FEISHU_REACTIONS: "true" }, config: "display:\n  busy_input_mode: queue\n" });
  });
  after(() => one[Symbol.asyncDispose]());
  afterEach(() => {
    echo(one.model);
    one.server.pieces = 1;
  });

  test("a message is stored, acknowledged, and answered with a card", async () => {
    const { server, model } = one;
    answerTurns(model, () => ({ text: "# Plan\n| a |\n|---|\n| 1 |" }));
    server.say("ou_ann", "what is the plan", { id: "om_plan" });
    const message = await one.written("Plan");
    assert.deepEqual([message.type, message.to, message.parent], ["interactive", "oc_ou_ann", "om_plan"]);
    assert.equal(server.textOf(message), "# Plan\n| a |\n|---|\n| 1 |");
    await until("it is acknowledged", () => server.acknowledged.size > 0);
    assert.match(JSON.stringify(asked(model, "what is the plan")[0]?.body), /Name of ou_ann/);
  });

  test("work is marked beside the message, and the mark changes when it is done", async () => {
    const { server } = one;
    server.say("ou_ann", "mark this", { id: "om_mark" });
    await one.written("mark this");
    const marks = () => server.reactions.filter(({ message }) => message === "om_mark");
    await until("both marks were there", () => marks().length === 2);
    assert.deepEqual(
      marks().map(({ emoji, isGone }) => [emoji, isGone]),
      [
        ["OnIt", true],
        ["DONE", false],
      ],
    );
  });

  test("an event that comes in several frames, and twice, is one message", async () => {
    const { server } = one;
    server.pieces = 3;
    const event = server.say("ou_ann", "in three pieces");
    server.push(event);
    await one.written("in three pieces");
    server.push(event);
    server.say("ou_ann", "behind it");
    await one.written("behind it");
    assert.equal(one.count("in three pieces"), 1);
  });

  test("a group needs a mention, its threads are answered in the thread, and strangers are not answered", async () => {
    const { server, model } = one;
    server.say("ou_bob", "just talking", { group: true });
    server.say("ou_eve", "let me in", { group: true, mentioned: true });
    server.say("ou_bob", "what is for dinner", { group: true, mentioned: true });
    assert.equal((await one.written("heard: what is for dinner")).to, "oc_group");
    const root = { thread_id: "omt_1", root_id: "om_root" };
    server.say("ou_bob", "the root", { group: true, id: "om_root" });
    server.say("ou_bob", "and in the thread", { group: true, mentioned: true, message: root });
    assert.equal((await one.written("and in the thread")).inThread, true);
    assert.equal(asked(model, "just talking").length + asked(model, "let me in").length, 0);
  });

  test("a reply carries what it answers, and one to a message that was taken back goes to the chat", async () => {
    const { server, model } = one;
    server.message("ou_ann", "the first thing", { id: "om_first" });
    server.say("ou_ann", "what about it", { message: { parent_id: "om_first", root_id: "om_first" } });
    await one.written("what about it");
    assert.match(lastSaid(asked(model, "what about it")[0] ?? assert.fail()), /Replying to: "the first thing"/);
    server.recalled.add("om_back");
    server.say("ou_ann", "already taken back", { id: "om_back" });
    assert.equal((await one.written("already taken back")).parent, undefined);
  });

  test("a message that is taken back before its turn begins is not answered", async () => {
    const { server, model } = one;
    const gate = Promise.withResolvers<void>();
    answerTurns(model, async (request) => {
      if (lastSaid(request).includes("something slow")) await gate.promise;
      return { text: `heard: ${lastSaid(request)}` };
    });
    server.say("ou_ann", "something slow");
    await until("the turn runs", () => asked(model, "something slow").length === 1);
    server.say("ou_ann", "never mind this", { id: "om_never" });
    server.recall("om_never");
    const last = server.push(server.message("ou_ann", "the last one"));
    await until("all is stored", () => server.acknowledged.has(last));
    gate.resolve();
    await one.written("the last one");
    assert.equal(one.count("never mind this"), 0);
  });

  test("files come with the message, and what cannot be had is said", async () => {
    const { server, model } = one;
    answerTurns(model, () => ({ text: "read it" }));
    server.files.set("file_1", Buffer.from("the text of the file"));
    const file = (key: string) => ({
      message_type: "file",
      content: JSON.stringify({ file_key: key, file_name: "notes.txt" }),
    });
    server.say("ou_ann", "", { message: file("file_1") });
    await until("the file is read", () => asked(model, "the text of the file").length === 1);
    server.say("ou_ann", "", { message: file("file_2") });
    await until("the other is named", () => asked(model, "[not received: notes.txt: ").length === 1);
    await until("both are answered", () => one.count("read it") === 2);
  });

  test("a file of an answer is uploaded and sent", async () => {
    const { server, model, home } = one;
    const path = join(home.dir, "cache", "documents", "report.txt");
    await mkdir(join(home.dir, "cache", "documents"), { recursive: true });
    await writeFile(path, "all of the report");
    answerTurns(model, () => ({ text: `here\nMEDIA:${path}` }));
    server.say("ou_ann", "the report please");
    await until("it is sent", () => server.sent.some(({ type }) => type === "file"));
    const key = String(server.sent.find(({ type }) => type === "file")?.content.file_key);
    assert.ok(server.uploads.get(key)?.includes("all of the report"));
  });

  test("a question has buttons; pressing one answers it and takes them away", async () => {
    const { server } = one;
    server.say("ou_ann", "/new");
    const hasButtons = ({ content }: FeishuMessage) => JSON.stringify(content).includes('"button"');
    await until("it asks", () => server.sent.some(hasButtons));
    const question = server.sent.find(hasButtons) ?? assert.fail();
    server.press("ou_ann", question, "Yes, once");
    await until("the buttons are gone", () => !hasButtons(question));
    const answers = [...server.acknowledged.values()].flatMap(({ data }) => (data === undefined ? [] : [String(data)]));
    assert.ok(answers.some((data) => Buffer.from(data, "base64").toString().includes("toast")));
  });

  test("a message that was accepted and not confirmed is not there twice", async () => {
    const { server, model } = one;
    answerTurns(model, () => ({ text: "only once please" }));
    const on = ({ body }: { body: Buffer }) => body.includes("only once please");
    server.web.faults.push({ on, what: "lose answer" }, { on, what: "hang" }, { on, what: { status: 502 } });
    server.say("ou_ann", "unsure");
    const sends = () => server.web.calls.filter(({ body }) => body.includes("only once please"));
    await until("it was repeated", () => sends().length === 4);
    assert.equal(new Set(sends().map(({ json }) => json.uuid)).size, 1);
    await sleep(200);
    assert.equal(one.count("only once please"), 1);
  });

  test("a limit is waited for, a token that ran out is replaced, and a card that is refused goes as text", async () => {
    const { server, model } = one;
    answerTurns(model, () => ({ text: "in spite of all" }));
    const on = ({ body }: { body: Buffer }) => body.includes("in spite");
    const limit = {
      status: 429,
      headers: { "x-ogw-ratelimit-reset": "1" },
      body: { code: 99_991_400, msg: "request trigger frequency limit" },
    };
    server.web.faults.push({ on, what: limit });
    server.web.faults.push({
      on,
      what: { status: 400, body: { code: 230_099, msg: "Failed to create card content" } },
    });
    server.expireTokens();
    server.say("ou_ann", "try hard");
    const message = await one.written("in spite of all");
    assert.equal(message.type, "text");
    assert.equal(one.count("in spite of all"), 1);
  });

  test("a connection that is closed is opened again", async () => {
    const { server } = one;
    server.closeSockets();
    await until("it is gone", () => server.connections === 0);
    await until("it is back", () => server.connections === 1);
    server.say("ou_ann", "back again");
    await one.written("back again");
  });

  test("a secret that is no longer accepted turns the platform off with a line that says what to do", async () => {
    const { server, gateway } = one;
    server.isSecretValid = false;
    server.closeSockets();
    assert.match(
      await gateway.waitFor(/^\[Feishu\] off: /),
      /is the persistent connection chosen in the developer console\?$/,
    );
    assert.doesNotMatch(gateway.lines.join("\n"), new RegExp(FeishuServer.SECRET));
  });
});

test("streamed text changes the card", async () => {
  await using one = await world({ config: "streaming:\n  enabled: true\n  edit_interval: 0.1\n" });
  const { server, model } = one;
  const text = `${"some words of a longer answer ".repeat(10)}the end`;
  answerTurns(model, () => ({ text, chunk: 20, pace: 40 }));
  server.say("ou_ann", "stream it");
  await one.written("the end");
  assert.ok(server.web.callsOf(/PATCH/).length > 1);
  assert.equal(server.sent.length, 1);
  await until("it is in its last form", () => server.sent.map((message) => server.textOf(message)).join("") === text);
});

test("hermes send reaches a chat, a thread and a person without a gateway", async () => {
  await using one = await world();
  const { server, home, gateway } = one;
  await gateway.stop();
  server.message("ou_bob", "the root", { group: true, id: "om_root" });
  for (const [target, text] of [
    ["feishu:oc_group", "to the group"],
    ["feishu:oc_group:om_root", "to the thread"],
    ["feishu:ou_ann", "to Ann"],
  ] as const) {
    const { code, stdout, stderr } = await typed(home, ["send", "-t", target, "--json", text]);
    assert.equal(code, 0, stderr + stdout);
  }
  assert.deepEqual(
    server.sent.map((message) => [message.to, message.inThread, server.textOf(message)]),
    [
      ["oc_group", false, "to the group"],
      ["oc_group", true, "to the thread"],
      ["ou_ann", false, "to Ann"],
    ],
  );
});

test("a webhook takes only what is encrypted and signed with our keys", async () => {
  const port = await freePort();
  const keys = { FEISHU_ENCRYPT_KEY: "the key", FEISHU_VERIFICATION_TOKEN: "verify" };
  await using one = await world({
    env: {
      FEISHU_CONNECTION_MODE: "webhook",
      FEISHU_WEBHOOK_PORT: String(port),
      FEISHU_WEBHOOK_PATH: "/hook",
      ...keys,
    },
  });
  const { server, model } = one;
  const address = `http://127.0.0.1:${port}/hook`;
  const key = "the key";
  assert.equal((await server.call(address, server.message("ou_ann", "not encrypted"))).status, 401);
  assert.equal(
    (await server.call(address, server.message("ou_ann", "signed by Eve"), { key, signedWith: "x" })).status,
    401,
  );
  assert.equal((await server.call(`${address}/other`, {}, { key })).status, 404);
  const proof = await server.call(address, { type: "url_verification", challenge: "abc", token: "verify" }, { key });
  assert.deepEqual(await proof.json(), { challenge: "abc" });
  const said = server.message("ou_ann", "by the webhook");
  for (let times = 0; times < 2; times++) assert.equal((await server.call(address, said, { key })).status, 200);
  await one.written("by the webhook");
  assert.equal(one.count("by the webhook"), 1);
  assert.equal(asked(model, "not encrypted").length + asked(model, "signed by Eve").length, 0);
});

test("a webhook without any key is refused before it listens", async () => {
  const model = await ModelServer.start();
  const env = {
    FEISHU_APP_ID: "cli_x",
    FEISHU_APP_SECRET: "s",
    FEISHU_CONNECTION_MODE: "webhook",
    FEISHU_DOMAIN: "http://127.0.0.1:1",
  };
  const home = await gatewayHome(model, { env });
  const gateway = await startGateway(home, { ready: null });
  try {
    await gateway.waitFor(/a webhook needs FEISHU_ENCRYPT_KEY or FEISHU_VERIFICATION_TOKEN/);
  } finally {
    await gateway.kill();
    await model.close();
    await home[Symbol.asyncDispose]();
  }
});

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address() as { port: number };
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
