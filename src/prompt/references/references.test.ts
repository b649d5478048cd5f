import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import fc from "fast-check";
import { PNG } from "pngjs";
import { type TempTree, type TreeEntry, tempTree } from "../../../test/support/temp-tree.ts";
import { createFileGuard } from "../../safety/file-guard.ts";
import { localFiles } from "../../tools/files/access.ts";
import { rulesAbove } from "../../tools/files/search.ts";
import { createDenyList } from "../files/read.ts";
import { programRunner } from "../ports.ts";
import {
  describeExpansion,
  expandReferences,
  expandsReferences,
  isFitForRemote,
  type ReferenceOptions,
} from "./expand.ts";
import { findReferences, formatReferenceValue } from "./grammar.ts";

const grammar: readonly (readonly [message: string, found: readonly string[]])[] = [
  ["look at @file:src/a.ts please", ["file src/a.ts"]],
  ["@diff and @staged", ["diff ", "staged "]],
  ["see @diff.", ["diff "]],
  ["@different @stagedx @diff_x", []],
  ["mail user@example.com or @someone", []],
  ["a/@file:b x@diff 9@diff _@diff é@diff", []],
  ["请看@file:说明.md", ["file 说明.md"]],
  ["(@file:a.ts)", ["file a.ts"]],
  ["@file:a(1).ts, then", ["file a(1).ts"]],
  ["@file:a.ts; @file:b.ts! @file:c.ts?", ["file a.ts", "file b.ts", "file c.ts"]],
  ["@file:a.ts，@file:b.ts。", ["file a.ts", "file b.ts"]],
  ["`@file:a.ts`", ["file a.ts"]],
  ["@file:a.ts:7", ["file a.ts 7-7"]],
  ["@file:a.ts:7-9.", ["file a.ts 7-9"]],
  ["@file:a.ts:7-", ["file a.ts:7-"]],
  ['@file:"my file.ts":3-4 x', ["file my file.ts 3-4"]],
  ["@file:`a b` @file:'c d'", ["file a b", "file c d"]],
  ['@file:"open\nquote', ['file "open']],
  ["@folder:docs/ @folder:`a b`:3", ["folder docs/", "folder a b"]],
  ["@git:5 @git:abc", ["git 5", "git abc"]],
  ["@url:https://x.test/a?b=c.", ["url https://x.test/a?b=c"]],
  ["@url:https://x.test/a_(b)", ["url https://x.test/a_(b)"]],
  ["@File:a @FILE:b @file: c @file:", []],
  ["@file:... ok", []],
  ["what is @pic.png?", ["file pic.png"]],
  ["看@图/截图.PNG，好吗", ["file 图/截图.PNG"]],
  ['@"my pic.jpeg" and @`b c.webp`, @a.gif.', ["file my pic.jpeg", "file b c.webp", "file a.gif"]],
  ["icon@2x.png @pic.png.bak @pic.pngx @.png @x.bmp @~/x", []],
];
for (const [message, found] of grammar) {
  test(`references in ${JSON.stringify(message)}`, () => {
    const shown = findReferences(message).map(
      ({ kind, value, range }) => `${kind} ${value}${range ? ` ${range.from}-${range.to}` : ""}`,
    );
    assert.deepEqual(shown, found);
  });
}

test("a message made to be slow is not", () => {
  for (const unit of [")", "]}", "@file:`", '@file:"x', "，@"]) {
    const start = process.cpuUsage();
    findReferences(`@file:${unit.repeat(100_000)}`);
    assert.ok(process.cpuUsage(start).user < 2_000_000, unit);
  }
});

test("a reference is quoted as it stands in the message", () => {
  for (const { raw, index } of findReferences('x @file:"a b":3, (@diff) @folder:c.')) {
    assert.ok(['@file:"a b":3', "@diff", "@folder:c"].includes(raw));
    assert.equal('x @file:"a b":3, (@diff) @folder:c.'.slice(index, index + raw.length), raw);
  }
});

