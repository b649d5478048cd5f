import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { distance } from "./ask.ts";
import { stem } from "./english.ts";
import { findWords, fold, isSubject, readQuestion, readText } from "./words.ts";

describe("forms of one English word have one stem", () => {
  const families = [
    "paint paints painted painting",
    "dentist dentists",
    "run runs running ran",
    "buy buys buying bought",
    "city cities",
    "hope hopes hoping hoped",
    "hop hops hopping hopped",
    "activity activities",
    "try tries tried trying",
    "child children",
    "write writes writing wrote written",
    "happiness happy",
  ];
  for (const family of families)
    test(family, () =>
      assert.equal(new Set(family.split(" ").map(stem)).size, 1, family.split(" ").map(stem).join(" ")),
    );
  test("and different words do not", () => {
    for (const [a = "", b = ""] of ["hope hop", "news new", "university city", "evening even"].map((pair) =>
      pair.split(" "),
    ))
      assert.notEqual(stem(a), stem(b));
  });
});

const questions: readonly (readonly [question: string, subjects: string])[] = [
  ["When did I last mention the dentist?", "last dentist"],
  ["What did Caroline paint in the kitchen?", "Caroline paint kitchen"],
  ["我的猫叫什么名字", "猫 名字"],
  ["小王的女儿在哪个大学读书", "小王 女儿 大学 读书"],
  ["用docker运行postgres的时候端口是多少", "docker 运行 postgres 端口"],
  ["how are you and what is it", ""],
  ["你是谁", ""],
];
for (const [question, subjects] of questions)
  test(`${question} is about: ${subjects || "nothing"}`, () => {
    const found = readQuestion(question).filter(isSubject);
    assert.equal(found.map(({ word }) => word).join(" "), subjects);
  });

test("a name weighs more than another word, one at the beginning of a sentence is not taken for one", () => {
  const weight = (question: string, word: string) =>
    readQuestion(question).find((one) => one.word === word)?.weight ?? 0;
  assert.ok(weight("the trip of Melanie", "Melanie") > weight("the trip of Melanie", "trip"));
  assert.equal(weight("Trips of melanie", "Trips"), weight("Trips of melanie", "melanie"));
});

test("width, case, accents and traditional characters are one spelling", () => {
  assert.equal(fold("ＣＡＦÉ 預約牙醫"), "cafe 预约牙医");
});

test("a text is found by stems, characters and pairs, and by words that are glued to them", () => {
  assert.deepEqual([...readText("用docker运行 Houses").terms].sort(), [
    ["=docker", 2],
    ["docker", 1],
    ["hous", 1],
    ["用", 1],
    ["行", 1],
    ["运", 1],
    ["运行", 1],
  ]);
  assert.deepEqual([...readText("only Latin, 一 gap", { only: "blankless" }).terms.keys()], ["一"]);
});

test("words of a question are marked where they stand, whatever their form", () => {
  const text = "She painted two HOUSES, 約了牙醫";
  const found = findWords(text, readQuestion("painting house 牙医"));
  assert.deepEqual(
    found.map(({ start, end, word }) => [text.slice(start, end), word]),
    [
      ["painted", 0],
      ["HOUSES", 1],
      ["牙醫", 2],
    ],
  );
});

test("names are told from words, in both scripts", () => {
  const cases: readonly (readonly [question: string, names: readonly string[]])[] = [
    ["What did Maya say about the boiler?", ["Maya"]],
    ["王芳的女儿生了什么病", ["王芳"]],
    ["小林去成都玩了几天", ["小林"]],
    ["吴师傅送的油漆和陈建国送的", ["吴师傅", "陈建国"]],
    ["林姐供货的油漆", ["林姐"]],
    ["用docker运行", ["docker"]],
    ["许多任务没做，余下的周末做", []],
    ["苏州的熊猫和唐诗", []],
    ["老房子漏水，小狗病了", []],
  ];
  for (const [question, names] of cases)
    assert.deepEqual(
      readQuestion(question).flatMap(({ word, name }) => (name ? [word] : [])),
      names,
      question,
    );
});

test("any text is read, and what is found in it stands in it", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 60 }), (text) => {
      readText(text);
      for (const { start, end } of findWords(text, readQuestion(text))) assert.ok(start < end && end <= text.length);
    }),
  );
});

test("the distance of two words is the same from both sides, and zero for one word only", () => {
  const word = fc.string({ unit: fc.constantFrom(..."abc"), maxLength: 6 });
  fc.assert(
    fc.property(word, word, (a, b) => {
      assert.equal(distance(a, b, 9), distance(b, a, 9));
      assert.equal(distance(a, b, 9) === 0, a === b);
    }),
  );
  assert.equal(distance("dentsit", "dentist", 1), 1);
  assert.equal(distance("dentist", "denim", 1), 2);
});
