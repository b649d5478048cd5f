import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { graceOf, nextOf, nextRun, nextRuns, readSchedule, ScheduleError, slotsBetween } from "./schedule.ts";
import { Zone } from "./wall-clock.ts";

const BERLIN = Zone.named("Europe/Berlin");
const NOW = Date.parse("2026-11-18T19:00:00Z"); // a Wednesday, 20:00 in Berlin
const at = { now: NOW, zone: BERLIN };
const MINUTE = 60_000;

const times = (typed: string, zone = BERLIN, now = NOW) => {
  const schedule = readSchedule(typed, { now, zone });
  return nextRuns(schedule, nextRun(schedule, { now, zone }), zone).map((time) => zone.minute(time));
};

describe("schedules", () => {
  for (const [typed, display, first] of [
    ["every 30m", "every 30m", "2026-11-18 20:30"],
    ["EVERY 2 hours", "every 120m", "2026-11-18 22:00"],
    ["every hour", "every 60m", "2026-11-18 21:00"],
    ["0 9 * * MON-FRI", "0 9 * * MON-FRI", "2026-11-19 09:00"],
    ["0 0 13 * FRI", "0 0 13 * FRI", "2026-11-20 00:00"],
    ["CRON_TZ=Asia/Tokyo 0 9 * * *", "CRON_TZ=Asia/Tokyo 0 9 * * *", "2026-11-19 01:00"],
    ["2027-02-03T14:00", "once at 2027-02-03 14:00", "2027-02-03 14:00"],
    ["2027-02-03T14:00Z", "once at 2027-02-03 15:00", "2027-02-03 15:00"],
    ["2027-02-03", "once at 2027-02-03 00:00", "2027-02-03 00:00"],
    ["20m", "once in 20m", "2026-11-18 20:20"],
    ["in 20 minutes", "once in 20 minutes", "2026-11-18 20:20"],
    ["every day at 9am", "0 9 * * *", "2026-11-19 09:00"],
    ["every day at 12am", "0 0 * * *", "2026-11-19 00:00"],
    ["every weekday at 9", "0 9 * * 1-5", "2026-11-19 09:00"],
    ["weekdays 08:30", "30 8 * * 1-5", "2026-11-19 08:30"],
    ["every monday 10:00", "0 10 * * 1", "2026-11-23 10:00"],
    ["every Tuesday and Thursday at noon", "0 12 * * 2,4", "2026-11-19 12:00"],
    ["every 1st at 8:00", "0 8 1 * *", "2026-12-01 08:00"],
    ["every evening at 8", "0 20 * * *", "2026-11-19 20:00"],
    ["on mondays and fridays at 9", "0 9 * * 1,5", "2026-11-20 09:00"],
    ["every afternoon at 3", "0 15 * * *", "2026-11-19 15:00"],
    ["every two hours", "every 120m", "2026-11-18 22:00"],
    ["every 2 weeks", "every 20160m", "2026-12-02 20:00"],
    ["in half an hour", "once in 30m", "2026-11-18 20:30"],
    ["tonight at 9", "once at 2026-11-18 21:00", "2026-11-18 21:00"],
    ["今晚九点", "once at 2026-11-18 21:00", "2026-11-18 21:00"],
    ["Tomorrow at 9", "once at 2026-11-19 09:00", "2026-11-19 09:00"],
    ["每天早上8点", "0 8 * * *", "2026-11-19 08:00"],
    ["工作日8:30", "30 8 * * 1-5", "2026-11-19 08:30"],
    ["每周一9点", "0 9 * * 1", "2026-11-23 09:00"],
    ["每周一、三、五下午3点半", "30 15 * * 1,3,5", "2026-11-20 15:30"],
    ["每月1号8点", "0 8 1 * *", "2026-12-01 08:00"],
    ["20分钟后", "once in 20m", "2026-11-18 20:20"],
    ["每两小时", "every 120m", "2026-11-18 22:00"],
    ["明天下午两点", "once at 2026-11-19 14:00", "2026-11-19 14:00"],
  ] as const)
    test(`"${typed}" is ${display}`, () => {
      assert.equal(readSchedule(typed, at).display, display);
      assert.equal(times(typed)[0], first);
    });

  for (const typed of [
    ...[
      "",
      "soon",
      "9",
      "every day",
      "every 0m",
      "every 5 seconds",
      "daily at 25:00",
      "every day at 9m",
      "every 32nd at 8:00",
    ],
    ...["* * * * * *", "61 * * * *", "0 0 31 2 *", "2027-02-30", "2027-02-03T25:00", "CRON_TZ=Nowhere/Here 0 9 * * *"],
    ...[
      "每天晚上12点",
      "周一9点",
      "每天",
      "every morning at 20:00",
      "every monday at 10:00 please",
      "every day at 9 or 10",
    ],
    // One day was said, or none that goes with the hour.
    ...[
      ...["on friday at 5pm", "monday 10:00", "mondays and friday 9:00", "day at 9", "the 1st at 8:00"],
      ...["every evening at 2", "every afternoon at 11", "tonight at 2", "今晚2点", "每天下午11点", "every 0 weeks"],
    ],
  ])
    test(`"${typed}" is refused, not guessed`, () => {
      assert.throws(() => readSchedule(typed, at), { name: /ScheduleError|UserError|Error/ });
    });

  test("an expression of six fields is refused with both ways to read it", () => {
    assert.throws(
      () => readSchedule("0 30 9 * * 1", at),
      (error: unknown) => {
        assert.ok(error instanceof ScheduleError);
        assert.match(error.message, /"30 9 \* \* 1".*"0 30 9 \* \*"/);
        return true;
      },
    );
  });

  test("a grace is half the time between two slots, at least two minutes and at most two hours", () => {
    const grace = (typed: string) => graceOf(readSchedule(typed, at), NOW, BERLIN) / MINUTE;
    assert.deepEqual(
      ["* * * * *", "every 30m", "0 * * * *", "every 1d", "0 9 * * 1"].map(grace),
      [2, 15, 30, 120, 120],
    );
  });
});

