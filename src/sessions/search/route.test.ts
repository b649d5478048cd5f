import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseRoute, mayRetryOnTrigram, type Route, sanitiseQuery, splitQuery } from "./query.ts";

const partsOf = (query: string) => splitQuery(sanitiseQuery(query));

const cases: readonly (readonly [query: string, route: Route, roles?: readonly string[]])[] = [
  ["hello world", "words"],
  ["ab", "words"],
  ["ﾊﾝｶｸ", "words"],
  ["ＡＢＣ", "words"],
  ["สวัสดี", "words"],
  ["数据库", "trigram"],
  ["数据库 OR 服务端", "trigram"],
  ["数据库 deploy", "trigram"],
  ["ab数据库", "trigram"],
  ["数据库", "trigram", ["user", "assistant"]],
  ["数据库", "scan", ["tool"]],
  ["数据", "scan"],
  ["数据库 部署", "scan"],
  ["数据ab", "scan"],
  ["数据库 AI", "scan"],
  ["한국어", "trigram"],
  ["カタカナ", "trigram"],
];
for (const [query, route, roleFilter] of cases) {
  test(`${query}${roleFilter ? ` among ${roleFilter.join(", ")}` : ""} goes to ${route}`, () => {
    assert.equal(chooseRoute(partsOf(query), { trigram: true, ...(roleFilter ? { roleFilter } : {}) }), route);
  });
}

test("without a trigram index such text is scanned for", () => {
  assert.equal(chooseRoute(partsOf("数据库"), { trigram: false }), "scan");
});

test("words are tried as parts of words only when all have three characters", () => {
  assert.equal(mayRetryOnTrigram(partsOf("youer abc"), { trigram: true }), true);
  assert.equal(mayRetryOnTrigram(partsOf("youer ab"), { trigram: true }), false);
});
