// Text messages, from the outside: the real gateway between a look-alike of Twilio and a scripted model.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  answerTurns,
  gatewayHome,
  lastSaid,
  ModelServer,
  type RunningGateway,
  startGateway,
  typed,
  until,
} from "../support/gateway-rig.ts";
import { sendWhileHeld } from "../support/platforms/held-store.ts";
import { TwilioServer } from "../support/platforms/twilio-server.ts";
import { startWebServer } from "../support/platforms/web-server.ts";
import type { TempHome } from "../support/temp-home.ts";

const ALICE = "+15551230001";
const BOB = "+15551230002";
const EMPTY = '<?xml version="1.0" encoding="UTF-8"?><Response></Response>';

const listenerOf = async (gateway: RunningGateway) =>
  /listening on (http:\S+)/.exec(await gateway.waitFor(/^\[SMS\] connected as \+155\S*1111, listening on/))?.[1] ?? "";

const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

describe("SMS", () => {
  let twilio: TwilioServer;
  let model: ModelServer;
  let home: TempHome;
  let gateway: RunningGateway;
  let url: string;

  before(async () => {
    twilio = await TwilioServer.start();
    model = await ModelServer.start();
    home = await gatewayHome(model, { env: { ...twilio.env, SMS_ALLOWED_USERS: `${ALICE},${BOB}` } });
    gateway = await startGateway(home);
    url = await listenerOf(gateway);
  });

  after(async () => {
    await gateway?.kill();
    await model.close();
    await twilio.close();
    await home[Symbol.asyncDispose]();
  });

  beforeEach(() => {
    twilio.sent.length = 0;
    twilio.faults.length = 0;
    answerTurns(model, (request) => ({ text: `You said: ${lastSaid(request)}` }));
  });

  const said = (number: string, count = 1) =>
    until(`${count} messages to ${number}`, () => twilio.textsTo(number).length >= count);

  test("a message is taken with an empty answer and answered by another message", async () => {
    const reply = await twilio.call(url, twilio.fields(ALICE, "Hello there"));
    assert.equal(reply.status, 200);
    assert.match(reply.type, /^text\/xml/);
    assert.equal(reply.body, EMPTY);
    await said(ALICE);
    assert.deepEqual(twilio.textsTo(ALICE), ["You said: Hello there"]);
    assert.equal(twilio.sent[0]?.from, twilio.number);
  });

  test("the same message twice is one turn", async () => {
    const fields = twilio.fields(BOB, "Only once");
    await Promise.all([twilio.call(url, fields), twilio.call(url, fields)]);
    await twilio.call(url, fields);
    await said(BOB);
    await sleep(300);
    assert.deepEqual(twilio.textsTo(BOB), ["You said: Only once"]);
  });

  test("what Twilio did not sign is refused and reaches nobody", async () => {
    const before = model.requests.length;
    const fields = twilio.fields(ALICE, "Forged");
    for (const signature of ["", "AAAA", twilio.sign({ ...fields, Body: "Other" })])
      assert.equal((await twilio.call(url, fields, signature)).status, 403);
    assert.equal((await fetch(`${url}/webhooks/twilio`)).status, 405);
    assert.equal((await fetch(`${url}/elsewhere`, { method: "POST" })).status, 404);
    await sleep(200);
    assert.equal(model.requests.length, before);
  });

  test("Markdown is sent as plain words", async () => {
    answerTurns(model, () => ({
      text: "# Plan\n\n* **first** [docs](https://example.com/a)\n* `second`\n\n```sh\nls -la\n```",
    }));
    await twilio.call(url, twilio.fields(ALICE, "format"));
    await said(ALICE);
    assert.deepEqual(twilio.textsTo(ALICE), ["Plan\n\n- first docs (https://example.com/a)\n- second\n\nls -la"]);
  });

  test("a long answer comes in order, in parts of at most 1600 characters", async () => {
    const words = Array.from({ length: 700 }, (_, at) => `word${at}`);
    answerTurns(model, () => ({ text: words.join(" ") }));
    await twilio.call(url, twilio.fields(ALICE, "long"));
    await said(ALICE, 4);
    await sleep(200);
    const parts = twilio.textsTo(ALICE);
    for (const part of parts) assert.ok(part.length <= 1600);
    assert.equal(parts.map((part) => part.replace(/ \(\d+\/\d+\)$/, "")).join(" "), words.join(" "));
  });

  test("a picture comes with the message", async () => {
    const address = twilio.attach("image/png", png);
    const more = { NumMedia: "1", MediaUrl0: address, MediaContentType0: "image/png" };
    await twilio.call(url, twilio.fields(ALICE, "Look at this", more));
    await said(ALICE);
    const [request] = model.requests.filter(({ raw }) => raw.includes("Look at this"));
    assert.match(request?.raw ?? "", /image\/png;base64|cache\/images/);
    assert.ok(twilio.calls.some(({ path }) => path.endsWith(new URL(address).pathname.split("/").at(-1) ?? "")));
  });

  test("a file that cannot be fetched is a line, and the message is answered", async () => {
    const more = {
      NumMedia: "1",
      MediaUrl0: `${twilio.url}/2010-04-01/Accounts/${twilio.sid}/Messages/MM1/Media/gone`,
    };
    const reply = await twilio.call(
      url,
      twilio.fields(ALICE, "See file", { ...more, MediaContentType0: "image/jpeg" }),
    );
    assert.equal(reply.status, 200);
    await said(ALICE);
    assert.match(twilio.textsTo(ALICE)[0] ?? "", /See file\n\[file not fetched: image\/jpeg 1: .+\]/);
  });

  test("a file that lies elsewhere in this network is not fetched, and its server gets no token", async () => {
    const elsewhere = await startWebServer({ handle: () => ({ status: 200, body: png }) });
    const more = { NumMedia: "1", MediaUrl0: `${elsewhere.url}/file.png`, MediaContentType0: "image/png" };
    await twilio.call(url, twilio.fields(ALICE, "Elsewhere", more));
    await said(ALICE);
    await elsewhere.close();
    assert.match(twilio.textsTo(ALICE)[0] ?? "", /Elsewhere\n\[file not fetched: /);
    assert.deepEqual(elsewhere.calls, []);
  });

  test("a stranger is not heard, and nothing of theirs is fetched", async () => {
    const before = model.requests.length;
    const address = twilio.attach("image/png", png);
    const more = { NumMedia: "1", MediaUrl0: address, MediaContentType0: "image/png" };
    assert.equal((await twilio.call(url, twilio.fields("+15559990000", "Hi", more))).body, EMPTY);
    await sleep(300);
    assert.equal(model.requests.length, before);
    assert.ok(!twilio.calls.some(({ path }) => path === new URL(address).pathname));
  });

  test("an answer that was lost on its way is looked for and not sent twice", async () => {
    answerTurns(model, () => ({ text: "A single answer." }));
    twilio.faults.push({ on: /^POST .*Messages\.json/, what: "lose answer" });
    await twilio.call(url, twilio.fields(ALICE, "lost"));
    await said(ALICE);
    await sleep(800);
    assert.deepEqual(twilio.textsTo(ALICE), ["A single answer."]);
    assert.ok(twilio.calls.some(({ method, path }) => method === "GET" && path.endsWith("Messages.json")));
  });

  test("a request that never arrived is sent again", async () => {
    answerTurns(model, () => ({ text: "Second try." }));
    twilio.faults.push({ on: /^POST .*Messages\.json/, what: "drop" });
    await twilio.call(url, twilio.fields(ALICE, "dropped"));
    await said(ALICE);
    await sleep(400);
    assert.deepEqual(twilio.textsTo(ALICE), ["Second try."]);
  });

  test("the same words twice are two messages, also when the second was lost on its way", async () => {
    answerTurns(model, () => ({ text: "OK" }));
    await twilio.call(url, twilio.fields(ALICE, "one"));
    await said(ALICE);
    twilio.faults.push({ on: /^POST .*Messages\.json/, what: "drop" });
    await twilio.call(url, twilio.fields(ALICE, "two"));
    await said(ALICE, 2);
    await sleep(400);
    assert.deepEqual(twilio.textsTo(ALICE), ["OK", "OK"]);
  });

  test("limits and failures of Twilio are waited for", async () => {
    answerTurns(model, () => ({ text: "Patient." }));
    twilio.faults.push(
      { on: /^POST .*Messages\.json/, what: { status: 429, body: { code: 20429, message: "Too Many Requests" } } },
      { on: /^POST .*Messages\.json/, what: { status: 503, body: {} } },
    );
    await twilio.call(url, twilio.fields(ALICE, "wait"));
    await said(ALICE);
    assert.deepEqual(twilio.textsTo(ALICE), ["Patient."]);
  });

  test("a number that unsubscribed is named with what to do", async () => {
    twilio.stopped.add(BOB);
    await twilio.call(url, twilio.fields(BOB, "stopped"));
    const log = () => readFile(home.at("logs", "gateway.log"), "utf8");
    await until("a reason", async () => /has unsubscribed \(STOP\); they have to send START first/.test(await log()));
    twilio.stopped.delete(BOB);
    assert.ok(!(await log()).includes(twilio.token));
  });

  test("its own number and reports about messages start no turn", async () => {
    const before = model.requests.length;
    assert.equal((await twilio.call(url, twilio.fields(twilio.number, "echo"))).status, 200);
    const { Body: _, ...report } = twilio.fields(ALICE, "", { MessageStatus: "delivered" });
    assert.equal((await twilio.call(url, report)).status, 200);
    await sleep(200);
    assert.equal(model.requests.length, before);
  });
});

describe("SMS with its own gateway", () => {
  const world = async (change: Record<string, string> = {}) => {
    const twilio = await TwilioServer.start();
    const model = await ModelServer.start();
    answerTurns(model, (request) => ({ text: `You said: ${lastSaid(request)}` }));
    const home = await gatewayHome(model, { env: { ...twilio.env, SMS_ALLOW_ALL_USERS: "true", ...change } });
    const close = async () => {
      await model.close();
      await twilio.close();
      await home[Symbol.asyncDispose]();
    };
    return { twilio, model, home, close };
  };

  test("Twilio is told that a message arrived when it is stored, not before", async (t) => {
    const { twilio, home, close } = await world();
    t.after(close);
    const gateway = await startGateway(home);
    t.after(() => gateway.kill());
    const url = await listenerOf(gateway);
    const fields = twilio.fields(ALICE, "slow");
    const { reply, stored } = await sendWhileHeld(home, "sms", () => twilio.call(url, fields));
    assert.equal(reply.body, EMPTY);
    assert.deepEqual(stored, [fields.MessageSid]);
  });

  test("messages are answered once although the gateway was killed before their turns", async (t) => {
    const { twilio, model, home, close } = await world();
    t.after(close);
    answerTurns(model, async (request) => {
      await sleep(500);
      return { text: `You said: ${lastSaid(request)}` };
    });
    const first = await startGateway(home);
    const url = await listenerOf(first);
    const messages = [twilio.fields(ALICE, "one"), twilio.fields(BOB, "two")];
    for (const fields of messages) assert.equal((await twilio.call(url, fields)).status, 200);
    await first.kill();
    const second = await startGateway(home);
    t.after(() => second.kill());
    const again = await listenerOf(second);
    for (const fields of messages) await twilio.call(again, fields);
    await until("both answers", () => twilio.sent.length >= 2);
    await sleep(500);
    assert.equal(twilio.sent.length, 2);
    assert.match(twilio.textsTo(ALICE)[0] ?? "", /You said: one/);
    assert.match(twilio.textsTo(BOB)[0] ?? "", /You said: two/);
  });

  test("an answer that was being sent at a kill is found and not sent again", async (t) => {
    const { twilio, model, home, close } = await world();
    t.after(close);
    answerTurns(model, () => ({ text: "Exactly one." }));
    const first = await startGateway(home);
    twilio.faults.push({ on: /^POST .*Messages\.json/, what: "hang" });
    await twilio.call(await listenerOf(first), twilio.fields(ALICE, "one"));
    await until("the message", () => twilio.sent.length === 1);
    await first.kill();
    const second = await startGateway(home);
    t.after(() => second.kill());
    await sleep(1500);
    assert.deepEqual(twilio.textsTo(ALICE), ["Exactly one."]);
  });

  test("a wrong token is told at the start, and is not tried again and again", async (t) => {
    const { home, close } = await world({ TWILIO_AUTH_TOKEN: "wrong-token" });
    t.after(close);
    const { stdout, code } = await typed(home, ["gateway", "run"]);
    assert.match(stdout, /^\[SMS\] off: Twilio refused TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN$/m);
    assert.equal(code, 1);
  });

  test("without the public address no message could be checked, so it does not start", async (t) => {
    const { home, close } = await world({ SMS_WEBHOOK_URL: "" });
    t.after(close);
    const { stdout } = await typed(home, ["gateway", "run"]);
    assert.match(stdout, /^\[SMS\] off: SMS_WEBHOOK_URL is not set/m);
  });
});
