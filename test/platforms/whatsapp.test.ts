// WhatsApp, from the outside: the real gateway between a look-alike of Meta's Cloud API and a scripted model.
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
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
import { rowsOf } from "../support/paper-home.ts";
import { sendWhileHeld } from "../support/platforms/held-store.ts";
import { WhatsappServer } from "../support/platforms/whatsapp-server.ts";
import type { TempHome } from "../support/temp-home.ts";

const ALICE = "15551230001";
const BOB = "15551230002";

const listenerOf = async (gateway: RunningGateway) =>
  /listening on (http:\S+)/.exec(
    await gateway.waitFor(/^\[WhatsApp\] connected as \+1 555\S*2222, listening on/),
  )?.[1] ?? "";

const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

describe("WhatsApp", () => {
  let whatsapp: WhatsappServer;
  let model: ModelServer;
  let home: TempHome;
  let gateway: RunningGateway;
  let url: string;

  before(async () => {
    whatsapp = await WhatsappServer.start();
    model = await ModelServer.start();
    home = await gatewayHome(model, {
      env: { ...whatsapp.env, WHATSAPP_CLOUD_ALLOWED_USERS: `+${ALICE},${BOB}` },
      config: "display:\n  busy_input_mode: queue\n",
    });
    gateway = await startGateway(home);
    url = await listenerOf(gateway);
    whatsapp.webhook = url;
  });

  after(async () => {
    await gateway?.kill();
    await model.close();
    await whatsapp.close();
    await home[Symbol.asyncDispose]();
  });

  beforeEach(() => {
    whatsapp.sent.length = 0;
    whatsapp.faults.length = 0;
    answerTurns(model, (request) => ({ text: `You said: ${textOf(request)}` }));
  });

  const textOf = (request: Parameters<typeof lastSaid>[0]): string => {
    const { content } = request.body.messages.at(-1);
    return typeof content === "string" ? content : JSON.stringify(content).replace(/base64,[^"]+/g, "base64");
  };
  const said = (number: string, count = 1) =>
    until(`${count} messages to ${number}`, () => whatsapp.textsTo(number).length >= count);
  const log = () => readFile(home.at("logs", "gateway.log"), "utf8");

  test("Meta's check of the address is answered with its challenge, and only with the right token", async () => {
    const ask = (query: Record<string, string>) => fetch(`${url}/whatsapp/webhook?${new URLSearchParams(query)}`);
    const right = { "hub.mode": "subscribe", "hub.verify_token": whatsapp.verifyToken, "hub.challenge": "1158201444" };
    const reply = await ask(right);
    assert.equal(reply.status, 200);
    assert.equal(await reply.text(), "1158201444");
    assert.equal((await ask({ ...right, "hub.verify_token": "guess" })).status, 403);
    assert.equal((await ask({ ...right, "hub.verify_token": "" })).status, 403);
    assert.equal((await ask({ ...right, "hub.mode": "unsubscribe" })).status, 403);
    assert.equal((await fetch(`${url}/other`)).status, 404);
    assert.equal((await fetch(`${url}/whatsapp/webhook`, { method: "PUT" })).status, 405);
  });

  test("a message is stored, marked as read, and answered", async () => {
    const id = await whatsapp.say(ALICE, "Hello");
    await said(ALICE);
    assert.deepEqual(whatsapp.textsTo(ALICE), ["You said: Hello"]);
    await until("the mark", () => whatsapp.read.includes(id));
    const sent = whatsapp.sent[0]?.body;
    assert.equal(sent.recipient_type, "individual");
    assert.deepEqual(sent.context, { message_id: id });
    assert.match(sent.biz_opaque_callback_data, /^inbox:\d+#0/);
  });

  test("somebody is seen to write while the turn runs, once for each message", async () => {
    answerTurns(model, async () => {
      await sleep(1500);
      return { text: "Slow." };
    });
    const id = await whatsapp.say(ALICE, "Take your time");
    await said(ALICE);
    assert.deepEqual(
      whatsapp.typing.filter((one) => one === id),
      [id],
    );
  });

  test("a notification that comes again is one turn", async () => {
    const call = whatsapp.messageCall([
      { id: whatsapp.newId(), from: BOB, timestamp: "1767355200", type: "text", text: { body: "Only once" } },
    ]);
    const replies = await Promise.all([whatsapp.notify(call), whatsapp.notify(call), whatsapp.notify(call)]);
    assert.deepEqual(
      replies.map(({ status }) => status),
      [200, 200, 200],
    );
    await said(BOB);
    await sleep(300);
    assert.equal(whatsapp.textsTo(BOB).length, 1);
  });

  test("what Meta did not sign, and what is for another number, reaches nobody", async () => {
    const before = model.requests.length;
    const message = { id: whatsapp.newId(), from: ALICE, timestamp: "1", type: "text", text: { body: "Forged" } };
    const call = whatsapp.messageCall([message]);
    for (const signature of ["", "sha256=", `sha256=${"0".repeat(64)}`, "0".repeat(64)])
      assert.equal((await whatsapp.notify(call, { signature })).status, 401, signature);
    const other = JSON.stringify(call).replace(whatsapp.phoneNumberId, "999");
    assert.equal((await whatsapp.notify(other)).status, 200);
    assert.equal((await whatsapp.notify("no json")).status, 400);
    await sleep(200);
    assert.equal(model.requests.length, before);
  });

  test("two messages in one notification are both answered", async () => {
    const message = (from: string, body: string) => ({
      ...{ id: whatsapp.newId(), from, timestamp: String(Math.floor(Date.now() / 1000)), type: "text", text: { body } },
    });
    await whatsapp.notify(whatsapp.messageCall([message(ALICE, "from Alice"), message(BOB, "from Bob")]));
    await said(ALICE);
    await said(BOB);
    assert.deepEqual(whatsapp.textsTo(BOB), ["You said: from Bob"]);
  });

  test("Markdown arrives in the marks of WhatsApp", async () => {
    const text =
      "# Plan\n\n* **first** [docs](https://example.com)\n* *second*\n\n| A | B |\n|---|---|\n| 1 | ~~2~~ |\n\n```sh\nls\n```";
    answerTurns(model, () => ({ text }));
    await whatsapp.say(ALICE, "format");
    await said(ALICE);
    assert.deepEqual(whatsapp.textsTo(ALICE), [
      "*Plan*\n\n- *first* docs (https://example.com)\n- _second_\n\n- *1*, B: ~2~\n\n```\nls\n```",
    ]);
  });

  test("a long answer comes in order, in parts that WhatsApp takes", async () => {
    const words = Array.from({ length: 1500 }, (_, at) => `word${at}`);
    answerTurns(model, () => ({ text: words.join(" ") }));
    await whatsapp.say(ALICE, "long");
    await said(ALICE, 3);
    await sleep(300);
    const parts = whatsapp.textsTo(ALICE).map((part) => part.replace(/ \(\d+\/\d+\)$/, ""));
    assert.equal(parts.join(" "), words.join(" "));
  });

  test("a picture is fetched in two steps and comes with its caption", async () => {
    const id = whatsapp.addFile("image/png", png);
    await whatsapp.write(ALICE, { type: "image", image: { id, mime_type: "image/png", caption: "What is it?" } });
    await said(ALICE);
    const [text] = whatsapp.textsTo(ALICE);
    assert.match(text ?? "", /What is it\?/);
    assert.match(text ?? "", /image\/png;base64|cache\/images/);
  });

  test("a document is kept with its name, and one that is gone is a line", async () => {
    const id = whatsapp.addFile("text/plain", Buffer.from("The password of the door is swordfish."));
    await whatsapp.write(ALICE, { type: "document", document: { id, filename: "door.txt", mime_type: "text/plain" } });
    await said(ALICE);
    assert.match(whatsapp.textsTo(ALICE)[0] ?? "", /door\.txt/);
    await whatsapp.write(BOB, { type: "document", document: { id: "1", filename: "gone.pdf", caption: "Read it" } });
    await said(BOB);
    assert.match(whatsapp.textsTo(BOB)[0] ?? "", /Read it\n\[file not fetched: gone\.pdf: WhatsApp answered 400\]/);
  });

  for (const [name, content, text] of [
    [
      "a location",
      { type: "location", location: { latitude: 52.52, longitude: 13.4, name: "Alex", address: "Berlin" } },
      /\[location: 52\.52, 13\.4\] Alex, Berlin/,
    ],
    [
      "a contact",
      { type: "contacts", contacts: [{ name: { formatted_name: "Carl" }, phones: [{ phone: "+49 170 1" }] }] },
      /\[unsupported: contact\] Carl \+49 170 1/,
    ],
    ["an order", { type: "order", order: { catalog_id: "1" } }, /\[unsupported: order\]/],
    ["what the API cannot show", { type: "unsupported", errors: [{ code: 131051 }] }, /\[unsupported: message\]/],
    ["a quick reply of a template", { type: "button", button: { payload: "p", text: "Yes please" } }, /Yes please/],
  ] as const)
    test(`${name} is told in words`, async () => {
      await whatsapp.write(ALICE, { ...content });
      await said(ALICE);
      assert.match(whatsapp.textsTo(ALICE)[0] ?? "", text);
    });

  test("a reaction starts no turn", async () => {
    const before = model.requests.length;
    await whatsapp.write(ALICE, { type: "reaction", reaction: { message_id: "wamid.x", emoji: "👍" } });
    await sleep(200);
    assert.equal(model.requests.length, before);
  });

  test("an answer to one of our messages quotes it", async () => {
    answerTurns(model, () => ({ text: "The code is blue." }));
    await whatsapp.say(ALICE, "Which code?");
    await said(ALICE);
    const context = { from: "15550002222", id: whatsapp.sent[0]?.id };
    answerTurns(model, (request) => ({ text: `You said: ${textOf(request)}` }));
    await whatsapp.say(ALICE, "Are you sure?", { context });
    await said(ALICE, 2);
    assert.match(whatsapp.textsTo(ALICE)[1] ?? "", /Replying to: "The code is blue\."/);
  });

  /** The model asks, and says what it was answered. */
  const askWith = (question: string, choices: readonly string[]) =>
    answerTurns(model, (request) => {
      const { role, content } = request.body.messages.at(-1);
      if (role === "tool") return { text: `Chosen: ${content}` };
      return { toolCalls: [{ name: "clarify", arguments: { question, choices } }] };
    });

  async function asked() {
    await until("a question", () => whatsapp.sent.some(({ body }) => body.type === "interactive"));
    const question = whatsapp.sent.find(({ body }) => body.type === "interactive");
    assert.ok(question);
    const { interactive } = question.body;
    const isList = interactive.type === "list";
    const rows: { id: string; title: string }[] = isList
      ? interactive.action.sections[0].rows
      : interactive.action.buttons.map(({ reply }: { reply: object }) => reply);
    const press = (title: string) => {
      const { id = "" } = rows.find((row) => row.title === title) ?? {};
      const kind = isList ? "list_reply" : "button_reply";
      const content = { type: "interactive", interactive: { type: kind, [kind]: { id, title } } };
      return whatsapp.write(ALICE, { ...content, context: { id: question.id } });
    };
    return { interactive, press };
  }

  const chosen = (what: string) =>
    until("the answer", () =>
      whatsapp.textsTo(ALICE).some((text) => text.startsWith("Chosen: ") && text.includes(what)),
    );

  test("a question has buttons, a press answers it, and a second press hears that it is over", async () => {
    askWith("Tea or coffee?", ["Tea", "Coffee"]);
    await whatsapp.say(ALICE, "Ask me");
    const { interactive, press } = await asked();
    assert.match(interactive.body.text, /Tea or coffee\?/);
    await press("Coffee");
    await chosen("Coffee");
    const before = whatsapp.textsTo(ALICE).length;
    await press("Tea");
    await until("a word about it", () => whatsapp.textsTo(ALICE).length > before);
    assert.equal(whatsapp.textsTo(ALICE).filter((text) => text.startsWith("Chosen: ")).length, 1);
  });

  test("many choices are a list, and a long question stands whole in front of them", async () => {
    const long = `Which of these? ${"It has many sides. ".repeat(80)}END`;
    askWith(long, ["First way", "Second way", "Third way", "A fourth way"]);
    await whatsapp.say(ALICE, "Ask me at length");
    const { interactive, press } = await asked();
    assert.equal(interactive.type, "list");
    assert.ok(whatsapp.textsTo(ALICE).some((text) => text.includes("Which of these?") && text.includes("END")));
    await press("Second way");
    await chosen("Second way");
  });

  test("a file of an answer is uploaded, then sent", async () => {
    const folder = home.at("cache", "documents");
    await mkdir(folder, { recursive: true });
    await writeFile(`${folder}/report.txt`, "All is well.");
    answerTurns(model, () => ({ text: `Here it is.\n\nMEDIA:${folder}/report.txt` }));
    await whatsapp.say(ALICE, "Send me the report");
    await until("the file", () => whatsapp.sent.some(({ body }) => body.type === "document"));
    const { document } = whatsapp.sent.find(({ body }) => body.type === "document")?.body ?? {};
    assert.equal(document.filename, "report.txt");
    assert.equal(whatsapp.files.get(document.id)?.bytes.toString(), "All is well.");
    assert.deepEqual(whatsapp.textsTo(ALICE), ["Here it is."]);
  });

  test("a picture of an answer is a picture there, and a file of a strange kind is named", async () => {
    const folder = home.at("cache", "images");
    await mkdir(folder, { recursive: true });
    await writeFile(`${folder}/dot.png`, png);
    await writeFile(home.at("cache", "documents", "all.zip"), "PK");
    answerTurns(model, () => ({
      text: `Look:\nMEDIA:${folder}/dot.png\nMEDIA:${home.at("cache", "documents", "all.zip")}`,
    }));
    await whatsapp.say(ALICE, "Send me a picture");
    await until("the picture", () => whatsapp.sent.some(({ body }) => body.type === "image"));
    const { image } = whatsapp.sent.find(({ body }) => body.type === "image")?.body ?? {};
    assert.deepEqual(whatsapp.files.get(image.id)?.bytes, png);
    await until("a reason", async () => /WhatsApp does not take files of the kind \.zip/.test(await log()));
  });

  test("outside of the 24 hours the owner learns why nothing was sent", async () => {
    whatsapp.quiet.add(BOB);
    whatsapp.refusesQuiet = "at once";
    await whatsapp.say(BOB, "late");
    await until("a reason", async () => /within 24 hours of the other person's last message/.test(await log()));
    assert.deepEqual(whatsapp.textsTo(BOB), []);
    whatsapp.refusesQuiet = "later";
    const lines = async () => ((await log()).match(/a message was not delivered: .*24 hours/g) ?? []).length;
    const before = await lines();
    await whatsapp.say(BOB, "later");
    await until("a later reason", async () => (await lines()) > before);
    // What was taken and did not arrive counts as not sent, for everybody who looks.
    const lost = "SELECT 1 FROM outbox WHERE state = 'dead' AND cause LIKE 'inbox:%' AND error LIKE '%24 hours%'";
    await until("both are dead", () => rowsOf(home, lost).length === 2);
    whatsapp.quiet.delete(BOB);
  });

  test("limits and failures of Meta are waited for", async () => {
    answerTurns(model, () => ({ text: "Patient." }));
    const fault = (status: number, code: number, headers = {}) => ({
      on: (call: { path: string; json: Readonly<Record<string, unknown>> }) =>
        call.path.endsWith("/messages") && "to" in call.json,
      what: { status, headers, body: { error: { code, message: "no", type: "OAuthException" } } },
    });
    whatsapp.faults.push(fault(400, 131056, { "retry-after": "1" }), fault(500, 131000), fault(401, 190));
    await whatsapp.say(ALICE, "wait");
    await said(ALICE);
    assert.deepEqual(whatsapp.textsTo(ALICE), ["Patient."]);
  });

  test("an answer whose receipt was lost is found by its report, and not sent twice", async () => {
    answerTurns(model, () => ({ text: "A single answer." }));
    whatsapp.faults.push({ on: (call) => call.path.endsWith("/messages") && "to" in call.json, what: "lose answer" });
    await whatsapp.say(ALICE, "lost");
    await said(ALICE);
    await until("the report", () => whatsapp.reports.every(({ taken }) => taken));
    await sleep(1000);
    assert.deepEqual(whatsapp.textsTo(ALICE), ["A single answer."]);
  });

  test("tokens and secrets are in no log", async () => {
    const text = await log();
    for (const secret of [whatsapp.token, whatsapp.appSecret, whatsapp.verifyToken])
      assert.ok(!text.includes(secret), secret);
  });
});

describe("WhatsApp with its own gateway", () => {
  const world = async (change: Record<string, string> = {}) => {
    const whatsapp = await WhatsappServer.start();
    const model = await ModelServer.start();
    answerTurns(model, (request) => ({ text: `You said: ${lastSaid(request)}` }));
    const home = await gatewayHome(model, {
      env: { ...whatsapp.env, WHATSAPP_CLOUD_ALLOW_ALL_USERS: "true", ...change },
    });
    const close = async () => {
      await model.close();
      await whatsapp.close();
      await home[Symbol.asyncDispose]();
    };
    return { whatsapp, model, home, close };
  };

  test("an answer that was being sent when the gateway was killed is found by its report", async (t) => {
    const { whatsapp, model, home, close } = await world();
    t.after(close);
    answerTurns(model, () => ({ text: "Exactly one." }));
    const first = await startGateway(home);
    whatsapp.webhook = await listenerOf(first);
    whatsapp.faults.push({ on: (call) => call.path.endsWith("/messages") && "to" in call.json, what: "hang" });
    await whatsapp.say(ALICE, "one");
    await until("the message", () => whatsapp.sent.length === 1);
    await sleep(200);
    await first.kill();
    const second = await startGateway(home);
    t.after(() => second.kill());
    whatsapp.webhook = await listenerOf(second);
    await until("the report", () => whatsapp.reports.every(({ taken }) => taken));
    await whatsapp.say(ALICE, "two");
    await until("the next answer", () => whatsapp.sent.length >= 2);
    await sleep(500);
    assert.deepEqual(whatsapp.textsTo(ALICE), ["Exactly one.", "Exactly one."]);
  });

  test("Meta is told that a message arrived when it is stored, not before", async (t) => {
    const { whatsapp, home, close } = await world();
    t.after(close);
    const gateway = await startGateway(home);
    t.after(() => gateway.kill());
    whatsapp.webhook = await listenerOf(gateway);
    const message = {
      id: whatsapp.newId(),
      from: ALICE,
      timestamp: "1767355200",
      type: "text",
      text: { body: "slow" },
    };
    const { reply, stored } = await sendWhileHeld(home, "whatsapp_cloud", () =>
      whatsapp.notify(whatsapp.messageCall([message])),
    );
    assert.equal(reply.status, 200);
    assert.deepEqual(stored, [message.id]);
  });

  test("what was written while the gateway was down is answered when it is back", async (t) => {
    const { whatsapp, home, close } = await world();
    t.after(close);
    const written = whatsapp.say(ALICE, "Anybody there?");
    await sleep(300);
    const gateway = await startGateway(home);
    t.after(() => gateway.kill());
    whatsapp.webhook = await listenerOf(gateway);
    await written;
    await until("an answer", () => whatsapp.textsTo(ALICE).length === 1);
  });

  test("a stranger gets a pairing code, and is heard when it was approved", async (t) => {
    const { whatsapp, home, close } = await world({ WHATSAPP_CLOUD_ALLOW_ALL_USERS: "false" });
    t.after(close);
    const gateway = await startGateway(home);
    t.after(() => gateway.kill());
    whatsapp.webhook = await listenerOf(gateway);
    const id = await whatsapp.say(BOB, "Hello?");
    await until("a code", () => whatsapp.textsTo(BOB).some((text) => /^Pairing code: \w{8}$/m.test(text)));
    const [, code = ""] = /^Pairing code: (\w{8})$/m.exec(whatsapp.textsTo(BOB).join("\n")) ?? [];
    const { code: exit } = await typed(home, ["pairing", "approve", "whatsapp_cloud", code]);
    assert.equal(exit, 0);
    await whatsapp.say(BOB, "And now?");
    await until("an answer", () => whatsapp.textsTo(BOB).includes("You said: And now?"));
    assert.ok(!whatsapp.read.includes(id), "a stranger does not learn that it was read");
  });

  test("a token that is not valid is told at the start", async (t) => {
    const { home, close } = await world({ WHATSAPP_CLOUD_ACCESS_TOKEN: "wrong" });
    t.after(close);
    const { stdout, code } = await typed(home, ["gateway", "run"]);
    assert.match(stdout, /^\[WhatsApp\] off: WHATSAPP_CLOUD_ACCESS_TOKEN has expired or is not valid/m);
    assert.equal(code, 1);
  });

  test("without the app secret nobody could be told apart, so it does not start", async (t) => {
    const { home, close } = await world({ WHATSAPP_CLOUD_APP_SECRET: "" });
    t.after(close);
    const { stdout } = await typed(home, ["gateway", "run"]);
    assert.match(stdout, /^\[WhatsApp\] off: WHATSAPP_CLOUD_APP_SECRET is not set/m);
  });
});
