// One suite over every search engine.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import fc from "fast-check";
import { type FileRig, fileRig } from "../../../test/support/file-workspace.ts";
import { localFiles } from "./access.ts";
import { findRipgrep, ripgrepEngine, ripgrepIn } from "./ripgrep.ts";
import { type ContentQuery, type SearchEngine, SearchPatternError, walkerEngine } from "./search.ts";

const tree: Record<string, string> = {
  "a.ts": "const needle = 1;\nplain\nneedle again\n",
  "b.txt": "no\nnothing\r\nneedle crlf\r\nlast\n",
  "sub/c.ts": "x\ny\nneedle deep\nz\nw\n",
  "sub/deeper/d.md": "needle 你好 😀\n",
  ".hidden/e.ts": "needle hidden\n",
  ".dotfile": "needle hidden\n",
  ".gitignore": "ignored/\n*.log\n!keep.log\n/only-root.txt\nsub/generated\n# comment\n\\#odd\ndocs/**/tmp\n",
  "ignored/f.ts": "needle ignored\n",
  "x.log": "needle ignored\n",
  "keep.log": "needle kept\n",
  "only-root.txt": "needle ignored\n",
  "sub/only-root.txt": "needle kept\n",
  "sub/generated": "needle ignored\n",
  "sub/.gitignore": "*.skip\n!important.skip\n",
  "sub/g.skip": "needle ignored\n",
  "sub/important.skip": "needle kept\n",
  "other/h.skip": "needle kept\n",
  "docs/a/b/tmp": "needle ignored\n",
  "docs/tmp.txt": "needle kept\n",
  "with.ignore/.ignore": "secret.md\n",
  "with.ignore/secret.md": "needle ignored\n",
  "binary.dat": "needle\0binary\n",
  "#odd": "needle ignored\n",
  "empty.txt": "",
  "no-break.txt": "needle at the end",
};
const visible = [
  ..."a.ts b.txt binary.dat docs/tmp.txt empty.txt keep.log no-break.txt other/h.skip sub/c.ts".split(" "),
  ..."sub/deeper/d.md sub/important.skip sub/only-root.txt".split(" "),
];

let rig: FileRig;
before(async () => {
  rig = await fileRig();
  for (const [path, text] of Object.entries(tree)) {
    await mkdir(dirname(rig.at(path)), { recursive: true });
    await writeFile(rig.at(path), text);
  }
  await symlink("a.ts", rig.at("link.ts"));
  await symlink("sub", rig.at("link-dir"));
  execFileSync("mkfifo", [rig.at("pipe")]);
});
after(() => rig.close());

const program = await findRipgrep();
const engines: SearchEngine[] = [walkerEngine, ...(program === null ? [] : [ripgrepEngine(program)])];

