import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { temporaryStore } from "../../../test/support/session-store.ts";
import type { OpenHome } from "../../home/open.ts";
import { type ChatEntry, localIso, Routes, resetDue } from "./routes.ts";

const at = (text: string) => new Date(text);
const entry = (updated: string, more: Partial<ChatEntry> = {}): ChatEntry => ({
  ...{ session_key: "k", session_id: "s", created_at: updated, updated_at: updated },
  ...more,
});
const both = { mode: "both", idleMinutes: 1440, atHour: 4 } as const;

const CASES: readonly [
  what: string,
  updated: string,
  now: string,
  policy: Parameters<typeof resetDue>[1],
  expected: ReturnType<typeof resetDue>,
][] = [
  ["just now", "2026-05-02T10:00:00", "2026-05-02T10:01:00", both, null],
  ["idle for longer", "2026-05-01T09:59:59", "2026-05-02T10:00:00", both, "idle"],
  ["idle exactly as long", "2026-05-01T10:00:00", "2026-05-02T10:00:00", { ...both, mode: "idle" }, null],
  ["over the hour of the day", "2026-05-02T03:59:59", "2026-05-02T04:00:00", both, "daily"],
  ["exactly at the hour", "2026-05-02T04:00:00", "2026-05-02T09:00:00", both, null],
  ["before the hour, since yesterday's", "2026-05-01T05:00:00", "2026-05-02T03:00:00", both, null],
  ["before the hour, from before yesterday's", "2026-05-01T03:59:00", "2026-05-02T03:00:00", both, "daily"],
  [
    "daily only, however idle",
    "2026-05-02T04:30:00",
    "2026-05-03T03:30:00",
    { ...both, mode: "daily", idleMinutes: 1 },
    null,
  ],
  ["idle only, over the hour", "2026-05-02T03:59:00", "2026-05-02T04:10:00", { ...both, mode: "idle" }, null],
  ["never", "2020-01-01T00:00:00", "2026-05-02T10:00:00", { ...both, mode: "none" }, null],
  ["a time that cannot be read", "yesterday", "2026-05-02T10:00:00", both, null],
];

for (const [what, updated, now, policy, expected] of CASES)
  test(`a conversation ends by the clock: ${what}`, () => {
    assert.equal(resetDue(entry(updated), policy, at(now)), expected);
  });

test("one that was set aside ends whatever the clock says; one that waits to go on does not end", () => {
  const never = { ...both, mode: "none" } as const;
  assert.equal(
    resetDue(entry("2026-05-02T10:00:00", { suspended: true }), never, at("2026-05-02T10:00:00")),
    "suspended",
  );
  assert.equal(resetDue(entry("2020-01-01T00:00:00", { resume_pending: true }), both, at("2026-05-02T10:00:00")), null);
});

test("times are written as the original writes them, and read back as they were", () => {
  const time = new Date(2026, 4, 2, 3, 4, 5, 67).getTime();
  assert.equal(localIso(time), "2026-05-02T03:04:05.067000");
  assert.equal(new Date(localIso(time)).getTime(), time);
});

async function world(t: TestContext) {
  const { store, folder, clock, log } = await temporaryStore(t);
  const sessionsDir = join(folder, "sessions");
  await mkdir(sessionsDir);
  const path = join(sessionsDir, "sessions.json");
  const home = { paths: { sessionsDir }, config: () => ({ gateway: { write_sessions_json: true } }) } as OpenHome;
  const work = await store.work();
  const open = () => Routes.open({ home, work, clock, log });
  const written = async () => JSON.parse(await readFile(path, "utf8")) as Record<string, ChatEntry>;
  return { open, written, clock, log, work, write: (text: string) => writeFile(path, text) };
}

test("of what an older version wrote and what is known here the newer one counts, key by key", async (t) => {
  const { open, write } = await world(t);
  const routes = await open();
  await routes.put(entry("2026-05-02T10:00:00", { session_key: "older", session_id: "mine" }));
  await routes.put(entry("2026-05-02T10:00:00", { session_key: "newer", session_id: "mine" }));
  const theirs = (at: string) => ({ ...entry(at), session_id: "theirs", session_key: undefined });
  await write(
    JSON.stringify({
      ...{
        older: theirs("2026-05-02T09:59:59"),
        newer: theirs("2026-05-02T10:00:01"),
        only: theirs("2026-05-01T00:00:00"),
      },
      ...{ _remark: theirs("2026-05-03T00:00:00"), broken: { session_id: 5 }, nothing: null },
    }),
  );
  const again = await open();
  const ids = async (key: string) => (await again.get(key))?.session_id;
  assert.deepEqual([await ids("older"), await ids("newer"), await ids("only")], ["mine", "theirs", "theirs"]);
  assert.deepEqual(
    [await again.get("_remark"), await again.get("broken"), await again.get("nothing")],
    [null, null, null],
  );
});

test("a new conversation of a chat keeps what others noted of the chat, and begins its own counts anew", async (t) => {
  const { open } = await world(t);
  const routes = await open();
  const known = entry("2026-05-02T10:00:00", {
    ...{
      total_tokens: 7,
      suspended: true,
      model_override: { model: "m" },
      metadata: { pinned: true },
      later_field: [1],
    },
  });
  const { session_id: id, ...begun } = routes.begin("k", { platform: "p", chat_type: "dm", chat_id: "c" }, known);
  assert.notEqual(id, "s");
  assert.partialDeepStrictEqual(begun, {
    ...{ model_override: { model: "m" }, metadata: { pinned: true }, later_field: [1] },
    ...{ total_tokens: 0, suspended: false, reset_had_activity: true, prev_session_id: "s" },
  });
});

test("sessions.json follows once a minute at most, and at the end; a damaged one stops nothing", async (t) => {
  const { open, write, written, clock } = await world(t);
  await write("{broken");
  const routes = await open();
  await routes.put(entry("2026-05-02T10:00:00"));
  await routes.mirror();
  assert.deepEqual(Object.keys(await written()), ["k"]);
  await routes.put(entry("2026-05-02T10:00:00", { session_key: "second" }));
  clock.ms += 59_000;
  await routes.mirror();
  assert.deepEqual(Object.keys(await written()), ["k"]);
  await routes.mirror({ now: true });
  assert.deepEqual(Object.keys(await written()), ["k", "second"]);
  await routes.remove("k");
  clock.ms += 60_000;
  await routes.mirror();
  assert.deepEqual(Object.keys(await written()), ["second"]);
});

test("19.12: a change of one chat writes one row, and no file", async (t) => {
  const { open, written, work, clock } = await world(t);
  const routes = await open();
  const scope = routes.asRoute(entry("2026-05-02T10:00:00")).scope;
  for (let at = 0; at < 50; at++) await routes.put(entry("2026-05-02T10:00:00", { session_key: `k${at}` }));
  const before = new Map((await work.routes(scope)).map(({ sessionKey, updatedAt }) => [sessionKey, updatedAt]));
  clock.ms += 1000;
  await routes.put(entry("2026-05-02T10:00:01", { session_key: "k7" }));
  const after = await work.routes(scope);
  const changed = after.filter(({ sessionKey, updatedAt }) => before.get(sessionKey) !== updatedAt);
  assert.deepEqual([after.length, changed.map(({ sessionKey }) => sessionKey)], [50, ["k7"]]);
  await assert.rejects(written(), { code: "ENOENT" });
});
