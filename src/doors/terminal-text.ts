// Text for a terminal: its width in cells, its colours, and what of it must not reach one.
// Widths are the renderer's own: a line that is one cell too long for it is an error there. Only this file of the package is loaded
// here, because commands that print a table need no renderer.
import { sliceByColumn, truncateToWidth, visibleWidth, wrapTextWithAnsi } from "@earendil-works/pi-tui/dist/utils.js";
import { withoutControls } from "../kit/strip-ansi.ts";

/** Wide characters (Chinese, Japanese, Korean, most emoji) take two cells, combining ones none. */
export const cellWidth = visibleWidth;

/** At most `cells` wide; what was cut ends with `mark`, which counts. */
export function cut(text: string, cells: number, mark = "..."): string {
  if (cellWidth(text) <= cells) return text;
  const room = cells - cellWidth(mark);
  if (room <= 0) return mark.slice(0, Math.max(0, cells));
  return text.includes("\u001b") ? truncateToWidth(text, cells, mark) : sliceByColumn(text, 0, room, true) + mark;
}

/** Blanks after it up to `cells`; never cuts. */
export function padCells(text: string, cells: number): string {
  return text + " ".repeat(Math.max(0, cells - cellWidth(text)));
}

/** Lines of at most `cells`, broken at blanks where there are some. */
export function wrapLines(text: string, cells: number): string[] {
  return text.split("\n").flatMap((line) => (cellWidth(line) <= cells ? [line] : wrapTextWithAnsi(line, cells)));
}

/** Where a text below its column begins. */
const BELOW = "      ";
const LEAST_BELOW = 20;
/** What the rest of a line stands behind: a first column, a mark (`✗ `, `- `, `2. `), blanks. */
const HEADS = [/^(?: +\S+(?: \S+)*|\S+(?: \S+)?) {2,}/, /^ *(?:[^\w\s\p{L}]|\d+\.) /u, /^ +/];

/** The same for text in columns: the rest of `  name   text` stands below the text, and that of an indented line below its beginning. */
export function wrapColumns(text: string, cells: number): string[] {
  const lines = text.split("\n").map((line) => {
    const heads = HEADS.flatMap((shape) => shape.exec(line)?.[0] ?? []);
    const head = heads.find((each) => cellWidth(each) * 2 <= cells) ?? "";
    const [first = ""] = heads;
    const isTight = first.trim() !== "" && head !== first && cells >= LEAST_BELOW;
    return { line, first, head, fits: cellWidth(line) <= cells, isTight };
  });
  // Too little room beside the first column: the text goes below it, in each row of the table.
  const below = new Set(lines.flatMap(({ first, fits, isTight }) => (isTight && !fits ? [cellWidth(first)] : [])));
  return lines.flatMap(({ line, first, head, fits, isTight }) => {
    if (isTight && below.has(cellWidth(first))) {
      const rest = wrapTextWithAnsi(line.slice(first.length), cells - BELOW.length).map((part) => BELOW + part);
      return [...wrapTextWithAnsi(first.trimEnd(), cells), ...rest];
    }
    if (fits) return [line];
    const indent = cellWidth(head);
    const wrapped = wrapTextWithAnsi(line.slice(head.length), cells - indent);
    return wrapped.map((part, at) => (at === 0 ? head : " ".repeat(indent)) + part);
  });
}

// Colours by meaning. Without colour every function returns its text unchanged.

type Paint = (text: string) => string;

/** What each role looks like in the terminal's own colours; `terminal/skins/` has others. */
const BASIC = {
  accent: [36, 39],
  dim: [2, 22],
  bold: [1, 22],
  italic: [3, 23],
  underlined: [4, 24],
  struck: [9, 29],
  ok: [32, 39],
  warn: [33, 39],
  error: [31, 39],
  added: [32, 39],
  removed: [31, 39],
  user: [34, 39],
  // Of code.
  keyword: [35, 39],
  string: [32, 39],
  number: [33, 39],
  comment: [2, 22],
  call: [34, 39],
  type: [36, 39],
  /** The words that differ in a changed line, on top of its colour. */
  changed: [7, 27],
  // Of single places.
  title: [1, 22],
  border: [2, 22],
  logo: [36, 39],
  bannerText: null,
  label: [2, 22],
  answerRule: [2, 22],
  inputRule: [2, 22],
  sessionLabel: null,
  sessionRule: [2, 22],
  status: null,
  statusModel: null,
  statusDim: [2, 22],
  contextGood: [32, 39],
  contextWarn: [33, 39],
  contextBad: [31, 39],
  contextCritical: [31, 39],
  menuRow: [36, 39],
  menuText: [2, 22],
} as const satisfies Record<string, readonly [open: number, close: number] | null>;

export type Role = keyof typeof BASIC;
export const ROLES = Object.keys(BASIC) as readonly Role[]; // the keys just written

