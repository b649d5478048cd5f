import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import fc from "fast-check";
import { sanitiseQuery } from "./query.ts";

const cases: readonly (readonly [input: string, expected: string])[] = [
  ["hello AND", "hello"],
  ["OR world", "world"],
  ["AND", ""],
  ["not", ""],
  ["a AND OR", "a"],
  ["fix +bug (urgent)", "fix  bug  urgent"],
  ["TODO: fix", "TODO  fix"],
  ['"one" and "two', '"one" and  two'],
  ["deploy*", "deploy*"],
  ["foo**", "foo*"],
  ["* foo", "foo"],
  ["***", ""],
  ['"chat-send" OR chat-send', '"chat-send" OR "chat-send"'],
  ["my-app.config.ts", '"my-app.config.ts"'],
  ["P2.2", '"P2.2"'],
  ["session_search", '"session_search"'],
  ["über-cool", '"über-cool"'],
  ["user@example.com", '"user@example.com"'],
  ["path/to/file.py", '"path/to/file.py"'],
  ["100%", '"100%"'],
  ["-leading", '"-leading"'],
  ["C#", '"C#"'],
  ["my-app*", '"my-app"*'],
  ["foo AND @@", "foo"],
  ["你好，世界", "你好，世界"],
  ["nul\u0000byte", "nulbyte"],
  ["  ", ""],
  ['"a b"c', '"a b" c'],
  ["x NOT y", "x NOT y"],
];

for (const [input, expected] of cases) {
  test(`the query ${JSON.stringify(input)} becomes ${JSON.stringify(expected)}`, () => {
    assert.equal(sanitiseQuery(input), expected);
  });
}

test("a query longer than 2048 characters is cut, by code point", () => {
  assert.equal([...sanitiseQuery("𠀀".repeat(3000))].length, 2048);
});

test("a sanitised query without operators is always one FTS5 understands", () => {
  const db = new DatabaseSync(":memory:");
  db.exec("CREATE VIRTUAL TABLE f USING fts5(content, tool_name, tool_calls)");
  const ask = db.prepare("SELECT rowid FROM f WHERE f MATCH ?");
  const piece = fc.oneof(
    fc.string({ unit: "grapheme" }),
    fc.constantFrom('"', "*", "-", ":", "(", "near", "^", "content:", "中文"),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
      const sanitised = sanitiseQuery(pieces.filter((text) => !/\b(AND|OR|NOT)\b/.test(text)).join(" "));
      if (sanitised !== "") ask.all(sanitised);
    }),
    { numRuns: 500 },
  );
  db.close();
});
