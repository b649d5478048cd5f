// The gateway under `kill -9`: at every step of a message, and at random under load. Whatever dies when, each message is answered once, in
// order; where a platform gives no safe repeat, what may have come twice says so.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { answerTurns, lastSaid, ModelServer, startGateway, until } from "./support/gateway-rig.ts";
import { paperHome, rowsOf } from "./support/paper-home.ts";
import { PaperServer } from "./support/platforms/paper-server.ts";
import { fewer, sampleOf } from "./support/sample.ts";
import type { TempHome } from "./support/temp-home.ts";

interface World {
  readonly model: ModelServer;
  readonly paper: PaperServer;
  readonly home: TempHome;
}

async function inWorld(
  options: { readonly repeatIsSafe: boolean },
  work: (world: World) => Promise<void>,
): Promise<void> {
  const model = await ModelServer.start();
  const paper = await PaperServer.start();
  paper.knowsKeys = options.repeatIsSafe;
  const home = await paperHome(model, paper, { ...options, config: "display:\n  busy_input_mode: queue\n" });
  try {
    await work({ model, paper, home });
  } finally {
    await paper.close();
    await model.close();
    await home[Symbol.asyncDispose]();
  }
}

const MOST_WAITING = 25;
/** What a chat is told of a message that killed three gateways. */
const GIVEN_UP = "I tried to answer this message three times and failed.";

const echo = (model: ModelServer) => answerTurns(model, (request) => ({ text: `heard: ${lastSaid(request)}` }));
const inboxStates = (home: TempHome) => rowsOf(home, "SELECT state FROM inbox").map(({ state }) => state);

/** Where the first gateway dies, and what the model and the platform do until then. */
const STEPS: Readonly<Record<string, (world: World) => Promise<() => Promise<void>>>> = {
  async received({ model, paper }) {
    echo(model);
    return () => until("handed out", () => paper.handedOut.size > 0);
  },
  async stored({ model, home }) {
    echo(model);
    return () => until("a row", () => inboxStates(home).length > 0);
  },
  async acknowledged({ model, paper }) {
    echo(model);
    const polls = paper.polls;
    return () => until("the next poll", () => paper.polls > polls + 1);
  },
  async running({ model }) {
    const asked = Promise.withResolvers<void>();
    answerTurns(model, () => {
      asked.resolve();
      return new Promise(() => undefined);
    });
    return () => asked.promise;
  },
  async "tool running"({ model, home }) {
    answerTurns(model, () => ({ toolCalls: [{ name: "terminal", arguments: { command: "touch begun; sleep 20" } }] }));
    return () => until("the tool", async () => (await import("node:fs")).existsSync(`${home.project}/begun`));
  },
  async answered({ model, paper, home }) {
    echo(model);
    paper.faults.push({ status: 503 }, { status: 503 }, { status: 503 });
    return () => until("done", () => inboxStates(home).includes("done"));
  },
  async sending({ model, paper, home }) {
    echo(model);
    paper.faults.push("lost");
    return () => until("sending", () => rowsOf(home, "SELECT 1 FROM outbox WHERE state = 'sending'").length > 0);
  },
  async "sent, not marked"({ model, paper }) {
    echo(model);
    paper.faults.push("lost");
    return () => until("it arrived", () => paper.messages.length > 0);
  },
  async marked({ model, home }) {
    echo(model);
    return () => until("sent", () => rowsOf(home, "SELECT 1 FROM outbox WHERE state = 'sent'").length > 0);
  },
};

