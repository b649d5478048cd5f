import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { PNG } from "pngjs";
import { type TempTree, tempTree } from "../../../test/support/temp-tree.ts";
import type { UserInput } from "../../llm/messages.ts";
import { makeTheme } from "../terminal-text.ts";
import { Attachments, badges } from "./attachments.ts";

const picture = PNG.sync.write(new PNG({ width: 2, height: 2 }));
const url = `data:image/png;base64,${picture.toString("base64")}`;
const one = [{ name: "a-rather-long-name-of-a-picture-of-mine.png", number: 4 }];
const two = [...one, { name: "b.png", number: 5 }];

const widths: readonly [width: number, attached: typeof two, shown: string][] = [
  [140, [], ""],
  [80, one, "[📎 Image #4]"],
  [80, two, "[📎 Image #4] [📎 Image #5]"],
  [79, one, "[📎 a-rather-long-name-of-a-pictu...]"],
  [52, two, "[📎 a-rather-long-nam...] [+1]"],
  [52, [{ name: "图片名字很长很长很长很长.png", number: 1 }, ...one], "[📎 图片名字很长很长...] [+1]"],
  [51, one, "[📎 a-rather-long-nam...]"],
  [51, two, "[📎 2 images attached]"],
];
for (const [width, attached, shown] of widths)
  test(`badges of ${attached.length} at ${width} cells: ${shown}`, () => assert.equal(badges(attached, width), shown));

interface Rig {
  readonly attachments: Attachments;
  readonly tree: TempTree;
  readonly heard: string[];
  readonly input: { draft: string };
  compose(text: string): Promise<UserInput | null>;
}

async function rig(t: TestContext): Promise<Rig> {
  const tree = await tempTree(t, {
    "a.png": picture,
    "b.png": picture,
    "notes.txt": "words",
    "cut.png": picture.subarray(0, 40),
    "drawing.svg": "<svg xmlns='http://www.w3.org/2000/svg'/>",
    "text.png": "no picture at all",
  });
  const heard: string[] = [];
  const input = {
    draft: "",
    putBack: (text: string) => {
      input.draft = text;
    },
    paste: (text: string) => void heard.push(`pasted: ${text}`),
  };
  const attachments = new Attachments(
    { cwd: tree.root, home: { environment: () => ({ PATH: tree.root }) } },
    {
      theme: makeTheme(false),
      input,
      transcript: {
        dim: (text) => void heard.push(text),
        warn: (text) => void heard.push(`warning: ${text}`),
      },
      onChange: () => undefined,
    },
  );
  return { attachments, tree, heard, input, compose: (text) => attachments.compose({ text }) };
}
const pictures = (input: UserInput | null) => input?.parts?.length ?? 0;
const shown = (attachments: Attachments) => attachments.render(100).join("");

test("what is attached goes out with the next message, and the numbers go on", async (t) => {
  const { attachments, heard, compose } = await rig(t);
  assert.equal(await attachments.attachLine("a.png"), "");
  assert.equal(await attachments.attachLine("'b.png' a.png what are these"), "what are these");
  assert.deepEqual(heard, ["📎 Image #1: a.png", "📎 Image #2: b.png, Image #3: a.png"]);
  assert.equal(shown(attachments), "[📎 Image #1] [📎 Image #2] [📎 Image #3]");
  attachments.removeLast();
  const input = await compose("compare");
  assert.deepEqual(input?.parts, Array(2).fill({ type: "image_url", image_url: { url } }));
  assert.equal(input && attachments.echo(input), "compare [📎 Image #1] [📎 Image #2]");
  assert.equal(shown(attachments), "");
  assert.equal(pictures(await compose("and nothing")), 0);
  await attachments.attachLine("a.png");
  assert.equal(shown(attachments), "[📎 Image #3]", "the number of what was removed is free again");
  attachments.renumber();
  assert.equal(shown(attachments), "[📎 Image #1]");
});

test("a message that was not sent brings its pictures back under their numbers", async (t) => {
  const { attachments, compose } = await rig(t);
  await attachments.attachLine("a.png");
  const input = await compose("first");
  await attachments.attachLine("b.png");
  if (input) attachments.putBack(input);
  assert.equal(shown(attachments), "[📎 Image #1] [📎 Image #2]");
});

