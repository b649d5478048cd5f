// Standing goals in chats, through the real gateway: reached, exhausted, stopped, cleared, and over a `kill -9` at any moment.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { lastSaid, ModelServer, type RunningGateway, startGateway, until } from "./support/gateway-rig.ts";
import type { RecordedRequest, Reply } from "./support/model-server/script.ts";
import { paperHome, rowsOf } from "./support/paper-home.ts";
import { PaperServer } from "./support/platforms/paper-server.ts";
import type { TempHome } from "./support/temp-home.ts";

const isJudge = ({ body }: RecordedRequest) => String(body.messages[0]?.content).startsWith("You judge whether");
const verdict = (word: string, reason: string) => ({ text: JSON.stringify({ verdict: word, reason }) });

describe("a goal in a chat", () => {
  let model: ModelServer;
  let paper: PaperServer;
  let home: TempHome;
  let gateway: RunningGateway;
  /** What the judge says to the nth question about a goal that has this word in it. */
  const judges = new Map<string, (asked: number) => Reply | Promise<Reply>>();
  const asked = new Map<string, number>();

  before(async () => {
    model = await ModelServer.start();
    paper = await PaperServer.start();
    model.otherwise((request) => {
      if (isJudge(request)) {
        const goal = /Goal:\n(\w+)/.exec(String(request.body.messages[1]?.content))?.[1] ?? "";
        const count = (asked.get(goal) ?? 0) + 1;
        asked.set(goal, count);
        return judges.get(goal)?.(count) ?? verdict("continue", "not yet");
      }
      if (!request.body.tools?.length) return { text: "A title" };
      return { text: `worked on: ${lastSaid(request).split("\n")[0]}` };
    });
    home = await paperHome(model, paper, { env: { PAPER_ALLOW_ALL_USERS: "true" } });
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
});
