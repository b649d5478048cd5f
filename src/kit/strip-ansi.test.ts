import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { stripAnsi, withoutControls } from "./strip-ansi.ts";

const cases: [string, string, string][] = [
  ["plain text", "hello\n\tworld 😀", "hello\n\tworld 😀"],
  ["colour", "\x1b[31mred\x1b[0m", "red"],
  ["colon parameters", "\x1b[38:2::255:0:0mred\x1b[m", "red"],
  ["private marker", "\x1b[?25lx\x1b[?25h\x1b[>c\x1b[=1u", "x"],
  ["intermediate byte", "\x1b[4 qx\x1b[!p", "x"],
  ["OSC ended by BEL", "\x1b]0;title\x07x", "x"],
  ["OSC ended by ST", "\x1b]8;;https://a.b\x1b\\link\x1b]8;;\x1b\\", "link"],
  ["OSC ended by 8-bit ST", "\x1b]0;title\x9cx", "x"],
  ["DCS", "\x1bPq#0;2;0\x1b\\x", "x"],
  ["DCS holds a bell", "\x1bPa\x07b\x1b\\x", "x"],
  ["PM, APC and SOS", "\x1b^a\x1b\\\x1b_b\x1b\\\x1bXc\x1b\\x", "x"],
  ["two-byte escapes", "\x1b7a\x1b8b\x1bMc\x1b=d\x1bce", "abcde"],
  ["charset selection", "\x1b(Ba\x1b)0b\x1b%Gc", "abc"],
  ["8-bit CSI and OSC", "\x9b31mred\x9b0m\x9d0;t\x07x", "redx"],
  ["8-bit DCS, PM, APC", "\x90q\x9c\x9ea\x9c\x9fb\x9cx", "x"],
  ["other C1", "a\x84b\x8dc", "abc"],
  ["unfinished CSI at the end", "text\x1b[38;5", "text"],
  ["a bare introducer at the end", "text\x1b[", "text"],
  ["a lone ESC at the end", "text\x1b", "text"],
  ["a CSI cut by a newline", "a\x1b[31\nb", "a\nb"],
  ["an unfinished OSC keeps its text", "a\x1b]0;title", "a0;title"],
  ["ESC before ESC", "\x1b\x1b[31mx", "x"],
  ["ESC before a letter outside ASCII", "\x1bé", "é"],
  ["accents and CJK above C1", "é 中 ñ \u00a0", "é 中 ñ \u00a0"],
  ["bell and backspace alone stay", "a\x07b\bc", "a\x07b\bc"],
];

for (const [name, input, expected] of cases) {
  test(`stripAnsi: ${name}`, () => assert.equal(stripAnsi(input), expected));
}

const shown: [string, string, string][] = [
  ["newlines and tabs stay", "a\tb\nc 名称 🙂", "a\tb\nc 名称 🙂"],
  ["bells, backspaces, NUL, delete go", "a\x07\b\0\x7fb", "ab"],
  ["a return begins a new line", "one\r\ntwo\rthree", "one\ntwo\nthree"],
  ["turned direction is turned back", "report\u202efdp.exe \u2066x\u2069", "reportfdp.exe x"],
  ["marks that words of two directions need stay", "א\u200f a\u200e", "א\u200f a\u200e"],
];
for (const [name, input, expected] of shown) {
  test(`for a terminal: ${name}`, () => assert.equal(withoutControls(input), expected));
}

test("nothing that drives a terminal is left, and what is left stays as it is", () => {
  const text = fc.string({
    unit: fc.constantFrom(
      "\x1b",
      "[",
      "]",
      "P",
      "\\",
      "\x07",
      "\x9b",
      "\x9d",
      "3",
      ";",
      "m",
      "\r",
      "\n",
      "\t",
      "\u202e",
      "é",
    ),
    maxLength: 40,
  });
  fc.assert(
    fc.property(text, (input) => {
      const left = withoutControls(input);
      assert.doesNotMatch(left, /[^\P{Cc}\n\t]|[\u202a-\u202e\u2066-\u2069]/u);
      assert.equal(withoutControls(left), left);
    }),
  );
});

test("no introducer is left in any result", () => {
  const text = fc.string({
    unit: fc.constantFrom("\x1b", "[", "]", "P", "\\", "\x07", "\x9b", "\x9c", "3", ";", "m", "a", " ", "\n", "😀"),
    maxLength: 40,
  });
  fc.assert(fc.property(text, (input) => assert.doesNotMatch(stripAnsi(input), /[\x1b\x80-\x9f]/)));
});

test("a million introducers without an end take no quadratic time", { timeout: 20_000 }, () => {
  for (const unit of ["\x1b]", "\x1b[", "\x1bP", "\x1b", "\x1b[31", "\x1b("]) stripAnsi(unit.repeat(500_000));
});
