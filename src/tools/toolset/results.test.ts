import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { ToolEntry } from "./registry.ts";
import { generatePreview, limitResult, limitTurn, resultFileName, resultLimit, sizeLimits } from "./results.ts";

function memoryStore() {
  const files = new Map<string, string>();
  return {
    files,
    async save(name: string, text: string) {
      files.set(name, text);
      return `/tmp/results/${name}`;
    },
  };
}

test("limits grow with the window between floor and cap", () => {
  assert.deepEqual(sizeLimits(8_000), { perResult: 8_000, perTurn: 16_000 });
  assert.deepEqual(sizeLimits(100_000), { perResult: 60_000, perTurn: 120_000 });
  assert.deepEqual(sizeLimits(1_000_000), { perResult: 100_000, perTurn: 200_000 });
});

test("a tool that limits itself is never cut; a tool's own limit only lowers the general one", () => {
  const entry = (maxResultChars?: number) => ({ traits: { maxResultChars } }) as ToolEntry; // only this field is read
  const limits = sizeLimits(1_000_000);
  assert.equal(resultLimit(entry(Number.POSITIVE_INFINITY), limits), Number.POSITIVE_INFINITY);
  assert.equal(resultLimit(entry(5000), limits), 5000);
  assert.equal(resultLimit(entry(), limits), 100_000);
});

const previews: readonly [name: string, text: string, max: number, expected: [string, boolean]][] = [
  ["a short text is whole", "abc", 5, ["abc", false]],
  ["a cut goes back to a line's end past half", "aaaaa\nbbbb", 8, ["aaaaa\n", true]],
  ["a line's end before half is no place to cut", "a\nbbbbbbbb", 8, ["a\nbbbbbb", true]],
  ["a character is never halved", "aaa😀", 4, ["aaa", true]],
];
for (const [name, text, max, expected] of previews) {
  test(`preview: ${name}`, () => assert.deepEqual(generatePreview(text, max), expected));
}

const names: readonly [string, RegExp][] = [
  ["call_abc123", /^call_abc123\.txt$/],
  ["", /^tool_result_[0-9a-f]{12}\.txt$/],
  ["..", /^tool_result_[0-9a-f]{12}\.txt$/],
  ["a/../b c", /^a_\.\._b_c_[0-9a-f]{12}\.txt$/],
  ["x".repeat(200), /^x{120}_[0-9a-f]{12}\.txt$/],
];
for (const [id, expected] of names) {
  test(`file name of ${JSON.stringify(id.slice(0, 20))}`, () => assert.match(resultFileName(id), expected));
}

test("two call ids never share a file", () => {
  const id = fc.string({ unit: fc.constantFrom(".", "/", "_", "a", " "), maxLength: 5 });
  fc.assert(fc.property(id, id, (one, other) => one === other || resultFileName(one) !== resultFileName(other)));
});

test("a long result is saved whole and leaves size, path and preview", async () => {
  const store = memoryStore();
  const text = `${"line of text\n".repeat(2000)}end`;
  const block = await limitResult("call_1", text, 8000, store);
  assert.equal(store.files.get("call_1.txt"), text);
  assert.match(block, /^<persisted-output>\n/);
  assert.match(block, /\n<\/persisted-output>$/);
  assert.match(block, /26,003 characters/);
  assert.match(block, /\nFull output saved to: \/tmp\/results\/call_1\.txt\n/);
  assert.match(block, /read_file \(offset and limit\)/);
  assert.ok(block.length < 2000);
});

test("a result that cannot be saved is cut and says why", async () => {
  const failing = { save: () => Promise.reject(new Error("disk full")) };
  assert.match(await limitResult("c", "x".repeat(9000), 8000, failing), /^x{1500}\n\n\[Truncated: .*disk full/);
});

test("a turn that is too long gives up its longest results first and keeps their order", async () => {
  const store = memoryStore();
  const results = [
    { callId: "a", text: "a".repeat(60_000) },
    { callId: "b", text: "b".repeat(90_000) },
    { callId: "c", text: "c".repeat(70_000) },
  ];
  const limited = await limitTurn(results, 135_000, store);
  assert.deepEqual([...store.files.keys()], ["b.txt"]);
  assert.deepEqual(
    limited.map(({ callId, text }) => [callId, text.startsWith("<persisted-output>")]),
    [
      ["a", false],
      ["b", true],
      ["c", false],
    ],
  );
});
