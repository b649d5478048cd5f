// npm run trust: runs the tests of the attack corpora and prints what they found, by kind, with the targets it is held to.
// npm run trust -- --write: the same, and puts the table into docs/guide/safety.md.
// Nothing is judged here: test/support/trust-figures.ts hands over what the tests found. It ends with 1 when a target is missed, when a kind
// was not measured (no bubblewrap), when a test failed, or when a README claims another figure.
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { projectNode, root, run, setup } from "./setup.mjs";

const FILES = [
  ..."policy two-steps injection masking strangers repository sandbox control"
    .split(" ")
    .map((name) => `test/trust/${name}.test.ts`),
  "test/sandbox-leaving.test.ts",
];

/** `most`: the share of rows that may fall; `least`: how many rows there must be for the figure to mean something. */
const TARGETS = [
  { kind: "policy", most: 0.1, least: 250 },
  { kind: "two steps: kept functions and variables", most: 0.1, least: 10 },
  { kind: "two steps: a copy of keys, then sent", most: 0.1, least: 60 },
  { kind: "hostile repositories", most: 0, least: 20 },
  { kind: "sandbox escapes", sandbox: "with", most: 0, least: 40 },
  { kind: "scripts", sandbox: "with", most: 0, least: 10 },
  { kind: "places", most: 0, least: 60 },
  { kind: "control sequences", most: 0, least: 40 },
  { kind: "benign developer lines", most: 0.01, least: 600 },
  { kind: "README, AGENTS and other documents", most: 0, least: 600 },
];
const HARMLESS = /^(?:benign|README|masking: harmless)/;
const LEAST_ATTACKS = 500;

setup();
const work = fs.mkdtempSync(join(tmpdir(), "hermes-trust-"));
try {
  process.exitCode = await main();
} finally {
  fs.rmSync(work, { recursive: true, force: true });
}

async function main() {
  const [figuresFile, log] = [join(work, "figures"), join(work, "log")];
  fs.writeFileSync(figuresFile, "");
  const code = await run(
    projectNode(),
    ["--test", "--test-concurrency=1", "--test-reporter=spec", `--test-reporter-destination=${log}`, ...FILES],
    { cwd: root, env: { ...process.env, HERMES_TRUST_FIGURES: figuresFile } },
  );
  const figures = fs
    .readFileSync(figuresFile, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
  const table = tableOf(figures);
  process.stdout.write(`${table}\n`);
  for (const { kind, sandbox, fallen } of figures)
    if (fallen.length > 0) {
      const where = sandbox ? `, ${sandbox} the sandbox` : "";
      process.stdout.write(`\nFell of ${kind}${where}: ${fallen.join(" ")}\n`);
    }
  if (process.argv.includes("--write")) writeTable(table);
  const problems = [...missed(figures), ...claims(figures)];
  if (code !== 0) problems.push(`a test failed:\n${fs.readFileSync(log, "utf8").split("failing tests:").at(-1)}`);
  for (const problem of problems) process.stderr.write(`\ntrust: ${problem}\n`);
  return problems.length > 0 ? 1 : 0;
}

function tableOf(figures) {
  const kinds = [...new Set(figures.map(({ kind }) => kind))].sort();
  const line = (kind) => {
    const of = (sandbox) => figures.find((one) => one.kind === kind && one.sandbox === sandbox);
    const [both, without, inside] = [of(undefined), of("without"), of("with")];
    const { rows } = both ?? without ?? inside;
    const alone = both ?? without;
    const behind = inside
      ? held(inside)
      : without
        ? `at least ${without.rows - without.fallen.length}, not run`
        : "the same";
    return `| ${kind} | ${rows} | ${alone ? held(alone) : "not run"} | ${behind} |`;
  };
  const part = (title, some) => [`| **${title}** | | | |`, ...some.map(line)];
  return [
    "| Kind | Rows | Held without the sandbox | Held with it |",
    "|---|---|---|---|",
    ...part(
      "attacks",
      kinds.filter((kind) => !HARMLESS.test(kind)),
    ),
    ...part(
      "harmless rows, which nothing may hold up",
      kinds.filter((kind) => HARMLESS.test(kind)),
    ),
  ].join("\n");
}

function held({ kind, rows, fallen }) {
  // Rounded down: what is nearly whole is not called whole.
  const percent = Math.floor((1000 * (rows - fallen.length)) / rows) / 10;
  return `${rows - fallen.length} (${percent} %)${HARMLESS.test(kind) ? " left alone" : ""}`;
}

function missed(figures) {
  const attacks = new Map(figures.filter(({ kind }) => !HARMLESS.test(kind)).map(({ kind, rows }) => [kind, rows]));
  const total = [...attacks.values()].reduce((sum, rows) => sum + rows, 0);
  const found = total < LEAST_ATTACKS ? [`only ${total} attacks, ${LEAST_ATTACKS} are wanted`] : [];
  for (const { kind, sandbox, most, least } of TARGETS) {
    const figure = figures.find((one) => one.kind === kind && (sandbox === undefined || one.sandbox === sandbox));
    if (!figure) found.push(`${kind}: not measured here`);
    else if (figure.rows < least) found.push(`${kind}: only ${figure.rows} rows, ${least} are wanted`);
    else if (figure.fallen.length > most * figure.rows)
      found.push(`${kind}: ${figure.fallen.length} of ${figure.rows} fell, ${Math.floor(most * figure.rows)} may`);
  }
  return found;
}

/** The share of attack lines that the READMEs name is the one measured. */
function claims(figures) {
  const lines = figures.filter(({ kind }) => kind === "policy" || kind.startsWith("two steps: kept"));
  const sum = (count) => lines.reduce((total, one) => total + count(one), 0);
  const percent = Math.floor((100 * sum(({ rows, fallen }) => rows - fallen.length)) / sum(({ rows }) => rows));
  return [
    ["README.md", /asks about (\d+) % of our own attack lines/],
    ["README.zh-CN.md", /我们自己写的攻击命令约有 (\d+)% 会询问/],
  ].flatMap(([name, claim]) => {
    const said = claim.exec(fs.readFileSync(join(root, name), "utf8").replace(/\s+/g, " "))?.[1];
    return said === String(percent) ? [] : [`${name} says ${said ?? "nothing"}, and ${percent} % was measured`];
  });
}

function writeTable(table) {
  const file = join(root, "docs", "guide", "safety.md");
  const text = fs.readFileSync(file, "utf8");
  const written = text.replace(
    /(<!-- npm run trust -->\n)[\s\S]*?(<!-- end -->)/,
    (_, begin, end) => `${begin}${table}\n${end}`,
  );
  fs.writeFileSync(file, written);
}
