// A goal on the screen, through the program: reached, exhausted, stopped, and found again after a restart. Requests keep one prefix.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import type { RecordedRequest } from "../support/model-server/script.ts";
import { ModelServer } from "../support/model-server/server.ts";
import { SEEN } from "../support/screen-rig.ts";
import { modelConfig, type TempHome, tempHome } from "../support/temp-home.ts";
import { TerminalScreen, tmuxMissing } from "../support/terminal-screen.ts";

const isJudge = ({ body }: RecordedRequest) => String(body.messages[0]?.content).startsWith("You judge whether");

describe("a goal on the screen", { skip: tmuxMissing() }, () => {
  let server: ModelServer;
  let home: TempHome;
  let verdict: (asked: number) => string;
  let asked = 0;
  before(async () => {
    server = await ModelServer.start();
    home = await tempHome({ "config.yaml": modelConfig(server) + SEEN });
  });
  beforeEach(() => {
    asked = 0;
    server.clear().otherwise((request) => {
      if (isJudge(request)) return { text: `{"verdict": "${verdict(++asked)}", "reason": "look ${asked}"}` };
      if (!request.body.tools?.length) return { text: "A title" };
      return { text: `Step ${turns().length}.` };
    });
  });
  after(async () => {
    await server.close();
    await home[Symbol.asyncDispose]();
  });

  const turns = () => server.requests.filter((request) => request.body.tools?.length && !isJudge(request));

  test("is worked on until it is reached; twenty turns of it share one prefix", async () => {
    await using screen = await TerminalScreen.start([], { home });
    await screen.waitFor("fake-model");
    verdict = (count) => (count < 20 ? "continue" : "done");
    await screen.say("/goal --max 30 paint all walls");
    await screen.waitFor("✓ Goal achieved: look 20", { history: true });
    await screen.waitFor("↻ Continuing toward goal (19/30): look 19", { history: true });
    assert.equal(turns().length, 20);
    for (const [at, { body }] of turns().entries()) {
      const before = turns()[at - 1];
      if (!before) continue;
      assert.deepEqual(body.tools, before.body.tools);
      assert.deepEqual(body.messages.slice(0, before.body.messages.length), before.body.messages, `turn ${at + 1}`);
    }
    const said = turns().map(({ body }) => String(body.messages.at(-1)?.content).split("\n")[0]);
    assert.deepEqual(
      [said[0], ...new Set(said.slice(1))],
      ["paint all walls", "[Continuing toward your standing goal]"],
    );
    await screen.say("/goal resume");
    await screen.waitFor("The goal was achieved: paint all walls.");
  });

  test("rests when its turns are spent, is found again by --continue, and goes on with /goal resume", async () => {
    verdict = () => "continue";
    {
      await using screen = await TerminalScreen.start([], { home });
      await screen.waitFor("fake-model");
      await screen.say("/goal --max 2 count the stars");
      await screen.waitFor("⏸ Goal paused — 2/2 turns used. turn budget exhausted (2/2).");
      await screen.say("/quit");
      await screen.exitCode();
    }
    const before = turns().length;
    await using screen = await TerminalScreen.start(["--continue"], { home });
    await screen.waitFor(/⏸ Goal paused, turn budget exhausted \(2\/2\) \(2\/2 turns[^)]*\): count the stars/);
    assert.equal(turns().length, before);
    verdict = () => "done";
    await screen.say("/goal resume");
    await screen.waitFor("✓ Goal achieved:");
    assert.equal(turns().length, before + 1);
  });

  test("Esc pauses it in the middle of a turn; what is cleared does not come back", async () => {
    await using screen = await TerminalScreen.start([], { home });
    await screen.waitFor("fake-model");
    verdict = () => "continue";
    const working = Promise.withResolvers<void>();
    let count = 0;
    server.clear().otherwise(async (request) => {
      if (isJudge(request)) return { text: '{"verdict": "continue", "reason": "more"}' };
      if (!request.body.tools?.length) return { text: "A title" };
      if (++count < 2) return { text: "A step." };
      working.resolve();
      await request.clientLeft;
      return { text: "" };
    });
    await screen.say("/goal dig a hole");
    await working.promise;
    await screen.press("Escape");
    await screen.waitFor("⏸ Goal paused — 1/20 turns used. user-interrupted (Ctrl+C).");
    await screen.waitFor(/ · ⏸ 1\/20 · | │ ⏸ 1\/20 │ /);
    await screen.say("/goal clear");
    await screen.waitFor("Goal cleared.");
    await screen.waitFor(/^(?![\s\S]*⏸ 1\/20)/);
    await screen.say("/goal");
    await screen.waitFor("No goal is set.");
    assert.equal(count, 2);
  });
});
