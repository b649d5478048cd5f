import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { recordedLog } from "../../test/support/session-store.ts";
import { systemClock } from "../kit/clock.ts";
import { createCard, eventsOf } from "./cards.ts";
import { archive, block, unblock } from "./moves.ts";
import { BoardFile } from "./schema.ts";
import {
  adoptSubscription,
  moveCursor,
  subscribe,
  subscribeCreator,
  subscriptionsOf,
  unsubscribe,
} from "./subscriptions.ts";

const config = { kanban: { auto_subscribe_on_create: true } };
const here = { platform: "paper", profile: "ops", chat: { chatId: "bob" }, sender: { userId: "u1" }, config };

async function newBoard(t: { after(work: () => Promise<void>): void }): Promise<BoardFile> {
  const folder = await mkdtemp(join(tmpdir(), "hermes-subs-"));
  const board = await BoardFile.open(join(folder, "kanban.db"), { clock: systemClock, log: recordedLog() });
  t.after(async () => {
    board.close();
    await rm(folder, { recursive: true, force: true });
  });
  return board;
}

test("the chat that makes a card hears of it and of its children, and not of how they were made", async (t) => {
  const board = await newBoard(t);
  const [card, child] = await board.change((change) => {
    const made = createCard(change, { title: "plan", blocked: true });
    assert.equal(subscribeCreator(change, made.id, here), true);
    assert.equal(subscribeCreator(change, made.id, { ...here, chat: undefined }), false, "a terminal is no chat");
    assert.equal(subscribe(change, made.id, { platform: "paper", chatId: "bob" }), false, "once");
    return [made.id, createCard(change, { title: "part", parents: [made.id], blocked: true }).id];
  });
  for (const id of [card, child]) {
    const [row, ...others] = subscriptionsOf(board.db, id);
    assert.deepEqual(others, []);
    assert.deepEqual(
      [row?.platform, row?.chat_id, row?.thread_id, row?.user_id, row?.notifier_profile],
      ["paper", "bob", "", "u1", "ops"],
    );
    assert.equal(row?.last_event_id, eventsOf(board.db, id).at(-1)?.id);
  }
  const off = { ...here, config: { kanban: { auto_subscribe_on_create: false } } };
  await board.change((change) => {
    const quiet = createCard(change, { title: "quiet" });
    assert.equal(subscribeCreator(change, quiet.id, off), false);
    assert.deepEqual(subscriptionsOf(change.db, quiet.id), []);
  });
});

test("a row that names no profile is taken once", async (t) => {
  const board = await newBoard(t);
  const card = await board.change((change) => {
    const { id } = createCard(change, { title: "x" });
    subscribe(change, id, { platform: "paper", chatId: "bob", threadId: "7" });
    return id;
  });
  const [row] = subscriptionsOf(board.db, card);
  assert.ok(row);
  const taken = [];
  for (const profile of ["one", "two"])
    taken.push(await board.change((change) => adoptSubscription(change, row, profile)));
  assert.deepEqual(taken, [true, false]);
  assert.equal(subscriptionsOf(board.db)[0]?.notifier_profile, "one");
});

test("the cursor never goes back, and goes with its row when the card is over", async (t) => {
  const board = await newBoard(t);
  const card = await board.change((change) => {
    const { id } = createCard(change, { title: "x" });
    subscribe(change, id, { platform: "paper", chatId: "bob" });
    block(change, id, { reason: "why" });
    unblock(change, id, undefined);
    return id;
  });
  const row = () => subscriptionsOf(board.db, card)[0];
  const [, first = 0, second = 0] = eventsOf(board.db, card).map(({ id }) => id);
  for (const [to, expected] of [
    [second, second],
    [first, second],
  ] as const) {
    await board.change((change) => moveCursor(change, row() as NonNullable<ReturnType<typeof row>>, to)); // it is there
    assert.equal(row()?.last_event_id, expected);
  }
  await board.change((change) => archive(change, card));
  const last = eventsOf(board.db, card).at(-1)?.id ?? 0;
  const before = row();
  assert.ok(before);
  await board.change((change) => moveCursor(change, before, second));
  assert.ok(row(), "something is still to be told");
  await board.change((change) => moveCursor(change, before, last));
  assert.equal(row(), undefined);
  assert.equal(await board.change((change) => unsubscribe(change, before)), false);
});