test("pictures dropped at the beginning of a message are attached, other files are named", async (t) => {
  const { attachments, tree, compose } = await rig(t);
  await attachments.attachLine("b.png");
  const input = await compose(`${tree.at("a.png")} '${tree.at("notes.txt")}' what is this?`);
  assert.equal(input?.text, `${tree.at("notes.txt")} what is this?`);
  assert.equal(pictures(input), 2);
  assert.equal((await compose(`${tree.at("notes.txt")} is short`))?.text, `${tree.at("notes.txt")} is short`);
});

test("the model is told where the files are, the conversation keeps what was typed", async (t) => {
  const { attachments, tree, compose } = await rig(t);
  const input = await compose(`${tree.at("a.png")} turn it`);
  assert.ok(input);
  const sent = await attachments.withPaths(input);
  assert.equal(sent.text, `turn it\n\n[Attached: ${tree.at("a.png")}]`);
  assert.equal(sent.persistText, "turn it");
  assert.deepEqual(await attachments.withPaths({ text: "x" }), { text: "x" });
});

test("a picture that cannot be sent stops the message, and everything typed and attached is the user's again", async (t) => {
  for (const [name, why] of [
    ["cut.png", /cut\.png is damaged or incomplete; it is not sent\. Nothing was sent\./],
    ["text.png", /text\.png is not an image this program can send \(png, jpeg, gif, webp\)\. Nothing was sent\./],
  ] as const) {
    const { attachments, tree, heard, input, compose } = await rig(t);
    await attachments.attachLine("a.png");
    const line = `${tree.at(name)} what is this?`;
    assert.equal(await compose(line), null);
    assert.match(heard.at(-1) ?? "", why);
    assert.equal(input.draft, line);
    assert.equal(shown(attachments), "[📎 Image #1]");
  }
});

test("a kind of picture that models do not take is sent as a path, and the user reads why", async (t) => {
  const { tree, heard, compose } = await rig(t);
  const input = await compose(`${tree.at("drawing.svg")} make it red`);
  assert.equal(input?.text, `${tree.at("drawing.svg")} make it red`);
  await tree.add({ "odd.svg": "<svg/>" });
  assert.equal((await compose(`${tree.at("odd.svg")} too`))?.text, `${tree.at("odd.svg")} too`);
  assert.match(heard.join(), /drawing\.svg is image\/svg\+xml; models take png, jpeg, gif and webp.*Its path is sent/);
});

test("/image says what is wrong and attaches nothing by halves", async (t) => {
  const { attachments, heard } = await rig(t);
  for (const line of ["gone.png", "a.png gone.png", "notes.txt", "a.png drawing.svg", "cut.png"])
    assert.equal(await attachments.attachLine(line), null);
  assert.equal(attachments.count, 0);
  assert.match(heard[0] ?? "", /warning: No such file: gone\.png/);
  assert.match(heard[1] ?? "", /warning: No such file: gone\.png/);
  assert.match(heard[2] ?? "", /notes\.txt is not an image/);
});

test("a paste that is nothing but paths of pictures becomes pictures; what was typed behind it stays", async (t) => {
  const { attachments, tree, heard, input } = await rig(t);
  const paths = `${tree.at("a.png")} ${tree.at("b.png")} `;
  input.draft = `${paths}what`;
  await attachments.pasted(paths);
  assert.deepEqual([input.draft, shown(attachments)], ["what", "[📎 Image #1] [📎 Image #2]"]);
  for (const text of [`${tree.at("a.png")} in words`, tree.at("notes.txt"), tree.at("cut.png"), "plain words"]) {
    input.draft = text;
    await attachments.pasted(text);
    assert.equal(input.draft, text);
  }
  assert.equal(attachments.count, 2);
  assert.match(heard.join(), /cut\.png is damaged/);
});

test("a message that is sent while a picture is being read waits for it, and messages keep their order", async (t) => {
  const { attachments, compose } = await rig(t);
  const order: string[] = [];
  const attaching = attachments.attachLine("a.png");
  assert.equal(attachments.count, 1);
  const first = compose("first").then((input) => order.push(`${input?.text} ${pictures(input)}`));
  const second = compose("second").then((input) => order.push(`${input?.text} ${pictures(input)}`));
  await Promise.all([attaching, first, second]);
  assert.deepEqual(order, ["first 1", "second 0"]);
});

test("the stash takes the pictures along with the draft", async (t) => {
  const { attachments } = await rig(t);
  await attachments.attachLine("a.png");
  attachments.stash({ restore: false });
  assert.equal(attachments.count, 0);
  await attachments.attachLine("b.png");
  attachments.stash({ restore: true });
  assert.equal(attachments.count, 2);
});
