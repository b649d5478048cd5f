import assert from "node:assert/strict";
import { test } from "node:test";
import { EventChannel } from "./event-channel.ts";

test("a reader gets everything in order, whether it was pushed before or while it reads", async () => {
  const channel = new EventChannel<number>();
  channel.push(1);
  const read: number[] = [];
  const reading = (async () => {
    for await (const value of channel) read.push(value);
  })();
  channel.push(2);
  await new Promise((resolve) => setImmediate(resolve));
  channel.push(3);
  channel.close();
  channel.push(4);
  await reading;
  assert.deepEqual(read, [1, 2, 3]);
});

test("unread events are joined where the join says so, and a waiting reader gets the next one at once", async () => {
  const join = (unread: string, next: string) =>
    unread.startsWith("+") && next.startsWith("+") ? unread + next : undefined;
  const channel = new EventChannel<string>({ join });
  for (const event of ["+a", "+b", "c", "+d"]) channel.push(event);
  const reader = channel[Symbol.asyncIterator]();
  assert.equal((await reader.next()).value, "+a+b");
  assert.equal((await reader.next()).value, "c");
  assert.equal((await reader.next()).value, "+d");
  const waiting = reader.next();
  channel.push("+e");
  assert.equal((await waiting).value, "+e");
});

test("a second loop goes on where the first was left", async () => {
  const channel = new EventChannel<number>();
  for (const value of [1, 2, 3]) channel.push(value);
  channel.close();
  for await (const _ of channel) break;
  const rest: number[] = [];
  for await (const value of channel) rest.push(value);
  assert.deepEqual(rest, [2, 3]);
});
