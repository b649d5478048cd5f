import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { codePoints, splitMessage, utf8Bytes, utf16, withoutCounter } from "./split.ts";

const bare = (part: string) => part.replace(/(?: |\n|\n\n)\(\d+\/\d+\)$/, "");

test("what fits is one part, as it is", () => {
  assert.deepEqual(splitMessage("short", { max: 5 }), ["short"]);
  assert.deepEqual(splitMessage("", { max: 5 }), [""]);
});

test("prose is cut behind a line if one ends in the second half, else behind a word, else in the word", () => {
  const line = `${"a".repeat(30)}\n${"b".repeat(30)}`;
  assert.deepEqual(splitMessage(line, { max: 50 }), [`${"a".repeat(30)} (1/2)`, `${"b".repeat(30)} (2/2)`]);
  const words = `${"a".repeat(5)}\n${"b".repeat(20)} ${"c".repeat(30)}`;
  assert.equal(splitMessage(words, { max: 50 })[0], `${"a".repeat(5)}\n${"b".repeat(20)} (1/2)`);
  assert.equal(bare(splitMessage("d".repeat(60), { max: 50 })[0] ?? ""), "d".repeat(36));
});

test("code that is cut is closed and opened again with its language; indentation stays", () => {
  const code = ["```ts", "if (a) {", "    deep();", "}", ...Array(10).fill("    more();"), "```", "after"].join("\n");
  const parts = splitMessage(code, { max: 70 });
  assert.equal(parts.at(-1), "after (4/4)", "no empty block is left over");
  for (const part of parts.slice(0, -1)) assert.match(part, /\n```\n\(\d+\/\d+\)$/);
  for (const part of parts.slice(1, -1)) assert.match(part, /^```ts\n {4}more/);
});

test("inline code is not torn apart", () => {
  const [first] = splitMessage(`${"word ".repeat(6)}\`some code here\` ${"tail ".repeat(10)}`, { max: 54 });
  assert.equal(bare(first ?? ""), "word ".repeat(6).trimEnd());
});

test("a longer fence and one of tildes are closed by their like only", () => {
  const text = `~~~~md\n${"x\n```\n".repeat(12)}~~~~`;
  for (const part of splitMessage(text, { max: 60 })) {
    const lines = bare(part).split("\n");
    assert.match(lines[0] ?? "", /^~~~~md$/);
    assert.equal(lines.at(-1), "~~~~");
  }
});

test("no character is cut in two, and lengths are the platform's", () => {
  const emoji = "👍".repeat(60);
  for (const [length, max] of [
    [utf16, 41],
    [codePoints, 30],
    [utf8Bytes, 50],
  ] as const)
    for (const part of splitMessage(emoji, { max, length })) {
      assert.ok(length(part) <= max);
      assert.ok(part.isWellFormed());
    }
});

test("the limit holds after formatting", () => {
  const format = (text: string) => text.replace(/[.()/]/g, (sign) => `\\${sign}`);
  const text = "a.b.c. ".repeat(200);
  const parts = splitMessage(text, { max: 100, format });
  for (const part of parts) assert.ok(format(part).length <= 100);
  assert.ok(parts.length < 60);
});

const line = fc.oneof(
  fc.string({ maxLength: 40 }).map((text) => text.replace(/[`~\r\n]/g, "")),
  fc.constantFrom("```", "```ts", "~~~", "    indented code", "one `two` three", "", "中文没有空格的一行文字很长很长"),
);
const document = fc.array(line, { maxLength: 60 }).map((lines) => lines.join("\n"));

test("every part fits, has whole fences, and together they say what the text said", () => {
  fc.assert(
    fc.property(document, fc.integer({ min: 60, max: 300 }), (text, max) => {
      const parts = splitMessage(text, { max });
      for (const part of parts) {
        assert.ok(part.length <= max, `${part.length} > ${max}`);
        if (parts.length > 1) assert.ok(part.isWellFormed() || !text.isWellFormed());
      }
      const letters = (joined: string) => joined.replace(/[\s`~]|\bts\b/g, "");
      assert.equal(letters(parts.map(parts.length > 1 ? bare : (part) => part).join("")), letters(text));
    }),
  );
});

test("code comes back line by line", () => {
  const code = fc.array(fc.stringMatching(/^ {0,8}[a-z(){};]{1,30}$/), { minLength: 1, maxLength: 80 });
  fc.assert(
    fc.property(code, fc.integer({ min: 80, max: 200 }), (lines, max) => {
      const parts = splitMessage(`\`\`\`js\n${lines.join("\n")}\n\`\`\``, { max });
      const inside = parts.map((part) =>
        bare(part)
          .replace(/^```js\n/, "")
          .replace(/\n?```$/, ""),
      );
      assert.deepEqual(
        inside
          .filter((text) => text !== "")
          .join("\n")
          .split("\n"),
        lines,
      );
    }),
  );
});

const HOSTS = ["| Name | State |", "|---|:-:|", ...[1, 2, 3, 4, 5, 6].map((n) => `| host${n} | up ${n} |`)];

