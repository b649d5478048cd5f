// Laws of the store: whoever writes, by whatever way, nothing goes that nobody removed, and what is taken back is as it was.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { test } from "node:test";
import fc from "fast-check";
import { memoryHome } from "../../test/support/memory.ts";
import { parseEntries } from "./entries.ts";
import { newestToUndo } from "./history.ts";

const text = fc.constantFrom(
  ...[
    "Likes tea",
    "Runs Arch",
    "Two\nlines",
    "数据库在大阪",
    "👩‍💻 writes Go",
    "a § b",
    "x".repeat(120),
    "- a list\n- of two",
    "end ",
  ],
);
const session = fc.constantFrom(0, 1);
const step = fc.oneof(
  fc.record({ type: fc.constant("add" as const), who: session, text }),
  fc.record({ type: fc.constant("replace" as const), who: session, at: fc.nat(20), text }),
  fc.record({ type: fc.constant("remove" as const), who: session, at: fc.nat(20) }),
  fc.record({ type: fc.constant("batch" as const), who: session, at: fc.nat(20), text }),
  fc.record({ type: fc.constant("both" as const), first: text, second: text }),
  fc.record({
    type: fc.constant("hand" as const),
    text,
    how: fc.constantFrom("append", "crlf", "bom", "blank", "drop"),
  }),
);

test("any interleaving of two sessions and hand edits keeps every entry that nobody removed", async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 14 }), async (steps) => {
      const box = await memoryHome(t, { memory: { memory_char_limit: 20_000 } });
      const sessions = [box.memory, await box.open()] as const;
      const file = box.at("MEMORY.md");
      const read = async () => parseEntries(await readFile(file, "utf8").catch(() => ""));
      let expected: string[] = [];
      let serial = 0;
      const fresh = (words: string) => `${++serial} ${words}`.trim();
      const write = (who: number, args: object) =>
        (who === 0 ? sessions[0] : sessions[1]).write({ target: "memory", ...args }, { origin: "foreground" });
      for (const one of steps) {
        const old = "at" in one ? expected[one.at % Math.max(1, expected.length)] : undefined;
        if (one.type === "add") {
          const content = fresh(one.text);
          await write(one.who, { action: "add", content });
          expected.push(content);
        } else if (one.type === "both") {
          const [first, second] = [fresh(one.first), fresh(one.second)];
          await Promise.all([
            write(0, { action: "add", content: first }),
            write(1, { action: "add", content: second }),
          ]);
          expected.push(first, second);
        } else if (one.type === "hand") {
          expected = await editByHand(file, one, fresh(one.text), expected);
        } else if (old !== undefined && one.type === "replace") {
          const content = fresh(one.text);
          await write(one.who, { action: "replace", old_text: old, content });
          expected = expected.map((entry) => (entry === old ? content : entry));
        } else if (old !== undefined && one.type === "remove") {
          await write(one.who, { action: "remove", old_text: old });
          expected = expected.filter((entry) => entry !== old);
        } else if (old !== undefined && one.type === "batch") {
          const content = fresh(one.text);
          const operations = [
            { action: "remove", old_text: old },
            { action: "add", content },
          ];
          await write(one.who, { operations });
          expected = [...expected.filter((entry) => entry !== old), content];
        }
        assert.deepEqual([...(await read())].sort(), [...expected].sort(), one.type);
      }
    }),
    { numRuns: 25 },
  );
});

/** What an editor, a sync program or a person does to the file; returns what must be in it afterwards. */
async function editByHand(
  file: string,
  edit: { readonly how: string },
  entry: string,
  expected: readonly string[],
): Promise<string[]> {
  const now = await readFile(file, "utf8").catch(() => "");
  const joined = (entries: readonly string[], between: string) => entries.join(between);
  switch (edit.how) {
    case "append":
      await writeFile(file, now === "" ? entry : `${now.trimEnd()}\n§\n${entry}\n`);
      return [...expected, entry];
    case "crlf":
      await writeFile(file, joined(expected, "\n§\n").replaceAll("\n", "\r\n"));
      return [...expected];
    case "bom":
      await writeFile(file, `\ufeff${joined(expected, "\n§\n")}`);
      return [...expected];
    case "blank":
      await writeFile(file, `\n${joined(expected, "\n\n  §  \n\n")}\n\n`);
      return [...expected];
    default:
      await writeFile(file, joined(expected.slice(1), "\n§\n"));
      return expected.slice(1);
  }
}

const raw = fc.constantFrom(
  ...[
    "",
    "one",
    "one\n§\ntwo",
    "one\r\n§\r\ntwo\r\n",
    "\ufeffone\n§\ntwo\n",
    "one\n\n  §\n\ntwo\n\n\n",
    "one\n§\none\n§\ntwo",
    "数据\n§\n👩‍💻",
  ],
);
const change = fc.constantFrom(
  { action: "add", content: "three" },
  { action: "replace", old_text: "one", content: "uno" },
  { action: "remove", old_text: "two" },
  {
    operations: [
      { action: "remove", old_text: "one" },
      { action: "add", content: "four" },
    ],
  },
);

test("a change that is taken back leaves the very bytes there were before it", async (t) => {
  await fc.assert(
    fc.asyncProperty(raw, change, async (bytes, args) => {
      const box = await memoryHome(t, { files: { "MEMORY.md": bytes } });
      const result = await box.memory.write({ target: "memory", ...args }, { origin: "foreground" });
      const record = newestToUndo(await box.memory.history());
      if (!result.success || !record) return;
      const undone = await box.memory.undo(record, { origin: "user" });
      assert.equal(undone.success, true, JSON.stringify(undone));
      assert.equal(await readFile(box.at("MEMORY.md"), "utf8"), bytes);
    }),
    { numRuns: 30 },
  );
});
