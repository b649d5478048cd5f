// Every row of the corpus: what holds a secret shows none of it, and what holds none stays as it is.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import fc from "fast-check";
import { createRedactor } from "../../src/safety/redact.ts";
import { fewer } from "../support/sample.ts";
import { tellFigure } from "../support/trust-figures.ts";

interface Row {
  readonly id: string;
  readonly row: {
    readonly text: string;
    /** What may not be seen any more. */
    readonly secrets?: readonly string[];
    /** Read from this file, not printed by a command. */
    readonly path?: string;
    /** Values of this home. */
    readonly known?: readonly string[];
  };
  readonly expect: "masked" | "unchanged";
  readonly why: string;
}

const rows: readonly Row[] = readFileSync(new URL("../fixtures/trust/masking.jsonl", import.meta.url), "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line));

/** The ways a text takes through the redactor: as it is, as the value of a tool result, and as the content of a file. */
function* shown({ row: { text, path, known = [] } }: Row): Generator<readonly [string, string, string]> {
  const redact = createRedactor({ enabled: true, knownSecrets: () => known });
  const file = (one: string) => redact.forFile(one, path ?? "notes.txt");
  yield ["file", file(text), file(file(text))];
  if (path !== undefined) return;
  yield ["text", redact(text), redact(redact(text))];
  const result = JSON.stringify({ output: `first line\n${text}\nlast line` });
  const masked = redact(result);
  yield ["result", JSON.parse(masked).output, JSON.parse(redact(masked)).output];
}

function fault(row: Row): string | null {
  const { text, secrets = [] } = row.row;
  for (const [way, once, twice] of shown(row)) {
    if (once !== twice) return `${way}: not the same when masked again: ${once} / ${twice}`;
    if (row.expect === "masked") {
      const seen = secrets.find((secret) => once.includes(secret));
      if (seen !== undefined) return `${way}: shows ${seen}: ${once}`;
    } else if (once !== (way === "result" ? `first line\n${text}\nlast line` : text)) return `${way}: became ${once}`;
  }
  return null;
}

test("each row of the corpus is masked or left alone as it says", () => {
  const fallen = rows.flatMap((row) => {
    const why = fault(row);
    return why === null ? [] : [`${row.id} (${row.why}) ${why}`];
  });
  for (const [kind, expect] of [
    ["masking: secrets", "masked"],
    ["masking: harmless text", "unchanged"],
  ] as const) {
    const some = rows.filter((row) => row.expect === expect);
    tellFigure({ kind, rows: some.length, fallen: some.filter((row) => fault(row) !== null).map(({ id }) => id) });
  }
  assert.deepEqual(fallen, []);
});

test("the corpus is large enough to mean something", () => {
  const count = (expect: string) => rows.filter((row) => row.expect === expect).length;
  assert.ok(count("masked") >= 120, String(count("masked")));
  assert.ok(count("unchanged") >= 60, String(count("unchanged")));
  assert.equal(new Set(rows.map(({ id }) => id)).size, rows.length);
});

const known = ["kn0wn-Value/42+as", "correct horse"];
const redact = createRedactor({ enabled: true, knownSecrets: () => known });
const signs = "\n|\\n| |\"|'|=|: |&|;|,|(|)|<|>|password|token|--|-p|login |***|«redacted»|...|😀".split("|");
const piece = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...rows.map(({ row }) => row.text)) },
  { weight: 3, arbitrary: fc.constantFrom(...signs, ...known) },
  { weight: 1, arbitrary: fc.string({ maxLength: 10 }) },
);
const mixed = fc.array(piece, { maxLength: 7 }).map((pieces) => pieces.join(""));

test("mixes of rows are the same when masked again, and a file keeps its lines", () => {
  fc.assert(
    fc.property(mixed, fc.constantFrom("a.txt", ".netrc", ".aws/credentials", "a.py"), (text, path) => {
      const once = redact(text);
      assert.equal(redact(once), once);
      const file = redact.forFile(text, path);
      assert.equal(redact.forFile(file, path), file);
      assert.equal(file.split("\n").length, text.split("\n").length);
    }),
    { numRuns: fewer(4000, 5) },
  );
});

test("what was JSON is JSON with the same keys afterwards", () => {
  fc.assert(
    fc.property(mixed, mixed, (output, error) => {
      const masked: unknown = JSON.parse(redact(JSON.stringify({ output, error, exit_code: 0 })));
      assert.deepEqual(Object.keys(masked as object), ["output", "error", "exit_code"]);
    }),
    { numRuns: fewer(4000, 5) },
  );
});