test("a formatted path is read back as itself", () => {
  const path = fc
    .string({ unit: fc.constantFrom("a", " ", "(", ")", "[", "`", '"', "'", "/", "é"), minLength: 1, maxLength: 12 })
    .filter((text) => !["`", '"', "'"].every((quote) => text.includes(quote)));
  fc.assert(
    fc.property(path, (text) => {
      const [reference] = findReferences(`see @folder:${formatReferenceValue(text)} now`);
      assert.equal(reference?.value, text);
    }),
  );
  assert.equal(formatReferenceValue("src/a.ts"), "src/a.ts");
  assert.equal(formatReferenceValue("a `b`"), '"a `b`"');
});

async function boxOf(
  t: TestContext,
  entries: Readonly<Record<string, TreeEntry>>,
  change: Partial<ReferenceOptions> = {},
): Promise<{
  tree: TempTree;
  expand: (message: string) => ReturnType<typeof expandReferences>;
  options: ReferenceOptions;
}> {
  const tree = await tempTree(t, { "w/.keep": "", ...entries });
  const guard = await createFileGuard({
    userHome: tree.root,
    profileHome: tree.at(".hermes"),
    rootHome: tree.at(".hermes"),
  });
  const options: ReferenceOptions = {
    cwd: tree.at("w"),
    userHome: tree.root,
    contextLength: 100_000,
    files: localFiles,
    run: programRunner({ PATH: process.env.PATH, HOME: tree.root }),
    denyList: await createDenyList(guard, tree.root),
    ignoreRules: rulesAbove,
    ...change,
  };
  return { tree, options, expand: (message) => expandReferences(message, options) };
}

test("a message without references stays as it is", async (t) => {
  const { expand } = await boxOf(t, {});
  assert.deepEqual(await expand(" hello @you "), {
    message: " hello @you ",
    references: [],
    warnings: [],
    injectedTokens: 0,
    pictures: [],
    expanded: false,
    blocked: false,
  });
});

test("the whole shape: the text as typed, warnings, then blocks in the order of the message", async (t) => {
  const { expand } = await boxOf(t, { "w/a.ts": "let a;\n", "w/b.sh": "echo b" });
  const result = await expand(" see @file:b.sh, @file:no.ts and @file:a.ts ");
  assert.equal(
    result.message,
    ` see @file:b.sh, @file:no.ts and @file:a.ts 

--- Context Warnings ---
- @file:no.ts: file not found

--- Attached Context ---

📄 @file:b.sh (2 tokens)
\`\`\`bash
echo b
\`\`\`

📄 @file:a.ts (2 tokens)
\`\`\`typescript
let a;
\`\`\``,
  );
  assert.equal(result.references.length, 3);
  assert.match(describeExpansion(result), /^\[@ context: 3 ref\(s\), \d+ tokens\]$/);
});

const refusals: readonly (readonly [reference: string, warning: string])[] = [
  ["@file:gone", "file not found"],
  ["@file:d", "path is not a file"],
  ["@folder:gone", "folder not found"],
  ["@folder:a.txt", "path is not a folder"],
  ["@file:../out.txt", "path is outside the allowed workspace"],
  ["@file:../missing.txt", "path is outside the allowed workspace"],
  ["@file:/etc/hostname", "path is outside the allowed workspace"],
  ["@file:~/out.txt", "path is outside the allowed workspace"],
  ["@file:link.txt", "path is outside the allowed workspace"],
  ["@folder:../", "path is outside the allowed workspace"],
  ["@file:.env", "path is a sensitive credential or internal Hermes path and cannot be attached"],
  ["@file:innocent.txt", "path is a sensitive credential or internal Hermes path and cannot be attached"],
  ["@file:a.txt:3-4", "line range 3-4 is outside the file (3 lines)"],
  ["@file:a.txt:0", "line range 0-0 is outside the file (3 lines)"],
  ["@file:a.txt:2-1", "line range 2-1 is outside the file (3 lines)"],
  ["@file:a.txt:9", "line range 9-9 is outside the file (3 lines)"],
  ["@git:abc", "expected a number from 1 to 10"],
  ["@url:https://x.test/", "pages cannot be fetched here"],
];
for (const [reference, expected] of refusals) {
  test(`${reference}: ${expected}`, async (t) => {
    const { expand } = await boxOf(t, {
      "out.txt": "o",
      "w/a.txt": "1\n2\n3\n",
      "w/d/x": "",
      "w/.env": "KEY=1",
      "w/link.txt": { link: "../out.txt" },
      "w/innocent.txt": { link: ".env" },
    });
    const { message, warnings } = await expand(reference);
    assert.deepEqual(warnings, [`${reference}: ${expected}`]);
    assert.ok(!message.includes("--- Attached Context ---"));
  });
}

