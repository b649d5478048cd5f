import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { openHome } from "../home/open.ts";
import { systemClock } from "../kit/clock.ts";
import { Boards } from "./boards.ts";
import { createCard } from "./cards.ts";
import { BoardWatch, hasBoards, isDispatched } from "./watch.ts";

async function rig(t: TestContext) {
  const root = await mkdtemp(join(tmpdir(), "hermes-watch-"));
  const home = await openHome({ argv: [], env: { HERMES_HOME: root, HOME: root }, osHome: root, cwd: root });
  t.after(async () => {
    await home.close();
    await rm(root, { recursive: true, force: true });
  });
  // Nothing is looked at for its own sake while a test runs.
  await home.setConfigKey("kanban.dispatch_interval_seconds", 3600);
  const boards = new Boards(home, systemClock);
  const watcher = () => {
    const said = { looks: [] as string[], taken: 0, beside: 0, problems: [] as string[] };
    const state = { isOn: true, isLocked: false };
    const watch = new BoardWatch({
      ...{ home, boards, clock: systemClock },
      isOn: () => state.isOn,
      dispatcher: {
        async look(board) {
          said.looks.push(board);
          return { board, isLocked: state.isLocked, actions: [], problems: [] };
        },
      },
      beside: async () => void said.beside++,
      taken: () => void said.taken++,
      report: (problem) => void said.problems.push(problem),
    });
    const over = new AbortController();
    const running = watch.run(over.signal);
    const stop = async () => {
      over.abort();
      await running;
    };
    t.after(stop);
    return { said, state, watch, stop };
  };
  const change = async (slug: string) => {
    const board = await boards.open(slug);
    await board.change((at) => createCard(at, { title: "card" }));
    board.close();
  };
  return { boards, home, watcher, change };
}

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (!(await holds())) {
    assert.ok(Date.now() < deadline, `never: ${what}`);
    await new Promise((done) => setTimeout(done, 20));
  }
}

test("a root without boards is left as it is; a change of any board is noticed, and so is a worker that ended", async (t) => {
  const { boards, watcher, change } = await rig(t);
  const { said, watch } = watcher();
  await new Promise((done) => setTimeout(done, 100));
  assert.deepEqual([await hasBoards(boards), said.looks], [false, []]);
  await change("default");
  await until("it is looked at", () => said.looks.length === 1);
  await boards.create("side", {});
  await until("the new one, too", () => said.looks.includes("side"));
  await until("both", () => said.beside === 2);
  const before = said.looks.length;
  await change("side");
  await until("its change is noticed", () => said.looks.length > before);
  assert.deepEqual(said.looks.slice(before), ["side"]);
  watch.wake();
  await until("all are looked at", () => said.looks.slice(before).includes("default"));
  await boards.change("side", { archived: true });
  const count = said.looks.filter((one) => one === "side").length;
  watch.wake();
  await until("the other one again", () => said.looks.filter((one) => one === "default").length > 2);
  assert.equal(said.looks.filter((one) => one === "side").length, count, "an archived board rests");
  assert.deepEqual(said.problems, []);
});

test("a board that another process just looks at is looked at again at once", async (t) => {
  const { watcher, change } = await rig(t);
  await change("default");
  const { said, state } = watcher();
  state.isLocked = true;
  await until("it is tried again", () => said.looks.length >= 2);
});

test("one process of a root looks; when it ends or is turned off another takes over", async (t) => {
  const { boards, watcher, change } = await rig(t);
  assert.equal(await isDispatched(boards), false);
  await change("default");
  const first = watcher();
  await until("the first one looks", () => first.said.looks.length === 1);
  assert.equal(await isDispatched(boards), true);
  const second = watcher();
  await until("the second one is told", () => second.said.taken === 1);
  await change("default");
  await until("the first one looks again", () => first.said.looks.length === 2);
  assert.deepEqual(second.said.looks, []);
  first.state.isOn = false;
  await until("the second one looks", () => second.said.looks.length === 1);
  assert.equal(second.said.taken, 1, "said once");
  await second.stop();
  first.state.isOn = true;
  await until("the first one looks once more", () => first.said.looks.length === 3);
});

test("a board that is replaced under the watch is opened anew", async (t) => {
  const { boards, home, watcher, change } = await rig(t);
  await home.setConfigKey("kanban.dispatch_interval_seconds", 1);
  await boards.create("side", {});
  await change("side");
  const { said } = watcher();
  await until("it is looked at", () => said.looks.includes("side"));
  await boards.remove("side", { forGood: true });
  await boards.create("side", {});
  await change("side");
  const before = said.looks.length;
  await until("the new one is looked at", () => said.looks.slice(before).includes("side"));
  assert.ok(
    said.problems.every((problem) => /side: .*(?:replaced|deleted|no such|unable)/i.test(problem)),
    said.problems.join("\n"),
  );
});