for (const engine of engines) {
  describe(`search engine: ${engine.name}`, () => {
    const signal = new AbortController().signal;
    const find = (pattern: string, more: Partial<ContentQuery> = {}) =>
      engine.findLines({
        root: rig.dir,
        isFile: false,
        pattern,
        accepts: () => true,
        context: 0,
        maxMatches: 1000,
        signal,
        ...more,
      });

    test("hidden, ignored, linked and special files are left out of the list", async () => {
      assert.deepEqual((await engine.listFiles(rig.dir, signal)).sort(), visible);
    });

    test("lines come sorted by path and line, binary files left out", async () => {
      const { lines, complete } = await find("needle");
      assert.ok(complete);
      assert.deepEqual(
        lines.map(({ path, line, content }) => `${path}:${line}:${content}`),
        [
          "a.ts:1:const needle = 1;",
          "a.ts:3:needle again",
          "b.txt:3:needle crlf",
          "docs/tmp.txt:1:needle kept",
          "keep.log:1:needle kept",
          "no-break.txt:1:needle at the end",
          "other/h.skip:1:needle kept",
          "sub/c.ts:3:needle deep",
          "sub/deeper/d.md:1:needle 你好 😀",
          "sub/important.skip:1:needle kept",
          "sub/only-root.txt:1:needle kept",
        ],
      );
    });

    test("regular expressions and inline flags work, case counts", async () => {
      assert.equal((await find("NEEDLE")).lines.length, 0);
      assert.equal((await find("(?i)NEEDLE a")).lines.length, 2);
      assert.equal((await find("^needle \\w+$")).lines.length, 8);
      assert.equal((await find("needle (?=crlf)")).lines.length, 1);
      assert.equal((await find("你好")).lines.length, 1);
      assert.equal((await find("-dash|--flag")).lines.length, 0);
    });

    test("context lines stand beside the match", async () => {
      const { lines } = await find("deep$", { context: 2 });
      assert.deepEqual(lines[0], {
        path: "sub/c.ts",
        line: 3,
        content: "needle deep",
        before: ["x", "y"],
        after: ["z", "w"],
      });
      const neighbours = (await find("needle", { context: 5, accepts: (path) => path === "a.ts" })).lines;
      assert.deepEqual(neighbours[0]?.after, ["plain", "needle again"]);
      assert.deepEqual(neighbours[1]?.before, ["const needle = 1;", "plain"]);
    });

    test("a filter narrows the files, and brings no ignored one back", async () => {
      const logs = Object.assign((path: string) => path.endsWith(".log"), { nameGlob: "*.log" });
      assert.deepEqual(
        (await find("needle", { accepts: logs })).lines.map((line) => line.path),
        ["keep.log"],
      );
      const below = (path: string) => path.startsWith("sub/");
      assert.equal((await find("needle", { accepts: below })).lines.length, 4);
    });

    test("a root below the repository obeys the rules above it", async () => {
      const { lines } = await find("needle", { root: rig.at("sub") });
      assert.deepEqual(
        lines.map((line) => line.path),
        ["c.ts", "deeper/d.md", "important.skip", "only-root.txt"],
      );
    });

    test("a root that is itself hidden or ignored is searched", async () => {
      assert.equal((await find("needle", { root: rig.at(".hidden") })).lines.length, 1);
      assert.equal((await find("needle", { root: rig.at("ignored") })).lines.length, 1);
      assert.deepEqual((await find("needle", { root: rig.at("x.log"), isFile: true })).lines, [
        { path: "x.log", line: 1, content: "needle ignored" },
      ]);
    });

    test("a pattern it cannot read is its own error", async () => {
      await assert.rejects(find("([a-z"), SearchPatternError);
      await assert.rejects(find("*a"), SearchPatternError);
    });

    test("it stops at the limit and says so", async () => {
      const { lines, complete } = await find("needle", { maxMatches: 3 });
      assert.ok(lines.length >= 3);
      assert.equal(complete, false);
    });

    test("a line of many megabytes costs neither time nor memory, and is said to be left out", {
      timeout: 20_000,
    }, async () => {
      const dir = await mkdtemp(join(tmpdir(), "hermes-long-line-"));
      try {
        await writeFile(join(dir, "long.txt"), `${"a".repeat(30_000_000)} needle\nneedle, short\n`);
        const { lines, complete } = await find("needle", { root: dir });
        assert.deepEqual(
          lines.map(({ line, content }) => [line, content]),
          [[2, "needle, short"]],
        );
        assert.equal(complete, false);
      } finally {
        await rm(dir, { recursive: true, force: true });
      }
    });

    test("of a long line its beginning is kept", async () => {
      const dir = await mkdtemp(join(tmpdir(), "hermes-long-line-"));
      try {
        await writeFile(join(dir, "long.txt"), `needle ${"a".repeat(100_000)}\n`);
        const { lines, complete } = await find("needle", { root: dir });
        assert.deepEqual([lines[0]?.content.length, complete], [4096, true]);
      } finally {
        await rm(dir, { recursive: true, force: true });
      }
    });

    test("it ends with the abort", async () => {
      await assert.rejects(find("needle", { signal: AbortSignal.abort(new Error("stop")) }), /stop|abort/i);
    });
  });
}

test("what ripgrep prints is understood wherever it is cut, whatever files are called", async (t) => {
  const rg = program;
  if (rg === null) return t.skip("no ripgrep");
  const dir = await mkdtemp(join(tmpdir(), "hermes-odd-names-"));
  const odd = {
    "late.dat": `needle\n${"x\n".repeat(60_000)}\0\nneedle\n`,
    "late.dat.txt": "needle beside\n",
    "a\nb.txt": "--\n1:needle\n2-needle\n--\n",
    "3:needle.txt": "needle\r\n\r\n: needle -\n",
    "z/late.dat": `needle\n${"x\n".repeat(60_000)}\0\n`,
    "z/é": "é needle é\nlast needle",
  };
  const found = [
    ["3:needle.txt", 1, "needle", [], [""]],
    ["3:needle.txt", 3, ": needle -", [""], []],
    ["a\nb.txt", 2, "1:needle", ["--"], ["2-needle"]],
    ["a\nb.txt", 3, "2-needle", ["1:needle"], ["--"]],
    ["late.dat.txt", 1, "needle beside", [], []],
    ["z/é", 1, "é needle é", [], ["last needle"]],
    ["z/é", 2, "last needle", ["é needle é"], []],
  ];
  try {
    await mkdir(join(dir, "z"));
    for (const [path, text] of Object.entries(odd)) await writeFile(join(dir, path), text);
    await fc.assert(
      fc.asyncProperty(fc.infiniteStream(fc.integer({ min: 1, max: 40 })), async (sizes) => {
        const { signal } = new AbortController();
        const engine = await ripgrepIn(
          {
            ...localFiles,
            async ripgrep({ args, cwd, onBytes }) {
              const { stdout, stderr, status } = spawnSync(rg, args, { cwd });
              const reused = Buffer.alloc(40);
              for (let at = 0; at < stdout.length; ) {
                const size = stdout.copy(reused, 0, at, at + (sizes.next().value ?? 1));
                onBytes(reused.subarray(0, size));
                at += size;
              }
              return { code: status ?? -1, errors: stderr.toString() };
            },
          },
          signal,
        );
        const query = {
          root: dir,
          isFile: false,
          pattern: "needle",
          accepts: () => true,
          context: 1,
          maxMatches: 1000,
          signal,
        };
        const { lines, complete } = (await engine?.findLines(query)) ?? assert.fail("no engine");
        assert.deepEqual(
          lines.map(({ path, line, content, before, after }) => [path, line, content, before, after]),
          found,
        );
        assert.equal(complete, true);
        assert.deepEqual((await engine?.listFiles(dir, signal))?.sort(), Object.keys(odd).sort());
      }),
      { numRuns: 10 },
    );
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
});
