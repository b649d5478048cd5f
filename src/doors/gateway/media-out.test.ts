import assert from "node:assert/strict";
import { mkdir, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import fc from "fast-check";
import { tempHome } from "../../../test/support/temp-home.ts";
import { openHome } from "../../home/open.ts";
import {
  barePaths,
  checkedFile,
  imageLinks,
  mediaInResult,
  outgoing,
  pathsToCheck,
  takeDirectives,
  visibleSoFar,
} from "./media-out.ts";

const none = () => false;
const all = () => true;

// [what, text, text without tags, paths, files that exist]
const TAGS: readonly (readonly [string, string, string, readonly string[], (readonly string[])?])[] = [
  ["a tag alone", "MEDIA:/tmp/a.png", "", ["/tmp/a.png"]],
  ["a space after the colon", "Here:\nMEDIA: ~/a.png", "Here:", ["~/a.png"]],
  ["a drive letter", "MEDIA:C:\\pics\\a.png", "", ["C:\\pics\\a.png"]],
  ["a path with spaces", "See MEDIA:/tmp/my chart.png now", "See now", ["/tmp/my chart.png"]],
  ["double quotes", 'See "MEDIA:/tmp/a b.png".', "See", ["/tmp/a b.png"]],
  ["quotes around the path", "MEDIA:'/tmp/a b'", "", ["/tmp/a b"], ["/tmp/a b"]],
  ["emphasis", "**MEDIA:/tmp/a.png**\nDone.", "Done.", ["/tmp/a.png"]],
  ["emphasis in emphasis", "See _**MEDIA:/tmp/a_b.png**_, please", "See , please", ["/tmp/a_b.png"]],
  ["a full stop", "I made MEDIA:/tmp/a.png.", "I made", ["/tmp/a.png"]],
  ["a comma stays", "MEDIA:/tmp/a.png, as you asked", ", as you asked", ["/tmp/a.png"]],
  ["two tags", "MEDIA:/tmp/a.png MEDIA:/tmp/b.pdf", "", ["/tmp/a.png", "/tmp/b.pdf"]],
  ["the same file once", "MEDIA:/tmp/a.png\nMEDIA:/tmp/a.png", "", ["/tmp/a.png"]],
  [
    "a list of files",
    "Files:\n- MEDIA:/tmp/a.png\n- MEDIA:/tmp/b.png\n\nBye",
    "Files:\n\nBye",
    ["/tmp/a.png", "/tmp/b.png"],
  ],
  ["blank lines collapse", "a\n\n\nMEDIA:/tmp/a.png\n\n\nb", "a\n\nb", ["/tmp/a.png"]],
  ["blank lines in code stay", "```\na\n\n\n\nb\n```\nMEDIA:/tmp/a.png", "```\na\n\n\n\nb\n```", ["/tmp/a.png"]],
  ["fenced code", "```\nMEDIA:/tmp/a.png\n```", "```\nMEDIA:/tmp/a.png\n```", [], ["/tmp/a.png"]],
  ["a fence that never closes", "~~~\nMEDIA:/tmp/a.png", "~~~\nMEDIA:/tmp/a.png", [], ["/tmp/a.png"]],
  ["a block quote", "> MEDIA:/tmp/a.png", "> MEDIA:/tmp/a.png", [], ["/tmp/a.png"]],
  ["a JSON value", 'it gave "tag": "MEDIA:/tmp/a.png"', 'it gave "tag": "MEDIA:/tmp/a.png"', [], ["/tmp/a.png"]],
  ["a JSON object", '{"tag":"MEDIA:/tmp/a.png"}', '{"tag":"MEDIA:/tmp/a.png"}', [], ["/tmp/a.png"]],
  ["a JSON list", '["MEDIA:/tmp/a.png"]', '["MEDIA:/tmp/a.png"]', [], ["/tmp/a.png"]],
  ["inline code without the file", "use `MEDIA:/tmp/a.png`", "use `MEDIA:/tmp/a.png`", []],
  ["inline code with the file", "here `MEDIA:/tmp/a.png`", "here", ["/tmp/a.png"], ["/tmp/a.png"]],
  ["no extension, no file", "MEDIA:/tmp/thing", "MEDIA:/tmp/thing", []],
  ["no extension, a file", "MEDIA:/tmp/thing.", "", ["/tmp/thing"], ["/tmp/thing"]],
  ["an unknown extension", "MEDIA:/tmp/a.xyz", "MEDIA:/tmp/a.xyz", []],
  ["the shorter path exists", "MEDIA:/tmp/report see notes.md", "see notes.md", ["/tmp/report"], ["/tmp/report"]],
  ["no path behind it", "The tag MEDIA: sends files", "The tag MEDIA: sends files", []],
  ["a relative path", "MEDIA:a.png", "MEDIA:a.png", []],
  ["part of a word", "XMEDIA:/tmp/a.png", "XMEDIA:/tmp/a.png", []],
  ["an address", "MEDIA://host/a.png", "MEDIA://host/a.png", []],
  ["a double extension", "MEDIA:/tmp/a.tar.gz", "", ["/tmp/a.tar.gz"]],
  ["capital letters", "MEDIA:/tmp/A.PNG", "", ["/tmp/A.PNG"]],
];

test("tags are orders outside of code, quotes and data, and go away with what wraps them", () => {
  for (const [what, text, rest, paths, existing = []] of TAGS) {
    const found = takeDirectives(text, (path) => existing.includes(path));
    assert.deepEqual([found.text, found.paths], [rest, paths], what);
  }
});

test("every path that decides how a text is read is asked about", () => {
  assert.deepEqual(pathsToCheck("MEDIA:/tmp/report see notes.md\n`MEDIA:/tmp/a.png`"), [
    "/tmp/report see notes.md",
    "/tmp/report",
    "/tmp/a.png",
  ]);
});

test("double brackets say how files are sent; other brackets are text", () => {
  const found = takeDirectives("[[audio_as_voice]]\nListen [[as_document]] to [[this]] `[[as_document]]`", none);
  assert.deepEqual(found, { text: "Listen to [[this]] `[[as_document]]`", paths: [], asVoice: true, asDocument: true });
  assert.deepEqual(
    [
      outgoing("/x/a.ogg", found).kind,
      outgoing("/x/a.png", found).kind,
      outgoing("/x/a.mp4", found).kind,
      outgoing("/x/a.png").kind,
      outgoing("/x/a").kind,
    ],
    ["voice", "document", "video", "image", "document"],
  );
});

test("a text without tags is not touched", () => {
  const text = "  a\n\n\n\nb  ";
  assert.equal(takeDirectives(text, all).text, text);
});

/** Pieces that come close to being tags, and some that are. */
const piece = fc.constantFrom(
  ...[
    "MEDIA:",
    "MEDIA:/tmp/a.png",
    "MEDIA: /tmp/my file.pdf",
    "M",
    "MED",
    "[[",
    "[[audio_as_voice]]",
    "[[as_doc",
    "]]",
  ],
  ...[
    "**",
    "`",
    "```\n",
    "> ",
    '"',
    "'",
    "\n",
    "\n\n",
    " ",
    ".",
    ",",
    "- ",
    "1. ",
    "/tmp/b.md",
    "word",
    "ü😀",
    '{"a": "',
  ],
);

test("what a stream shows is always the beginning of what the answer says at last", () => {
  const plain = (text: string) => text.replace(/[ \t]+\n/g, "\n").replace(/\n{2,}/g, "\n\n");
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 14 }), fc.boolean(), (pieces, exists) => {
      const text = pieces.join("");
      const last = plain(takeDirectives(text.trim(), () => exists).text.trim());
      for (let end = 0; end <= text.length; end++) {
        const shown = plain(visibleSoFar(text.slice(0, end), () => exists));
        assert.ok(last.startsWith(shown), `${JSON.stringify(shown)} of ${JSON.stringify(last)}`);
      }
      assert.equal(plain(visibleSoFar(`${text}\n`, () => exists)), last, "with the last line nothing is held back");
    }),
    { numRuns: 2000 },
  );
});

