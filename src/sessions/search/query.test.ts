import assert from "node:assert/strict";
import { test } from "node:test";
import { type Expression, parseQuery, quoteAll, sanitiseQuery, splitQuery, wantedTerms } from "./query.ts";

function show(expression: Expression | null): string {
  if (expression === null) return "-";
  if (expression.type === "term") return expression.text;
  return `(${show(expression.left)} ${expression.type} ${show(expression.right)})`;
}

const cases: readonly (readonly [query: string, tree: string])[] = [
  ["部署 失败", "(部署 and 失败)"],
  ["部署 OR 失败", "(部署 or 失败)"],
  ["部署 AND 失败 OR 成功", "((部署 and 失败) or 成功)"],
  ["a OR b NOT c", "(a or (b not c))"],
  ["a NOT b c", "(a not (b and c))"],
  ["a b OR c d", "((a and b) or (c and d))"],
  ['"部署 失败"', "部署 失败"],
  ["部署*", "部署"],
  ["a AND OR b", "(a or b)"],
  ["NOT a", "a"],
];
for (const [query, tree] of cases) {
  test(`${query} reads as ${tree}`, () => assert.equal(show(parseQuery(splitQuery(sanitiseQuery(query)))), tree));
}

test("terms behind NOT are not wanted", () => {
  assert.deepEqual(wantedTerms(splitQuery("a b NOT c d OR e")), ["a", "b", "e"]);
});

test("for the trigram index every term is quoted and operators stay", () => {
  assert.equal(quoteAll(splitQuery('数据库* OR "a b" NOT 服务端')), '"数据库" OR "a b" NOT "服务端"');
});
