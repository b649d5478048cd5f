import assert from "node:assert/strict";
import { relative } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { tempTree } from "../../../test/support/temp-tree.ts";
import { readDropped } from "./dropped-paths.ts";

const FILES = {
  "a.png": "1",
  "my pic.JPG": "2",
  "it's (one).gif": "3",
  "Screenshot at 4.12.25\u202fPM.png": "4",
  "notes of mine.txt": "5",
  "home/h.webp": "6",
  "folder.png/x": "7",
};

/** `ROOT` stands for the folder; what was found is told by its name below it, in brackets what is no picture. */
const cases: readonly [line: string, found: readonly string[], rest: string, anyName?: boolean][] = [
  ["ROOT/a.png what is this?", ["a.png"], "what is this?"],
  ["  ROOT/a.png", ["a.png"], ""],
  ["ROOT/my\\ pic.JPG look", ["my pic.JPG"], "look"],
  ["'ROOT/my pic.JPG' look", ["my pic.JPG"], "look"],
  ['"ROOT/it\'s (one).gif"', ["it's (one).gif"], ""],
  ["ROOT/it\\'s\\ \\(one\\).gif x", ["it's (one).gif"], "x"],
  ["ROOT/my pic.JPG with bare blanks", ["my pic.JPG"], "with bare blanks"],
  ["ROOT/Screenshot\\ at\\ 4.12.25\u202fPM.png read it", ["Screenshot at 4.12.25\u202fPM.png"], "read it"],
  ["URL/my%20pic.JPG now", ["my pic.JPG"], "now"],
  ["file://elsewhere/a.png", [], "file://elsewhere/a.png"],
  ["~/h.webp", ["home/h.webp"], ""],
  ["./a.png", ["a.png"], ""],
  ["ROOT/a.png 'ROOT/my pic.JPG'\nROOT/home/h.webp compare", ["a.png", "my pic.JPG", "home/h.webp"], "compare"],
  ["ROOT/a.png ROOT/notes\\ of\\ mine.txt both", ["a.png", "[notes of mine.txt]"], "both"],
  ["ROOT/folder.png list it", ["[folder.png]"], "list it"],
  ["ROOT/gone.png what", [], "ROOT/gone.png what"],
  ["a.png is broken", [], "a.png is broken"],
  ["a.png is broken", ["a.png"], "is broken", true],
  ["'a.png' is broken", [], "'a.png' is broken"],
  ["it's ROOT/a.png", [], "it's ROOT/a.png"],
  ["", [], ""],
  ["ROOT/a.png\u0000x", [], "ROOT/a.png\u0000x"],
];

test("paths at the beginning of a line are read as terminals write them", async (t) => {
  const { root, at } = await tempTree(t, FILES);
  const places = { cwd: root, userHome: at("home") };
  const filled = (text: string) => text.replaceAll("ROOT", root).replaceAll("URL", pathToFileURL(root).href);
  for (const [line, found, rest, anyName = false] of cases) {
    const dropped = await readDropped(filled(line), places, { anyName });
    const names = dropped.files.map(({ path, isPicture }) => {
      const name = relative(root, path);
      return isPicture ? name : `[${name}]`;
    });
    assert.deepEqual([names, dropped.rest], [found, filled(rest)], line);
  }
});

test("a file is referred to by its plain path, in backticks when there are blanks in it", async (t) => {
  const { root } = await tempTree(t, FILES);
  const places = { cwd: root, userHome: root };
  const { files } = await readDropped(`${root}/notes\\ of\\ mine.txt ~/a.png ./a.png`, places);
  assert.deepEqual(
    files.map(({ reference }) => reference),
    [`\`${root}/notes of mine.txt\``, `${root}/a.png`, "./a.png"],
  );
});