test("a tag that is cut anywhere is never shown", () => {
  const text = "Here is the chart:\n\n**MEDIA:/tmp/my chart.png**\n\nand [[audio_as_voice]] the rest.";
  for (let end = 0; end <= text.length; end++)
    assert.doesNotMatch(visibleSoFar(text.slice(0, end), none), /MED|chart\.png|\[\[|\*/);
});

test("pictures by address are found in Markdown and HTML, not in code", () => {
  const text = [
    "![a](https://x.org/a.png) and ![b](https://x.org/page)",
    '![c](https://v3.fal.media/files/c "title") `![d](https://x.org/d.png)`',
    '<img alt="e" src="https://x.org/e.jpg?size=2" width=3>',
    "```\n![f](https://x.org/f.png)\n```",
  ].join("\n");
  const found = imageLinks(text);
  assert.deepEqual(
    found.map(({ url }) => url),
    ["https://x.org/a.png", "https://v3.fal.media/files/c", "https://x.org/e.jpg?size=2"],
  );
  assert.equal(text.slice(found[0]?.start, found[0]?.end), "![a](https://x.org/a.png)");
});

test("bare paths are found outside of code", () => {
  assert.deepEqual(
    barePaths("Saved to /tmp/a.png, (~/b.pdf) and `/tmp/c.png`; not a/b.png, http://h/d.png or /tmp/e"),
    ["/tmp/a.png", "~/b.pdf"],
  );
});

test("results of tools order files on lines of their own; what is only read or a stranger's does not", () => {
  const result = JSON.stringify({ success: true, media_tag: "MEDIA:/x/a.mp3", note: "see MEDIA:/x/b.mp3" });
  assert.deepEqual(mediaInResult("text_to_speech", result), ["/x/a.mp3"]);
  assert.deepEqual(mediaInResult("make_chart", "done\nMEDIA:/x/c.png\n"), ["/x/c.png"]);
  assert.deepEqual(mediaInResult("read_file", result), []);
});

async function openTemp(t: TestContext, config = "") {
  const temp = await tempHome(config === "" ? {} : { "config.yaml": config });
  t.after(() => temp[Symbol.asyncDispose]());
  const home = await openHome({ argv: [], env: { HERMES_HOME: temp.dir }, osHome: temp.osHome, cwd: temp.project });
  return { temp, home, check: (path: string, now = Date.now()) => checkedFile(path, { home, now }) };
}

test("a file is sent by its real path, and not from protected places", async (t) => {
  const { temp, check } = await openTemp(t);
  const place = async (...parts: string[]) => {
    const path = join(temp.osHome, ...parts);
    await mkdir(join(path, ".."), { recursive: true });
    await writeFile(path, "x");
    return path;
  };
  const fine = await place("project", "a b.pdf");
  assert.deepEqual(await check(fine), { path: fine });
  assert.deepEqual(await check("~/project/a b.pdf"), { path: fine });
  const protectedPlace = { refused: "it is in a protected place" };
  for (const parts of [
    [".ssh", "id_ed25519"],
    [".config", "some", "app.json"],
    [".npmrc"],
    ["project", ".env"],
    ["project", ".env.local"],
    [".hermes", "auth.json"],
    [".hermes", "state.db"],
    [".hermes", "credentials.json"],
    [".hermes", "pairing", "telegram-approved.json"],
  ])
    assert.deepEqual(await check(await place(...parts)), protectedPlace, parts.join("/"));
  assert.deepEqual(await check("/etc/hostname"), protectedPlace);
  assert.deepEqual(await check("/proc/self/environ"), protectedPlace);
  const link = join(temp.project, "link.txt");
  await symlink(join(temp.osHome, ".ssh", "id_ed25519"), link);
  assert.deepEqual(await check(link), protectedPlace, "links are followed");
  assert.deepEqual(await check(join(temp.project, "missing.png")), { refused: "not found" });
  assert.deepEqual(await check(temp.project), { refused: "not a file" });
});

test("strict delivery takes allowed folders, caches and fresh files, links into them not", async (t) => {
  const { temp, check } = await openTemp(
    t,
    "gateway:\n  strict: true\n  media_delivery_allow_dirs: [~/out]\n  trust_recent_files_seconds: 600\n",
  );
  const old = new Date(Date.now() - 3600_000);
  const place = async (...parts: string[]) => {
    const path = join(temp.osHome, ...parts);
    await mkdir(join(path, ".."), { recursive: true });
    await writeFile(path, "x");
    await utimes(path, old, old);
    return path;
  };
  const refused = { refused: "its folder is not in gateway.media_delivery_allow_dirs" };
  const elsewhere = await place("project", "a.pdf");
  assert.deepEqual(await check(elsewhere), refused);
  assert.deepEqual(await check(elsewhere, old.getTime() + 60_000), { path: elsewhere }, "just written");
  assert.ok("path" in (await check(await place("out", "a.pdf"))));
  assert.ok("path" in (await check(await place(".hermes", "cache", "images", "a.png"))));
  assert.ok("path" in (await check(await place(".hermes", "image_cache", "a.png"))));
  await symlink(elsewhere, join(temp.osHome, "out", "link.pdf"));
  assert.deepEqual(await check(join(temp.osHome, "out", "link.pdf")), refused);
});
