// One conversation, several processes: whoever does not hold it asks the one that does. Each test has two real processes on one home.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import {
  answerTurns,
  lastSaid,
  ModelServer,
  type RunningGateway,
  startGateway,
  typed,
  until,
} from "./support/gateway-rig.ts";
import { paperHome, rowsOf } from "./support/paper-home.ts";
import { PaperServer } from "./support/platforms/paper-server.ts";
import { startHermes } from "./support/run-hermes.ts";
import type { TempHome } from "./support/temp-home.ts";

let model: ModelServer;
let paper: PaperServer;
let home: TempHome;
let gateway: RunningGateway;
const held = new Map<string, () => void>();
const asked: string[] = [];

before(async () => {
  model = await ModelServer.start();
  paper = await PaperServer.start();
  answerTurns(model, async (request) => {
    const said = lastSaid(request);
    asked.push(said);
    // A message that nobody answered stands in front of the next one.
    const slow = /^slow \w+$/.exec(said.split("\n").at(-1) ?? "")?.[0];
    if (slow) await new Promise<void>((resolve) => held.set(slow, resolve));
    if (slow === "slow tool") return { toolCalls: [{ name: "todo", arguments: {} }] };
    return { text: `heard: ${said.split("\n").at(-1)}` };
  });
  home = await paperHome(model, paper);
  gateway = await startGateway(home);
  paper.say("a", "hello");
  await told("heard: hello");
});
after(async () => {
  await gateway.kill();
  await paper.close();
  await model.close();
  await home[Symbol.asyncDispose]();
});

const told = (part: string) =>
  until(`the chat is told "${part}"; there: ${JSON.stringify(paper.textsOf("a"))}`, () =>
    paper.textsOf("a").some((text) => text.includes(part)),
  );
const isHeld = (text: string) => until(`the model works on "${text}"`, () => held.has(text));
const letGo = (text: string) => {
  held.get(text)?.();
  held.delete(text);
};
const session = () => {
  const [route] = rowsOf(home, "SELECT entry_json FROM gateway_routing");
  return String(JSON.parse(String(route?.entry_json)).session_id);
};
const outcomeOf = (text: string) =>
  rowsOf(home, `SELECT outcome FROM inbox WHERE json_extract(event, '$.text') = '${text}' ORDER BY id DESC`)[0]
    ?.outcome;
const beside = (text: string) => startHermes(["-z", text, "--resume", session()], { home });

test("/steer of a chat reaches the process that works on its conversation", async () => {
  const other = beside("slow tool");
  await isHeld("slow tool");
  paper.say("a", "/steer also this");
  await told(`↪ with the next tool result of process ${other.pid}.`);
  await until(
    "the other process took it",
    () => rowsOf(home, "SELECT 1 FROM controls WHERE kind = 'steer' AND taken_at IS NOT NULL").length > 0,
  );
  assert.equal(outcomeOf("also this"), null, "it waits until it was read");
  letGo("slow tool");
  const { code, stderr } = await other.result;
  assert.equal(code, 0, stderr);
  assert.ok(asked.some((said) => said.includes("also this")));
  await until("the message is done", () => outcomeOf("also this") !== null);
  assert.equal(outcomeOf("also this"), "merged", "it was read there, so it gets no turn here");
});

test("/stop of a chat ends the turn of the process that works on its conversation", async () => {
  const other = beside("slow work");
  await isHeld("slow work");
  paper.say("a", "never mind");
  await until("it waits for the other process", async () => {
    const state = JSON.parse(await readFile(home.at("gateway_state.json"), "utf8"));
    return state.active_agents === 1;
  });
  paper.say("a", "/stop");
  const { code, stderr } = await other.result;
  assert.equal(code, 1, stderr);
  assert.match(stderr, /interrupted/i);
  await told(`Asked process ${other.pid} to stop its turn.`);
  await until("what waited is dropped", () => outcomeOf("never mind") === "stopped");
  assert.ok(!paper.textsOf("a").some((text) => text.includes("heard: never mind")));
});

test("a message for a turn whose process is killed gets a turn of its own", async () => {
  const other = beside("slow death");
  await isHeld("slow death");
  paper.say("a", "/steer left behind");
  await until("it is written", () => outcomeOf("left behind") !== undefined);
  other.kill("SIGKILL");
  await other.result;
  await told("heard: left behind");
  assert.equal(outcomeOf("left behind"), "answered");
});

test("a turn of a chat is stopped by a command that was killed once it had asked; a next turn is not", async () => {
  paper.say("a", "slow chat");
  await isHeld("slow chat");
  const asks = () => Number(rowsOf(home, "SELECT seq FROM sqlite_sequence WHERE name = 'controls'")[0]?.seq);
  const before = asks();
  const command = startHermes(["sessions", "stop", session()], { home });
  await until("it has asked", () => asks() > before);
  command.kill("SIGKILL");
  await command.result;
  await told("This turn was stopped from outside the chat");
  assert.equal(outcomeOf("slow chat"), "stopped");
  paper.say("a", "and now");
  await told("heard: and now");
  const late = await typed(home, ["sessions", "stop", session()]);
  assert.equal(late.code, 1);
  assert.match(late.stderr, /No process is working on/);
});
