import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { type Command, createScope, type Script, type WordPart } from "./ast.ts";
import { parseCommandLine } from "./parse.ts";
import { resolveText, resolveWord } from "./resolve.ts";

/** Every simple command of a line as its words, outside in. */
function commands(line: string): string[][] {
  return commandsOf(parseCommandLine(line).script);
}

function commandsOf(script: Script): string[][] {
  return script.pipelines.flatMap((pipeline) => pipeline.commands.flatMap(wordsOf));
}

function wordsOf(command: Command): string[][] {
  if (command.type === "group") return command.bodies.flatMap(commandsOf);
  const words = command.words.map((word) => resolveText(word, createScope()));
  return words.length > 0 ? [words] : [];
}

const lines: readonly (readonly [string, string[][]])[] = [
  ["ls -la", [["ls", "-la"]]],
  ["  ls\t-la  ", [["ls", "-la"]]],
  ["a | b |& c && d || e; f & g", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"], ["g"]]],
  ["a 'b c' \"d e\" f\\ g", [["a", "b c", "d e", "f g"]]],
  ["a # b c\nd", [["a"], ["d"]]],
  ["a#b # c", [["a#b"]]],
  ["a \\\n b", [["a", "b"]]],
  ["a 2>&1 >out <in b &>>log", [["a", "b"]]],
  ["A=1 B='x y' c d", [["c", "d"]]],
  ["a=(1 2 3); b", [["b"]]],
  ["(a; b) | { c; d; }", [["a"], ["b"], ["c"], ["d"]]],
  ["if a; then b; elif c; then d; else e; fi", [["a"], ["b"], ["c"], ["d"], ["e"]]],
  ["while a; do b; done < c", [["a"], ["b"]]],
  ["for x in 1 2; do a; done", [["for", "x", "in", "1", "2"], ["a"]]],
  ["case $x in a|b) c;; (d) e;& *) f ;; esac; g", [["c"], ["e"], ["f"], ["g"]]],
  ["f() { a; }; function g { b; }; h () ( c )", [["a"], ["b"], ["c"]]],
  ["[[ -f a && b < c ]] && d", [["[[", "-f", "a", "&", "&", "b", "<", "c", "]]"], ["d"]]],
  ["cat <<E\na; b\nE\nc", [["cat"], ["c"]]],
  ["cat <<'E' | d\na $(b)\nE\nc", [["cat"], ["d"], ["c"]]],
  ["cat <<-E\n\ta\n\tE\nb", [["cat"], ["b"]]],
  ["cat <<A <<B\n1\nA\n2\nB\nc", [["cat"], ["c"]]],
  ["! a && time b", [["a"], ["time", "b"]]],
  ["a $'b\\tc\\x41' $\"d\"", [["a", "b\tcA", "d"]]],
  ["", []],
  ["# only a comment", []],
];

test("a line is cut into the commands the shell would run", () => {
  for (const [line, expected] of lines) assert.deepEqual(commands(line), expected, line);
});

test("honest lines parse without doubt", () => {
  for (const [line] of lines) assert.equal(parseCommandLine(line).ok, true, line);
});

const broken = [
  "a 'b",
  'a "b',
  "a `b",
  "a $(b",
  "(a",
  "{ a",
  "a )",
  "a; ; b",
  "| a",
  "a >",
  "case x in a",
  "a $" + "{b",
  "[[ a",
  "f(",
  "a=(b",
];

test("what does not parse says so, and its words are still there", () => {
  for (const line of broken) assert.equal(parseCommandLine(line).ok, false, line);
  assert.deepEqual(commands("echo ) ; ls"), [["echo"], ["ls"]]);
});

test("every simple command knows where it stands", () => {
  const text = "a b && (c d; e) | f $(g h)";
  const seen: string[] = [];
  const visit = (script: Script) => {
    for (const { commands: stage } of script.pipelines) {
      for (const command of stage) {
        if (command.type === "group") command.bodies.forEach(visit);
        else seen.push(text.slice(command.start, command.end));
      }
    }
  };
  visit(parseCommandLine(text).script);
  assert.deepEqual(seen, ["a b", "c d", "e", "f $(g h)"]);
});

test("nesting has an end", () => {
  const deep = parseCommandLine(`${"$(".repeat(200)}${")".repeat(200)}`);
  assert.equal(deep.tooDeep, true);
  assert.equal(deep.ok, false);
});

const LETTERS = "abc 123-_./:;|&<>()#*?[]!~=+,%^@".split("");
const piece = fc.oneof(
  fc.constantFrom(..."abcxyz0189-_./:,%@+".split("")),
  fc
    .array(fc.constantFrom(...LETTERS, '"', "$", "\\", "`", "\n"), { maxLength: 6 })
    .map((text) => `'${text.join("")}'`),
  fc
    .array(fc.constantFrom(...LETTERS, "'", "\\$", '\\"', "\\\\", "\\`", "\\a", "\\\n"), { maxLength: 6 })
    .map((text) => `"${text.join("")}"`),
  fc.constantFrom(...LETTERS, "'", '"', "$", "\\", "`").map((char) => `\\${char}`),
  fc.constantFrom("$'a\\'b'", "$'\\x41\\102\\u43'", "$'\\n\\t\\\\'", "\\\n"),
);
const word = fc.array(piece, { minLength: 1, maxLength: 5 }).map((pieces) => `w${pieces.join("")}`);

test("words come out as bash itself cuts and unquotes them", () => {
  fc.assert(
    fc.property(fc.array(fc.array(word, { minLength: 1, maxLength: 4 }), { minLength: 20, maxLength: 40 }), (rows) => {
      // `printf` and quoted letters only: nothing here does anything.
      const script = rows.map((words) => `printf '%s\\0' ${words.join(" ")}; printf '\\0'`).join("\n");
      const bash = spawnSync("bash", ["--norc", "-f", "-c", script], { encoding: "utf8" });
      assert.equal(bash.status, 0, bash.stderr);
      const expected = bash.stdout
        .split("\0\0")
        .slice(0, -1)
        .map((row) => row.split("\0"));
      const got = rows.map((words) => {
        const [command] = parseCommandLine(`x ${words.join(" ")}`).script.pipelines[0]?.commands ?? [];
        assert.ok(command?.type === "simple");
        return command.words.slice(1).map((one) => resolveText(one, createScope()));
      });
      assert.deepEqual(got, expected);
    }),
    { numRuns: 8 },
  );
});

/** Lines that mark what runs with `m NUMBER`; numbers from 900 stand where nothing runs. */
const markedLine = fc.letrec<{ list: string; item: string }>((tie) => ({
  list: fc
    .array(fc.tuple(tie("item"), fc.constantFrom("; ", "\n", " && ", " ;\n")), { minLength: 1, maxLength: 3 })
    .map((items) => `${items.map(([item, joiner]) => (item.endsWith("\n") ? item : item + joiner)).join("")}m 1`),
  item: fc.oneof(
    { maxDepth: 3, depthIdentifier: "nesting" },
    fc.integer({ min: 2, max: 899 }).map((number) => `m ${number}`),
    fc.constantFrom(
      ": 'a; m 900' \"; m 901\" \\; m 902",
      ": a#; : # m 903\n",
      ": <<E\nm 904\n'\nE\n",
      ": <<-'E' <<F\n\tm 905 $(\n\tE\nx\\\nF\n\"\nF\n",
      ": $((1<<2)) $[3<<1] $" + "{x#y} $" + "{x:-m 906}",
      ": $'a\\'; m 907' $" + "{x:-'}'}",
      "[[ a < b && a =~ (a|b) ]]",
      "((1<<2))",
      "a=(x 'm 908') :",
    ),
    tie("list").map((list) => `( ${list}\n)`),
    tie("list").map((list) => `{ ${list}\n}`),
    tie("list").map((list) => `if true; then ${list}\nfi`),
    tie("list").map((list) => `case x in (y) :;; x) ${list}\n;; esac`),
    tie("list").map((list) => `for i in 1; do ${list}\ndone`),
    tie("list").map((list) => `: $( ${list}\n)`),
    tie("list").map((list) => `: "$" "$( ${list}\n)"`),
    tie("list").map((list) => `cat <( ${list}\n)`),
    tie("list").map((list) => `g() { ${list}\n}; g`),
  ),
}));

// Not the other way round: bash 5.2 prints a substitution again before it runs it and loses commands behind heredocs on the way.
test("every command bash runs is found, and no text is taken for a command", () => {
  fc.assert(
    fc.property(fc.array(markedLine.list, { minLength: 15, maxLength: 15 }), (scripts) => {
      // Every command is `:`, `true`, a test, or the marker function.
      const bodies = scripts.map((script, index) => `( ${script}\n) 2>>"$0.${index}"`);
      const directory = mkdtempSync(join(tmpdir(), "hermes-parse-"));
      const program = `m() { printf '%s\\n' "$1" >&2; }\n${bodies.join("\n")}`;
      const bash = spawnSync("bash", ["--norc", "-c", program, join(directory, "out")], { encoding: "utf8" });
      const ran = scripts.map((_script, index) => readFileSync(join(directory, `out.${index}`), "utf8"));
      rmSync(directory, { recursive: true });
      assert.equal(bash.error, undefined);
      scripts.forEach((script, index) => {
        const found = markersOf(parseCommandLine(script).script);
        const missed = (ran[index] ?? "").split("\n").filter((marker) => /^[0-9]+$/.test(marker) && !found.has(marker));
        assert.deepEqual(missed, [], script);
        assert.deepEqual(
          [...found].filter((marker) => Number(marker) >= 900),
          [],
          script,
        );
      });
    }),
    { numRuns: 5 },
  );
});

function markersOf(script: Script): Set<string> {
  const found = new Set<string>();
  const visitParts = (parts: readonly WordPart[]) => {
    for (const part of parts) {
      if (part.type === "substitution") visit(part.script);
      else if (part.type === "variable") visitParts(part.operand);
    }
  };
  const visit = (inside: Script) => {
    for (const command of inside.pipelines.flatMap(({ commands: stage }) => stage)) {
      for (const { parts } of command.words) visitParts(parts);
      if (command.type === "group") command.bodies.forEach(visit);
      else if (command.words[0] && resolveText(command.words[0], createScope()) === "m") {
        found.add(command.words[1] ? resolveText(command.words[1], createScope()) : "");
      }
    }
  };
  visit(script);
  return found;
}

const values: readonly (readonly [string, string, string[]])[] = [
  ["x=ab", "$x", ["ab"]],
  ["x='a b'", "$x", ["a", "b"]],
  ["x='a b'", '"$x"', ["a b"]],
  ["", "$unset", ["$unset"]],
  ["", "a$1b", ["ab"]],
  ["x=abc", "$" + "{x:1}", ["bc"]],
  ["x=abc", "$" + "{x:1:1}", ["b"]],
  ["", "$" + "{x:-d e}", ["d", "e"]],
  ["", '"$' + '{x:-d e}"', ["d e"]],
  ["", "a{b,c{d,e}}f", ["abf", "acdf", "acef"]],
  ["", "'a{b,c}'", ["a{b,c}"]],
  ["", "$(echo a b)", ["a", "b"]],
  ["", "$(printf '%s-%s' a b)", ["a-b"]],
  ["", "$(which ls)", ["ls"]],
  ["", "$(date)", ["$(date)"]],
  ["", "''", [""]],
];

test("a word is followed as far as the line alone tells", () => {
  for (const [assignment, text, expected] of values) {
    const scope = createScope();
    const match = /^(\w+)='?([^']*)'?$/.exec(assignment);
    if (match) scope.set(match[1] ?? "", [match[2] ?? ""]);
    const [command] = parseCommandLine(`x ${text}`).script.pipelines[0]?.commands ?? [];
    assert.ok(command?.type === "simple");
    const found = command.words.slice(1).flatMap((one) => resolveWord(one, scope, "argument"));
    assert.deepEqual(found, expected, text);
  }
});
