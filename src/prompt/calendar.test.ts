import assert from "node:assert/strict";
import { test } from "node:test";
import { calendarDay, isKnownZone, sameDay } from "./day-notes.ts";

const at = Date.UTC(2026, 0, 1, 1, 0);

test("the day is the zone's, not the machine's", () => {
  assert.deepEqual(calendarDay(at, "America/New_York"), { year: 2025, month: 12, day: 31 });
  assert.deepEqual(calendarDay(at, "Asia/Tokyo"), { year: 2026, month: 1, day: 1 });
});

test("without a zone, or with nonsense for one, it is the machine's own", () => {
  const here = new Date(at);
  const own = { year: here.getFullYear(), month: here.getMonth() + 1, day: here.getDate() };
  assert.ok(sameDay(calendarDay(at, ""), own));
  assert.ok(sameDay(calendarDay(at, "Nowhere/Land"), own));
});

test("a zone nobody knows is told apart", () => {
  assert.deepEqual(["", "UTC", "Europe/Berlin", "Nowhere/Land"].map(isKnownZone), [true, true, true, false]);
});
