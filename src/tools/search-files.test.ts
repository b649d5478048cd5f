import assert from "node:assert/strict";
import { mkdir, symlink, utimes, writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { type FileRig, fileRig, parsed } from "../../test/support/file-workspace.ts";
import { localFiles } from "./files/access.ts";
import { walkerEngine, walkerOver } from "./files/search.ts";
import { searchFiles } from "./search-files.ts";

let rig: FileRig;
before(async () => {
  rig = await fileRig();
  await mkdir(rig.at("src"));
  await writeFile(rig.at("src/a.ts"), `const one = 1;\n${"x".repeat(600)} one\n`);
  await writeFile(rig.at("src/b.ts"), "one\none\ntwo\n");
  await writeFile(rig.at("config.json"), '{"one": 1}\n');
  await writeFile(rig.at("notes.md"), "A_TOKEN=abcdef one\n");
  await writeFile(
    rig.at("server.pem"),
    `-----BEGIN PRIVATE KEY-----\n${"MIIEone".repeat(9)}\n-----END PRIVATE KEY-----\n`,
  );
  for (const [index, name] of ["config.json", "src/a.ts", "src/b.ts", "notes.md", "server.pem"].entries())
    await utimes(rig.at(name), 1000 + index, 1000 + index);
});
after(() => rig.close());

type Args = Parameters<typeof searchFiles>[0];
const search = async (args: Args, ctx = rig.context()) => {
  const output = await searchFiles(args, ctx);
  const other = await searchFiles(args, rig.context(), walkerEngine);
  if (!output.includes('"error"') && !output.includes("_warning"))
    assert.equal(output, other, "both engines answer alike");
  return parsed(output);
};

test("matches come as path, line and text, cut at 500 characters", async () => {
  const result = await search({ pattern: "one", path: "src" });
  assert.deepEqual(result, {
    total_count: 4,
    matches: [
      { path: "src/a.ts", line: 1, content: "const one = 1;" },
      { path: "src/a.ts", line: 2, content: "x".repeat(500) },
      { path: "src/b.ts", line: 1, content: "one" },
      { path: "src/b.ts", line: 2, content: "one" },
    ],
    truncated: false,
  });
});

test("pages say whether there is more, and where", async () => {
  const first = await search({ pattern: "one", path: "src", limit: 3 });
  assert.deepEqual([first.matches.length, first.total_count, first.truncated, first.next_offset], [3, 4, true, 3]);
  const last = await search({ pattern: "one", path: "src", limit: 3, offset: 3 });
  assert.deepEqual([last.matches.length, last.total_count, last.truncated, last.next_offset], [1, 4, false, undefined]);
  const exact = await search({ pattern: "one", path: "src", limit: 4 });
  assert.equal(exact.truncated, false);
});

test("files with matches and counts", async () => {
  assert.deepEqual(await search({ pattern: "one", path: "src", output_mode: "files_only" }), {
    total_count: 2,
    files: ["src/a.ts", "src/b.ts"],
    truncated: false,
  });
  assert.deepEqual(await search({ pattern: "one", path: "src", output_mode: "count", limit: 1 }), {
    total_count: 4,
    counts: { "src/a.ts": 2 },
    truncated: true,
    next_offset: 1,
  });
});

test("a glob narrows the files by name or by path", async () => {
  for (const [file_glob, files] of [
    ["*.json", ["config.json"]],
    ["*.{json,md}", ["config.json", "notes.md"]],
    ["src/*.ts", ["src/a.ts", "src/b.ts"]],
    ["**/b.ts", ["src/b.ts"]],
    ["b.ts", ["src/b.ts"]],
  ] as const)
    assert.deepEqual((await search({ pattern: "one", file_glob, output_mode: "files_only" })).files, files, file_glob);
});

test("files are found by name, newest first; a bare name finds what ends with it", async () => {
  const names = async (pattern: string, more: Partial<Args> = {}) =>
    (await search({ pattern, target: "files", ...more })).files;
  assert.deepEqual(await names("*.ts"), ["src/b.ts", "src/a.ts"]);
  assert.deepEqual(await names("b.ts"), ["src/b.ts"]);
  assert.deepEqual(await names("fig.json"), ["config.json"]);
  assert.deepEqual(await names("*", { target: "find", path: "src" }), ["src/b.ts", "src/a.ts"]);
  assert.deepEqual(await names("src/**/*.ts"), ["src/b.ts", "src/a.ts"]);
  assert.deepEqual(await names("nothing*"), []);
  const page = await search({ pattern: "*", target: "files", limit: 2 });
  assert.deepEqual([page.total_count, page.truncated, page.next_offset], [5, true, 2]);
});

test("one file can be searched, and absolute paths stay absolute", async () => {
  assert.deepEqual((await search({ pattern: "two", path: "src/b.ts" })).matches, [
    { path: "src/b.ts", line: 3, content: "two" },
  ]);
  assert.equal((await search({ pattern: "two", path: rig.at("src") })).matches[0].path, rig.at("src/b.ts"));
});

test("context comes with each match", async () => {
  const { matches } = await search({ pattern: "two", context: 1 });
  assert.deepEqual(matches, [{ path: "src/b.ts", line: 3, content: "two", before: ["one"], after: [] }]);
});

test("a bad regex is the engine's error, a missing path names what is like it", async () => {
  const bad = await search({ pattern: "([a-z" });
  assert.match(bad.error, /not understood: .*(unclosed|regex)/is);
  const missing = await search({ pattern: "x", path: "scr" });
  assert.equal(missing.error, "Path not found: scr");
  assert.deepEqual(missing.similar_files, ["src"]);
  assert.match((await search({ pattern: "x", target: "people" })).error, /"content" or "files"/);
  assert.match((await search({ pattern: "" })).error, /empty/);
});

test("secrets are masked and files of secrets never appear", async () => {
  await writeFile(`${rig.userHome}/.hermes/auth.json`, '{"x": "one"}');
  await symlink(rig.at("notes.md"), `${rig.userHome}/link.md`);
  const hidden = await search({ pattern: "one", path: "~/.hermes" });
  assert.equal(hidden.total_count, 0);
  // Between files that are shown it is left out as well.
  for (const name of ["a.txt", "z.txt"]) await writeFile(`${rig.userHome}/.hermes/${name}`, "one\none\n");
  const between = await search({ pattern: "one", path: "~/.hermes" });
  assert.deepEqual(
    between.matches.map((match: { path: string; line: number }) => [match.path.replace(/.*\//, ""), match.line]),
    ["a.txt", "z.txt"].flatMap((name) => [
      [name, 1],
      [name, 2],
    ]),
  );
  assert.deepEqual((await search({ pattern: "*.json", target: "files", path: "~/.hermes" })).files, []);
  assert.match((await search({ pattern: "one", path: "~/.hermes/auth.json" })).error, /^Read denied/);
  const { matches } = await search({ pattern: "one", file_glob: "*.{md,pem}" });
  assert.deepEqual(
    matches.map((match: { content: string }) => match.content),
    ["A_TOKEN=«redacted» one", "«redacted private key»"],
  );
});

test("a secret at the end of a match that is cut leaves no half of it", async () => {
  await writeFile(rig.at("edge.log"), `needle ${"x".repeat(480)} sk-${"Q7w8E9r0T1y2".repeat(4)}\n`);
  const { matches } = await search({ pattern: "needle", path: "edge.log" });
  assert.match(matches[0].content, /^needle x{480} ?$/);
});

test("windows into processes are not searched", { skip: process.platform !== "linux" }, async () => {
  const path = `/proc/${process.pid}`;
  const lines = parsed(await searchFiles({ pattern: "heap|stack", path }, rig.context(), walkerOver(mapsOnly(path))));
  assert.equal(lines.total_count, 0);
  const files = parsed(
    await searchFiles({ pattern: "*maps*", target: "files", path }, rig.context(), walkerOver(mapsOnly(path))),
  );
  assert.deepEqual(files.files, []);
});

/** A view of the process's directory with one file alone: the others change and are many. */
const mapsOnly = (path: string): typeof localFiles => ({
  ...localFiles,
  entries: async () => new Map([[path, [{ name: "maps", type: "file" as const }]]]),
});

test("the same search the third time warns, the fourth is refused, another one starts over", async () => {
  const ctx = rig.context();
  const once = () => search({ pattern: "two" }, ctx);
  await once();
  assert.equal((await once())._warning, undefined);
  assert.match((await once())._warning, /3rd time/);
  assert.match((await once()).error, /^BLOCKED/);
  await search({ pattern: "one" }, ctx);
  assert.equal((await once()).total_count, 1);
});