test("a table that fits into a part is kept whole: cut before it or behind it", () => {
  const table = HOSTS.slice(0, 5).join("\n");
  const before = splitMessage(`${"word ".repeat(10)}\n\n${table}`, { max: 120 });
  assert.deepEqual(before, [`${"word ".repeat(9)}word (1/2)`, `${table}\n\n(2/2)`]);
  const behind = splitMessage(`${table}\n\n${"x".repeat(100)}`, { max: 120 });
  assert.match(behind[0] ?? "", /\| up 3 \|\n\n+\(1\/2\)$/);
});

test("a longer table is cut between rows and has its header again; the counter is no cell", () => {
  assert.deepEqual(splitMessage(`Hosts:\n${HOSTS.join("\n")}\nThat is all.`, { max: 110 }), [
    ["Hosts:", ...HOSTS.slice(0, 5), "", "(1/2)"].join("\n"),
    [...HOSTS.slice(0, 2), ...HOSTS.slice(5), "That is all. (2/2)"].join("\n"),
  ]);
});

test("a row that is longer than a part stays in its column", () => {
  const long = [
    "| Name | State | Since |",
    "|---|---|---|",
    `| host1 | ${"down ".repeat(12)}| May |`,
    "| host2 | up | June |",
  ];
  const parts = splitMessage(long.join("\n"), { max: 100 });
  assert.deepEqual(parts, [
    [...long.slice(0, 2), `| host1 | ${"down ".repeat(7).trim()}`, "", "(1/3)"].join("\n"),
    [...long.slice(0, 2), `| | ${"down ".repeat(5)}| May |`, "", "(2/3)"].join("\n"),
    [...long.slice(0, 2), long[3], "", "(3/3)"].join("\n"),
  ]);
});

test("what looks like a table in code is code, and a header that fills a part is text", () => {
  const code = splitMessage(["```", ...HOSTS, "```"].join("\n"), { max: 80 });
  assert.ok(code.slice(1).every((part) => !part.includes("Name")));
  const parts = splitMessage(`| ${"Name ".repeat(30)}|\n|---|\n| a |`, { max: 60 });
  assert.ok(parts.every((part) => part.length <= 60));
});

test("a block that is never closed is closed in each part", () => {
  const parts = splitMessage(`\`\`\`sh\n${"echo one two three\n".repeat(8)}echo`, { max: 100 });
  for (const part of parts) assert.match(part, /^```sh\n[^`]*\n```\n\(\d\/\d\)$/);
});

test("the counter is taken away again whatever stands before it", () => {
  for (const text of [HOSTS.join("\n"), `\`\`\`\n${"code\n".repeat(26)}\`\`\``, "word ".repeat(26).trim()]) {
    const [first = "", ...more] = splitMessage(`${text}\n\n${"y".repeat(200)}`, { max: text.length + 20 });
    assert.notEqual(more.length, 0);
    assert.equal(withoutCounter(first, 1, more.length + 1).trimEnd(), text);
  }
});

const cell = fc.stringMatching(/^[a-z]{0,8}$/);
const tableRows = fc.array(fc.tuple(cell, cell), { minLength: 1, maxLength: 25 });
const block = fc.oneof(
  fc.record({ type: fc.constant("table" as const), rows: tableRows }),
  fc.record({
    type: fc.constant("code" as const),
    lines: fc.array(fc.constantFrom("a | b", "|-|-|", "    more();", "", "x = `y`"), { minLength: 1, maxLength: 15 }),
  }),
  fc.record({
    type: fc.constant("prose" as const),
    words: fc.array(fc.stringMatching(/^[a-z]{1,12}$/), { minLength: 1, maxLength: 60 }),
  }),
);

test("tables come with a header in every part, all rows once and in order, and code is closed", () => {
  fc.assert(
    fc.property(fc.array(block, { minLength: 1, maxLength: 8 }), fc.integer({ min: 90, max: 400 }), (blocks, max) => {
      const rows: string[] = [];
      const text = blocks
        .map((one, at) => {
          if (one.type === "prose") return one.words.join(" ");
          if (one.type === "code") return ["```ts", ...one.lines, "```"].join("\n");
          const own = one.rows.map(([a, b], row) => `| T${at}R${row}${a} | ${b} |`);
          rows.push(...own);
          return [`| H${at} | B |`, "|---|---|", ...own].join("\n");
        })
        .join("\n\n");
      const seen: string[] = [];
      for (const part of splitMessage(text, { max })) {
        assert.ok(part.length <= max, `${part.length} > ${max}`);
        let [inCode, header] = [false, null as string | null];
        const lines = part.split("\n");
        for (const [at, line] of lines.entries()) {
          if (line.startsWith("```")) {
            assert.ok(!inCode || line === "```", line);
            inCode = !inCode;
          }
          if (inCode || line.startsWith("```")) continue;
          if (!line.includes("|")) header = null;
          else if (line.startsWith("| H")) {
            header = line.slice(3, line.indexOf(" ", 3));
            assert.equal(lines[at + 1], "|---|---|");
          } else if (line !== "|---|---|") {
            assert.ok(header !== null && line.startsWith(`| T${header}R`), `${line} under ${header}`);
            assert.match(line, /^\| [^|]*\| [^|]*\|$/);
            seen.push(line);
          }
        }
        assert.ok(!inCode, part);
      }
      assert.deepEqual(seen, rows);
    }),
    { numRuns: 400 },
  );
});
