import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import * as yaml from "yaml";
import { unicodeText } from "../../../test/support/unicode-text.ts";
import { isMapping } from "./decode.ts";
import { changeTree, editYaml, type YamlChange } from "./yaml-edit.ts";
import { parseText, renderBlock, renderInline, type Tree } from "./yaml-text.ts";

const set = (path: string, value: unknown): YamlChange => ({ type: "set", path: path.split("."), value });
const remove = (path: string): YamlChange => ({ type: "remove", path: path.split(".") });
const treeOf = (text: string): Tree => {
  const parsed = parseText(yaml, text);
  assert.ok(parsed.ok, `does not parse:\n${text}`);
  return parsed.tree;
};

const commented = `# my settings
_config_version: 24
model:
  default: gpt-4o     # the good one
  provider: 'openrouter'
agent:
    # four blanks, because I like them
    max_turns: 60
    personalities: {a: "x", b: [1, 2]}   # flow

display:
  skin:   default
  streaming: on
  # trailing thought

command_allowlist:
- rm
# why
- "kill"   # careful
- mv
mcp_servers:
  one:
    command: npx
    args: ["-y", 'pkg']
  two: {url: http://x}
notes: |
  first
    second

empty:
anchor: &a
  k: v
again: *a
ids: [123456789012345678]
off: 1
# the end
`;

const cases: readonly [name: string, change: YamlChange, from: string, to: string][] = [
  [
    "a plain value keeps its comment",
    set("model.default", "gpt-5"),
    "  default: gpt-4o     # the good one\n",
    "  default: gpt-5     # the good one\n",
  ],
  ["a quoted value stays quoted", set("model.provider", "nous"), "'openrouter'", "'nous'"],
  ["own indentation is kept", set("agent.max_turns", 90), "    max_turns: 60\n", "    max_turns: 90\n"],
  [
    "a new key takes the indentation of its section",
    set("agent.verbose", true),
    "# flow\n",
    "# flow\n    verbose: true\n",
  ],
  ["a new section comes last", set("a.b.c", [1, "x"]), "off: 1\n", "off: 1\na:\n  b:\n    c:\n      - 1\n      - x\n"],
  ["an empty value is filled in", set("empty", "yes"), "empty:\n", 'empty: "yes"\n'],
  ["an empty value becomes a section", set("empty.a", 1), "empty:\n", "empty:\n  a: 1\n"],
  ["a list grows by one line", set("command_allowlist", ["rm", "kill", "mv", "dd"]), "- mv\n", "- mv\n- dd\n"],
  ["a list shrinks by one line", set("command_allowlist", ["rm", "mv"]), '- "kill"   # careful\n', ""],
  ["one item changes", set("command_allowlist.1", "kill -9"), '- "kill"', '- "kill -9"'],
  ["a flow mapping grows in place", set("agent.personalities.c", "z z"), "b: [1, 2]}", "b: [1, 2], c: z z}"],
  ["a flow list is replaced in place", set("mcp_servers.one.args", ["-y"]), `["-y", 'pkg']`, '["-y"]'],
  [
    "a value in a flow mapping changes",
    set("mcp_servers.two.url", "https://y/v1"),
    "url: http://x",
    "url: https://y/v1",
  ],
  ["a block text becomes one line", set("notes", "short"), "notes: |\n  first\n    second\n", "notes: short\n"],
  [
    "a section becomes a value",
    set("display", "none at all"),
    "display:\n  skin:   default\n  streaming: on\n",
    "display: none at all\n",
  ],
  ["a key is removed with its comment", remove("model.default"), "  default: gpt-4o     # the good one\n", ""],
  ["a big number keeps its digits", set("agent.max_turns", 61), "60", "61"],
];

for (const [name, change, from, to] of cases) {
  test(name, () => {
    assert.ok(commented.includes(from));
    assert.equal(editYaml(yaml, commented, change), commented.replace(from, to));
  });
}

test("removing the last key of a section removes the section, up to the root", () => {
  assert.equal(editYaml(yaml, "x: 1\na:\n  b:\n    c: 1\n# end\n", remove("a.b.c")), "x: 1\n# end\n");
  assert.equal(editYaml(yaml, "# head\na:\n  b: 1\n", remove("a.b")), "# head\n");
  assert.equal(editYaml(yaml, "a:\n  - 1\n", remove("a.0")), "");
});

test("a value becomes a section where it stands", () => {
  assert.equal(editYaml(yaml, "a: 1 # one\nb: 2\n", set("a", { x: 1 })), "a: # one\n  x: 1\nb: 2\n");
});

test("a key added after a block text stands right below it", () => {
  const text = "a:\n  note: |\n    one\n    two\nb:   1\nc: 2\n";
  assert.equal(editYaml(yaml, text, set("a.x", 1)), text.replace("b: ", "  x: 1\nb: "));
  assert.equal(editYaml(yaml, text, remove("a.note")), "b:   1\nc: 2\n");
});

test("setting what is already there changes nothing", () => {
  assert.equal(editYaml(yaml, commented, set("display.streaming", true)), commented);
});

test("a file that is missing, empty or only comments gets its first key", () => {
  assert.equal(editYaml(yaml, "", set("a.b", 1)), "a:\n  b: 1\n");
  assert.equal(editYaml(yaml, "# hello", set("a", 1)), "# hello\na: 1\n");
  assert.equal(editYaml(yaml, "\ufeffa: 1\n", set("b", 2)), "\ufeffa: 1\nb: 2\n");
  assert.equal(editYaml(yaml, "{}\n", set("a", 1)), "{a: 1}\n");
});

