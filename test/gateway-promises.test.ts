// What chat gateways get wrong, each by its name: here it does not happen.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
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
import type { TempHome } from "./support/temp-home.ts";

interface World {
  readonly model: ModelServer;
  readonly paper: PaperServer;
  readonly home: TempHome;
  heard(chat: string): readonly string[];
}

async function inWorld(
  work: (world: World) => Promise<void>,
  more: Parameters<typeof paperHome>[2] = {},
): Promise<void> {
  const model = await ModelServer.start();
  const paper = await PaperServer.start();
  paper.knowsKeys = true;
  const acks = more.config?.includes("busy_ack_enabled") ? "" : "  busy_ack_enabled: false\n";
  const config = `display:\n  busy_input_mode: queue\n${acks}${more.config ?? ""}`;
  const home = await paperHome(model, paper, { repeatIsSafe: true, ...more, config });
  echo(model);
  const heard = (chat: string) => paper.textsOf(chat).filter((text) => text.includes("heard: "));
  try {
    await work({ model, paper, home, heard });
  } finally {
    await paper.close();
    await model.close();
    await home[Symbol.asyncDispose]();
  }
}

const echo = (model: ModelServer) => answerTurns(model, (request) => ({ text: `heard: ${lastSaid(request)}` }));
const KEPT = "I am about to go offline. Your message is saved and will be answered when I am back.";
const queued = (home: TempHome) => rowsOf(home, "SELECT 1 FROM inbox WHERE state = 'queued'").length;

