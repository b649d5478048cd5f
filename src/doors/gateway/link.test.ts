// One bot: it connects again by itself, whatever its adapter does, and never keeps the gateway waiting.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { recordedLog, temporaryStore } from "../../../test/support/session-store.ts";
import { systemClock } from "../../kit/clock.ts";
import { StoreError } from "../../sessions/store.ts";
import type { WorkStore } from "../../sessions/work.ts";
import type { AdapterHost, PlatformAdapter, PlatformEntry } from "./contract.ts";
import { Link } from "./link.ts";
import type { GatewaySettings } from "./settings.ts";

const TIMERS = {
  ...{ connect: 0.05, reconnect_first: 0.01, reconnect_backoff: 0.01, reconnect_max: 0.02, lease: 0.06 },
  ...{ send_retry: 0.01, send_retry_max: 0.02, controls: 0.02 },
};

type Host = Parameters<PlatformEntry["open"]>[0];

const adapter = (more: Partial<PlatformAdapter> = {}): PlatformAdapter => ({
  account: "@bot",
  connect: async () => undefined,
  disconnect: async () => undefined,
  send: async () => ({ messageId: "m" }),
  ...more,
});

async function linked(t: TestContext, open: (host: Host, times: number) => unknown, given?: WorkStore) {
  const work = given ?? (await (await temporaryStore(t)).store.work());
  const said: string[] = [];
  const undeliverable: string[] = [];
  let opened = 0;
  let locks = 0;
  const link = new Link({
    entry: { name: "p", label: "P", open: async (host: Host) => open(host, ++opened) } as unknown as PlatformEntry,
    identity: "token",
    settings: { timers: TIMERS } as unknown as GatewaySettings,
    ...{ work, clock: systemClock, log: recordedLog(), holder: `here:${process.pid}:a` },
    host: () => ({}) as Omit<AdapterHost, "lost">,
    lock: async () => {
      locks++;
      return { release: async () => void locks-- };
    },
    say: (line) => said.push(line),
    changed: () => undefined,
    commands: () => [],
    undeliverable: (_row, error) => undeliverable.push(error),
  });
  t.after(() => link.stop());
  link.start();
  return { link, work, said, locks: () => locks, opened: () => opened };
}

const until = async (holds: () => boolean | Promise<boolean>) => {
  while (!(await holds())) await delay(2);
};

const broken: readonly [string, (host: Host) => unknown][] = [
  ["never opens", () => new Promise(() => undefined)],
  ["opens as nothing", () => undefined],
  ["throws nothing at all", () => Promise.reject(null)],
  ["never connects and never disconnects", () => adapter({ connect: () => new Promise(() => undefined) })],
  [
    "is lost without a reason",
    (host) => adapter({ connect: async () => void setTimeout(() => host.lost(undefined as never), 1) }),
  ],
];
for (const [what, open] of broken)
  test(`a platform that ${what} is tried again until it works, and can be stopped`, async (t) => {
    const { link, opened } = await linked(t, (host, times) => (times < 3 ? open(host) : adapter()));
    await link.tried;
    await until(() => link.status.state === "connected" && opened() === 3);
    const stuck = await linked(t, open);
    await stuck.link.tried;
    await stuck.link.stop();
    assert.equal(stuck.link.status.state, "disconnected");
    assert.equal(stuck.locks(), 0);
  });

test("a connect that resolves with nothing to wait for is one that worked", async (t) => {
  const { link } = await linked(t, () => adapter({ connect: (() => undefined) as never }));
  await link.tried;
  assert.equal(link.status.state, "connected");
});

test("after ten failures in a row it pauses until somebody resumes it; a connection in between starts the count anew", async (t) => {
  let isDown = true;
  const { link, opened, locks, said } = await linked(t, (host, times) => {
    if (times <= 8)
      return adapter({ connect: async () => void setTimeout(() => host.lost(new Error("cut") as never), 1) });
    if (isDown) throw new Error("down");
    return adapter();
  });
  await until(() => link.status.state === "paused");
  assert.equal(opened(), 8 + 9, "the loss of the last connection is the first of ten");
  assert.equal(locks(), 0);
  assert.match(said.at(-1) ?? "", /paused after 10 failures: down; \/platform resume p/);
  isDown = false;
  link.resume();
  await until(() => link.status.state === "connected");
});

test("a store that cannot be written never pauses a platform: it is connected as soon as that is over", async (t) => {
  let isFull = true;
  const { link, opened } = await linked(t, () => {
    if (isFull) throw new StoreError("full", "the disk is full");
    return adapter();
  });
  await until(() => opened() > 12);
  assert.match(link.status.error_message ?? "", /the disk is full/);
  isFull = false;
  await until(() => link.status.state === "connected");
});

test("who loses the lease of the bot stops at once, and who stops gives it back", async (t) => {
  const { link, work } = await linked(t, () => adapter());
  await link.tried;
  const elsewhere = await work.takeBot(link.account, "there:1:b");
  assert.equal(elsewhere.type, "held");
  await link.stop();
  const [holder] = ["there:1:b"];
  const after = await work.takeBot(link.account, holder);
  assert.equal(after.type, "taken");
  const second = await linked(t, () => adapter(), work);
  await second.link.tried;
  assert.match(second.said.join("\n"), /failed: .*already uses this bot; retry/);
  assert.ok(after.type === "taken");
  await work.releaseBot(after.lease);
  await until(() => second.link.status.state === "connected");
  // Taken over while this one slept.
  const present = await work.takeBot(link.account, `here:${process.pid}:a`);
  assert.ok(present.type === "taken");
  await work.releaseBot(present.lease);
  assert.equal((await work.takeBot(link.account, "there:1:c")).type, "taken");
  await until(() => second.said.some((line) => line.includes("retry in") && !line.includes("already uses")));
});