test("the line ends of the file are used, and a missing last one is added", () => {
  assert.equal(editYaml(yaml, "a: 1\r\nb: 2", set("c", 3)), "a: 1\r\nb: 2\r\nc: 3\r\n");
});

test("of two equal keys the last one counts and is the one that changes", () => {
  assert.equal(editYaml(yaml, "a: 1\na: 2\n", set("a", 3)), "a: 1\na: 3\n");
});

test("an unusual file costs formatting, never meaning", () => {
  assert.deepEqual(treeOf(editYaml(yaml, "base: &b {x: 1}\nmine:\n  <<: *b\n  y: 2\n", set("mine.y", 3))).mine, {
    x: 1,
    y: 3,
  });
  assert.throws(() => editYaml(yaml, "a: &x 5\nb: *x\n", set("a", 6)), /The key a cannot be changed in this file/);
});

test("texts that YAML would take for something else are quoted", () => {
  for (const text of [
    "off",
    "007",
    "1e3",
    "~",
    "null",
    "y",
    "No",
    "1.5",
    "2024-01-01",
    "12:30",
    "- a",
    "a: b",
    "a #b",
    " x",
    "x ",
    "",
    "@a",
    "%",
    "!t",
    "&a",
    "*a",
    "{",
    "[",
    "=",
    "<<",
    ".inf",
    "0x1f",
    "1_000",
  ]) {
    const line = renderInline(text);
    assert.match(line, /^"/, text);
  }
  for (const text of ["gpt-4o", "anthropic/claude-opus-4.6", "http://127.0.0.1:8080/v1", "Europe/Berlin", "a b"])
    assert.equal(renderInline(text), text);
});

const scalar = fc.oneof(
  fc.string({ maxLength: 12 }),
  unicodeText({ maxLength: 6 }).filter((text) => text.isWellFormed()),
  fc.constantFrom(
    "off",
    "007",
    "1e3",
    "~",
    "a: b",
    "x # y",
    "line\nbreak",
    `$${"{HOME}"}`,
    "it's",
    "\u2028",
    "\u0085",
    "\ufeff",
  ),
  fc.integer(),
  fc.double({ noNaN: true }),
  fc.boolean(),
  fc.constant(null),
);
const key = fc
  .oneof(fc.stringMatching(/^[a-z_]{1,8}$/), fc.string({ minLength: 1, maxLength: 6 }))
  .filter((name) => name !== "<<" && name !== "__proto__");
const value = fc.letrec((tie) => ({
  node: fc.oneof(
    { depthSize: "small" },
    scalar,
    fc.array(tie("node"), { maxLength: 3 }),
    fc.dictionary(key, tie("node"), { maxKeys: 3, noNullPrototype: true }),
  ),
})).node;
const same = (value: unknown): unknown => (Object.is(value, -0) ? 0 : value);
const normal = (tree: unknown): unknown =>
  Array.isArray(tree)
    ? tree.map(normal)
    : isMapping(tree)
      ? Object.fromEntries(Object.entries(tree).map(([k, v]) => [k, normal(v)]))
      : same(tree);

test("whatever is rendered is read back the same, by YAML 1.1 and by YAML 1.2", () => {
  fc.assert(
    fc.property(value, (given) => {
      const wanted = normal(given);
      const text = `x: ${renderInline(given)}\n`;
      assert.deepEqual(normal(treeOf(text).x), wanted);
      assert.deepEqual(normal(yaml.parse(text).x), wanted);
      if (!isMapping(given) || Object.keys(given).length === 0) return;
      assert.deepEqual(normal(treeOf(`${renderBlock({ x: given }, "").join("\n")}\n`).x), wanted);
    }),
    { numRuns: 100 },
  );
});

const paths = fc.constantFrom(
  "model.default",
  "model.provider",
  "agent.max_turns",
  "agent.personalities.a",
  "display.skin",
  "display.streaming",
  "mcp_servers.one.command",
  "mcp_servers.two.url",
  "command_allowlist.1",
  "empty",
  "notes",
  "ids",
  "fresh",
  "agent.fresh",
  "fresh.deep",
  "display.user.deep",
);

test("a change does what it says and touches no line that is not its own", () => {
  fc.assert(
    fc.property(paths, value, fc.boolean(), (path, given, crlf) => {
      const text = crlf ? commented.replaceAll("\n", "\r\n") : commented;
      const change = set(path, normal(given));
      const result = editYaml(yaml, text, change);
      assert.deepEqual(normal(treeOf(result)), normal(changeTree(treeOf(text), change)));
      const before = text.split("\n");
      const after = result.split("\n");
      let head = 0;
      while (head < before.length && before[head] === after[head]) head++;
      let tail = 0;
      while (tail < before.length - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
      const touched = before.length - head - tail;
      assert.ok(touched <= (path === "notes" ? 5 : 2), `${touched} lines of the file changed:\n${result}`);
    }),
    { numRuns: 100 },
  );
});

test("a removed key is gone, and so is nothing else", () => {
  fc.assert(
    fc.property(
      paths.filter((path) => !path.startsWith("agent.personalities")),
      (path) => {
        const change = remove(path);
        const result = editYaml(yaml, commented, change);
        assert.deepEqual(treeOf(result), changeTree(treeOf(commented), change));
        for (const line of result.split("\n")) assert.ok(commented.includes(line), line);
      },
    ),
  );
});
