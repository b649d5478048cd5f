import assert from "node:assert/strict";
import { readFile, stat } from "node:fs/promises";
import { type TestContext, test } from "node:test";
import { gatewayUser } from "../../../test/support/gateway-command.ts";
import { define } from "./webhook-cli.ts";

async function rig(t: TestContext, config = "") {
  const user = await gatewayUser(t, {
    "config.yaml": config,
    ".env": "WEBHOOK_ENABLED=true\nWEBHOOK_SECRET=the-common-secret\n",
  });
  return { ...user, run: (...args: string[]) => user.typed(define, { args }) };
}

const FIXED = "platforms: {webhook: {extra: {port: 9123, routes: {fixed: {events: [push], deliver: telegram}}}}}\n";

test("a route is subscribed with a secret of its own, which no other command shows", async (t) => {
  const { run, home } = await rig(t);
  const added = await run("subscribe", "ci", "--prompt", "Build {n} failed", "--events", "failed, broken");
  assert.equal(added.code, 0, added.err);
  assert.match(added.out, /^✓ The route ci was added\.\n {2}Address: http:\/\/127\.0\.0\.1:8644\/webhooks\/ci\n/);
  const secret = /Secret: ([\w-]{32})$/m.exec(added.out)?.[1] ?? assert.fail(added.out);
  const file = home.at("webhook_subscriptions.json");
  const { ci } = JSON.parse(await readFile(file, "utf8"));
  assert.deepEqual([ci.prompt, ci.events, ci.secret], ["Build {n} failed", ["failed", "broken"], secret]);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  for (const { out } of [await run("list"), await run("list", "--json")]) assert.ok(!out.includes(secret));
});

test("all that a route can be told is written as the original reads it", async (t) => {
  const { run, home } = await rig(t);
  const options = ["--skills", "review,git", "--deliver", "telegram", "--deliver-chat-id", "{chat}", "--deliver-only"];
  const added = await run("add", "pr", ...options, "--secret", "mine", "--description", "pull requests", "--json");
  assert.equal(JSON.parse(added.out).secret, "mine");
  const { pr } = JSON.parse(await readFile(home.at("webhook_subscriptions.json"), "utf8"));
  const { created_at, ...rest } = pr;
  assert.ok(!Number.isNaN(Date.parse(created_at)));
  assert.deepEqual(rest, {
    ...{ events: [], skills: ["review", "git"], deliver: "telegram", deliver_extra: { chat_id: "{chat}" } },
    ...{ deliver_only: true, secret: "mine", description: "pull requests" },
  });
});

test("the list has the routes of the settings and the subscribed ones, in the form other programs read", async (t) => {
  const { run } = await rig(t, FIXED);
  await run("subscribe", "later");
  const { routes } = JSON.parse((await run("list", "--json")).out);
  const url = (name: string) => `http://127.0.0.1:9123/webhooks/${name}`;
  assert.deepEqual(routes, [
    { name: "fixed", url: url("fixed"), events: ["push"], deliver: "telegram", enabled: true, source: "config" },
    { name: "later", url: url("later"), events: [], deliver: "log", enabled: true, source: "subscribed" },
  ]);
  const page = (await run()).out;
  assert.match(page, /^fixed {2}http.*\n {2}push · → telegram · config\.yaml\nlater {2}http/);
  assert.match(page, /No gateway is running\. Start it: hermes gateway start/);
});

test("a route of the settings is neither replaced nor removed; a subscribed one is removed once", async (t) => {
  const { run } = await rig(t, FIXED);
  await assert.rejects(run("subscribe", "fixed"), /is in the settings .* choose another name/);
  const kept = await run("remove", "fixed");
  assert.deepEqual([kept.code, /hermes config unset/.test(kept.err)], [1, true]);
  await run("subscribe", "later");
  assert.match((await run("subscribe", "later")).out, /✓ The route later was replaced/);
  assert.equal((await run("remove", "later")).out, "✓ The route later was removed.\n");
  const again = await run("remove", "latre");
  assert.deepEqual([again.code, again.err], [1, 'There is no route "latre". hermes webhook list shows all.\n']);
});

test("a route that could never run is refused with the reason", async (t) => {
  const { run } = await rig(t);
  await assert.rejects(run("subscribe", "a b"), /its name may only have letters/);
  await assert.rejects(run("subscribe", "x", "--deliver-only"), /deliver_only needs a target/);
});

test("a test delivery without a gateway says how to start one, and a payload that is none is wrong usage", async (t) => {
  const { run } = await rig(t);
  await run("subscribe", "ci");
  const alone = await run("test", "ci");
  assert.deepEqual([alone.code, alone.err], [1, "No gateway is running. Start it: hermes gateway start\n"]);
  for (const payload of ["[1]", "nothing", "@/no/such/file"])
    assert.equal((await run("test", "ci", "--payload", payload)).code, 2, payload);
});

test("where webhooks are off, whoever adds a route is told how to enable them", async (t) => {
  const user = await gatewayUser(t);
  const added = await user.typed(define, { args: ["subscribe", "ci"] });
  assert.match(added.out, /Webhooks are off\. Enable them: hermes config set WEBHOOK_ENABLED true/);
});
