import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { gatewayUser } from "../../../test/support/gateway-command.ts";
import { systemClock } from "../../kit/clock.ts";
import { Pairing } from "./pairing.ts";
import { define } from "./pairing-cli.ts";
import { accountOf } from "./settings.ts";

const TOKEN = "123456:abcdefghijklmnopqrstuvwxyz0123456";

async function rig(t: TestContext) {
  const user = await gatewayUser(t, { ".env": `TELEGRAM_BOT_TOKEN=${TOKEN}\n` });
  const pairing = new Pairing({ at: user.home.at }, systemClock);
  const ask = async (platform = "telegram", id = "42", name = "Ann", asked?: { account: string; chatId: string }) =>
    (await pairing.request(platform, id, name, asked)) ?? assert.fail("no code");
  const promised = async () => {
    const store = await user.store();
    const work = await store.work();
    const rows = [...(await work.due("telegram", accountOf(TOKEN))), ...(await work.due("slack", accountOf("x")))];
    await store.close();
    return rows;
  };
  return { ...user, pairing, ask, promised, run: (...args: string[]) => user.typed(define, { args }) };
}

test("who waits is listed without the code, and the code approves them", async (t) => {
  const { ask, run, pairing } = await rig(t);
  const code = await ask();
  const waiting = await run("list", "--json");
  const { pending, approved } = JSON.parse(waiting.out);
  assert.deepEqual(Object.keys(pending[0]), ["platform", "request_id", "user_id", "user_name", "age_minutes"]);
  assert.deepEqual(
    [pending[0].platform, pending[0].user_id, pending[0].user_name, approved],
    ["telegram", "42", "Ann", []],
  );
  const page = await run();
  assert.match(page.out, /telegram {2}42 \(Ann\) {2}request [0-9a-f]{8}, 0 min ago/);
  for (const { out } of [waiting, page]) assert.ok(!out.includes(code));
  const answer = await run("approve", "Telegram", code.toLowerCase());
  assert.deepEqual([answer.code, answer.out], [0, "✓ 42 (Ann) may talk to the agent on telegram and is notified.\n"]);
  assert.equal(await pairing.isPaired("telegram", "42"), true);
  const after = JSON.parse((await run("list", "telegram", "--json")).out);
  assert.deepEqual(after.pending, []);
  assert.deepEqual(Object.keys(after.approved[0]), ["platform", "user_id", "user_name", "approved_at"]);
});

test("an approval is promised to the person, once, where they asked", async (t) => {
  const { ask, run, promised } = await rig(t);
  await run("approve", "telegram", await ask("telegram", "42", "Ann", { account: accountOf(TOKEN), chatId: "chat-7" }));
  const [row, ...more] = await promised();
  assert.deepEqual(more, []);
  assert.match(row?.cause ?? "", /^notice:pairing:telegram:42:\d+$/);
  assert.deepEqual(row?.target, { chatId: "chat-7" });
  assert.deepEqual(Object.keys(row?.payload as object), ["type", "text"]);
});

test("where the chat is not known it is the one with the id of the person", async (t) => {
  const { ask, run, promised } = await rig(t);
  await run("approve", "telegram", await ask());
  assert.deepEqual(
    (await promised()).map(({ target }) => target),
    [{ chatId: "42" }],
  );
});

test("on a platform that is not set up somebody is approved and nothing promised", async (t) => {
  const { ask, run, promised } = await rig(t);
  const { code, out } = await run("approve", "slack", await ask("slack"));
  assert.deepEqual([code, out], [0, "✓ 42 (Ann) may talk to the agent on slack.\n"]);
  assert.deepEqual(await promised(), []);
});

test("the request id of the list approves too, as JSON if asked", async (t) => {
  const { ask, run } = await rig(t);
  await ask();
  const { request_id } = JSON.parse((await run("list", "--json")).out).pending[0];
  const { code, out } = await run("approve", "telegram", request_id, "--json");
  const answer = JSON.parse(out);
  assert.deepEqual([code, answer.approved, answer.reason, answer.user_id], [0, true, null, "42"]);
});

test("a wrong code exits 1 and says where to look; five of them lock the right one out, exit 1", async (t) => {
  const { ask, run, pairing } = await rig(t);
  const right = await ask();
  for (let tries = 0; tries < 5; tries++) {
    const { code, err } = await run("approve", "telegram", "AAAAAAAA");
    assert.equal(code, 1);
    assert.match(err, /wrong or expired.*hermes pairing list telegram/);
  }
  const { code, err } = await run("approve", "telegram", right);
  assert.equal(code, 1);
  assert.match(err, /Too many wrong codes: approvals for telegram are locked until \d{4}-/);
  assert.equal(JSON.parse((await run("approve", "telegram", right, "--json")).out).reason, "locked");
  assert.equal(await pairing.isPaired("telegram", "42"), false);
});

test("access is withdrawn by id; somebody who has none is told, exit 1", async (t) => {
  const { ask, run, pairing } = await rig(t);
  await run("approve", "telegram", await ask());
  assert.equal((await run("revoke", "telegram", "42")).code, 0);
  assert.equal(await pairing.isPaired("telegram", "42"), false);
  const { code, err } = await run("revoke", "telegram", "42");
  assert.equal(code, 1);
  assert.match(err, /42 is not approved on telegram/);
  assert.deepEqual(JSON.parse((await run("revoke", "telegram", "42", "--json")).out), {
    ...{ revoked: false, platform: "telegram", user_id: "42" },
  });
});

test("requests that wait are discarded, of one platform or of all", async (t) => {
  const { ask, run } = await rig(t);
  await ask("telegram");
  await ask("slack");
  assert.match((await run("clear-pending", "slack")).out, /Discarded 1 request\./);
  assert.deepEqual(JSON.parse((await run("clear-pending", "--json")).out), { cleared: 1 });
  assert.equal((await run("clear-pending")).out, "No pending requests.\n");
});

test("a name that no platform has is told with the nearest, exit 2; a plugin's with people in it is known", async (t) => {
  const { ask, run } = await rig(t);
  const { code, err } = await run("approve", "telegramm", "AAAAAAAA");
  assert.equal(code, 2);
  assert.match(err, /no platform "telegramm"\. Did you mean "telegram"\?/);
  assert.equal((await run("approve", "paper", await ask("paper"))).code, 0);
});

test("the name of a stranger cannot break the line or drive the terminal", async (t) => {
  const { ask, run } = await rig(t);
  await ask("telegram", "42", "Ann\n\u001b[2J  telegram  1 (you)  request 00000000");
  const { out } = await run("list");
  assert.equal(out.split("\n").length, 3);
  assert.ok(!out.includes("\u001b"));
});
