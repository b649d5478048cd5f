// Standing goals in chats, through the real gateway: reached, exhausted, stopped, cleared, and over a `kill -9` at any moment.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { lastSaid, ModelServer, type RunningGateway, startGateway, until } from "./support/gateway-rig.ts";
import type { RecordedRequest, Reply } from "./support/model-server/script.ts";
import { paperHome, rowsOf } from "./support/paper-home.ts";
import { PaperServer } from "./support/platforms/paper-server.ts";
import type { TempHome } from "./support/temp-home.ts";

const isJudge = ({ body }: RecordedRequest) => String(body.messages[0]?.content).startsWith("You judge whether");
const firstSaid = ({ body }: RecordedRequest) =>
  String(body.messages.find(({ role }: { role: string }) => role === "user")?.content);
const verdict = (word: string, reason: string) => ({ text: JSON.stringify({ verdict: word, reason }) });

describe("a goal in a chat", () => {
  let model: ModelServer;
  let paper: PaperServer;
  let home: TempHome;
  let gateway: RunningGateway;
  /** What the judge says to the nth question about a goal that has this word in it. */
  const judges = new Map<string, (asked: number, request: RecordedRequest) => Reply | Promise<Reply>>();
  /** How the agent works on a goal that begins with this word; else it says that it did. */
  const works = new Map<string, (request: RecordedRequest) => Reply>();
  const asked = new Map<string, number>();

  before(async () => {
    model = await ModelServer.start();
    paper = await PaperServer.start();
    model.otherwise((request) => {
      if (isJudge(request)) {
        const goal = /Goal:\n(\w+)/.exec(String(request.body.messages[1]?.content))?.[1] ?? "";
        const count = (asked.get(goal) ?? 0) + 1;
        asked.set(goal, count);
        return judges.get(goal)?.(count, request) ?? verdict("continue", "not yet");
      }
      if (!request.body.tools?.length) return { text: "A title" };
      const [, goal = ""] = /(?:^|Goal: )(\w+)/m.exec(firstSaid(request)) ?? [];
      return works.get(goal)?.(request) ?? { text: `worked on: ${lastSaid(request).split("\n")[0]}` };
    });
    const config = "goals: {max_usd: 0.05}\n";
    home = await paperHome(model, paper, { env: { PAPER_ALLOW_ALL_USERS: "true" }, config });
    gateway = await startGateway(home);
  });
  after(async () => {
    await gateway.kill();
    await paper.close();
    await model.close();
    await home[Symbol.asyncDispose]();
  });

  const told = (chat: string, part: string | RegExp) =>
    until(`${chat} is told ${part}; there: ${JSON.stringify(paper.textsOf(chat))}`, () =>
      paper.textsOf(chat).some((text) => (typeof part === "string" ? text.includes(part) : part.test(text))),
    );
  const continuations = (chat: string) =>
    rowsOf(home, `SELECT outcome FROM inbox WHERE kind = 'goal' AND session_key LIKE '%:${chat}' ORDER BY id`).map(
      ({ outcome }) => outcome,
    );

  test("is worked on turn after turn until the judge says that it is reached", async () => {
    judges.set("paint", (count) =>
      count < 3 ? verdict("continue", "one wall is left") : verdict("done", "all walls"),
    );
    paper.say("ann", "/goal paint the walls");
    await told("ann", "✓ Goal achieved: all walls");
    const texts = paper.textsOf("ann");
    assert.match(texts[0] ?? "", /^⊙ Goal set, up to 20 turns/);
    const lines = texts.slice(1).map((text) => text.replace(/\s+\[.*$/s, ""));
    assert.deepEqual(lines, [
      "worked on: paint the walls",
      "↻ Continuing toward goal (1/20): one wall is left",
      "worked on:",
      "↻ Continuing toward goal (2/20): one wall is left",
      "worked on:",
      "✓ Goal achieved: all walls",
    ]);
    const [state] = rowsOf(home, "SELECT value FROM state_meta WHERE key LIKE 'goal:%'");
    const { status, turns_used, goal } = JSON.parse(String(state?.value));
    assert.deepEqual([status, turns_used, goal], ["done", 3, "paint the walls"]);
  });

  test("ends paused when its turns are spent, and /goal resume gives them again", async () => {
    paper.say("bob", "/goal --max 2 count the stars");
    await told("bob", "⏸ Goal paused — 2/2 turns used. turn budget exhausted (2/2).");
    judges.set("count", () => verdict("done", "counted"));
    paper.say("bob", "/goal resume");
    await told("bob", "✓ Goal achieved: counted");
    assert.deepEqual(continuations("bob"), ["answered", "answered"]);
  });

  test("/stop pauses it in the middle of a turn, and /goal clear ends it", async () => {
    const working = Promise.withResolvers<void>();
    judges.set("dig", () => {
      working.resolve();
      return new Promise(() => undefined);
    });
    paper.say("cleo", "/goal dig a hole");
    await working.promise;
    paper.say("cleo", "/stop");
    await told("cleo", "⏸ Goal paused. /goal resume continues");
    paper.say("cleo", "/goal");
    await told(
      "cleo",
      /⏸ Goal paused, user-interrupted \(\/stop\) \(1\/20 turns\): dig a hole|⏸ Goal paused, user-interrupted \(\/stop\) \(0\/20 turns\): dig a hole/,
    );
    paper.say("cleo", "/goal clear");
    await told("cleo", "Goal cleared.");
    paper.say("cleo", "/goal resume");
    await told("cleo", "No goal is set.");
    assert.deepEqual(continuations("cleo"), []);
  });

  test("a message of the user comes before the goal's next turn, and stops the judge", async () => {
    const thinking = Promise.withResolvers<void>();
    judges.set("walk", (count) => {
      thinking.resolve();
      return count === 1 ? new Promise(() => undefined) : verdict(count === 2 ? "continue" : "done", "step");
    });
    paper.say("dora", "/goal walk the dog");
    await thinking.promise;
    paper.say("dora", "and feed it");
    await told("dora", "✓ Goal achieved: step");
    assert.deepEqual(
      paper
        .textsOf("dora")
        .slice(1)
        .map((text) => text.split(":")[0]?.slice(0, 12)),
      ["worked on", "worked on", "↻ Continuing toward goal (1/20)", "worked on", "✓ Goal achieved"].map((text) =>
        text.slice(0, 12),
      ),
    );
  });

  test("kill -9 while the judge thinks: after the restart it is judged again, and continued once", async () => {
    const thinking = Promise.withResolvers<void>();
    judges.set("sail", (count) => {
      if (count > 2) return verdict("done", "arrived");
      if (count === 2) return verdict("continue", "wind");
      thinking.resolve();
      return new Promise(() => undefined);
    });
    paper.say("emil", "/goal sail home");
    await thinking.promise;
    await gateway.kill();
    gateway = await startGateway(home);
    await told("emil", "✓ Goal achieved: arrived");
    assert.deepEqual(continuations("emil"), ["answered"]);
    assert.equal(paper.textsOf("emil").filter((text) => text.startsWith("↻")).length, 1);
  });

  test("a goal that is paused stays so over a restart", async () => {
    judges.set("knit", () => verdict("continue", "wool"));
    paper.say("fay", "/goal --max 1 knit a hat");
    await told("fay", "turn budget exhausted (1/1)");
    const before = asked.get("knit");
    await gateway.kill();
    gateway = await startGateway(home);
    paper.say("fay", "/goal");
    await told("fay", "⏸ Goal paused, turn budget exhausted (1/1) (1/1 turns): knit a hat");
    assert.deepEqual([asked.get("knit"), continuations("fay")], [before, []]);
  });

  test("a goal that waits is woken once when its time has come, over a restart too", async () => {
    judges.set("bake", (count) =>
      count === 1
        ? { text: JSON.stringify({ verdict: "wait", reason: "in the oven", wait_for_seconds: 4 }) }
        : verdict("done", "bread"),
    );
    paper.say("gus", "/goal bake bread");
    await told("gus", "⏳ Goal parked for another");
    await gateway.kill();
    gateway = await startGateway(home);
    await told("gus", "✓ Goal achieved: bread");
    assert.deepEqual(continuations("gus"), ["answered"]);
    assert.equal(paper.textsOf("gus").filter((text) => text.includes("the wait is over")).length, 1);
  });

  test("is paused when its money is spent, and says which setting holds it", async () => {
    works.set("shop", () => ({ text: "bought one", usage: { input: 10, output: 5, cost: 0.03 } }));
    paper.say("hal", "/goal shop for a hat");
    await told("hal", /⏸ Goal paused — 2\/20 turns used\. .*goals\.max_usd/);
    paper.say("hal", "/goal");
    await told("hal", /⏸ Goal paused, .*2\/20 turns.*\$0\.06/);
    assert.deepEqual(continuations("hal"), ["answered"]);
    assert.equal(paper.textsOf("hal").filter((text) => text.startsWith("bought one")).length, 2, "no third was paid");
  });

  const waitForProcess = (goal: string, command: string, watch?: string) => {
    works.set(goal, ({ body }) =>
      body.messages.at(-1).role === "tool" || body.messages.length > 3
        ? { text: "started it" }
        : {
            toolCalls: [
              {
                name: "terminal",
                arguments: { command, background: true, ...(watch ? { watch_patterns: [watch] } : {}) },
              },
            ],
          },
    );
    judges.set(goal, (count, { body }) => {
      const [id] = /\bproc_\w+/.exec(JSON.stringify(body.messages)) ?? [];
      if (count > 1 || !id) return verdict("done", `${goal} is over`);
      return { text: JSON.stringify({ verdict: "wait", reason: "it runs", wait_on_session: id }) };
    });
  };

  test("that waits for a background process is woken once when it ends", async () => {
    waitForProcess("compile", "until [ -e compiled ]; do sleep 0.1; done");
    paper.say("ida", "/goal compile the tool");
    await told("ida", /⏳ Goal parked until proc_\w+ ends/);
    await writeFile(join(home.project, "compiled"), "");
    await told("ida", "✓ Goal achieved: compile is over");
    assert.deepEqual(continuations("ida"), ["answered"]);
    assert.equal(paper.textsOf("ida").filter((text) => text.includes("the wait is over")).length, 1);
  });

  test("that waits for a line of a process is woken when the line is there, while the process goes on", async () => {
    waitForProcess("serve", "until [ -e bound ]; do sleep 0.1; done; echo listening; sleep 300", "listening");
    paper.say("jon", "/goal serve the page");
    await told("jon", /⏳ Goal parked until proc_\w+ /);
    await writeFile(join(home.project, "bound"), "");
    await told("jon", "✓ Goal achieved: serve is over");
    assert.ok(continuations("jon").length <= 1);
  });
});