test("in the home directory personal files are refused and listings leave them out", async (t) => {
  const { expand, tree } = await boxOf(t, {
    ".ssh/id_rsa": "KEY",
    ".bashrc": "",
    "w/a": "",
    ".hermes/auth.json": "{}",
  });
  const { options } = await boxOf(t, {});
  const atHome = { ...options, cwd: tree.root, userHome: tree.root, denyList: await denyListOf(tree) };
  for (const name of [".ssh/id_rsa", ".bashrc", ".hermes/auth.json"]) {
    const { warnings } = await expandReferences(`@file:${name}`, atHome);
    assert.match(warnings[0] ?? "", /sensitive credential/);
  }
  assert.equal((await expand("@file:a")).warnings.length, 0);
});
async function denyListOf(tree: TempTree) {
  const guard = await createFileGuard({
    userHome: tree.root,
    profileHome: tree.at(".hermes"),
    rootHome: tree.at(".hermes"),
  });
  return createDenyList(guard, tree.root);
}

test("a deny list that cannot be consulted refuses", async (t) => {
  const denyList = { isDenied: () => Promise.reject(new Error("no list")), isHidden: () => true };
  const { expand } = await boxOf(t, { "w/a.txt": "x" }, { denyList });
  assert.match((await expand("@file:a.txt")).warnings[0] ?? "", /sensitive credential/);
});

