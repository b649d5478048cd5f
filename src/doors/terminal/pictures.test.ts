import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, type TestContext, test } from "node:test";
import { resetCapabilitiesCache, setCapabilities, type Terminal } from "@earendil-works/pi-tui";
import { asPng } from "../../llm/pictures/smaller.ts";
import { makeTheme } from "../terminal-text.ts";
import { pictureOf, picturePath, sixel } from "./pictures.ts";
import { DrawnScreen, terminalFacts } from "./screen-terminal.ts";

const theme = makeTheme(false);
const look = { theme, cwd: "/project", filesAreHere: true };
const red = {
  width: 20,
  height: 12,
  data: new Uint8Array(20 * 12 * 4).map((_, at) => (at % 4 === 0 || at % 4 === 3 ? 255 : 0)),
};

afterEach(() => {
  resetCapabilitiesCache();
  terminalFacts.sixel = false;
});

function ended(name: string, args: Record<string, unknown>, result: object, failed = false) {
  return {
    type: "tool_end" as const,
    call: { id: "c", name, args, preview: "" },
    result: JSON.stringify(result),
    ms: 1,
    failed,
    ...{ sessionId: "s", turn: 1, seq: 1 },
  };
}

async function drawn(t: TestContext, bytes: Buffer, images: "kitty" | "iterm2" | null): Promise<string[]> {
  const dir = await mkdtemp(join(tmpdir(), "picture-"));
  t.after(() => rm(dir, { recursive: true }));
  await writeFile(join(dir, "red.png"), bytes);
  setCapabilities({ images, trueColor: true, hyperlinks: false });
  const picture = await pictureOf(ended("image_generate", {}, { image: join(dir, "red.png") }), look);
  return picture?.render(80) ?? [];
}

const paths: [string, Record<string, unknown>, object, string | null][] = [
  ["image_generate", {}, { image: "/home/x/a.png" }, "/home/x/a.png"],
  ["image_generate", {}, { image: "https://x.test/a.png" }, null],
  ["browser_vision", {}, { screenshot_path: "/home/x/b.png" }, "/home/x/b.png"],
  ["vision_analyze", { image_url: "pics/c.png" }, {}, "/project/pics/c.png"],
  ["vision_analyze", { image_url: "file:///x/c.png" }, {}, "/x/c.png"],
  ["vision_analyze", { image_url: "https://x.test/c.png" }, {}, null],
  ["terminal", { image_url: "/x/c.png" }, { image: "/x/c.png" }, null],
];
for (const [name, args, result, expected] of paths)
  test(`the picture of ${name} ${JSON.stringify({ ...args, ...result })} is ${expected}`, () => {
    assert.equal(picturePath(ended(name, args, result), look), expected);
    assert.equal(picturePath(ended(name, args, result, true), look), null, "a failed call has none");
  });

test("files of another machine are not looked for here", () => {
  const call = ended("vision_analyze", { image_url: "/x/c.png" }, {});
  assert.equal(picturePath(call, { ...look, filesAreHere: false }), null);
});

test("a terminal without pictures gets name, pixels and size", async (t) => {
  const png = asPng(red);
  assert.deepEqual(await drawn(t, png, null), [`🖼 red.png · 20×12 · ${png.length} B`]);
});

test("kitty and iTerm2 get the picture in their own protocol, sixel terminals theirs", async (t) => {
  assert.match((await drawn(t, asPng(red), "kitty")).join("\n"), /^\u001b_Ga=T,f=100[^;]*,i=\d+[\s\S]*\n🖼 red\.png/);
  assert.match((await drawn(t, asPng(red), "iterm2")).join("\n"), /\u001b\]1337;File=inline=1[\s\S]*\n🖼 red\.png/);
  terminalFacts.sixel = true;
  assert.match(
    (await drawn(t, asPng(red), null)).join("\n"),
    /\u001bP0;1;0q"1;1;\d+;\d+#180;2;100;0;0[\s\S]*\u001b8\n🖼 red\.png/,
  );
});

test("a broken picture is only named", async (t) => {
  const broken = asPng(red).subarray(0, 40);
  assert.deepEqual(await drawn(t, broken, "kitty"), ["🖼 red.png · 20×12 · 40 B"]);
});

test("sixel counts equal columns and paints each band", () => {
  assert.equal(sixel(red), '\u001bP0;1;0q"1;1;20;12#180;2;100;0;0#180!20~-#180!20~\u001b\\');
});

test("the screen draws pictures of its own and no foreign ones", async (t) => {
  const [line = ""] = await drawn(t, asPng(red), "kitty");
  const terminal = { columns: 80, rows: 24, write: () => undefined } as unknown as Terminal; // all that is asked without a start
  const screen = new DrawnScreen(terminal);
  const foreign = "\u001b_Ga=T,f=100;AAAA\u001b\\";
  screen.addChild({ render: () => [line, foreign], invalidate: () => undefined });
  assert.deepEqual(screen.render(80), [line, ""]);
});
