import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import fc from "fast-check";
import type { Postings } from "./postings.ts";
import { type RankRequest, rankGroups } from "./rank.ts";
import { TermIndex } from "./term-index.ts";
import { readQuestion, readText } from "./words.ts";

interface Said {
  readonly group: string;
  readonly text: string;
}

function indexOf(said: readonly Said[]): TermIndex {
  const index = new TermIndex(new DatabaseSync(":memory:"));
  // In several steps, so that segments are merged on the way.
  for (let at = 0; at < said.length; at += 3)
    index.add(
      said.slice(at, at + 3).map(({ group, text }, n) => {
        return { id: at + n + 1, group, source: "cli", at: at + n, kind: 0, size: 0, ...readText(text) };
      }),
    );
  index.refresh();
  return index;
}

function requestFor(index: TermIndex, question: string): RankRequest {
  const words = readQuestion(question).map(({ weight, terms }) => ({
    weight,
    terms: terms.map(({ term, share }) => ({ postings: index.postings(term), share })),
  }));
  return { texts: index.texts(), words, limit: 100 };
}

const order = (index: TermIndex, question: string) =>
  rankGroups(requestFor(index, question)).map(({ group }) => index.groupId(group));

const VOCABULARY = "walrus penguin Lisbon painted painting bakery dentist 牙医 猫 数据库 部署 docker the and".split(
  " ",
);
const saying = fc.array(fc.constantFrom(...VOCABULARY), { minLength: 1, maxLength: 6 }).map((words) => words.join(" "));
const talk = fc.array(fc.record({ group: fc.constantFrom(..."abcdef"), text: saying }), {
  minLength: 1,
  maxLength: 30,
});
const question = fc.subarray(VOCABULARY, { minLength: 1 }).map((words) => words.join(" "));

test("the conversation with more of the question comes first, rare words counting more", () => {
  const index = indexOf([
    { group: "a", text: "we painted the house" },
    { group: "b", text: "painting again, and again painting" },
    { group: "c", text: "the dentist painted her door" },
    { group: "d", text: "nothing of the kind" },
  ]);
  assert.deepEqual(order(index, "dentist painting"), ["c", "b", "a"]);
});

test("words of neighbouring messages count together", () => {
  const filler = Array.from({ length: 6 }, (_, n) => `filler ${n} words`);
  const index = indexOf([
    ...[...filler.slice(0, 3), "the walrus", "in Lisbon", ...filler.slice(3)].map((text) => ({
      group: "together",
      text,
    })),
    ...["the walrus", ...filler, "in Lisbon"].map((text) => ({ group: "apart", text })),
  ]);
  assert.deepEqual(order(index, "walrus Lisbon"), ["together", "apart"]);
});

test("a message that is two away counts as well, and less than the next one", () => {
  const words = (n: number) => `filler ${n} words`;
  const apart = (between: number) => [
    words(0),
    "the walrus",
    ...Array.from({ length: between }, (_, n) => words(n + 1)),
    "in Lisbon",
  ];
  const index = indexOf(
    [2, 1, 0].flatMap((between) =>
      [...apart(between), ...Array.from({ length: 3 - between }, (_, n) => words(n + 5))].map((text) => {
        return { group: `${between} between`, text };
      }),
    ),
  );
  const ranked = rankGroups(requestFor(index, "walrus Lisbon"));
  assert.deepEqual(
    ranked.map(({ group }) => index.groupId(group)),
    ["0 between", "1 between", "2 between"],
  );
  const [, second, third] = ranked.map(({ score }) => score);
  assert.ok((second ?? 0) > (third ?? 0), `${second} is more than ${third}`);
});

test("a message that asks counts less for its conversation, also where another one says most", () => {
  const holds = (last: string) => {
    const texts = ["the dentist called", "one", "two", "three", last];
    const index = indexOf([
      ...texts.map((text) => ({ group: "a", text })),
      { group: "b", text: "nothing of the kind" },
    ]);
    return rankGroups(requestFor(index, "dentist"))[0]?.score ?? 0;
  };
  assert.ok(holds("where is the dentist?") < holds("here is the dentist"));
});

test("of conversations that hold as much, the one that spoke last comes first, not the one that began last", () => {
  const index = indexOf([
    { group: "early", text: "the walrus" },
    { group: "late", text: "the walrus" },
    { group: "late", text: "something" },
    { group: "early", text: "something" },
  ]);
  assert.deepEqual(order(index, "walrus"), ["early", "late"]);
});