/** What a skin changes besides colours. */
export interface Look {
  readonly agentName: string;
  readonly welcome: string;
  readonly goodbye: string;
  readonly answerLabel: string;
  readonly promptSymbol: string;
  readonly helpHeader: string;
  readonly waitingFaces: readonly string[];
  readonly thinkingFaces: readonly string[];
  readonly thinkingVerbs: readonly string[];
  /** What stands left and right of a face. */
  readonly wings: readonly (readonly [left: string, right: string])[];
  readonly toolPrefix: string;
  readonly toolEmojis: Readonly<Record<string, string>>;
  readonly logo: readonly string[];
  readonly hero: readonly string[];
}

export type Theme = { readonly [Key in Role]: Paint } & { readonly look: Look };

const PLAIN_LOOK: Look = {
  agentName: "Hermes",
  welcome: "",
  goodbye: "",
  answerLabel: "⚕ Hermes",
  promptSymbol: "❯",
  helpHeader: "",
  waitingFaces: [],
  thinkingFaces: [],
  thinkingVerbs: [],
  wings: [],
  toolPrefix: "┊",
  toolEmojis: {},
  logo: ["╦ ╦ ╔═╗ ╦═╗ ╔╦╗ ╔═╗ ╔═╗", "╠═╣ ║╣  ╠╦╝ ║║║ ║╣  ╚═╗", "╩ ╩ ╚═╝ ╩╚═ ╩ ╩ ╚═╝ ╚═╝"],
  hero: [],
};

export function makeTheme(color: boolean): Theme {
  const paint = (codes: readonly [number, number] | null): Paint =>
    codes === null || !color
      ? (text) => text
      : (text) => (text === "" ? text : `\u001b[${codes[0]}m${text}\u001b[${codes[1]}m`);
  const roles = Object.fromEntries(ROLES.map((role) => [role, paint(BASIC[role])]));
  return { ...(roles as { [Key in Role]: Paint }), look: PLAIN_LOOK }; // every role
}

/**
 * A theme that can be exchanged while it is in use: whoever holds it, or one of its functions, paints with the present one. `lookOf` has
 * the last word about its look, each time somebody asks.
 */
export function liveTheme(
  first: Theme,
  lookOf = (look: Look) => look,
): { readonly theme: Theme; use(next: Theme): void } {
  let present = first;
  const roles = Object.fromEntries(ROLES.map((role) => [role, (text: string) => present[role](text)]));
  const theme = {
    ...(roles as { [Key in Role]: Paint }), // every role
    get look() {
      return lookOf(present.look);
    },
  };
  return {
    theme,
    use: (next) => {
      present = next;
    },
  };
}

// Text of models, tools and files must not drive the terminal: what is not text is left out, or shown where hiding it could deceive.

const TAB = "    ";

/** For reading, in lines that are measured: tabs are blanks too. */
export function printable(text: string): string {
  return withoutControls(text).replaceAll("\t", TAB);
}

// Direction marks and zero-width characters: they make a command look like another one.
const DECEIVING = /[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

/** For deciding: whatever would be invisible or reorder the text is spelled out. */
export function revealed(text: string): string {
  return text
    .replaceAll("\r\n", "\n")
    .replaceAll("\t", TAB)
    .replace(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/g, (char) => shownCode(char))
    .replace(DECEIVING, (char) => shownCode(char));
}

const shownCode = (char: string) => `<U+${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}>`;

const STYLE = "\\u001b\\[[\\d;:]{0,64}m|\\u001b_pi:c\\u0007";
const NO_STYLE = /[\x00-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\u001b(?!\[[\d;:]{0,64}m)/;

/**
 * The last look at lines that are to be drawn: colours, the renderer's mark for the cursor and what `own` describes stay, every other
 * sequence is foreign, whichever part of the screen forgot to clean it. What was hidden in one may now be seen, so such a line is cut to
 * `cells` again.
 */
export function onlyStyled(lines: readonly string[], cells: number, own?: string): string[] {
  const styles = own === undefined ? STYLES : (OWN.get(own) ?? new RegExp(`(${STYLE}|${own})`));
  if (own !== undefined) OWN.set(own, styles);
  return lines.map((line) => {
    if (!NO_STYLE.test(line)) return line;
    const parts = line.split(styles).map((part, at) => (at % 2 === 1 ? part : printable(part).replaceAll("\n", " ")));
    return cut(parts.join(""), cells);
  });
}

const STYLES = new RegExp(`(${STYLE})`);
const OWN = new Map<string, RegExp>();

// Keys.

const ESCAPE = "\u001b";

/** Two quick presses of Escape arrive as one sequence, which is no key of anybody: each is handed on by itself. */
export const singleKeys = (onInput: (data: string) => void) => (data: string) => {
  if (data !== ESCAPE + ESCAPE) return onInput(data);
  onInput(ESCAPE);
  onInput(ESCAPE);
};