const files: readonly (readonly [name: string, content: string | Uint8Array, reference: string, block: RegExp])[] = [
  ["a.txt", "1\n2\n3\n", "@file:a.txt:2-3", /^📄 @file:a\.txt:2-3 \(1 tokens\)\n```\n2\n3\n```$/],
  ["a.txt", "1\r\n2", "@file:a.txt:2", /^📄 @file:a\.txt:2 \(1 tokens\)\n```\n2\n```$/],
  ["q.sql", "select 1;", "@file:q.sql", /\n```sql\nselect 1;\n```$/],
  ["R.MD", "# x", "@file:R.MD", /\n```markdown\n/],
  ["m.md", "```js\n````\n```", "@file:m.md", /\n`````markdown\n```js\n````\n```\n`````$/],
  ["e.txt", "", "@file:e.txt", /^📄 @file:e\.txt \(0 tokens\)\n```\n\n```$/],
  [
    "z.bin",
    new Uint8Array([1, 0, 2]),
    "@file:z.bin",
    /^📎 @file:z\.bin \(application\/octet-stream, 3 bytes\)\n.*\/w\/z\.bin.*tools.*unsupported/,
  ],
  ["p.png", new Uint8Array(2048).fill(255), "@file:p.png", /^📎 @file:p\.png \(image\/png, 2\.0 KiB\)/],
  ["c.txt", "汉字", "@file:c.txt", /\(2 tokens\)/],
];
for (const [name, content, reference, block] of files) {
  test(`${reference} of ${name}`, async (t) => {
    const { expand } = await boxOf(t, { [`w/${name}`]: content });
    const { message } = await expand(reference);
    assert.match(message.split("--- Attached Context ---\n\n")[1] ?? "", block);
  });
}

test("a file over 10 MiB is refused before it is read", async (t) => {
  const { expand } = await boxOf(t, { "w/big.txt": "x".repeat(10 * 1024 * 1024 + 1) });
  assert.match((await expand("@file:big.txt")).warnings[0] ?? "", /^@file:big\.txt: file is too large/);
});

test("a folder is drawn as a tree: directories first, .gitignore honoured, nothing hidden or secret", async (t) => {
  const { expand } = await boxOf(t, {
    "w/.git/HEAD": "",
    "w/.gitignore": "*.log\n/p/skip/\n",
    "w/p/b.ts": "1\n2\n",
    "w/p/a.bin": new Uint8Array([0, 1]),
    "w/p/x.log": "no",
    "w/p/skip/y": "no",
    "w/p/.hidden": "no",
    "w/p/.env": "no",
    "w/p/sub/deep/c.py": "x",
    "w/p/sub/d.py": "x\n",
    "w/p/away": { link: "/etc" },
  });
  const { message } = await expand("@folder:p");
  assert.equal(
    message.split("tokens)\n")[1],
    `p/
- sub/
  - deep/
    - c.py (1 lines)
  - d.py (1 lines)
- a.bin (2 bytes)
- away (link)
- b.ts (2 lines)`,
  );
});

test("a tree ends after 200 entries", async (t) => {
  const entries = Object.fromEntries(Array.from({ length: 205 }, (_, n) => [`w/p/f${String(n).padStart(3, "0")}`, ""]));
  const { expand } = await boxOf(t, entries);
  const lines = (await expand("@folder:p")).message.split("tokens)\n")[1]?.split("\n") ?? [];
  assert.equal(lines.length, 202);
  assert.equal(lines.at(-1), "- ...");
});

test("git's changes and history are attached", async (t) => {
  const { expand, tree } = await boxOf(t, { "w/a.txt": "one\n" });
  const git = async (...args: string[]) => {
    const env = { ...process.env, HOME: tree.root, GIT_CONFIG_NOSYSTEM: "1" };
    const identity = ["-c", "user.name=a", "-c", "user.email=a@x"];
    await promisify(execFile)("git", [...identity, ...args], { cwd: tree.at("w"), env });
  };
  assert.match((await expand("@diff")).warnings[0] ?? "", /^@diff: .*git/i);
  await git("init", "-q");
  await git("add", "-A");
  await git("commit", "-qm", "First");
  assert.match((await expand("@diff")).message, /🧾 git diff \(3 tokens\)\n```diff\n\(no output\)\n```$/);
  await tree.add({ "w/a.txt": "two\n" });
  assert.match((await expand("@diff")).message, /🧾 git diff \(\d+ tokens\)\n```diff\n[\s\S]*-one\n\+two\n```$/);
  assert.match((await expand("@staged")).message, /🧾 git diff --staged \(3 tokens\)/);
  assert.match((await expand("@git:0")).message, /🧾 git log -1 -p \(\d+ tokens\)\n```diff\ncommit [\s\S]*First/);
  assert.match((await expand("@git:99")).message, /🧾 git log -10 -p /);
});

test("a git that hangs is given up", async (t) => {
  const run = async () => ({ exitCode: null, stdout: "", stderr: "", timedOut: true });
  const { expand } = await boxOf(t, { "w/.git/HEAD": "ref: refs/heads/main\n" }, { run });
  assert.deepEqual((await expand("@diff")).warnings, ["@diff: git command timed out (30s)"]);
});

const pages: readonly (readonly [name: string, page: () => Promise<string>, expected: RegExp])[] = [
  [
    "a page",
    async () => "<fenced>text</fenced>\n",
    /🌐 @url:https:\/\/x\.test \(\d+ tokens\)\n<fenced>text<\/fenced>$/,
  ],
  ["an empty page", async () => "  ", /- @url:https:\/\/x\.test: no content extracted$/],
  ["a page that fails", () => Promise.reject(new Error("host not found")), /- @url:https:\/\/x\.test: host not found$/],
];
for (const [name, readPage, expected] of pages) {
  test(`${name} is attached or explained`, async (t) => {
    const { expand } = await boxOf(t, {}, { readPage });
    assert.match((await expand("@url:https://x.test")).message, expected);
  });
}

