// Orders hidden in foreign text: every row that states a known sentence is found, in whatever language and disguise, and nothing that
// means no harm is. The rows are our own words; they are read and scanned, nothing else ever happens to them.
import assert from "node:assert/strict";
import { glob, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { judgeFindings, scanForThreats } from "../../src/safety/threats/scan.ts";
import { sampleOf } from "../support/sample.ts";
import { tellFigure } from "../support/trust-figures.ts";

interface Row {
  readonly id: string;
  readonly row: string;
  /** "not claimed": a paraphrase. The scan knows sentences, not meanings; these rows show where it ends. */
  readonly expect: "found" | "not claimed" | "left alone";
  readonly why: string;
}

const repository = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const all: readonly Row[] = (await readFile(join(repository, "test/fixtures/trust/injection.jsonl"), "utf8"))
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Row);
const rows = all.filter(({ expect }) => expect !== "left alone");

const verdict = (text: string) => judgeFindings(scanForThreats(text, "context"));

const LANGUAGES =
  "Chinese|Japanese|Korean|Russian|Spanish|German|French|Italian|Portuguese|Dutch|Polish|Turkish|Ukrainian|Arabic|Hindi|Vietnamese|Indonesian";

test("the rows are many, of many languages and disguises, and honest about what is not claimed", () => {
  assert.equal(new Set(rows.map(({ row }) => row)).size, rows.length);
  assert.ok(rows.filter(({ expect }) => expect === "found").length >= 160);
  const kinds = new Set(rows.map(({ why }) => why));
  for (const language of LANGUAGES.split("|")) assert.ok(kinds.has(language), language);
  assert.ok(rows.some(({ expect }) => expect === "not claimed"));
});

test("every known sentence is found in every language and disguise", () => {
  const language = new RegExp(`^(?:English|${LANGUAGES})\\b`);
  for (const [name, some = []] of Object.entries(
    Object.groupBy(rows, ({ why }) => language.exec(why)?.[0] ?? "disguises, templates, hidden markup and others"),
  )) {
    const missed = some.filter(({ row }) => verdict(row) !== "blocked").map(({ id }) => id);
    tellFigure({ kind: `injection: ${name}`, rows: some.length, fallen: missed });
  }
  const fallen = rows.filter(({ row, expect }) => expect === "found" && verdict(row) !== "blocked");
  assert.deepEqual(
    fallen.map(({ id, why }) => `${id} (${why})`),
    [],
  );
});

test("a sentence that is half of such an order, or says how a program behaves, is left alone", () => {
  const harmless = all.filter(({ expect }) => expect === "left alone");
  const alarms = harmless.filter(({ row }) => verdict(row) === "blocked").map(({ id }) => id);
  tellFigure({ kind: "benign sentences that resemble orders", rows: harmless.length, fallen: alarms });
  assert.ok(harmless.length >= 90);
  assert.deepEqual(alarms, []);
});

test("a row is found as well in the middle of a long document", () => {
  const filler = "The parser reads one line after another and keeps what it has seen. ".repeat(40);
  const fallen = sampleOf(rows, 4, "rows in the middle").filter(
    ({ row, expect }) => expect === "found" && verdict(`${filler}\n\n${row}\n\n${filler}`) !== "blocked",
  );
  assert.deepEqual(
    fallen.map(({ id, why }) => `${id} (${why})`),
    [],
  );
});

/** "System prompt override" is the name of an option there; the three words are always withheld. */
const SAYS_THE_WORDS = new Set(["node_modules/acpx/skills/acpx/SKILL.md"]);

test("no real README, change log, licence or guide at hand is withheld", async () => {
  const texts = new Map<string, string>();
  for (const pattern of [
    "node_modules/**/*.{md,markdown,txt,rst}",
    "node_modules/**/{LICENSE,LICENCE,NOTICE,AUTHORS,CHANGES}*",
    "{test/corpora/benign,test/fixtures/skills-benign,skills}/**/*.md",
    "*.md",
  ])
    for await (const path of glob(pattern, { cwd: repository })) {
      const text = await readFile(join(repository, path), "utf8").catch(() => null); // a folder of that name
      // A byte order mark is an invisible character of the scan's list, at the beginning of a file too.
      if (text !== null && !text.startsWith("\ufeff") && !texts.has(text)) texts.set(text, path);
    }
  assert.ok(texts.size >= 600, `only ${texts.size} texts`);
  const alarms = sampleOf([...texts], 4, "documents").flatMap(([text, path]) => {
    const findings = scanForThreats(text, "context");
    if (SAYS_THE_WORDS.has(path)) return [];
    return judgeFindings(findings) === "blocked" ? [`${path}: ${findings.map(({ id }) => id).join(", ")}`] : [];
  });
  const kind = "README, AGENTS and other documents";
  const named = (path: string) => /(?:^|\/)(?:readme|[\w-]*agents|claude)[^/]*$/i.test(path);
  tellFigure({ kind, rows: texts.size, fallen: alarms });
  const rowsNamed = [...texts.values()].filter(named).length;
  tellFigure({ kind: `${kind}: READMEs and AGENTS among them`, rows: rowsNamed, fallen: alarms.filter(named) });
  assert.deepEqual(alarms, []);
});
