import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { cleanPaste, Pastes, shouldCollapse } from "./pastes.ts";

const limits = { lines: 5, chars: 2000 };

test("five newlines or two thousand characters collapse, a slash command never does", () => {
  assert.equal(shouldCollapse("a\n".repeat(5), limits, ""), true);
  assert.equal(shouldCollapse("a\n".repeat(4), limits, ""), false);
  assert.equal(shouldCollapse("x".repeat(2000), limits, ""), true);
  assert.equal(shouldCollapse("a\n".repeat(9), limits, "/title "), false);
  assert.equal(shouldCollapse("a\n".repeat(9), { lines: 0, chars: 0 }, ""), false);
});

const cleaned: [string, string][] = [
  ["a\r\nb\rc", "a\nb\nc"],
  ["\u001b[200~text\u001b[201~", "text"],
  ["^[[200~text^[[201~", "text"],
  ["[200~text[201~", "text"],
  ["a[200~b", "a[200~b"],
  ["x\u001b[12;40Ry", "xy"],
  ["x\u001b[<0;10;20My", "xy"],
  ["a<b;c", "a<b;c"],
  ["value 2001~", "value 2001~"],
  ["bad \ud800 half", "bad \ufffd half"],
];
for (const [raw, expected] of cleaned) {
  test(`a paste of ${JSON.stringify(raw)} is cleaned right`, () => assert.equal(cleanPaste(raw), expected));
}

test("the placeholder becomes the text again, and a lost file is told", async () => {
  const folder = await mkdtemp(join(tmpdir(), "hermes-paste-"));
  try {
    const pastes = new Pastes(join(folder, "pastes"));
    const text = "line\n".repeat(10);
    const placeholder = await pastes.store(text, new Date(2026, 0, 1, 9, 8, 7));
    assert.match(placeholder, /^\[Pasted text #1: 11 lines → .*paste_1_090807\.txt\]$/);
    const [file] = await readdir(join(folder, "pastes"));
    assert.equal((await stat(join(folder, "pastes", file!))).mode & 0o777, 0o600);
    assert.deepEqual(await pastes.expand(`see ${placeholder} end`), { text: `see ${text} end`, missing: [] });
    await rm(join(folder, "pastes"), { recursive: true });
    assert.deepEqual(await pastes.expand(placeholder), { text: placeholder, missing: [placeholder] });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
