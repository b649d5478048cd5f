import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { addressedText, asCommand, decodeBytes, foldCase, isName, parseLine, withoutControls } from "./protocol.ts";

test("a line is its tags, sender, command and parameters", () => {
  const cases: [string, { tags?: object; from?: string; command: string; params: string[] } | null][] = [
    ["PING :abc def", { command: "PING", params: ["abc def"] }],
    [":irc.test 001 bot :Welcome to it\r", { from: "irc.test", command: "001", params: ["bot", "Welcome to it"] }],
    [":ann!u@h PRIVMSG #a :", { from: "ann", command: "PRIVMSG", params: ["#a", ""] }],
    [":ann!u@h  privmsg   #a  hi", { from: "ann", command: "PRIVMSG", params: ["#a", "hi"] }],
    [
      "@a=1;b;c=x\\s\\:\\\\y :n JOIN #a",
      { tags: { a: "1", b: "", c: "x ;\\y" }, from: "n", command: "JOIN", params: ["#a"] },
    ],
    [":n PRIVMSG #a ::-) x", { from: "n", command: "PRIVMSG", params: ["#a", ":-) x"] }],
    ["", null],
    [":onlysource", null],
  ];
  for (const [line, expected] of cases) {
    const parsed = parseLine(line);
    if (expected === null) assert.equal(parsed, null, line);
    else
      assert.deepEqual(
        parsed && { ...parsed, tags: Object.fromEntries(parsed.tags) },
        { tags: {}, from: "", ...expected },
        line,
      );
  }
});

test("no line makes the reader fail", () => {
  fc.assert(fc.property(fc.string({ unit: fc.constantFrom(..." a:@;=!\\🎉\r\0") }), (line) => void parseLine(line)));
});

test("bytes that are no UTF-8 are read as Latin-1", () => {
  assert.equal(decodeBytes(Buffer.from("grün")), "grün");
  assert.equal(decodeBytes(Buffer.from([0x67, 0x72, 0xfc, 0x6e])), "grün");
});

test("names are the same in capitals and in small letters", () => {
  assert.equal(foldCase("Ann[A]"), foldCase("aNN{a}"));
  assert.notEqual(foldCase("Ann[A]", "ascii"), foldCase("aNN{a}", "ascii"));
});

test("a line is for us when it begins with our name", () => {
  const cases: [string, string | null][] = [
    ["bot: hello", "hello"],
    ["BOT, hello", "hello"],
    ["@bot hello", "hello"],
    ["bot hello", "hello"],
    ["bot", ""],
    ["bot!", "!"],
    ["bottle: hello", null],
    ["bot's thing", null],
    ["hello bot", null],
    ["", null],
  ];
  for (const [text, rest] of cases) assert.equal(addressedText(text, "bot"), rest, text);
});

test("commands begin with an exclamation mark", () => {
  assert.equal(asCommand("!new"), "/new");
  assert.equal(asCommand("!model x y"), "/model x y");
  for (const text of ["!!", "! new", "!?", "new!", "!3"]) assert.equal(asCommand(text), text);
});

test("colours and marks of clients are not part of a text", () => {
  assert.equal(
    withoutControls("\x02bold\x02 \x0304,12red\x03 \x04ff0000hex\x04 \x1funder\x0f end\x07"),
    "bold red hex under end",
  );
});

test("a target is a channel or a nick, and nothing else can be smuggled into a line", () => {
  for (const name of ["#a", "&local", "Ann_1", "[x]", "#ünï"]) assert.ok(isName(name), name);
  for (const name of ["", "#", "a b", "#a,#b", "#a\r\nQUIT", "1ann", "ann!u@h", "#a\x07"])
    assert.ok(!isName(name), name);
});