test("of a conversation the texts of the named time are read first", () => {
  const index = indexOf(
    Array.from({ length: 6 }, (_, n) => ({
      group: "a",
      text: n === 5 ? "one walrus among many other things" : "walrus walrus",
    })),
  );
  const request = { ...requestFor(index, "walrus"), favour: (at: number) => (at === 5 ? 9 : 1) };
  const [{ best = [], place } = {}] = rankGroups(request);
  assert.deepEqual([place, best[0]?.place, best[0]?.favour], [5, 5, 9]);
});

test("one more occurrence of an asked word never lowers a conversation among the others", () => {
  const rarity = fc.record({
    group: fc.double({ min: 0.1, max: 9, noNaN: true }),
    text: fc.double({ min: 0.1, max: 9, noNaN: true }),
  });
  fc.assert(
    fc.property(talk, question, rarity, fc.nat(), fc.nat(), (said, asked, rarity, wordSeed, placeSeed) => {
      const index = indexOf(said);
      const given = requestFor(index, asked);
      // How rare a word is stays: one that became more common says less about everybody.
      const words = given.words.map(({ weight, terms }) => ({
        weight,
        terms: terms.map((term) => ({ ...term, rarity })),
      }));
      const chosen = wordSeed % Math.max(1, words.length);
      const place = placeSeed % given.texts.count;
      const group = given.texts.group[place] ?? 0;
      const more = words.map((word, at) =>
        at === chosen
          ? { ...word, terms: word.terms.map((term) => ({ ...term, postings: withOneMore(term.postings, place) })) }
          : word,
      );
      const above = (asked: RankRequest["words"]) => {
        const ranked = rankGroups({ ...given, words: asked }).map((one) => one.group);
        return ranked.includes(group) ? ranked.indexOf(group) : Number.POSITIVE_INFINITY;
      };
      assert.ok(above(more) <= above(words));
    }),
  );
});

function withOneMore({ places, counts }: Postings, place: number): Postings {
  const all = new Map(Array.from(places, (one, at) => [one, counts[at] ?? 1]));
  all.set(place, (all.get(place) ?? 0) + 1);
  const sorted = [...all].sort((a, b) => a[0] - b[0]);
  return { places: Int32Array.from(sorted, ([one]) => one), counts: Uint8Array.from(sorted, ([, count]) => count) };
}

test("the order depends on nothing but what was said and asked, and on no order of the words", () => {
  fc.assert(
    fc.property(talk, question, (said, asked) => {
      const reversed = asked.split(" ").reverse().join(" ");
      assert.deepEqual(order(indexOf(said), asked), order(indexOf(said), asked));
      assert.deepEqual(order(indexOf(said), asked).sort(), order(indexOf(said), reversed).sort());
    }),
  );
});

test("a conversation is found exactly when it has one of the words, and says which", () => {
  fc.assert(
    fc.property(talk, question, (said, asked) => {
      const index = indexOf(said);
      const words = readQuestion(asked);
      const request = requestFor(index, asked);
      for (const { group, matched } of rankGroups(request)) {
        const texts = said.filter((one) => one.group === index.groupId(group)).map(({ text }) => readText(text).terms);
        const has = words.flatMap(({ terms }, at) =>
          texts.some((found) => terms.some(({ term, share }) => share >= 0.3 && found.has(term))) ? [at] : [],
        );
        assert.deepEqual(matched, has);
      }
    }),
  );
});

test("an index of many small steps is the index of one large step", () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ group: fc.constantFrom(..."abcd"), text: saying }), { minLength: 40, maxLength: 90 }),
      (said) => {
        const steps = indexOf(said);
        for (const term of ["walrus", "paint", "牙医", "docker"]) {
          const expected = said.flatMap(({ text }, place) => (readText(text).terms.has(term) ? [place] : []));
          assert.deepEqual([...steps.postings(term).places], expected);
        }
        const { previous, count } = steps.texts();
        for (let place = 0; place < count; place++) {
          const before = said.slice(0, place).findLastIndex(({ group }) => group === said[place]?.group);
          assert.equal(previous[place], before);
        }
      },
    ),
    { numRuns: 30 },
  );
});

test("what was taken out is found no more, the rest as before", () => {
  fc.assert(
    fc.property(talk, fc.func(fc.boolean()), (said, isGone) => {
      const index = indexOf(said);
      const gone = new Set(said.flatMap((_, at) => (isGone(at) ? [at + 1] : [])));
      index.remove(gone);
      index.refresh();
      const { id } = index.texts();
      const left = Array.from(index.postings("walrus").places, (place) => id[place]);
      const expected = said.flatMap(({ text }, at) => (text.includes("walrus") && !gone.has(at + 1) ? [at + 1] : []));
      assert.deepEqual(left, expected);
    }),
  );
});
