import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import {
  decodeEnvBytes,
  encodeEnvText,
  openEnvironment,
  parseEnv,
  refusedEnvName,
  removeEnvLine,
  renderEnvValue,
  setEnvLine,
  withoutLookAlikes,
} from "./environment.ts";
import { homePaths } from "./paths.ts";

const cases: readonly [line: string, values: Record<string, string>][] = [
  ["", {}],
  ["# A=1", {}],
  ["   # A=1", {}],
  ["no equals sign", {}],
  ["export KEY=v", { KEY: "v" }],
  ["A=x=y=z", { A: "x=y=z" }],
  ["A = spaced ", { A: "spaced" }],
  [String.raw`A="esc \" q"`, { A: 'esc " q' }],
  [String.raw`A="back\\slash \n"`, { A: String.raw`back\slash \n` }],
  ["B='raw'", { B: "raw" }],
  [String.raw`B='raw \" it'`, { B: String.raw`raw \" it` }],
  ['A="unterminated', { A: '"unterminated' }],
  [String.raw`A="ends escaped\"`, { A: String.raw`"ends escaped\"` }],
  ["A=a#b", { A: "a#b" }],
  ["A=", { A: "" }],
  ["A=1\r\nB=2\r\n", { A: "1", B: "2" }],
  ["\ufeffA=1", { A: "1" }],
  ["A=1\0\0", { A: "1" }],
  ["A=1\nA=2", { A: "2" }],
  ["=x", {}],
];
for (const [text, values] of cases) {
  test(`${JSON.stringify(text)} defines ${JSON.stringify(values)}`, () => {
    assert.deepEqual(Object.fromEntries(parseEnv(text)), values);
  });
}

test("bytes that are no UTF-8 are read and written back as Latin-1", () => {
  const bytes = Buffer.from("# caf\xe9\nA=1\n", "latin1");
  const decoded = decodeEnvBytes(bytes);
  assert.equal(decoded.text, "# café\nA=1\n");
  assert.deepEqual(encodeEnvText(decoded), bytes);
  assert.equal(encodeEnvText({ text: "A=名", encoding: "latin1" }).toString("utf8"), "A=名");
});

const file = "# keys\r\nA=1\r\n\r\nexport B='two'\r\nC=3";
test("a definition is replaced in place, in its own form", () => {
  assert.equal(setEnvLine(file, "B", "new one"), '# keys\r\nA=1\r\n\r\nexport B="new one"\r\nC=3');
  assert.equal(setEnvLine("A=1\nA=2\n", "A", "3"), "A=1\nA=3\n");
});
test("a new variable is appended, after a missing line end", () => {
  assert.equal(setEnvLine(file, "D", "4"), `${file}\r\nD=4\r\n`);
  assert.equal(setEnvLine("", "D", "4"), "D=4\n");
});
test("a removed variable takes every definition along", () => {
  assert.equal(removeEnvLine("A=1\n# x\nexport A=2\nB=3\n", "A"), "# x\nB=3\n");
});

test("what is written reads back the same, and the other lines stay", () => {
  const lines = fc.array(
    fc.constantFrom("# note", "", "OTHER=1", "export MORE='x y'", "broken line", "A=old", "export A=old"),
    { maxLength: 6 },
  );
  fc.assert(
    fc.property(lines, fc.string({ unit: "grapheme", maxLength: 20 }), (before, value) => {
      const text = setEnvLine(before.join("\n"), "A", value);
      assert.equal(parseEnv(text).get("A"), value.replace(/[\r\n\0]/g, ""));
      const others = (all: string) => all.split("\n").filter((line) => !/^(export )?A=/.test(line) && line !== "");
      assert.deepEqual(others(text), others(before.join("\n")));
    }),
  );
});

test("values that need no quotes get none", () => assert.equal(renderEnvValue("sk-abc=1$x"), "sk-abc=1$x"));

for (const name of [
  "LD_PRELOAD",
  "DYLD_X",
  "PYTHONPATH",
  "NODE_OPTIONS",
  "PATH",
  "path",
  "EDITOR",
  "HERMES_HOME",
  "GIT_SSH_COMMAND",
  "1A",
  "A-B",
  "",
  "A B",
]) {
  test(`${JSON.stringify(name)} may not be stored`, () => assert.notEqual(refusedEnvName(name), null));
}
for (const name of ["OPENAI_API_KEY", "HERMES_TIMEZONE", "_x", "LDAP_URL"]) {
  test(`${name} may be stored`, () => assert.equal(refusedEnvName(name), null));
}

test("look-alike letters are taken out of keys and named, and other values are left alone", () => {
  assert.deepEqual(withoutLookAlikes("X_API_KEY", "sk-аbс1"), { value: "sk-b1", removed: ["U+0430", "U+0441"] });
  assert.equal(withoutLookAlikes("X_API_KEY", "sk-abc"), null);
  assert.equal(withoutLookAlikes("GREETING", "grüß"), null);
});

test("an .env that is a folder or no text is told of; a text is not, whatever its alphabet", async () => {
  const dir = await mkdtemp(join(tmpdir(), "hermes-env-"));
  const paths = homePaths(dir, dir, "default");
  const warnings = () => {
    const said: string[] = [];
    const warn = (message: string) => void said.push(message);
    openEnvironment({ paths, processEnv: {}, cwd: "/", managed: null, chmod: false, warn });
    return said;
  };
  assert.deepEqual(warnings(), [], "there is none");
  await mkdir(paths.envFile);
  assert.match(warnings().join(), /\.env is not a file/);
  await rm(paths.envFile, { recursive: true });
  await writeFile(paths.envFile, Buffer.from(Array.from({ length: 3000 }, (_, at) => (at * 7919) % 256)));
  assert.match(warnings().join(), /is not a text file/);
  for (const text of ["A=1\n", "", "# clé für Übung 漢字\nA=x\n", "A=1\0\0"]) {
    await writeFile(paths.envFile, text);
    assert.deepEqual(warnings(), [], JSON.stringify(text));
  }
  await rm(dir, { recursive: true });
});