describe("the clocks change", () => {
  const from = (zone: Zone, expr: string, start: string, count = 3) => {
    const found: string[] = [];
    for (let time = Date.parse(start); found.length < count; ) {
      time = nextOf({ kind: "cron", expr, display: expr }, time, zone) ?? assert.fail("it ends");
      found.push(zone.iso(time).slice(5, 22));
    }
    return found;
  };
  for (const [what, zone, expr, start, expected] of [
    [
      "a time that is jumped over runs right after",
      "Europe/Berlin",
      "30 2 * * *",
      "2026-03-28T12:00:00Z",
      ["03-29T03:00:00+02", "03-30T02:30:00+02"],
    ],
    [
      "all that is jumped over runs once",
      "Europe/Berlin",
      "*/30 2 * * *",
      "2026-03-28T12:00:00Z",
      ["03-29T03:00:00+02", "03-30T02:00:00+02"],
    ],
    [
      "a fixed hour that comes twice runs once",
      "Europe/Berlin",
      "*/30 2 * * *",
      "2026-10-24T12:00:00Z",
      ["10-25T02:00:00+02", "10-25T02:30:00+02", "10-26T02:00:00+01"],
    ],
    [
      "every hour means every hour that there is",
      "Europe/Berlin",
      "30 * * * *",
      "2026-10-25T00:00:00Z",
      ["10-25T02:30:00+02", "10-25T02:30:00+01", "10-25T03:30:00+01"],
    ],
    [
      "also when it is asked in the middle of the second time",
      "Europe/Berlin",
      "30 2 * * *",
      "2026-10-25T01:10:00Z",
      ["10-26T02:30:00+01"],
    ],
    [
      "in New York too",
      "America/New_York",
      "*/30 1 * * *",
      "2026-11-01T04:00:00Z",
      ["11-01T01:00:00-04", "11-01T01:30:00-04", "11-02T01:00:00-05"],
    ],
    [
      "half an hour of change is no other case",
      "Australia/Lord_Howe",
      "15 2 * * *",
      "2026-10-02T20:00:00Z",
      ["10-04T02:30:00+11", "10-05T02:15:00+11"],
    ],
    [
      "and back",
      "Australia/Lord_Howe",
      "45 1 * * *",
      "2026-04-03T15:00:00Z",
      ["04-05T01:45:00+11", "04-06T01:45:00+10"],
    ],
    [
      "nothing happens in Kolkata",
      "Asia/Kolkata",
      "30 2 * * *",
      "2026-03-28T12:00:00Z",
      ["03-29T02:30:00+05", "03-30T02:30:00+05"],
    ],
  ] as const)
    test(`${what}: ${zone}, ${expr}`, () => {
      assert.deepEqual(from(Zone.named(zone), expr, start, expected.length), expected);
    });

  /** What a clock on the wall shows, asked of the system minute by minute: another way than the one that is tested. */
  const wallOf = (zone: string) => {
    const format = new Intl.DateTimeFormat("en-GB", {
      timeZone: zone,
      hour: "2-digit",
      minute: "2-digit",
      day: "numeric",
      weekday: "short",
      hourCycle: "h23",
    });
    return (time: number) => Object.fromEntries(format.formatToParts(time).map(({ type, value }) => [type, value]));
  };
  const change = fc.constantFrom(
    ...[
      ["Europe/Berlin", "2026-03-29T01:00Z"],
      ["Europe/Berlin", "2026-10-25T01:00Z"],
      ["America/New_York", "2026-03-08T07:00Z"],
    ],
    ...[
      ["America/New_York", "2026-11-01T06:00Z"],
      ["Asia/Kolkata", "2026-05-05T05:00Z"],
      ["Australia/Lord_Howe", "2026-04-04T15:00Z"],
    ],
    ...[["Australia/Lord_Howe", "2026-10-03T15:30Z"]],
  );
  test("around a change each wall time runs once by name and each time by step, and what is jumped over runs right after", () => {
    fc.assert(
      fc.property(change, fc.nat(23), fc.nat(59), fc.boolean(), ([zoneName = "", turn = ""], hour, minute, isEach) => {
        const zone = Zone.named(zoneName);
        const wall = wallOf(zoneName);
        const expr = `${minute} ${isEach ? "*" : hour} * * *`;
        const start = Date.parse(turn) - 8 * 3_600_000;
        const expected: number[] = [];
        const seen = new Set<string>();
        let before = zone.offsetAt(start);
        for (let time = start + MINUTE; time <= start + 16 * 3_600_000; time += MINUTE) {
          const { hour: h, minute: m, day } = wall(time);
          const offset = zone.offsetAt(time);
          // The walls between the last minute and this one.
          const jumped = Math.max(0, (offset - before) / MINUTE);
          before = offset;
          const shown = Number(h) * 60 + Number(m);
          const hits = (value: number) => value % 60 === minute && (isEach || Math.floor(value / 60) === hour);
          const isSkippedHit = Array.from({ length: jumped }, (_, back) => shown - 1 - back).some(hits);
          const key = `${day} ${shown}`;
          if (isSkippedHit || (hits(shown) && (isEach || !seen.has(key)))) expected.push(time);
          seen.add(key);
        }
        const found: number[] = [];
        for (let time = start; ; ) {
          const next = nextOf({ kind: "cron", expr, display: expr }, time, zone);
          if (next === null || next > start + 16 * 3_600_000) break;
          found.push(next);
          time = next;
        }
        assert.deepEqual(
          found.map((time) => zone.iso(time)),
          expected.map((time) => zone.iso(time)),
          expr,
        );
      }),
      { numRuns: 150 },
    );
  });

  test("the next time is the same from every moment before it, and slots between two moments are counted as they come", () => {
    const exprs = ["*/30 1 * * *", "0 2 * * *", "15 * * * *", "0 */5 * * *", "0 9 * * 1-5"];
    fc.assert(
      fc.property(
        change,
        fc.constantFrom(...exprs),
        fc.nat(86_400_000),
        fc.nat(86_400_000),
        ([name = "", turn = ""], expr, one, two) => {
          const zone = Zone.named(name);
          const schedule = { kind: "cron", expr, display: expr } as const;
          const start = Date.parse(turn) - 43_200_000 + one;
          const next = nextOf(schedule, start, zone) ?? assert.fail();
          assert.ok(next > start);
          assert.equal(nextOf(schedule, next - 1, zone), next);
          assert.equal(nextOf(schedule, start + Math.floor((next - 1 - start) / 2), zone), next);
          const { count, last } = slotsBetween(schedule, next, next + two, zone);
          let counted = 0;
          for (
            let time = nextOf(schedule, next, zone);
            time !== null && time <= next + two;
            time = nextOf(schedule, time, zone)
          )
            counted++;
          assert.equal(count, counted);
          assert.ok(last <= next + two);
        },
      ),
      { numRuns: 200 },
    );
  });

  test("the machine's own zone, which is told without locale data, is the zone of its name", (t) => {
    const before = process.env.TZ;
    t.after(() => {
      if (before === undefined) delete process.env.TZ;
      else process.env.TZ = before;
    });
    const days = Array.from({ length: 24 * 30 }, (_, at) => Date.UTC(2024, 0, 1) + at * 1.7 * 86_400_000);
    for (const name of ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "UTC"]) {
      process.env.TZ = name;
      const [own, named] = [Zone.named(""), Zone.named(name)];
      assert.deepEqual(
        days.map((at) => own.iso(at)),
        days.map((at) => named.iso(at)),
      );
      for (const year of [2024, 2026]) {
        const [from, until] = [Date.UTC(year, 0, 1), Date.UTC(year, 11, 31)];
        assert.deepEqual(own.changeAfter(from, until), named.changeAfter(from, until), name);
      }
      assert.equal(own.name, Intl.DateTimeFormat().resolvedOptions().timeZone);
    }
  });
});
