import assert from "node:assert/strict";
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { type TestContext, test } from "node:test";
import { manualClock } from "../../../test/support/session-store.ts";
import { tempTree } from "../../../test/support/temp-tree.ts";
import { Pairing } from "./pairing.ts";

async function open(t: TestContext) {
  const tree = await tempTree(t);
  const clock = manualClock();
  const pairing = new Pairing({ at: (...parts) => tree.at(...parts) }, clock);
  const pass = (seconds: number) => {
    clock.ms += seconds * 1000;
  };
  const code = async (user = "7", name = "Ann") =>
    (await pairing.request("telegram", user, name)) ?? assert.fail("no code");
  return { pairing, pass, code, tree };
}

test("a stranger gets a code, the owner approves it in any case, and only that person is in", async (t) => {
  const { pairing, code } = await open(t);
  const given = await code();
  assert.match(given, /^[A-HJ-NP-Z2-9]{8}$/);
  assert.equal(await pairing.isPaired("telegram", "7"), false);
  const answer = await pairing.approve("telegram", ` ${given.toLowerCase()} `);
  assert.ok(answer.type === "approved" && answer.person.user_id === "7" && answer.person.user_name === "Ann");
  assert.equal(await pairing.isPaired("telegram", "7"), true);
  assert.equal(await pairing.isPaired("telegram", "77"), false);
  assert.equal(await pairing.isPaired("discord", "7"), false);
  assert.equal((await pairing.approve("telegram", given)).type, "wrong", "a code is used once");
});

test("codes are nowhere on disk or in lists; files are their owner's alone", async (t) => {
  const { pairing, code, tree } = await open(t);
  const given = await code();
  const folder = tree.at("platforms", "pairing");
  for (const name of (await readdir(folder)).filter((entry) => entry.endsWith(".json"))) {
    assert.ok(!(await readFile(tree.at("platforms", "pairing", name), "utf8")).includes(given));
    assert.equal((await stat(tree.at("platforms", "pairing", name))).mode & 0o777, 0o600);
  }
  assert.equal((await stat(folder)).mode & 0o777, 0o700);
  const { pending } = await pairing.list();
  assert.ok(!JSON.stringify(pending).includes(given));
  assert.deepEqual(Object.keys(pending[0] ?? {}), ["platform", "request_id", "user_id", "user_name", "age_minutes"]);
  const byId = await pairing.approve("telegram", pending[0]?.request_id ?? "");
  assert.equal(byId.type, "approved");
  assert.deepEqual((await pairing.list("telegram")).pending, []);
  assert.equal((await pairing.list()).approved[0]?.user_id, "7");
});

test("one request in ten minutes per person, three waiting per platform, an hour for each", async (t) => {
  const { pairing, pass, code } = await open(t);
  const first = await code("1");
  assert.equal(await pairing.request("telegram", "1", "x"), null);
  await code("2");
  await code("3");
  assert.equal(await pairing.request("telegram", "4", "x"), null, "three wait");
  assert.notEqual(await pairing.request("discord", "4", "x"), null);
  pass(600);
  const second = await code("1");
  assert.equal((await pairing.approve("telegram", first)).type, "wrong", "the newer code counts");
  pass(3599);
  assert.equal((await pairing.approve("telegram", second)).type, "approved");
  assert.deepEqual((await pairing.list("telegram")).pending, [], "the others are too old");
});

test("five wrong codes lock approvals for an hour, also for the right one, and for that platform alone", async (t) => {
  const { pairing, pass, code } = await open(t);
  const given = await code();
  for (let n = 0; n < 5; n++) assert.equal((await pairing.approve("telegram", "AAAAAAAA")).type, "wrong");
  assert.equal((await pairing.approve("telegram", given)).type, "locked");
  assert.equal((await pairing.approve("discord", "AAAAAAAA")).type, "wrong");
  pass(3601);
  const again = await code("8");
  assert.equal((await pairing.approve("telegram", "AAAAAAAA")).type, "wrong");
  assert.equal((await pairing.approve("telegram", again)).type, "approved", "the count began anew");
});

test("a person is put out again, requests are cleared", async (t) => {
  const { pairing, code } = await open(t);
  await pairing.approve("telegram", await code());
  assert.equal(await pairing.revoke("telegram", "9"), false);
  assert.equal(await pairing.revoke("telegram", "7"), true);
  assert.equal(await pairing.isPaired("telegram", "7"), false);
  await code("8");
  assert.equal(await pairing.clearPending(), 1);
  assert.deepEqual((await pairing.list()).pending, []);
});

test("an older home keeps its folder, and people of the original are in", async (t) => {
  const { pairing, code, tree } = await open(t);
  await mkdir(tree.at("pairing"));
  await writeFile(
    tree.at("pairing", "telegram-approved.json"),
    '{"5": {"user_name": "Bo", "approved_at": 1.5, "more": 1}}',
  );
  assert.equal(await pairing.isPaired("telegram", "5"), true);
  await pairing.approve("telegram", await code());
  const kept = JSON.parse(await readFile(tree.at("pairing", "telegram-approved.json"), "utf8"));
  assert.deepEqual(kept["5"], { user_name: "Bo", approved_at: 1.5, more: 1 });
  assert.equal((await readdir(tree.root)).includes("platforms"), false);
});

test("a damaged list lets nobody in and is not written over", async (t) => {
  const { pairing, code, tree } = await open(t);
  const given = await code();
  await writeFile(tree.at("platforms", "pairing", "telegram-approved.json"), "{broken");
  await assert.rejects(pairing.isPaired("telegram", "7"));
  await assert.rejects(pairing.approve("telegram", given));
  assert.equal(await readFile(tree.at("platforms", "pairing", "telegram-approved.json"), "utf8"), "{broken");
});

test("several processes at once lose no request", async (t) => {
  const { pairing, tree } = await open(t);
  const others = [1, 2, 3].map(() => new Pairing({ at: (...parts) => tree.at(...parts) }, manualClock()));
  await Promise.all(others.map((other, n) => other.request("telegram", `${n}`, "x")));
  assert.equal((await pairing.list()).pending.length, 3);
});

test("an approval names the bot and the chat that somebody asked in, where they are known", async (t) => {
  const { pairing, code } = await open(t);
  const place = { account: "0123456789abcdef", chatId: "D42", threadId: "7" };
  const given = (await pairing.request("slack", "U1", "Ann", place)) ?? assert.fail("no code");
  const answer = await pairing.approve("slack", given);
  assert.deepEqual(answer.type === "approved" && answer.asked, place);
  const without = await pairing.approve("telegram", await code());
  assert.deepEqual(without.type === "approved" && without.asked, null);
});

test("nobody who asks can be called like the count of wrong codes, and those who asked long ago are forgotten", async (t) => {
  const { pairing, code, pass, tree } = await open(t);
  for (const name of ["failures", "locked_until", "_lockout:telegram"]) await code(name);
  assert.equal((await pairing.approve("telegram", "AAAAAAAA")).type, "wrong");
  assert.equal((await pairing.approve("telegram", "AAAAAAAA")).type, "wrong");
  pass(3601);
  await code("9");
  const limits = JSON.parse(await readFile(tree.at("platforms", "pairing", "_rate_limits.json"), "utf8"));
  assert.deepEqual(Object.keys(limits).sort(), ["_failures:telegram", "telegram:9"]);
});
