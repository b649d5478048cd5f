// What becomes of a background process after the turn that started it: the model is told in the chat, once, and nobody else is.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, test } from "node:test";
import { answerTurns, lastSaid, ModelServer, type RunningGateway, startGateway, until } from "./support/gateway-rig.ts";
import { paperHome, rowsOf } from "./support/paper-home.ts";
import { PaperServer } from "./support/platforms/paper-server.ts";
import type { TempHome } from "./support/temp-home.ts";

interface World {
  readonly model: ModelServer;
  readonly paper: PaperServer;
  readonly home: TempHome;
  /** What the model was told of processes, one for each request. */
  readonly told: string[];
  start(): Promise<RunningGateway>;
  /** What the gateway said, without the tools at work. */
  textsOf(chat: string): readonly string[];
  /** While set, the model answers to nothing it hears of a process. */
  held: Promise<void> | null;
}

async function inWorld(work: (world: World) => Promise<void>, more: Parameters<typeof paperHome>[2] = {}) {
  const model = await ModelServer.start();
  const paper = await PaperServer.start();
  paper.knowsKeys = true;
  const home = await paperHome(model, paper, { repeatIsSafe: true, ...more });
  const started: RunningGateway[] = [];
  const world: World = {
    ...{ model, paper, home, told: [], held: null },
    async start() {
      const gateway = await startGateway(home);
      started.push(gateway);
      return gateway;
    },
    textsOf: (chat) => paper.textsOf(chat).filter((text) => !text.startsWith("💻")),
  };
  answerTurns(model, async (request) => {
    const said = lastSaid(request);
    if (said.includes("[IMPORTANT: Background process")) {
      world.told.push(said);
      await world.held;
      return { text: `It ended: ${/exit code \d+/.exec(said)?.[0]}` };
    }
    const [, how, command] = /(run|leave) (.+)$/.exec(said) ?? [];
    if (!command) return { text: "Started." };
    const asks = how === "run" ? { notify_on_complete: true } : {};
    return { toolCalls: [{ name: "terminal", arguments: { command, background: true, ...asks } }] };
  });
  try {
    await work(world);
  } finally {
    for (const gateway of started) await gateway.kill();
    await paper.close();
    await model.close();
    await home[Symbol.asyncDispose]();
  }
}

const wakes = (home: TempHome) =>
  rowsOf(home, "SELECT state, outcome FROM inbox WHERE kind = 'wake' ORDER BY id").map(
    ({ state, outcome }) => outcome ?? state,
  );
const answered = (paper: PaperServer, chat: string) =>
  until(`an answer in ${chat}; there: ${JSON.stringify(paper.textsOf(chat))}`, () =>
    paper.textsOf(chat).some((text) => text.startsWith("It ended")),
  );

describe("a background process that the model asked to be told of", () => {
  test("starts a turn of the chat when it ends: the model answers, and the chat reads no raw notice", () =>
    inWorld(async ({ paper, home, told, start, textsOf }) => {
      const gateway = await start();
      paper.say("ann", "run sleep 1; exit 3");
      await answered(paper, "ann");
      assert.deepEqual(textsOf("ann"), ["Started.", "It ended: exit code 3"]);
      assert.equal(told.length, 1);
      assert.deepEqual(wakes(home), ["answered"]);
      await gateway.stop();
    }));

  test("is nobody's words in a chat where several people write", () =>
    inWorld(
      async ({ paper, told, start }) => {
        const gateway = await start();
        paper.say("room", "run sleep 1", { kind: "group", thread: "t1", user: "bob" });
        await answered(paper, "room");
        assert.match(told[0] ?? "", /^\[IMPORTANT: Background process/);
        await gateway.stop();
      },
      { config: "thread_sessions_per_user: false\n" },
    ));

  test("is told again after a kill, and answered once", () =>
    inWorld(async (world) => {
      const { paper, home, told, start, textsOf } = world;
      world.held = new Promise(() => undefined);
      const first = await start();
      paper.say("ann", "run sleep 1");
      await until("the model is told", () => told.length === 1);
      await first.kill();
      world.held = null;
      const second = await start();
      await answered(paper, "ann");
      await second.stop();
      assert.equal(textsOf("ann").filter((text) => text.startsWith("It ended")).length, 1);
      assert.deepEqual(wakes(home), ["answered"]);
      const stored = rowsOf(home, "SELECT 1 FROM messages WHERE role = 'user' AND content LIKE '[IMPORTANT%'");
      assert.equal(stored.length, 1);
    }));

  test("wakes no chat whose user may not write any more", () =>
    inWorld(
      async ({ paper, home, told, start, textsOf }) => {
        const gateway = await start();
        paper.say("bob", "run sleep 4");
        await until("it runs", () => textsOf("bob").includes("Started."));
        const env = await readFile(home.at(".env"), "utf8");
        await home.write(".env", env.replace("ann,bob", "ann"));
        await until("it has ended", () => wakes(home).some((how) => how !== "queued"));
        assert.deepEqual(wakes(home), ["refused"]);
        await gateway.stop();
        assert.deepEqual(textsOf("bob"), ["Started."]);
        assert.deepEqual(told, []);
      },
      { env: { PAPER_ALLOW_ALL_USERS: "", PAPER_ALLOWED_USERS: "ann,bob" } },
    ));
});

describe("a background process that nobody asked to be told of", () => {
  const ended = (world: World, chat: string) =>
    until(`a notice in ${chat}; there: ${JSON.stringify(world.textsOf(chat))}`, () =>
      world.textsOf(chat).some((text) => text.startsWith("⚙️")),
    );

  test("is told to people when it ends, with what it printed last, and starts no turn", () =>
    inWorld(async (world) => {
      const gateway = await world.start();
      world.paper.say("ann", "leave sleep 1; echo that was it; exit 3");
      await ended(world, "ann");
      const [, notice = "", ...more] = world.textsOf("ann");
      assert.match(notice, /^⚙️ Background process proc_\w+ ended \(exit code 3\): sleep 1;/);
      assert.match(notice, /that was it/);
      await gateway.stop();
      assert.deepEqual([...more, ...wakes(world.home)], []);
    }));

  test("is told after a failure alone, where the settings say so", () =>
    inWorld(
      async (world) => {
        const gateway = await world.start();
        world.paper.say("bob", "leave sleep 1; echo fine");
        await until("it runs", () => world.textsOf("bob").includes("Started."));
        world.paper.say("ann", "leave sleep 2; exit 4");
        await ended(world, "ann");
        await gateway.stop();
        assert.deepEqual(world.textsOf("bob"), ["Started."]);
      },
      { config: "display:\n  background_process_notifications: error\n" },
    ));
});
