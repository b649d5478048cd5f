import assert from "node:assert/strict";
import { mock, test } from "node:test";
import fc from "fast-check";
import { PasteReader } from "./pastes.ts";

function read(pieces: readonly string[], unannounced = 5) {
  const heard: [string, string][] = [];
  const reader = new PasteReader({
    onKeys: (data) => void heard.push(["keys", data]),
    onPaste: (text) => void heard.push(["paste", text]),
    unannouncedLines: () => unannounced,
  });
  for (const piece of pieces) reader.feed(piece);
  return { heard, reader };
}

test("a paste arrives whole, keys around it stay keys", () => {
  const { heard } = read(["a\u001b[200~one\ntwo\u001b[201~b"]);
  assert.deepEqual(heard, [
    ["keys", "a"],
    ["paste", "one\ntwo"],
    ["keys", "b"],
  ]);
});

test("however a paste is cut into reads, its text is the same", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom("a", "\u001b", "[", "2", "0", "1", "~", "\n", "中") }),
      fc.array(fc.nat(40)),
      (text, cuts) => {
        fc.pre(!text.includes("\u001b[201~") && !`${text}\u001b[201~`.slice(0, -6).includes("\u001b[201~"));
        const sent = `\u001b[200~${text}\u001b[201~`;
        // The opening mark comes in one read: terminals write it in one go.
        const places = [...new Set(cuts.map((cut) => 6 + (cut % (sent.length - 6))))].sort((a, b) => a - b);
        const pieces = [0, ...places].map((from, index) => sent.slice(from, places[index] ?? sent.length));
        assert.deepEqual(read(pieces).heard, [["paste", text]]);
      },
    ),
  );
});

test("many lines in one read are a paste even when the terminal does not say so", () => {
  assert.deepEqual(read(["first\rsecond\rthird\rfourth\rfifth\r"]).heard, [
    ["paste", "first\rsecond\rthird\rfourth\rfifth\r"],
  ]);
  assert.deepEqual(read(["\r\r\r\r\r\r"]).heard, [["keys", "\r\r\r\r\r\r"]]);
  assert.deepEqual(read(["a\rb\r"]).heard, [["keys", "a\rb\r"]]);
});

test("line feeds of the first read are Enters that were typed too early; later ones, and one alone, are keys", () => {
  assert.deepEqual(read(["one\n/two\nthr", "\n", "a\nb"]).heard, [
    ["keys", "one\r/two\rthr"],
    ["keys", "\n"],
    ["keys", "a\nb"],
  ]);
  assert.deepEqual(read(["\n", "a\nb"]).heard, [
    ["keys", "\n"],
    ["keys", "a\nb"],
  ]);
  assert.deepEqual(read(["one\n\u001b[200~two\nthree\u001b[201~"]).heard, [
    ["keys", "one\r"],
    ["paste", "two\nthree"],
  ]);
  // A carriage return comes from a terminal that gives keys one by one, so what follows it does too.
  assert.deepEqual(read(["one\n\\\rtwo\nthree"]).heard, [["keys", "one\r\\\rtwo\nthree"]]);
});

test("a paste whose end never comes is accepted after two seconds", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    const { heard } = read(["\u001b[200~lost", " end"]);
    assert.deepEqual(heard, []);
    mock.timers.tick(2000);
    assert.deepEqual(heard, [["paste", "lost end"]]);
  } finally {
    mock.timers.reset();
  }
});

test("10 MB in small reads are collected in time that grows with the length only", () => {
  const piece = "x".repeat(4095);
  const count = 2560;
  const started = process.cpuUsage();
  const { heard } = read(["\u001b[200~", ...new Array<string>(count).fill(piece), "\u001b[201~"]);
  assert.equal(heard[0]?.[1].length, piece.length * count);
  assert.ok(process.cpuUsage(started).user < 2_000_000);
});
