import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { cleanPaste, Pastes, shouldCollapse } from "./pastes.ts";

const limits = { lines: 5, chars: 2000 };

test("five newlines or two thousand characters collapse, a slash command never does", () => {
  assert.equal(shouldCollapse("a\n".repeat(5), limits, ""), true);
  assert.equal(shouldCollapse("a\n".repeat(4), limits, ""), false);
  assert.equal(shouldCollapse("x".repeat(2000), limits, ""), true);
  assert.equal(shouldCollapse("a\n".repeat(9), limits, "/title "), false);
  assert.equal(shouldCollapse("a\n".repeat(9), { lines: 0, chars: 0 }, ""), false);
  assert.equal(shouldCollapse("x".repeat(1_000_000), { lines: 0, chars: 0 }, "/title "), true);
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
  ["00~text01~", "text"],
  ["bad \ud800 half", "bad \ufffd half"],
];
for (const [raw, expected] of cleaned) {
  test(`a paste of ${JSON.stringify(raw)} is cleaned right`, () => assert.equal(cleanPaste(raw), expected));
}

test("the placeholder becomes the text again, and a lost file is told", async () => {
  const folder = await mkdtemp(join(tmpdir(), "hermes-paste-"));
  const open = () =>
    new Pastes({
      folder: join(folder, "pastes"),
      display: (path) => path,
      withoutKeys: (text) => text,
      onTrouble: assert.ifError,
    });
  try {
    const pastes = open();
    const text = "line\n".repeat(10);
    const placeholder = pastes.store(text, new Date(2026, 0, 1, 9, 8, 7));
    assert.match(placeholder, /^\[Pasted text #1: 11 lines → .*paste_1_090807\.txt\]$/);
    assert.deepEqual(await pastes.expand(`see ${placeholder} end`), { text: `see ${text} end`, missing: [] });
    const file = join(folder, "pastes", "paste_1_090807.txt");
    while (
      await stat(file).then(
        (found) => found.size < text.length,
        () => true,
      )
    )
      await setImmediate();
    assert.equal((await stat(file)).mode & 0o777, 0o600);
    assert.equal((await open().expand(placeholder)).text, text, "a placeholder from the history finds its file");
    await rm(join(folder, "pastes"), { recursive: true });
    assert.deepEqual(await open().expand(placeholder), { text: placeholder, missing: [placeholder] });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test("a text that cannot be written is not lost", async () => {
  const trouble: unknown[] = [];
  const pastes = new Pastes({
    withoutKeys: (text) => text,
    folder: "/dev/null/pastes",
    display: (path) => path,
    onTrouble: (error) => void trouble.push(error),
  });
  const placeholder = pastes.store("a\nb", new Date());
  while (trouble.length === 0) await setImmediate();
  assert.equal((await pastes.expand(placeholder)).text, "a\nb");
});

test("the file of a paste holds no key, and what is sent has it still", async () => {
  const folder = await mkdtemp(join(tmpdir(), "hermes-paste-"));
  const pastes = new Pastes({
    folder,
    display: (path) => path,
    withoutKeys: (text) => text.replace("the-key", "***"),
    onTrouble: assert.ifError,
  });
  try {
    const placeholder = pastes.store("a\nthe-key\nb", new Date(2026, 0, 1, 12, 0, 0));
    const kept = () => readFile(join(folder, "paste_1_120000.txt"), "utf8").catch(() => "");
    while (!(await kept()).endsWith("b")) await setImmediate();
    assert.equal(await kept(), "a\n***\nb");
    assert.equal((await pastes.expand(placeholder)).text, "a\nthe-key\nb");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