describe("what is promised to chats", () => {
  test("the place in the stream of updates survives a restart, and what came in between is answered", () =>
    inWorld(async ({ paper, home, heard }) => {
      const first = await startGateway(home);
      paper.say("ann", "one");
      await until("one", () => heard("ann").length === 1);
      await first.stop();
      paper.say("ann", "while you were away");
      const second = await startGateway(home);
      await until("the missed one", () => heard("ann").length === 2);
      await second.stop();
      assert.deepEqual(heard("ann"), ["heard: one", "heard: while you were away"]);
    }));

  test("updates that are handed out again, before and after a restart, are answered once", () =>
    inWorld(async ({ paper, home, heard }) => {
      const first = await startGateway(home);
      paper.say("ann", "one");
      await until("one", () => heard("ann").length === 1);
      paper.replayFrom = 0;
      paper.say("ann", "two");
      await until("two", () => heard("ann").length === 2);
      await first.stop();
      paper.replayFrom = 0;
      const second = await startGateway(home);
      paper.say("ann", "three");
      await until("three", () => heard("ann").length >= 3);
      await second.stop();
      assert.deepEqual(heard("ann"), ["heard: one", "heard: two", "heard: three"]);
      assert.ok((paper.handedOut.get(1) ?? 0) > 1, "the first update was handed out again");
    }));

  test("an answer that could not be sent before a restart is sent after it, and nothing of a finished turn again", () =>
    inWorld(async ({ paper, home, heard, model }) => {
      paper.faults.push(...Array.from({ length: 50 }, () => ({ status: 503 })));
      const first = await startGateway(home);
      paper.say("ann", "one");
      await until(
        "it is answered in the store",
        () => rowsOf(home, "SELECT 1 FROM outbox WHERE cause = 'inbox:1'").length === 1,
      );
      await first.stop();
      assert.deepEqual(heard("ann"), []);
      paper.faults.length = 0;
      const second = await startGateway(home);
      await until("it arrives", () => heard("ann").length === 1);
      await sleep(500);
      await second.stop();
      const third = await startGateway(home);
      await sleep(500);
      await third.stop();
      assert.deepEqual(heard("ann"), ["heard: one"]);
      assert.equal(model.requests.filter(({ body }) => body.tools?.length).length, 1, "the model is asked once");
    }));

  test("a message whose turns never end is given up after three, told, and blocks nobody", () =>
    inWorld(async ({ model, paper, home, heard }) => {
      for (let attempt = 0; attempt < 3; attempt++) {
        const asked = Promise.withResolvers<void>();
        answerTurns(model, () => {
          asked.resolve();
          return new Promise(() => undefined);
        });
        const gateway = await startGateway(home);
        if (attempt === 0) paper.say("ann", "poison");
        await asked.promise;
        await gateway.kill();
      }
      echo(model);
      paper.say("ann", "good");
      const last = await startGateway(home);
      await until("the next message is answered", () => heard("ann").some((text) => text.includes("good")));
      await last.stop();
      assert.ok(paper.textsOf("ann").some((text) => text.includes("three times")));
      const rows = rowsOf(home, "SELECT state, outcome FROM inbox ORDER BY id").map(({ state, outcome }) => [
        state,
        outcome,
      ]);
      assert.deepEqual(rows, [
        ["dead", null],
        ["done", "answered"],
      ]);
    }));

  test("a stop lets turns finish; messages that come meanwhile are kept and answered after the restart", () =>
    inWorld(async ({ model, paper, home, heard }) => {
      const release = Promise.withResolvers<void>();
      const asked = Promise.withResolvers<void>();
      answerTurns(model, async (request) => {
        if (lastSaid(request) === "slow") {
          asked.resolve();
          await release.promise;
        }
        return { text: `heard: ${lastSaid(request)}` };
      });
      const first = await startGateway(home);
      paper.say("ann", "slow");
      await asked.promise;
      first.signal("SIGINT");
      await first.waitFor(/^\[Gateway\] stopping: /);
      paper.say("bob", "kept");
      await until("it is kept", () => queued(home) === 2);
      assert.deepEqual(heard("bob"), []);
      release.resolve();
      const { code } = await first.result;
      assert.equal(code, 0);
      assert.deepEqual(heard("ann"), ["heard: slow"]);
      const second = await startGateway(home);
      await until("bob is answered", () => heard("bob").length === 1);
      await second.stop();
    }));

  test("a chat without a running turn hears while the gateway stops that its message is kept", () =>
    inWorld(
      async ({ model, paper, home, heard }) => {
        const release = Promise.withResolvers<void>();
        const asked = Promise.withResolvers<void>();
        answerTurns(model, async (request) => {
          asked.resolve();
          if (lastSaid(request) === "slow") await release.promise;
          return { text: `heard: ${lastSaid(request)}` };
        });
        const first = await startGateway(home);
        try {
          paper.say("ann", "slow");
          await asked.promise;
          first.signal("SIGINT");
          await first.waitFor(/^\[Gateway\] stopping: /);
          paper.say("bob", "kept");
          await until("bob hears it", () => paper.textsOf("bob").length > 0, 20_000);
          assert.deepEqual(paper.textsOf("bob"), [KEPT]);
          release.resolve();
          await first.result;
        } finally {
          await first.kill();
        }
        const second = await startGateway(home);
        await until("bob is answered", () => heard("bob").length === 1);
        await second.stop();
        assert.deepEqual(paper.textsOf("bob"), [KEPT, "heard: kept"]);
      },
      { config: "  busy_ack_enabled: true\n" },
    ));

  test("a turn that a stop has to cut off goes on after the restart, and is no attempt", () =>
    inWorld(
      async ({ model, paper, home, heard }) => {
        const asked = Promise.withResolvers<void>();
        answerTurns(model, () => {
          asked.resolve();
          return new Promise(() => undefined);
        });
        const first = await startGateway(home);
        paper.say("ann", "long work");
        await asked.promise;
        await first.stop();
        assert.deepEqual(
          rowsOf(home, "SELECT state, attempts FROM inbox").map(({ state, attempts }) => [state, attempts]),
          [["queued", 0]],
        );
        echo(model);
        const second = await startGateway(home);
        await until("it is finished", () => heard("ann").length === 1);
        await second.stop();
        const [said, ...more] = rowsOf(home, "SELECT content FROM messages WHERE role = 'user'");
        assert.equal(said?.content, "long work");
        assert.equal(more.length, 0, "the message is stored once");
      },
      { config: "agent:\n  restart_drain_timeout: 1\n" },
    ));

  test("/restart comes back by itself and tells whoever asked", () =>
    inWorld(async ({ paper, home }) => {
      const first = await startGateway(home);
      paper.say("ann", "/restart");
      const { code } = await first.result;
      // In a container whoever started it starts it again.
      const again = code === 75 ? await startGateway(home) : null;
      await until("it is back", () => paper.textsOf("ann").includes("I am back."), 30_000);
      const { stdout } = await typed(home, ["gateway", "status", "--json"]);
      assert.notEqual(JSON.parse(stdout).pid, first.pid);
      assert.equal((await typed(home, ["gateway", "stop"])).code, 0);
      await again?.result;
      assert.equal(paper.textsOf("ann").filter((text) => text.includes("Restarting")).length, 1, "no loop");
    }));

  test("home channels hear of a stop, of a restart and that it is over; a chat of several turns hears it once", () =>
    inWorld(
      async ({ model, paper, home }) => {
        const release = Promise.withResolvers<void>();
        let asked = 0;
        answerTurns(model, async (request) => {
          asked++;
          await release.promise;
          return { text: `heard: ${lastSaid(request)}` };
        });
        const first = await startGateway(home);
        const later: RunningGateway[] = [];
        try {
          paper.say("room", "one", { kind: "group", user: "ann" });
          paper.say("room", "two", { kind: "group", user: "bob" });
          await until("both turns run", () => asked === 2);
          first.signal("SIGUSR2");
          await until("home hears it", () => paper.textsOf("home").length > 0, 20_000);
          release.resolve();
          const { code } = await first.result;
          // In a container whoever started it starts it again.
          if (code === 75) later.push(await startGateway(home));
          await until("it is back", () => paper.textsOf("home").includes("I am back."), 20_000);
          const [again] = later;
          if (again) await again.stop();
          else assert.equal((await typed(home, ["gateway", "stop"])).code, 0);
          const last = await startGateway(home);
          later.push(last);
          await last.stop();
        } finally {
          for (const gateway of [first, ...later]) await gateway.kill();
        }
        const stops = "The gateway stops.";
        assert.deepEqual(paper.textsOf("home"), ["The gateway restarts.", "I am back.", stops, stops]);
        assert.equal(paper.textsOf("room").filter((text) => text.startsWith("The gateway restarts")).length, 1);
      },
      { env: { PAPER_HOME_CHANNEL: "home" } },
    ));

  test("two gateways, one bot: the second home is told who has it, and sends nothing", () =>
    inWorld(async ({ model, paper, home, heard }) => {
      const first = await startGateway(home);
      const other = await paperHome(model, paper);
      try {
        const lock = { HERMES_GATEWAY_LOCK_DIR: home.osHome };
        const second = await startGateway(other, { env: lock, ready: /^\[Paper\] off: /, timeoutMs: 30_000 });
        assert.match(second.lines.join("\n"), new RegExp(`process ${first.pid} already uses this bot`));
        assert.equal((await second.result).code, 1);
        paper.say("ann", "one");
        await until("one", () => heard("ann").length === 1);
        await first.stop();
        const third = await startGateway(other, { env: lock });
        paper.say("ann", "two");
        await until("two", () => heard("ann").length === 2);
        await third.stop();
      } finally {
        await other[Symbol.asyncDispose]();
      }
    }));

  test("F250, 19.15: at 85 % of the window a conversation is shortened before the model is asked, and keeps calls with their results", () =>
    inWorld(
      async ({ model, paper, home, heard }) => {
        let window = 1000;
        answerTurns(model, (request) => {
          const usage = { input: window, output: 5 };
          // Calls and results stand on both sides of where the summary ends.
          if (/^(?:one|three|four)$/.test(lastSaid(request)))
            return {
              toolCalls: [{ name: "terminal", arguments: { command: `echo done ${lastSaid(request)}` } }],
              usage,
            };
          return { text: `heard: ${lastSaid(request)}`, usage };
        });
        const gateway = await startGateway(home);
        for (const text of ["one", "two", "three"]) {
          paper.say("ann", text);
          await until(text, () => heard("ann").some((answer) => answer.includes(text)));
        }
        window = 18_000;
        paper.say("ann", "four");
        await until("four", () => heard("ann").some((answer) => answer.includes("four")));
        const before = model.requests.length;
        window = 2000;
        paper.say("ann", "five");
        await until("five", () => heard("ann").some((answer) => answer.includes("five")));
        await gateway.stop();
        const asked = model.requests.slice(before);
        const summary = asked.findIndex(
          ({ body }) => !body.tools?.length && JSON.stringify(body.messages).includes("done one"),
        );
        const turn = asked.findIndex(
          ({ body }) => body.tools?.length && JSON.stringify(body.messages).includes("five"),
        );
        assert.ok(summary >= 0 && summary < turn, `the summary comes first: ${summary}, ${turn}`);
        interface Sent {
          readonly role: string;
          readonly tool_calls?: readonly { readonly id: string }[];
          readonly tool_call_id?: string;
        }
        const sent: readonly Sent[] = asked[turn]?.body.messages ?? [];
        const called = sent.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id));
        const answered = sent.flatMap(({ role, tool_call_id: id = "" }) => (role === "tool" ? [id] : []));
        assert.ok(called.length > 0, "some calls are left");
        assert.deepEqual(answered, called);
      },
      { contextLength: 20_000, config: "compression:\n  threshold: 0.99\n" },
    ));

  test("a plugin may drop, rewrite or let in a message before anybody looks at who wrote it", () =>
    inWorld(
      async ({ paper, home, heard }) => {
        await home.write(
          "plugins/gate/plugin.yaml",
          "name: gate\nversion: 1.0.0\nprovides_hooks: [pre_gateway_dispatch]\n",
        );
        await home.write(
          "plugins/gate/index.mjs",
          `export default (ctx) => ctx.registerHook("pre_gateway_dispatch", ({ text }) =>
             text === "spam" ? { action: "skip" } : text === "old" ? { action: "rewrite", text: "new" } : text === "friend" ? { action: "allow" } : undefined);`,
        );
        const gateway = await startGateway(home);
        paper.say("guest", "spam");
        paper.say("guest", "friend");
        await until("the friend is heard", () => heard("guest").length === 1);
        paper.say("ann", "spam");
        paper.say("ann", "old");
        await until("the rewritten text is heard", () => heard("ann").length === 1);
        await gateway.stop();
        assert.deepEqual([heard("guest"), heard("ann")], [["heard: friend"], ["heard: new"]]);
      },
      {
        env: { PAPER_ALLOW_ALL_USERS: "", PAPER_ALLOWED_USERS: "ann" },
        config: "plugins:\n  enabled: [paper, gate]\n  entries:\n    paper: {repeat_is_safe: true}\n",
      },
    ));
});
