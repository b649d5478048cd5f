// Where deliveries of webhooks go, and what outlives the process: each test has a gateway of its own.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { answerTurns, gatewayHome, ModelServer, startGateway, typed, until } from "../support/gateway-rig.ts";
import { sendWhileHeld } from "../support/platforms/held-store.ts";
import { TwilioServer } from "../support/platforms/twilio-server.ts";
import { hex, listenerOf, post, SECRET, signed } from "../support/platforms/webhook-sender.ts";

describe("a webhook platform with its own gateway", () => {
  const world = async (webhook: object, env: Record<string, string> = {}) => {
    const model = await ModelServer.start();
    answerTurns(model, () => ({ text: "Done." }));
    const config = `platforms: ${JSON.stringify({ webhook: { enabled: true, extra: { port: 0, ...webhook } } })}\n`;
    const home = await gatewayHome(model, { env, config });
    return { model, home };
  };

  test("what was accepted is answered once although the gateway was killed at once", async (t) => {
    const { model, home } = await world({ routes: { r: { prompt: "Do {n}" } } }, { WEBHOOK_SECRET: SECRET });
    t.after(async () => {
      await model.close();
      await home[Symbol.asyncDispose]();
    });
    answerTurns(model, async () => {
      await sleep(400);
      return { text: "Answered." };
    });
    const first = await startGateway(home);
    const url = await listenerOf(first);
    const send = (to: string, n: number) => {
      const body = JSON.stringify({ n });
      return post(`${to}/webhooks/r`, body, signed(body, { "x-request-id": `kill-${n}` }));
    };
    const replies = await Promise.all([1, 2, 3].map((n) => send(url, n)));
    assert.deepEqual(
      replies.map(({ status }) => status),
      [202, 202, 202],
    );
    await first.kill();
    const second = await startGateway(home);
    t.after(() => second.kill());
    const again = await send(await listenerOf(second), 2);
    assert.deepEqual(again.json, { status: "duplicate", delivery_id: "kill-2" });
    const answers = async () =>
      (await readFile(home.at("logs", "gateway.log"), "utf8")).match(/webhook:r:kill-\d answered: Answered\./g) ?? [];
    await until("three answers", async () => (await answers()).length >= 3);
    await sleep(500);
    assert.deepEqual(
      (await answers()).sort(),
      [1, 2, 3].map((n) => `webhook:r:kill-${n} answered: Answered.`),
    );
  });

  test("202 is said when a delivery is stored, not before", async (t) => {
    const { model, home } = await world({ routes: { r: { prompt: "Do {n}" } } }, { WEBHOOK_SECRET: SECRET });
    const gateway = await startGateway(home);
    t.after(async () => {
      await gateway.kill();
      await model.close();
      await home[Symbol.asyncDispose]();
    });
    const url = await listenerOf(gateway);
    const body = '{"n":1}';
    const send = () => post(`${url}/webhooks/r`, body, signed(body, { "x-request-id": "slow" }));
    const { reply, stored } = await sendWhileHeld(home, "webhook", send);
    assert.equal(reply.status, 202);
    assert.deepEqual(stored, ["r:slow"]);
  });

  for (const [name, webhook, reason] of [
    ["a route without a secret", { routes: { naked: {} } }, /the route naked cannot be used: it has no secret/],
    [
      "a route without authentication for other machines",
      { host: "0.0.0.0", routes: { open: { secret: "INSECURE_NO_AUTH" } } },
      /it checks no signature, which is only for 127\.0\.0\.1, and 0\.0\.0\.0 can be reached from other machines/,
    ],
    [
      "deliver_only without a target",
      { secret: "s", routes: { r: { deliver_only: true } } },
      /deliver_only needs a target/,
    ],
  ] as const)
    test(`${name} keeps the listener from starting, and the console says why`, async (t) => {
      const { model, home } = await world(webhook);
      t.after(async () => {
        await model.close();
        await home[Symbol.asyncDispose]();
      });
      const { stdout, code } = await typed(home, ["gateway", "run"]);
      assert.match(stdout, /^\[Webhook\] off: /m);
      assert.match(stdout, reason);
      assert.equal(code, 1);
    });

  const NOBODY = "+15550009999";
  const targets = {
    texts: { deliver: "sms:+15551230001", prompt: "Tell {word}" },
    chosen: { deliver: "sms", deliver_extra: { chat_id: "{number}" }, prompt: "Tell {word}" },
    alert: { deliver: "sms:+15551230001", deliver_only: true, prompt: "**Alert** on {host}: {text}" },
    nobody: { deliver: `sms:${NOBODY}`, deliver_only: true, prompt: "x {word}" },
  };

  async function twoPlatforms() {
    const twilio = await TwilioServer.start();
    const made = await world({ routes: targets }, { WEBHOOK_SECRET: SECRET, ...twilio.env });
    twilio.stopped.add(NOBODY);
    let gateway = await startGateway(made.home);
    let url = await listenerOf(gateway);
    const restart = async () => {
      await gateway.kill();
      gateway = await startGateway(made.home);
      url = await listenerOf(gateway);
    };
    const close = async () => {
      await gateway.kill();
      await made.model.close();
      await twilio.close();
      await made.home[Symbol.asyncDispose]();
    };
    const send = (route: string, payload: object, id: string = randomUUID(), more: Record<string, string> = {}) => {
      const body = JSON.stringify(payload);
      return post(`${url}/webhooks/${route}`, body, signed(body, { "x-request-id": id, ...more }));
    };
    return { ...made, twilio, send, restart, close };
  }

  test("the answer goes to another platform where the route says so", async (t) => {
    const { twilio, send, close, model } = await twoPlatforms();
    t.after(close);
    answerTurns(model, () => ({ text: "**Told.**" }));
    assert.equal((await send("texts", { word: "a" })).status, 202);
    await until("a text message", () => twilio.textsTo("+15551230001").length === 1);
    assert.deepEqual(twilio.textsTo("+15551230001"), ["Told."]);
    assert.equal((await send("chosen", { word: "b", number: "+15551230002" })).status, 202);
    await until("a text message", () => twilio.textsTo("+15551230002").length === 1);
  });

  test("deliver_only sends at once and without a model, once for each delivery", async (t) => {
    const { twilio, send, close, model } = await twoPlatforms();
    t.after(close);
    const alert = { host: "db1", text: "a disk of the database server is nearly full" };
    const reply = await send("alert", alert, "alert-1");
    assert.equal(reply.status, 200);
    assert.deepEqual(reply.json, {
      ...{ status: "delivered", route: "alert", target: "sms:+15551230001", delivery_id: "alert-1" },
    });
    assert.deepEqual(twilio.textsTo("+15551230001"), [`Alert on db1: ${alert.text}`]);
    assert.deepEqual((await send("alert", alert, "alert-1")).json, { status: "duplicate", delivery_id: "alert-1" });
    assert.equal(twilio.sent.length, 1);
    assert.equal(model.requests.length, 0);
  });

  test("deliver_only knows a delivery again after a restart", async (t) => {
    const { twilio, send, restart, close } = await twoPlatforms();
    t.after(close);
    const alert = { host: "db1", text: "down" };
    assert.equal((await send("alert", alert, "again-1")).json.status, "delivered");
    await restart();
    assert.deepEqual((await send("alert", alert, "again-1")).json, { status: "duplicate", delivery_id: "again-1" });
    assert.equal(twilio.sent.length, 1);
  });

  test("deliver_only that fails is 502 and leaves nothing behind", async (t) => {
    const { twilio, send, close } = await twoPlatforms();
    t.after(close);
    const first = await send("nobody", { word: "x" }, "n-1");
    assert.equal(first.status, 502);
    assert.match(first.json.error, /has unsubscribed/);
    const time = String(Math.floor(Date.now() / 1000));
    const timed = { "x-webhook-timestamp": time, "x-webhook-signature-v2": hex(`${time}.{"word":"y"}`) };
    assert.equal((await send("nobody", { word: "y" }, "n-2", timed)).status, 502);
    twilio.stopped.clear();
    // The same signed bytes: they were not taken, so they are no replay.
    assert.equal((await send("nobody", { word: "y" }, "n-3", timed)).json.status, "delivered");
    assert.equal((await send("nobody", { word: "y" }, "n-4", timed)).json.status, "duplicate");
    assert.equal((await send("nobody", { word: "x" }, "n-1")).status, 200);
    await sleep(300);
    assert.deepEqual(
      twilio.sent.map(({ body }) => body),
      ["x y", "x x"],
    );
  });

  test("a route that is subscribed while the gateway runs is there at once", async (t) => {
    const { model, home } = await world({ routes: { fixed: {} } }, { WEBHOOK_SECRET: SECRET });
    const gateway = await startGateway(home);
    t.after(async () => {
      await gateway.kill();
      await model.close();
      await home[Symbol.asyncDispose]();
    });
    const url = await listenerOf(gateway);
    const send = (route: string, secret: string) => {
      const body = JSON.stringify({ word: route });
      return post(`${url}/webhooks/${route}`, body, signed(body, {}, secret));
    };
    assert.equal((await send("later", "own-secret")).status, 404);
    const subscriptions = {
      later: { secret: "own-secret", prompt: "Later {word}" },
      naked: {},
      fixed: { secret: "theirs" },
    };
    await home.write("webhook_subscriptions.json", JSON.stringify(subscriptions));
    assert.equal((await send("later", "own-secret")).status, 202);
    assert.equal((await send("later", SECRET)).status, 401);
    assert.equal((await send("naked", SECRET)).status, 202);
    assert.equal((await send("fixed", "theirs")).status, 401);
    await until("a turn", () => model.requests.some(({ raw }) => raw.includes("Later later")));
    const added = await typed(home, ["webhook", "subscribe", "typed", "--prompt", "Typed {n}", "--events", "failed"]);
    assert.match(added.stdout, new RegExp(`Address: ${url}/webhooks/typed`), added.stderr);
    const tried = await typed(home, ["webhook", "test", "typed", "--payload", '{"n": 17, "event_type": "failed"}']);
    assert.match(tried.stdout, /^HTTP 202: {"status":"accepted","route":"typed","event":"failed"/, tried.stderr);
    await until("its turn", () => model.requests.some(({ raw }) => raw.includes("Typed ")));
    const unwanted = await typed(home, ["webhook", "test", "typed", "--payload", '{"event_type": "passed"}', "--json"]);
    assert.deepEqual(JSON.parse(unwanted.stdout), { http_status: 200, status: "ignored", event: "passed" });
    assert.equal((await typed(home, ["webhook", "remove", "typed"])).code, 0);
    assert.equal((await send("typed", "any")).status, 404);
  });

  test("a port that is taken is named, and the listener comes up when it is free", async (t) => {
    const { createServer } = await import("node:net");
    const other = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => other.once("listening", resolve));
    const { port } = other.address() as { port: number }; // it listens on a port
    const { model, home } = await world({ port, routes: { r: {} } }, { WEBHOOK_SECRET: SECRET });
    const gateway = await startGateway(home);
    t.after(async () => {
      await gateway.kill();
      await model.close();
      await home[Symbol.asyncDispose]();
    });
    await gateway.waitFor(
      new RegExp(`^\\[Webhook\\] failed: port ${port} on 127\\.0\\.0\\.1 is taken; choose another with WEBHOOK_PORT`),
    );
    await new Promise((resolve) => other.close(resolve));
    await gateway.waitFor(/^\[Webhook\] .*listening on/);
    assert.equal((await post(`http://127.0.0.1:${port}/health`, "", {}, "GET")).status, 200);
  });
});
