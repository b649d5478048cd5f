// Cards made where nobody can be told: by a program through the API server, whose conversation is woken, and in a shell, which is not.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { block, complete } from "../src/kanban/moves.ts";
import { BoardFile, type Change } from "../src/kanban/schema.ts";
import { systemClock } from "../src/kit/clock.ts";
import {
  answerTurns,
  gatewayHome,
  lastSaid,
  ModelServer,
  type RunningGateway,
  startGateway,
  typed,
  until,
} from "./support/gateway-rig.ts";
import { rowsOf } from "./support/paper-home.ts";
import { recordedLog } from "./support/session-store.ts";
import type { TempHome } from "./support/temp-home.ts";

const CONFIG =
  "kanban: {dispatch_in_gateway: false}\nplatform_toolsets: {api_server: [kanban, todo], cli: [kanban, todo]}\n";
const QUICK = { gateway: "    kanban_notify: 0.2\n", env: { API_SERVER_ENABLED: "true", API_SERVER_PORT: "0" } };

async function onBoard<T>(home: TempHome, work: (change: Change) => T): Promise<T> {
  const board = await BoardFile.open(home.at("kanban.db"), { clock: systemClock, log: recordedLog() });
  try {
    return await board.change(work);
  } finally {
    board.close();
  }
}

async function call(gateway: RunningGateway, method: string, path: string, body?: object) {
  const url = /listening on (http:\/\/127\.0\.0\.1:\d+)/.exec(gateway.lines.join("\n"))?.[1];
  assert.ok(url, gateway.lines.join("\n"));
  const response = await fetch(url + path, {
    method,
    headers: { "content-type": "application/json" },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const text = await response.text();
  assert.ok(response.ok, text);
  return text;
}

describe("cards of conversations without a chat", () => {
  let model: ModelServer;
  before(async () => {
    model = await ModelServer.start();
  });
  after(() => model.close());

  /** `woken`: what the model says to a conversation that is woken. */
  const answers = (woken: () => string | Promise<string>) =>
    answerTurns(model, async (request) => {
      const text = lastSaid(request);
      if (/^please plan/.test(text)) {
        const args = { title: text, assignee: "default" };
        return { toolCalls: [{ name: "tool_call", arguments: { name: "kanban_create", arguments: args } }] };
      }
      // What was said behind a turn that was cut off is one message with it.
      if (text.endsWith("what is new?")) return { text: "heard: what is new?" };
      return { text: text.startsWith("[Board ") ? await woken() : `heard: ${text.slice(0, 300)}` };
    });
  const heard = (what: string) => model.requests.filter((request) => lastSaid(request).includes(what)).length;
  const cards = (home: TempHome) =>
    onBoard(home, ({ db }) => db.all<{ id: string; title: string }>("SELECT id, title FROM tasks ORDER BY created_at"));
  const wakes = (home: TempHome) => rowsOf(home, "SELECT * FROM inbox WHERE kind = 'wake' ORDER BY id");
  const session = async (gateway: RunningGateway) =>
    String(JSON.parse(await call(gateway, "POST", "/api/sessions", {})).session.id);
  const say = (gateway: RunningGateway, id: string, input: string) =>
    call(gateway, "POST", `/api/sessions/${id}/chat`, { input });
  /** How far the board was read. */
  const hasRead = (home: TempHome) => rowsOf(home, "SELECT 1 FROM cursors WHERE platform = 'kanban'").length > 0;

  test("a conversation of the API server is woken once for each end of its card, over kill -9; it reads that in its next turn", async () => {
    await using home = await gatewayHome(model, { ...QUICK, config: CONFIG });
    let held = Promise.withResolvers<void>();
    held.resolve();
    answers(async () => {
      await held.promise;
      return "The trip goes on by train.";
    });
    let gateway = await startGateway(home);
    try {
      const id = await session(gateway);
      await say(gateway, id, "please plan a trip");
      const [card] = await cards(home);
      assert.ok(card);
      await until("the board was read", () => hasRead(home));
      await onBoard(home, (change) => block(change, card.id, { reason: "which year?" }));
      await until("it was woken", () => wakes(home).some(({ outcome }) => outcome === "answered"));
      assert.equal(heard(`card ${card.id}, which was created in this conversation, is blocked`), 1);

      // Killed while the model thinks, and while nobody is there.
      held = Promise.withResolvers();
      await onBoard(home, (change) => complete(change, card.id, { summary: "by train" }));
      await until("it is woken again", () => heard("is done") > 0);
      await gateway.kill();
      held.resolve();
      gateway = await startGateway(home);
      await until("the turn ends", () => wakes(home).every(({ outcome }) => outcome === "answered"));
      const messages = await call(gateway, "GET", `/api/sessions/${id}/messages`);
      assert.equal(messages.split("which was created in this conversation, is done").length - 1, 1, messages);
      assert.equal(messages.split("The trip goes on by train.").length - 1, 2, "blocked and done");
      await say(gateway, id, "and now?");
      assert.match(JSON.stringify(model.requests.at(-1)?.body.messages), /is done[\s\S]*by train[\s\S]*and now\?/);

      await say(gateway, id, "please plan a walk");
      const walk = (await cards(home)).find(({ title }) => title.endsWith("walk"));
      await gateway.kill();
      await onBoard(home, (change) => complete(change, walk?.id ?? "", { summary: "on foot" }));
      gateway = await startGateway(home);
      await until("what happened meanwhile is heard", () => wakes(home).filter((row) => row.outcome).length === 3);
      assert.equal(heard("on foot"), 1);
      assert.deepEqual(rowsOf(home, "SELECT * FROM outbox"), [], "there is no chat to be told");
      assert.deepEqual(
        wakes(home).map(({ platform, session_key, outcome }) => [platform, session_key, outcome]),
        Array(3).fill(["kanban", id, "answered"]),
      );
    } finally {
      held.resolve();
      await gateway.stop();
    }
  });

  test("a shell is not woken, nor a conversation that its client keeps; a turn that was overtaken is not played again", async () => {
    await using home = await gatewayHome(model, { ...QUICK, config: CONFIG });
    const held = Promise.withResolvers<void>();
    let asked = 0;
    answers(async () => {
      asked++;
      await held.promise;
      return "noted";
    });
    let gateway = await startGateway(home);
    try {
      await typed(home, ["-z", "please plan in a shell"]);
      await call(gateway, "POST", "/v1/chat/completions", {
        messages: [{ role: "user", content: "please plan here" }],
      });
      const id = await session(gateway);
      await say(gateway, id, "please plan for me");
      const made = await cards(home);
      assert.equal(made.length, 3);
      await until("the board was read", () => hasRead(home));
      for (const card of made) await onBoard(home, (change) => complete(change, card.id, { summary: "it is made" }));
      await until("one is woken", () => heard("is done") > 0);
      await gateway.kill();
      // Without a gateway nobody continues the turn; somebody writes instead.
      const { stdout } = await typed(home, ["--resume", id, "-z", "what is new?"]);
      assert.match(stdout, /heard: what is new\?/);
      gateway = await startGateway(home);
      await until("it is over", () => wakes(home).every(({ outcome }) => outcome === "superseded"));
      assert.equal(wakes(home).length, 1);
      assert.equal(asked, 1);
    } finally {
      held.resolve();
      await gateway.stop();
    }
  });
});
