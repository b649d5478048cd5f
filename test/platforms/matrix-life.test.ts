// Matrix over the life of a gateway: restarts, logins, pairing, settings of rooms, sending without one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { answerTurns, gatewayHome, ModelServer, startGateway, typed, until } from "../support/gateway-rig.ts";
import { ANN, asked, BOB, bodies, EVE, echo, held, mention, world } from "../support/platforms/matrix-rig.ts";
import { MatrixServer } from "../support/platforms/matrix-server.ts";
import { oneOf } from "../support/sample.ts";

const { BOT } = MatrixServer;

test("what was written while the gateway was down is answered in order, however much it was", async () => {
  await using one = await world({ config: "display:\n  busy_input_mode: queue\n" });
  const { server, dm, home } = one;
  server.say(dm, ANN, "before");
  await one.written("heard: before");
  await one.gateway.stop();
  for (let index = 0; index < 60; index++) server.say(one.team, BOB, `chatter ${index}`);
  server.say(dm, ANN, "while you were out, one");
  for (let index = 0; index < 60; index++) server.say(dm, BOB, { msgtype: "m.notice", body: `a bot says ${index}` });
  await sleep(20);
  server.say(dm, ANN, "while you were out, two");
  const syncs = () => server.web.callsOf(/\/sync/).map(({ query }) => query.get("since"));
  const before = syncs();
  one.gateway = await startGateway(home);
  await one.written("out, two");
  assert.notEqual(syncs()[before.length], before[1], "it reads on from where it stopped, not from the start");
  assert.deepEqual(
    bodies(server, dm).filter((body) => body.startsWith("heard:")),
    ["heard: before", "heard: while you were out, one", "heard: while you were out, two"],
  );
});

test("a message that the gateway died with is answered once, by the next one", async () => {
  await using one = await world();
  const { server, model, dm, home } = one;
  held(model, "never said");
  server.say(dm, ANN, "hold on to this");
  await until("its turn runs", () => asked(model, "hold on to this").length > 0);
  await one.gateway.kill();
  echo(model);
  one.gateway = await startGateway(home);
  await until("it is answered", () => bodies(server, dm).length > 0);
  server.say(dm, ANN, "and then");
  await one.written("heard: and then");
  assert.equal(bodies(server, dm).length, 2, bodies(server, dm).join(" | "));
});

test("streamed text is edited in place and shows no cursor", async () => {
  await using one = await world({ config: "streaming:\n  enabled: true\n  edit_interval: 0.1\n" });
  const { server, model, dm } = one;
  const text = `${"some words of a longer answer ".repeat(10)}the end`;
  answerTurns(model, () => ({ text, chunk: 20, pace: 40 }));
  server.say(dm, ANN, "stream it");
  await one.written("the end");
  const [first, ...edits] = server.sent(dm);
  assert.ok(first && edits.length > 1, "it grew in steps");
  for (const { content } of edits)
    assert.deepEqual(content["m.relates_to"], { rel_type: "m.replace", event_id: first.event_id });
  const last = (edits.at(-1) ?? first).content;
  const shown = (last["m.new_content"] ?? last) as { body: string };
  assert.match(shown.body, /the end$/);
  assert.equal(
    bodies(server, dm).some((body) => body.includes("▉")),
    false,
  );
});

test("with a password the bot logs in as one device", async () => {
  await using one = await world({
    env: { MATRIX_ACCESS_TOKEN: "", MATRIX_USER_ID: "hermes", MATRIX_PASSWORD: MatrixServer.PASSWORD },
  });
  const { server, dm } = one;
  server.say(dm, ANN, "by password");
  await one.written("heard: by password");
  const [login] = server.web.callsOf(/login/);
  assert.match(String(login?.json.device_id), /^HERMES[0-9A-F]{8}$/);
});

test("hermes send reaches a room, a thread and a person without a gateway", async () => {
  await using one = await world();
  const { server, dm, team, home } = one;
  await one.gateway.stop();
  const root = server.say(team, ANN, "a thing to discuss");
  for (const [target, text] of [
    [`matrix:${dm}`, "to the **room**"],
    [`matrix:${team}:${root}`, "to the thread"],
    ["matrix:@new:test", "to the person"],
  ] as const) {
    const { code, stdout, stderr } = await typed(home, ["send", "-t", target, "--json", text]);
    assert.equal(code, 0, stderr + stdout);
  }
  assert.equal((await one.written("to the **room**")).content.formatted_body, "to the <strong>room</strong>");
  const { content } = await one.written("to the thread", team);
  assert.equal((content["m.relates_to"] as { event_id: string }).event_id, root);
  await one.written("to the person", server.rooms.at(-1));
  const lost = await typed(home, ["send", "-t", "matrix:!elsewhere:test", "--json", "lost"]);
  assert.equal(lost.code, 1);
  assert.match(lost.stdout + lost.stderr, /M_FORBIDDEN/);
});

