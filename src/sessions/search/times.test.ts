import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readTimes } from "./times.ts";

/** A Saturday. */
const NOW = new Date(2026, 6, 25, 12).getTime();

const day = (seconds: number | null) => (seconds === null ? "" : new Date(seconds * 1000).toLocaleDateString("sv"));

const spans: readonly (readonly [question: string, span: string, rest: string])[] = [
  ["what did we say last week", "2026-07-13..2026-07-20", "what did we say"],
  ["what did I paint in May?", "2026-05-01..2026-06-01", "what did I paint ?"],
  ["the plan of yesterday", "2026-07-24..2026-07-25", "the plan of"],
  ["3 days ago we spoke", "2026-07-22..2026-07-23", "we spoke"],
  ["a couple of weeks ago", "2026-07-06..2026-07-13", ""],
  ["What did Melanie do on 7 May, 2023?", "2023-05-07..2023-05-08", "What did Melanie do ?"],
  ["on May 7th", "2026-05-07..2026-05-08", ""],
  ["since March", "2026-03-01..", ""],
  ["after 2026-02-03", "2026-02-04..", ""],
  ["before May", "..2026-05-01", ""],
  ["the trip in 2023", "2023-01-01..2024-01-01", "the trip"],
  ["last Monday", "2026-07-20..2026-07-21", ""],
  ["last summer", "2025-06-01..2025-09-01", ""],
  ["the past two weeks", "2026-07-11..2026-07-26", "the"],
  ["in June of last year", "2025-06-01..2025-07-01", ""],
  ["may I ask something", "", "may I ask something"],
  ["上周说了什么", "2026-07-13..2026-07-20", "说了什么"],
  ["上周三的会", "2026-07-15..2026-07-16", "的会"],
  ["去年五月的项目", "2025-05-01..2025-06-01", "的项目"],
  ["2023年5月7日", "2023-05-07..2023-05-08", ""],
  ["十二月买的", "2025-12-01..2026-01-01", "买的"],
  ["五月之前", "..2026-05-01", ""],
  ["三个月前", "2026-04-01..2026-05-01", ""],
  ["最近两周", "2026-07-11..2026-07-26", ""],
  ["昨天", "2026-07-24..2026-07-25", ""],
  ["去年夏天", "2025-06-01..2025-09-01", ""],
];
for (const [question, span, rest] of spans)
  test(`"${question}" means ${span || "no time"}`, () => {
    const read = readTimes(question, NOW);
    assert.equal(read.time ? `${day(read.time.from)}..${day(read.time.to)}` : "", span);
    assert.equal(read.rest.replace(/\s+/g, " ").trim(), rest);
  });

const events: readonly (readonly [question: string, event: string | null])[] = [
  ["where did I live before the move?", "before the move"],
  ["before the move, where did I live", "before the move"],
  ["what did we eat after my wedding party", "after my wedding party"],
  ["搬家之前我住在哪里", "before 搬家"],
  ["before lunch", null],
];
for (const [question, event] of events)
  test(`"${question}" speaks of ${event ?? "no event"}`, () => {
    const read = readTimes(question, NOW).event;
    assert.equal(read ? `${read.relation} ${read.event}` : null, event);
  });

test("last and first say which of several is meant", () => {
  assert.equal(readTimes("when did I last mention the dentist?", NOW).wanted, "newest");
  assert.equal(readTimes("我上次提到牙医是什么时候", NOW).wanted, "newest");
  assert.equal(readTimes("the first time we spoke of Lisbon", NOW).wanted, "oldest");
  assert.equal(readTimes("the dentist", NOW).wanted, null);
});

test("any text is read, and a time never ends before it begins", () => {
  const word = fc.constantFrom(
    ..."last week in may 2023 before the 3 days ago 31 上周 五月 去年 三 天 前 之后 since , ?".split(" "),
  );
  fc.assert(
    fc.property(fc.array(fc.oneof(word, fc.string({ maxLength: 4 })), { maxLength: 8 }), (words) => {
      const { time } = readTimes(words.join(" "), NOW);
      assert.ok(!time || time.from === null || time.to === null || time.from < time.to);
    }),
  );
});