const limits: readonly (readonly [chars: number, window: number, outcome: "whole" | "warned" | "refused"])[] = [
  [400, 4000, "whole"],
  [4400, 4000, "warned"],
  [8400, 4000, "refused"],
  [8400, 0, "whole"],
];
for (const [chars, contextLength, outcome] of limits) {
  test(`${chars} characters in a window of ${contextLength} are ${outcome}`, async (t) => {
    const { expand } = await boxOf(t, { "w/a.txt": "x".repeat(chars) }, { contextLength });
    const { message, warnings, blocked, expanded } = await expand("@file:a.txt");
    assert.equal(blocked, outcome === "refused");
    assert.equal(expanded, outcome !== "refused");
    if (outcome === "refused") {
      assert.equal(message, "@file:a.txt");
      assert.match(
        warnings[0] ?? "",
        /^@ context injection refused: \d+ tokens exceeds the 50% hard limit \(2000\)\.$/,
      );
    }
    if (outcome === "warned")
      assert.match(
        warnings[0] ?? "",
        /^@ context injection warning: \d+ tokens exceeds the 25% soft limit \(1000\)\.$/,
      );
    if (outcome === "whole") assert.deepEqual(warnings, []);
  });
}

test("the same reference twice is attached once", async (t) => {
  const { expand } = await boxOf(t, { "w/a.txt": "x" });
  assert.equal((await expand("@file:a.txt @file:a.txt")).message.split("📄").length, 2);
});

const platforms: readonly (readonly [platform: string, remote: boolean, expands: boolean])[] = [
  ["cli", false, true],
  ["tui", false, true],
  ["acp", false, true],
  ["telegram", false, false],
  ["api_server", false, false],
  ["api_server", true, true],
];
for (const [platform, remote, expands] of platforms) {
  test(`references ${expands ? "expand" : "stay text"} on ${platform} with remote ${remote}`, () => {
    assert.equal(expandsReferences(platform, { remote }), expands);
  });
}

test("a chat never gets the home directory as its root", async (t) => {
  const { options, tree } = await boxOf(t, {});
  assert.equal(await isFitForRemote(options), true);
  assert.equal(await isFitForRemote({ ...options, cwd: tree.root }), false);
});

const PICTURE = PNG.sync.write(new PNG({ width: 2, height: 2 }));

test("a picture is attached beside the message, with or without its kind in front; a name without a file is text", async (t) => {
  const entries = { "w/pic.png": PICTURE, "w/cut.png": PICTURE.subarray(0, 50), "w/blob.bin": "a\0b" };
  const { options } = await boxOf(t, entries);
  const one = await expandReferences("what is @pic.png and @file:pic.png, not @gone.png", options);
  const url = `data:image/png;base64,${PICTURE.toString("base64")}`;
  assert.deepEqual(one.pictures, Array(2).fill({ type: "image_url", image_url: { url } }));
  assert.deepEqual(one.warnings, []);
  assert.match(one.message, /📎 @pic\.png \(image\/png, \d+ bytes\)\nThe picture is attached\. Its file: .*pic\.png/);
  assert.equal(describeExpansion(one), `[@ context: 2 ref(s), ${one.injectedTokens} tokens]`);

  const none = await expandReferences("mail @gone.png", options);
  assert.deepEqual([none.message, none.references, none.expanded], ["mail @gone.png", [], false]);

  const cut = await expandReferences("look at @cut.png and @../else.png", options);
  assert.deepEqual(cut.warnings, [
    "@cut.png: cut.png is damaged or incomplete; it is not sent.",
    "@../else.png: path is outside the allowed workspace",
  ]);
  assert.deepEqual(cut.pictures, []);
  assert.match((await expandReferences("@file:blob.bin", options)).message, /This file is not text/);
});