const REFUSED = [
  ["token", { MATRIX_ACCESS_TOKEN: "wrong" }],
  ["password", { MATRIX_USER_ID: "hermes", MATRIX_PASSWORD: "wrong" }],
] as const;
for (const [what, env] of oneOf(REFUSED, "matrix logins"))
  test(`a ${what} that is not accepted turns the platform off with a line that says what to do`, async () => {
    const model = await ModelServer.start();
    const server = await MatrixServer.start();
    const home = await gatewayHome(model, { env: { MATRIX_HOMESERVER: server.url, ...env } });
    const gateway = await startGateway(home, { ready: null });
    try {
      const line = await gateway.waitFor(/^\[Matrix\] off: /);
      assert.match(line, /does not accept this login: .*; set a new MATRIX_ACCESS_TOKEN: hermes gateway setup$/);
    } finally {
      await gateway.kill();
      await server.close();
      await model.close();
      await home[Symbol.asyncDispose]();
    }
  });

test("where nobody is listed, a stranger who invites to a direct chat can pair, and to a group cannot", async () => {
  await using one = await world({ env: { MATRIX_ALLOWED_USERS: "" } });
  const { server, model, home } = one;
  const group = server.room({ [EVE]: "Eve", [BOB]: "Bob" }, { withoutBot: true });
  server.member(group, BOT, "invite", { sender: EVE });
  const room = server.room({ [EVE]: "Eve" }, { withoutBot: true });
  server.member(room, BOT, "invite", { sender: EVE, is_direct: true });
  server.say(room, EVE, "hello");
  const { content } = await one.written("Pairing code: ", room);
  assert.equal(server.membership(group), "invite");
  assert.deepEqual(asked(model, "hello"), []);
  const code = /Pairing code: (\w{8})/.exec(String(content.body))?.[1] ?? assert.fail();
  assert.equal((await typed(home, ["pairing", "approve", "matrix", code])).code, 0);
  server.say(room, EVE, "hello again");
  await one.written("heard: hello again", room);
  const next = server.room({ [EVE]: "Eve", [BOB]: "Bob" }, { withoutBot: true });
  server.member(next, BOT, "invite", { sender: EVE });
  await until("who is paired may invite to groups", () => server.membership(next) === "join");
});

test("a mention can open a thread, only the listed rooms are answered, and free ones need no mention", async () => {
  await using one = await world({
    extra: 'auto_thread: true\nallowed_rooms: ["!room4:test", "!room10:test"]\nfree_response_rooms: ["!room10:test"]',
  });
  const { server, model, team } = one;
  const free = server.room({ [ANN]: "Ann", [BOB]: "Bob" });
  const closed = server.room({ [ANN]: "Ann", [BOB]: "Bob" });
  assert.deepEqual([team, free], ["!room4:test", "!room10:test"]);
  server.say(closed, ANN, mention("Hermes: in the closed room"));
  const id = server.say(team, ANN, mention("Hermes: open a thread"));
  const relates = (await one.written("open a thread", team)).content["m.relates_to"] as {
    rel_type: string;
    event_id: string;
  };
  assert.deepEqual([relates.rel_type, relates.event_id], ["m.thread", id]);
  server.say(free, BOB, "without a mention");
  await one.written("without a mention", free);
  assert.deepEqual(asked(model, "in the closed room"), []);
});

test("a homeserver without TLS on the internet is refused before anything is sent", async () => {
  const model = await ModelServer.start();
  const home = await gatewayHome(model, {
    env: { MATRIX_HOMESERVER: "http://matrix.example.org", MATRIX_ACCESS_TOKEN: "t0ken" },
  });
  const gateway = await startGateway(home, { ready: null });
  try {
    await gateway.waitFor(/MATRIX_HOMESERVER must be an address that begins with https:\/\//);
  } finally {
    await gateway.kill();
    await model.close();
    await home[Symbol.asyncDispose]();
  }
});