describe("a gateway that is killed", () => {
  const cases = Object.entries(STEPS).flatMap(([step, prepare]) =>
    [true, false].map((repeatIsSafe) => ({ step, prepare, repeatIsSafe })),
  );
  // The matrix before real platforms draws of the same steps.
  for (const { step, prepare, repeatIsSafe } of sampleOf(cases, 8, "gateway kills"))
    test(`when a message was ${step}, ${repeatIsSafe ? "with" : "without"} a handle: answered once after the restart`, () =>
      inWorld({ repeatIsSafe }, async (world) => {
        const { model, paper, home } = world;
        const reached = await prepare(world);
        const first = await startGateway(home);
        paper.say("ann", "hello");
        await reached();
        await first.kill();
        paper.faults.length = 0;
        echo(model);
        const second = await startGateway(home);
        const answers = () => paper.textsOf("ann").filter((text) => text.includes("heard: "));
        await until("an answer", () => answers().length > 0);
        paper.say("ann", "and then?");
        await until("the next answer", () => answers().some((text) => text.includes("and then?")));
        await second.stop();
        const unmarked = answers().filter((text) => !text.startsWith("(recovered) "));
        const marked = answers().length - unmarked.length;
        assert.deepEqual([marked <= (repeatIsSafe ? 0 : 1), unmarked.length + marked], [true, answers().length]);
        const firsts = unmarked.filter((text) => !text.includes("and then?"));
        assert.ok(firsts.length + marked >= 1 && firsts.length <= 1, JSON.stringify(answers()));
        assert.ok(answers().at(-1)?.includes("and then?"), "in order");
        assert.deepEqual([...new Set(inboxStates(home))], ["done"]);
      }));

  test("at random under load: nothing is lost, nothing comes twice, everything is in order", (t) =>
    inWorld({ repeatIsSafe: true }, async ({ model, paper, home }) => {
      const kills = fewer(300, 60);
      const chats = ["a", "b", "c", "d", "e"];
      const said = new Map<string, string[]>(chats.map((chat) => [chat, []]));
      answerTurns(model, async (request) => {
        await sleep(Math.random() * 60);
        // Messages that waited together are one turn.
        return {
          text: `heard: ${lastSaid(request)
            .match(/\b[a-e]\d+\b/g)
            ?.join(" ")}`,
        };
      });
      for (let round = 0; round < kills; round++) {
        const gateway = await startGateway(home);
        // On a busy machine a life is too short for so many.
        const waiting = rowsOf(home, "SELECT 1 FROM inbox WHERE state = 'queued'").length;
        for (const chat of waiting < MOST_WAITING ? chats : []) {
          const text = `${chat}${round}`;
          said.get(chat)?.push(text);
          paper.say(chat, text);
        }
        if (Math.random() < 0.3) paper.faults.push("lost");
        if (Math.random() < 0.3) paper.replayFrom = Math.max(0, (round - 1) * chats.length);
        // So far, or as far as a busy machine lets it come.
        const [answers, end] = [paper.messages.length + Math.random() * 8, Date.now() + 3000];
        while (paper.messages.length < answers && Date.now() < end) await sleep(5);
        await sleep(Math.random() * 60);
        await gateway.kill();
      }
      const last = await startGateway(home);
      const waits = (sql: string) => () => rowsOf(home, sql).length === 0;
      const stored = () => rowsOf(home, "SELECT 1 FROM inbox").length;
      await until("all is stored", () => stored() >= [...said.values()].flat().length);
      await until("nothing waits", waits("SELECT 1 FROM inbox WHERE state = 'queued'"), 120_000);
      await until("all is sent", waits("SELECT 1 FROM outbox WHERE state IN ('pending', 'sending')"), 60_000);
      await last.stop();
      // What was begun and killed three times is given up, and its chat is told.
      const givenUp = rowsOf(home, "SELECT attempts, session_key, event FROM inbox WHERE state = 'dead'");
      assert.deepEqual(
        givenUp.filter(({ attempts }) => Number(attempts) < 3),
        [],
      );
      const isGivenUp = (text: string) => givenUp.some(({ event }) => String(event).includes(`"${text}"`));
      let told = 0;
      for (const chat of chats) {
        const heard = paper.textsOf(chat).flatMap((text) => /^heard: ([\w ]+)$/m.exec(text)?.[1]?.split(" ") ?? []);
        assert.deepEqual(heard, [...new Set(heard)], `${chat} hears nothing twice`);
        assert.deepEqual(
          heard,
          said.get(chat)?.filter((text) => heard.includes(text)),
          `${chat} hears in order`,
        );
        const lost = said.get(chat)?.filter((text) => !isGivenUp(text) && !heard.includes(text));
        const fates = lost?.flatMap((text) => rowsOf(home, `SELECT * FROM inbox WHERE event LIKE '%"${text}"%'`));
        assert.deepEqual([lost, fates], [[], []], `${chat} hears everything`);
        const sorry = paper.textsOf(chat).filter((text) => text.startsWith(GIVEN_UP)).length;
        const dead = said.get(chat)?.filter(isGivenUp).length ?? 0;
        assert.ok(sorry <= dead && sorry > 0 === dead > 0, `${chat}: ${dead} given up, told ${sorry} times`);
        told += sorry;
      }
      const messages = [...said.values()].flat().length;
      t.diagnostic(
        `${kills} kills, ${messages} messages: ${givenUp.length} given up after three, ${told} times told so`,
      );
    }));
});
