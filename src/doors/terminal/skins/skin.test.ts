import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { knownPersonalities } from "../../../prompt/personalities.ts";
import { cellWidth, makeTheme, ROLES } from "../../terminal-text.ts";
import { withPersonality } from "../screen-skin.ts";
import { BUILT_IN } from "./built-in.ts";
import { BLACK, contrast, depthOf, knownBackground, parseHex, readable, sgr, WHITE } from "./colours.ts";
import { COLOUR_KEYS, readSkin, skinTheme } from "./skin.ts";

const from = (variables: Readonly<Record<string, string>>) => (name: string) => variables[name];

describe("light or dark", () => {
  const cases: readonly (readonly [what: string, variables: Record<string, string>, background: unknown])[] = [
    ["nothing is known", {}, null],
    ["the switch", { HERMES_LIGHT: "1", HERMES_TUI_THEME: "dark" }, WHITE],
    ["the switch off", { HERMES_LIGHT: "0", COLORFGBG: "0;15" }, BLACK],
    ["the theme", { HERMES_TUI_THEME: "Light", HERMES_TUI_BACKGROUND: "#000000" }, WHITE],
    ["the background", { HERMES_TUI_BACKGROUND: "#fdf6e3", COLORFGBG: "15;0" }, [253, 246, 227]],
    ["foreground and background, light", { COLORFGBG: "0;default;15" }, WHITE],
    ["foreground and background, grey", { COLORFGBG: "0;7" }, WHITE],
    ["foreground and background, dark", { COLORFGBG: "15;0" }, BLACK],
    ["what nobody understands", { HERMES_TUI_THEME: "neon", HERMES_TUI_BACKGROUND: "sky", COLORFGBG: "default" }, null],
  ];
  for (const [what, variables, background] of cases)
    test(what, () => assert.deepEqual(knownBackground(from(variables)), background));
});

describe("colours", () => {
  test("are sent as the terminal can show them", () => {
    assert.deepEqual(sgr("#ff0000", "all"), ["38;2;255;0;0", "39"]);
    assert.deepEqual(sgr("#ff0000", 256), ["38;5;196", "39"]);
    assert.deepEqual(sgr("#808080", 256), ["38;5;244", "39"]);
    assert.deepEqual(sgr("#ff3c3c", 16), ["91", "39"]);
    assert.deepEqual(sgr("cyan", "all"), ["36", "39"]);
    assert.deepEqual(sgr("bright-black", 16, { behind: true }), ["100", "49"]);
    assert.equal(sgr("#ff0000", 0), null);
    assert.equal(depthOf(from({ TERM: "xterm", COLORTERM: "truecolor" })), "all");
    assert.equal(depthOf(from({ TERM: "tmux-256color" })), 256);
    assert.equal(depthOf(from({ TERM: "linux" })), 16);
  });

  test("of a dark terminal's own are left alone, on a light one they can be read", () => {
    assert.equal(readable("yellow", BLACK), "yellow");
    assert.equal(readable("dim", null), "dim");
    for (const name of ["yellow", "cyan", "green", "bright-white", "dim"]) {
      const colour = parseHex(readable(name, WHITE));
      assert.ok(colour && contrast(colour, WHITE) >= 3.2, `${name}: ${colour}`);
    }
  });

  test("every skin can be read on black and on white", () => {
    for (const skin of BUILT_IN)
      for (const background of [BLACK, WHITE])
        for (const key of COLOUR_KEYS) {
          const colour = parseHex(readable(skin.colors[key] ?? "default", background));
          if (colour) assert.ok(contrast(colour, background) >= 4.5, `${skin.name} ${key}`);
        }
  });
});

describe("a skin", () => {
  test("paints every role and leaves the text as it is", () => {
    for (const skin of BUILT_IN) {
      const coloured = skinTheme(skin, { depth: "all", background: null });
      const plain = skinTheme(skin, { depth: 0, background: WHITE });
      for (const role of ROLES) {
        assert.equal(coloured[role]("text").replaceAll(/\u001b\[[\d;]+m/g, ""), "text", `${skin.name} ${role}`);
        assert.equal(plain[role]("text"), "text", `${skin.name} ${role}`);
      }
    }
  });

  test("of a file inherits what it does not set", () => {
    const { skin, problems } = readSkin("mine", {
      description: "my own",
      colors: { ui_accent: "#ABCDEF", ui_ok: "greenish", something_new: 1 },
      branding: { response_label: " ☼ Sun ", prompt_symbol: "→ " },
      tool_emojis: { terminal: "🐚", bad: 1 },
      spinner: { thinking_verbs: ["musing"], wings: [["<", ">"], "odd"] },
      banner_logo: "[bold #fff]one[/]\n\u001b[31mtwo",
    });
    assert.deepEqual(problems, ['colors.ui_ok: "greenish" is not a colour; write #rrggbb or a name such as cyan']);
    const theme = skinTheme(skin, { depth: "all", background: null });
    assert.equal(theme.accent("x"), "\u001b[38;2;171;205;239mx\u001b[39m");
    assert.equal(theme.ok("x"), "\u001b[32mx\u001b[39m");
    assert.equal(theme.look.answerLabel, "☼ Sun");
    assert.equal(theme.look.promptSymbol, "→");
    assert.equal(theme.look.toolPrefix, "┊");
    assert.deepEqual(theme.look.toolEmojis, { terminal: "🐚" });
    assert.deepEqual(theme.look.wings, [["<", ">"]]);
    assert.deepEqual(theme.look.logo, ["one", "two"]);
  });

  test("that is no mapping is refused", () => {
    assert.throws(() => readSkin("bad", "text"), /no settings/);
    assert.throws(() => readSkin("bad", null), /no settings/);
  });
});

describe("a personality", () => {
  const { look } = makeTheme(false);

  test("gives the spinner its faces and answers its name; the default gives faces only", () => {
    const pirate = withPersonality(look, " Pirate ");
    assert.equal(pirate.answerLabel, "⚕ Hermes (Pirate)");
    assert.ok(pirate.thinkingFaces.includes("(x_o)") && pirate.waitingFaces.length > 0);
    const first = withPersonality(look, "kawaii");
    assert.deepEqual([first.answerLabel, first.thinkingFaces[0]], ["⚕ Hermes", "(◕‿◕)"]);
  });

  test("that is off, unknown or technical has the plain spinner; faces of a skin stay", () => {
    for (const off of ["none", "Default", "neutral", ""]) assert.equal(withPersonality(look, off), look);
    const own = withPersonality(look, "my \u001b[31mown one with a name that is far too long");
    assert.deepEqual([own.thinkingFaces, own.answerLabel], [[], "⚕ Hermes (my own one with a name …)"]);
    const skin = { ...look, thinkingFaces: ["(!)"] };
    assert.deepEqual(withPersonality(skin, "uwu").thinkingFaces, ["(!)"]);
  });

  test("has faces that leave room for what is done", () => {
    for (const name of Object.keys(knownPersonalities({}))) {
      const { thinkingFaces, waitingFaces } = withPersonality(look, name);
      for (const face of [...thinkingFaces, ...waitingFaces]) assert.ok(cellWidth(face) <= 12, face);
    }
  });
});
