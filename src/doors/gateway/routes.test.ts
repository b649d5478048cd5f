import assert from "node:assert/strict";
import { test } from "node:test";
import { type ChatEntry, localIso, resetDue } from "./routes.ts";

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
