import assert from "node:assert/strict";
import { test } from "node:test";
import { fenced } from "../../prompt/fence.ts";
import { makeTheme } from "../terminal-text.ts";
import { Inspector, pageOfCall, pageOfText } from "./inspector.ts";
import { toolDetails } from "./tool-details.ts";

const theme = makeTheme(false);
const read = (name: string, args: Record<string, unknown>, result: unknown) =>
  toolDetails({ name, args }, typeof result === "string" ? result : JSON.stringify(result))
    .map(({ text }) => text)
    .join("\n");

const cases: [string, Record<string, unknown>, unknown, string][] = [
  ["terminal", { command: "ls" }, { output: "a\nb\n", exit_code: 0, error: null }, "$ ls\na\nb"],
  [
    "terminal",
    { command: "x", timeout: 5 },
    { output: "no", exit_code: 127, error: null, hint: "Command not found" },
    "$ x\ntimeout: 5\nno\nexit code 127\nCommand not found",
  ],
  [
    "terminal",
    { command: "x" },
    { output: "", exit_code: -1, error: "The user said no. Do not try it again" },
    "$ x\nYou said no.",
  ],
  ["read_file", { path: "a.ts", offset: 3 }, { content: "3|let a;", total_lines: 9 }, "a.ts\noffset: 3\n3|let a;"],
  [
    "search_files",
    { pattern: "x" },
    { total_count: 1, matches: [{ path: "a.ts", line: 7, content: "  x = 1" }] },
    "x  in .\n1 found\na.ts:7:   x = 1",
  ],
  ["search_files", { pattern: "*.ts", path: "src" }, { files: ["a.ts", "b.ts"] }, "*.ts  in src\na.ts\nb.ts"],
  [
    "web_search",
    { query: "herons" },
    { success: true, data: { web: [{ title: "Herons", url: "https://h.test", description: "Birds." }] } },
    "herons\nHerons\n  https://h.test\n  Birds.",
  ],
  [
    "todo",
    {},
    {
      todos: [
        { content: "plan", status: "completed" },
        { content: "do", status: "in_progress" },
      ],
    },
    "✓ plan\n▸ do",
  ],
  [
    "some_tool",
    { a: [1, { b: "x\ny" }], c: null },
    { n: 2, list: [], error: "broken" },
    "a:\n  - 1\n  - b:\n      x\n      y\nn: 2\nlist: none\nbroken",
  ],
  ["some_tool", {}, "plain text", "plain text"],
  ["some_tool", {}, '{"shortened": "no lon', '{"shortened": "no lon'],
];
for (const [name, args, result, expected] of cases)
  test(`${name} ${JSON.stringify(args)} is read without JSON`, () => assert.equal(read(name, args, result), expected));

test("text from outside is shown without its fence, and no control sequence of it", () => {
  const page = fenced(
    "web_extract",
    JSON.stringify({ results: [{ url: "https://h.test", content: "Long words\u001b[2J of a page" }] }),
  );
  assert.equal(
    read("web_extract", { urls: ["https://h.test"] }, page),
    "https://h.test\nhttps://h.test\n\nLong words of a page",
  );
});

function inspect(count: number, rows = 8) {
  let closed = 0;
  const pages = Array.from({ length: count }, (_, i) =>
    pageOfCall({
      call: { id: `${i}`, name: "terminal", args: { command: `cmd${i}` }, preview: "" },
      result: JSON.stringify({ output: Array.from({ length: 20 }, (_, n) => `line ${n}`).join("\n"), exit_code: 0 }),
      ms: 100,
    }),
  );
  const inspector = new Inspector({
    pages,
    theme,
    height: () => rows,
    onClose: () => closed++,
    onChange: () => undefined,
  });
  return { inspector, text: () => inspector.render(80).join("\n"), closed: () => closed };
}

test("the window begins with the end of the last call's output, scrolls, and turns to earlier calls", () => {
  const { inspector, text, closed } = inspect(2);
  assert.match(text(), /^💻 \$ cmd1 {2}0\.1s\n\n {2}line 15\n[\s\S]*line 19\ncall 2 of 2 · lines 17–21 of 21/);
  inspector.handleInput("\u001b[A");
  assert.match(text(), /0\.1s\n\n {2}line 14\n/);
  inspector.handleInput("\u001b[H");
  assert.match(text(), /0\.1s\n\n {2}\$ cmd1\n/);
  inspector.handleInput("\u001b[D");
  assert.match(text(), /cmd0[\s\S]*call 1 of 2/);
  inspector.handleInput("\u001b[D");
  assert.match(text(), /call 1 of 2/, "before the first there is none");
  inspector.handleInput("\u000f");
  assert.equal(closed(), 1);
});

test("thinking is read from its beginning", () => {
  const pages = [pageOfText("Thinking", Array.from({ length: 30 }, (_, n) => `thought ${n}`).join("\n"))];
  const window = new Inspector({ pages, theme, height: () => 16, onClose: () => undefined, onChange: () => undefined });
  assert.match(window.render(80).join("\n"), /^Thinking\n\n {2}thought 0\n/);
});
