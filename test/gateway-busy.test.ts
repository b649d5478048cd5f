// Messages that arrive while a turn runs: they wait, steer or interrupt, and none is lost or answered twice.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { answerTurns, lastSaid, ModelServer, type RunningGateway, startGateway, until } from "./support/gateway-rig.ts";
import type { RecordedRequest } from "./support/model-server/script.ts";
import { paperHome, rowsOf } from "./support/paper-home.ts";
import { PaperServer } from "./support/platforms/paper-server.ts";
import type { TempHome } from "./support/temp-home.ts";

/** A model whose answers to some texts wait until they are let go. */
class HeldModel {
  readonly server: ModelServer;
  readonly asked: string[] = [];
  #held = new Map<string, () => void>();

  constructor(server: ModelServer) {
    this.server = server;
    answerTurns(server, (request) => this.#answer(request));
  }

  get waiting(): readonly string[] {
    return [...this.#held.keys()];
  }

  release(text: string): void {
    this.#held.get(text)?.();
    this.#held.delete(text);
  }

  async #answer(request: RecordedRequest) {
    const said = lastSaid(request).split("\n").at(-1) ?? "";
    this.asked.push(said);
    if (said.startsWith("slow")) await new Promise<void>((resolve) => this.#held.set(said, resolve));
    if (said.startsWith("run ")) return { toolCalls: [{ name: "terminal", arguments: { command: said.slice(4) } }] };
    return { text: `heard: ${said}` };
  }
}

describe("a busy chat", () => {
  let model: HeldModel;
  let paper: PaperServer;
  let home: TempHome;
  let gateway: RunningGateway;
  before(async () => {
    model = new HeldModel(await ModelServer.start());
    paper = await PaperServer.start();
    home = await paperHome(model.server, paper, {
      gateway: "  max_concurrent_turns: 3\n",
      config: "display:\n  busy_input_mode: queue\n",
    });
    gateway = await startGateway(home);
  });
  after(async () => {
    await gateway.kill();
    await paper.close();
    await model.server.close();
    await home[Symbol.asyncDispose]();
  });

  const told = (chat: string, part: string) =>
    until(`${chat} is told "${part}"; there: ${JSON.stringify(paper.textsOf(chat))}`, () =>
      paper.textsOf(chat).some((text) => text.includes(part)),
    );
  const held = (text: string) => until(`the model works on "${text}"`, () => model.waiting.includes(text));
  const outcomes = (chat: string) =>
    rowsOf(home, `SELECT outcome, state FROM inbox WHERE session_key = 'agent:main:paper:dm:${chat}' ORDER BY id`).map(
      ({ outcome, state }) => outcome ?? state,
    );
  const setMode = async (mode: string) => {
    const { readFile } = await import("node:fs/promises");
    const config = await readFile(home.at("config.yaml"), "utf8");
    await home.write("config.yaml", config.replace(/busy_input_mode: \w+/, `busy_input_mode: ${mode}`));
  };

  test("queue: what is written meanwhile is answered afterwards, in order, one turn each", async () => {
    paper.say("a", "slow one");
    await held("slow one");
    paper.say("a", "two");
    await sleep(500); // not in one breath
    paper.say("a", "three");
    await told("a", "when this turn is done");
    model.release("slow one");
    await told("a", "heard: three");
    const answers = paper.textsOf("a").filter((text) => text.startsWith("heard"));
    assert.deepEqual(answers, ["heard: slow one", "heard: two", "heard: three"]);
    assert.deepEqual(outcomes("a"), ["answered", "answered", "answered"]);
  });

  test("/stop ends the turn and drops plain messages; those of /queue stay", async () => {
    paper.say("b", "slow b");
    await held("slow b");
    paper.say("b", "dropped");
    paper.say("b", "/queue kept");
    await until(
      "both wait",
      () => rowsOf(home, "SELECT 1 FROM inbox WHERE session_key LIKE '%:b' AND state = 'queued'").length >= 3,
    );
    paper.say("b", "/stop");
    await told("b", "Stopped.");
    await told("b", "heard: kept");
    assert.ok(!model.asked.includes("dropped"));
    assert.ok(!paper.textsOf("b").some((text) => text.includes("heard: slow b")));
    assert.deepEqual(outcomes("b").sort(), ["answered", "command", "command", "stopped", "stopped"]);
    model.release("slow b");
  });

  test("/status, /help and /approve are answered beside a running turn; other commands say that it runs", async () => {
    paper.say("c", "slow c");
    await held("slow c");
    paper.say("c", "/status");
    await told("c", "Running:  yes");
    paper.say("c", "/approve");
    await told("c", "Nothing is waiting for an approval");
    paper.say("c", "/model other");
    await told("c", "cannot run during a turn");
    model.release("slow c");
    await told("c", "heard: slow c");
  });

  test("/new interrupts, drops everything that waits and begins a new conversation", async () => {
    paper.say("d", "slow d");
    await held("slow d");
    paper.say("d", "waits");
    paper.say("d", "/new now");
    await told("d", "New conversation");
    paper.say("d", "fresh");
    await told("d", "heard: fresh");
    assert.ok(!model.asked.includes("waits"));
    const [request] = model.server.requests.filter(
      ({ body }) => body.tools?.length && lastSaid({ body } as RecordedRequest) === "fresh",
    );
    assert.ok(!JSON.stringify(request?.body.messages).includes("slow d"));
    model.release("slow d");
  });

  test("interrupt: a new message takes the place of the turn, whose answer never comes", async () => {
    await setMode("interrupt");
    paper.say("e", "slow e");
    await held("slow e");
    paper.say("e", "rather this");
    await told("e", "heard: rather this");
    model.release("slow e");
    assert.ok(!paper.textsOf("e").some((text) => text.includes("heard: slow e")));
    assert.deepEqual(outcomes("e"), ["interrupted", "answered"]);
    await setMode("queue");
  });

  test("steer: what is written reaches the running turn with the next tool result", async () => {
    await setMode("steer");
    paper.say("f", "slow f");
    await held("slow f");
    paper.say("f", "mind the gap");
    await told("f", "take it into account");
    model.release("slow f");
    await told("f", "heard: slow f");
    // No tool result came: it becomes a turn of its own, and is not lost.
    await told("f", "heard: mind the gap");
    await setMode("queue");
  });

  test("three turns at once: the fourth chat waits, is told so, and is answered", async () => {
    for (const chat of ["g1", "g2", "g3"]) paper.say(chat, `slow ${chat}`);
    for (const chat of ["g1", "g2", "g3"]) await held(`slow ${chat}`);
    paper.say("g4", "me too");
    await told("g4", "number 1 in line");
    for (const chat of ["g1", "g2", "g3"]) model.release(`slow ${chat}`);
    await told("g4", "heard: me too");
  });

  test("a chat in which much is written gets one turn, then whoever waited meanwhile gets theirs", async () => {
    const busy = ["i1", "i2", "i3"];
    for (const chat of busy) paper.say(chat, `slow ${chat}`);
    for (const chat of busy) await held(`slow ${chat}`);
    for (const chat of busy) for (const text of ["a", "b", "c"]) paper.say(chat, `/queue slow ${chat}${text}`);
    await until("all of it waits", () => busy.every((chat) => outcomes(chat).length >= 4));
    paper.say("i4", "slow i4");
    await told("i4", "in line");
    model.release("slow i1");
    await until("the next turn is at the model", () => model.waiting.length === 3);
    assert.ok(model.waiting.includes("slow i4"), model.waiting.join());
    model.release("slow i4");
    await until("the rest is answered", () => {
      for (const text of model.waiting) model.release(text);
      return busy.every((chat) => paper.textsOf(chat).some((text) => text.includes(`heard: slow ${chat}c`)));
    });
  });

  test("an approval waits in the chat: a button of somebody else does not count, the right one does", async () => {
    const target = home.at("approval-marker");
    paper.say("h", `run rm -rf ${target}`);
    await until("a question", () =>
      paper.messages.some(({ chat, question }) => chat === "h" && question !== undefined),
    );
    const question = paper.messages.find(({ chat, question: id }) => chat === "h" && id !== undefined) ?? assert.fail();
    assert.match(question.text, /rm -rf/);
    paper.say("h", "/deny too dangerous");
    await told("h", "Denied");
    await until("the model hears the reason", () =>
      model.server.requests.some(({ body }) => JSON.stringify(body.messages).includes("too dangerous")),
    );
  });

  test("a question of the agent is answered by a button or by words", async () => {
    answerTurns(model.server, (request) => {
      const said = lastSaid(request);
      if (said === "ask me")
        return {
          toolCalls: [{ name: "clarify", arguments: { question: "Tea or coffee?", choices: ["Tea", "Coffee"] } }],
        };
      return { text: `got ${said}` };
    });
    paper.say("i", "ask me");
    await told("i", "Tea or coffee?");
    paper.say("i", "2");
    await told("i", "got ");
    assert.match(paper.textsOf("i").join("\n"), /got .*Coffee/s);
    assert.deepEqual(outcomes("i"), ["answered", "merged"]);
  });

  test("an edit before the turn replaces the text, a deletion withdraws it, both later change nothing", async () => {
    new HeldModel(model.server);
    const second = new HeldModel(model.server);
    paper.say("j", "slow j");
    await until("the model works", () => second.waiting.includes("slow j"));
    const edited = paper.say("j", "tpyo");
    const deleted = paper.say("j", "forget this");
    await until(
      "both wait",
      () => rowsOf(home, "SELECT 1 FROM inbox WHERE session_key LIKE '%:j' AND state = 'queued'").length === 3,
    );
    paper.edit(edited, "typo");
    paper.edit(deleted, null);
    await until("one is withdrawn", () => outcomes("j").includes("withdrawn"));
    second.release("slow j");
    await told("j", "heard: typo");
    assert.ok(!second.asked.includes("tpyo") && !second.asked.includes("forget this"));
  });
});
