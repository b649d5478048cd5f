// The clipboard through the programs that read it: small ones on a search path of the test's own.
import assert from "node:assert/strict";
import { chmod, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { type TestContext, test } from "node:test";
import { type TempTree, tempTree } from "../../../test/support/temp-tree.ts";
import { copyText, readClipboard } from "./clipboard.ts";

const onLinux = { skip: process.platform !== "linux" && "the programs of Linux" };
const NODE = process.execPath;

/** Each program is a function of its arguments that returns what it prints, or undefined for a failure. */
async function desktop(t: TestContext, programs: Readonly<Record<string, string>>): Promise<TempTree> {
  const tree = await tempTree(t);
  for (const [name, body] of Object.entries(programs)) {
    await tree.add({
      [name]: `#!${NODE}\nconst args = process.argv.slice(2).join(" ");\nconst said = (() => { ${body} })();\nif (said === undefined) process.exit(1);\nprocess.stdout.write(said);\n`,
    });
    await chmod(tree.at(name), 0o755);
  }
  return tree;
}
const WL_PASTE = `
  if (args === "--list-types") return "text/html\\nimage/png\\ntext/plain\\n";
  if (args === "--no-newline --type image/png") return Buffer.from([137, 80, 78, 71]);`;
const XCLIP = `
  if (args === "-selection clipboard -o -t TARGETS") return "TARGETS\\nUTF8_STRING\\nSTRING\\n";
  if (args === "-selection clipboard -o -t UTF8_STRING") return "grüße 世界";`;
const POWERSHELL = `
  if (args.startsWith("-NoProfile -NonInteractive -STA -Command ")) return "png:" + Buffer.from("PICTURE").toString("base64") + "\\r\\n";`;

test("Wayland: a picture comes before a text", onLinux, async (t) => {
  const { root } = await desktop(t, { "wl-paste": WL_PASTE });
  const held = await readClipboard({ PATH: root, WAYLAND_DISPLAY: "wayland-0" });
  assert.deepEqual(held, { type: "picture", bytes: Buffer.from([137, 80, 78, 71]) });
});

test("X11: a text is a text, and its bytes are read as UTF-8", onLinux, async (t) => {
  const { root } = await desktop(t, { xclip: XCLIP });
  assert.deepEqual(await readClipboard({ PATH: root, DISPLAY: ":0" }), { type: "text", text: "grüße 世界" });
});

test("where the first program is missing the next one is asked; WSL asks Windows", onLinux, async (t) => {
  const { root } = await desktop(t, { "powershell.exe": POWERSHELL });
  const held = await readClipboard({ PATH: root, WAYLAND_DISPLAY: "wayland-0", WSL_DISTRO_NAME: "Ubuntu" });
  assert.deepEqual(held, { type: "picture", bytes: Buffer.from("PICTURE") });
});

test("an empty clipboard and a missing program are told apart", onLinux, async (t) => {
  const { root } = await desktop(t, { "wl-paste": `return args === "--list-types" ? "x-special/none" : undefined;` });
  const empty = await readClipboard({ PATH: root, WAYLAND_DISPLAY: "wayland-0" });
  assert.deepEqual(empty, { type: "nothing", why: "The clipboard contains no picture or text." });
  const none = await readClipboard({ PATH: dirname(root), DISPLAY: ":0", SSH_CONNECTION: "1" });
  assert.match(none.type === "nothing" ? none.why : "", /xclip is not available\. \/image PATH attaches.*Over SSH/);
});

test("more than the limit is refused, and the program that goes on printing is ended", onLinux, async (t) => {
  const tree = await desktop(t, {
    "wl-paste": `
      if (args === "--list-types") return "image/png";
      require("node:fs").writeFileSync(__dirname + "/pid", String(process.pid));
      try {
        for (;;) require("node:fs").writeSync(1, Buffer.alloc(1 << 20));
      } catch {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000); // it does not end by itself
      }`,
  });
  await assert.rejects(readClipboard({ PATH: tree.root, WAYLAND_DISPLAY: "w" }), /too large \(limit: 50 MB\)/);
  const pid = Number(await readFile(tree.at("pid"), "utf8"));
  const isAlive = () => {
    try {
      process.kill(pid, 0);
      return true;
    } catch {
      return false;
    }
  };
  for (let tries = 0; isAlive() && tries < 200; tries++) await new Promise((resolve) => setTimeout(resolve, 25));
  assert.equal(isAlive(), false);
});

test("a program of the project is not found through a relative search path", onLinux, async (t) => {
  const { root } = await desktop(t, {
    xclip: `return args.endsWith("TARGETS") ? "STRING" : process.cwd();`,
  });
  assert.deepEqual(await readClipboard({ PATH: root, DISPLAY: ":0" }), { type: "text", text: "/" });
});

test(
  "a copied text goes to the program here, over SSH to the terminal, which takes no more than it can",
  onLinux,
  async (t) => {
    const { root, at } = await desktop(t, {
      "wl-copy": `require("node:fs").writeFileSync(__dirname + "/copied", require("node:fs").readFileSync(0)); return "";`,
    });
    const { PATH } = process.env;
    process.env.PATH = root;
    t.after(() => {
      process.env.PATH = PATH;
    });
    const written: string[] = [];
    const write = (data: string) => void written.push(data);
    assert.equal(await copyText("grüße", { remote: false, write }), "with wl-copy");
    assert.equal(await readFile(at("copied"), "utf8"), "grüße");
    assert.equal(await copyText("far away", { remote: true, write }), "through the terminal");
    assert.deepEqual(written, [`\u001b]52;c;${Buffer.from("far away").toString("base64")}\u0007`]);
    await assert.rejects(
      copyText("x".repeat(80_000), { remote: true, write }),
      /too long for the terminal's clipboard/,
    );
  },
);
