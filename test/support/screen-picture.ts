// Draws what a terminal shows, as `tmux capture-pane -e` prints it, into an SVG file: one picture, or several as a recording.
// Every run of characters stands at the cell where the terminal has it, so that a font with other widths shifts nothing.
import { cellWidth } from "../../src/doors/terminal-text.ts";

const CELL = { width: 8.4, height: 18 };
const EDGE = 12;
const FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Noto Sans Mono CJK SC',monospace";

/** The colours of a common terminal, dark and light: background, text, then black ... white and their bright ones. */
const PALETTES = {
  dark: {
    background: "#0d1117",
    text: "#d6dde5",
    ansi: "#484f58 #ff7b72 #3fb950 #d29922 #58a6ff #bc8cff #39c5cf #b1bac4 #8b949e #ffa198 #56d364 #e3b341 #79c0ff #d2a8ff #56d4dd #f0f6fc",
  },
  light: {
    background: "#ffffff",
    text: "#1f2328",
    ansi: "#24292f #cf222e #116329 #7d4e00 #0969da #8250df #1b7c83 #6e7781 #57606a #a40e26 #1a7f37 #633c01 #218bff #a475f9 #3192aa #8c959f",
  },
};

type ThemeName = keyof typeof PALETTES;

interface Style {
  readonly fg: string | null;
  readonly bg: string | null;
  readonly bold: boolean;
  readonly dim: boolean;
  readonly italic: boolean;
  readonly underline: boolean;
  readonly strike: boolean;
  readonly reverse: boolean;
}

/** Characters of one look, from cell `at` on. */
interface Run {
  text: string;
  readonly at: number;
  cells: number;
  readonly style: Style;
  readonly wide: boolean;
}

interface Size {
  readonly columns: number;
  readonly rows: number;
  readonly title: string;
}

interface Picture extends Size {
  readonly ansi: string;
  readonly theme: ThemeName;
}

interface Recording extends Size {
  readonly frames: readonly { readonly ansi: string; readonly seconds: number }[];
  readonly theme: ThemeName;
}

const PLAIN: Style = {
  fg: null,
  bg: null,
  bold: false,
  dim: false,
  italic: false,
  underline: false,
  strike: false,
  reverse: false,
};
const segments = new Intl.Segmenter("en", { granularity: "grapheme" });

/** The runs of each row. `theme` says what the sixteen named colours look like. */
export function readScreen(ansi: string, theme: ThemeName): Run[][] {
  let style = PLAIN;
  return ansi.replace(/\n$/, "").split("\n").map(readRow);

  function readRow(line: string): Run[] {
    const runs: Run[] = [];
    let at = 0;
    // tmux repeats nothing over a line end; hyperlinks (OSC 8) are not part of the picture.
    for (const [, codes, other, text] of line.matchAll(
      /\u001b\[([\d;:]*)m|(\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[\u000e\u000f])|([^\u001b\u000e\u000f]+)/g,
    )) {
      if (codes !== undefined) style = applied(style, codes, theme);
      if (other !== undefined || text === undefined) continue;
      for (const { segment } of segments.segment(text)) {
        const cells = cellWidth(segment);
        const last = runs.at(-1);
        // A wide character stands by itself: fonts disagree most about those.
        if (last && last.style === style && cells === 1 && !last.wide) {
          last.text += segment;
          last.cells += cells;
        } else runs.push({ text: segment, at, cells, style, wide: cells !== 1 });
        at += cells;
      }
    }
    return runs;
  }
}

function applied(style: Style, codes: string, theme: ThemeName): Style {
  const list = codes === "" ? [0] : codes.split(/[;:]/).map(Number);
  const next: { -readonly [K in keyof Style]: Style[K] } = { ...style };
  for (let i = 0; i < list.length; i++) {
    const code = list[i] ?? 0;
    if (code === 0) Object.assign(next, PLAIN);
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.underline = true;
    else if (code === 7) next.reverse = true;
    else if (code === 9) next.strike = true;
    else if (code === 22) next.bold = next.dim = false;
    else if (code === 23) next.italic = false;
    else if (code === 24) next.underline = false;
    else if (code === 27) next.reverse = false;
    else if (code === 29) next.strike = false;
    else if (code === 39) next.fg = null;
    else if (code === 49) next.bg = null;
    else if (code >= 30 && code <= 37) next.fg = named(code - 30, theme);
    else if (code >= 90 && code <= 97) next.fg = named(code - 82, theme);
    else if (code >= 40 && code <= 47) next.bg = named(code - 40, theme);
    else if (code >= 100 && code <= 107) next.bg = named(code - 92, theme);
    else if (code === 38 || code === 48) {
      const rgb = list[i + 1] === 2;
      const colour = rgb ? hex(list.slice(i + 2, i + 5)) : indexed(list[i + 2] ?? 0, theme);
      if (code === 38) next.fg = colour;
      else next.bg = colour;
      i += rgb ? 4 : 2;
    }
  }
  return next;
}

const hex = (parts: readonly number[]) => `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
const named = (index: number, theme: ThemeName) => PALETTES[theme].ansi.split(" ")[index] ?? "";

/** One of the 256 colours. */
function indexed(index: number, theme: ThemeName): string {
  if (index < 16) return named(index, theme);
  if (index >= 232) return hex(Array(3).fill(8 + (index - 232) * 10));
  const step = (n: number) => (n === 0 ? 0 : 55 + n * 40);
  const cube = index - 16;
  return hex([step(Math.floor(cube / 36)), step(Math.floor(cube / 6) % 6), step(cube % 6)]);
}

/** One picture. */
export function drawScreen({ ansi, columns, rows, theme, title }: Picture): string {
  const styles = new Styles(theme);
  const drawn = readScreen(ansi, theme).slice(0, rows).map(styles.row);
  const body = drawn.map((row, y) => (row === "" ? "" : `<g transform="translate(0 ${y * CELL.height})">${row}</g>`));
  return frame({ columns, rows, theme, title, css: styles.css(), body: body.join("\n") });
}

/** Several pictures, each shown for a while, again and again. Rows that look the same are drawn once. */
export function drawRecording({ frames, columns, rows, theme, title }: Recording): string {
  const styles = new Styles(theme);
  const known = new Map<string, string>();
  const total = frames.reduce((sum, { seconds }) => sum + seconds, 0);
  const width = columns * CELL.width;
  let past = 0;
  const steps: string[] = [];
  const strip = frames.map(({ ansi, seconds }, index) => {
    steps.push(`${round((past / total) * 100)}%{transform:translateX(${-round(index * width)}px)}`);
    past += seconds;
    const uses = readScreen(ansi, theme)
      .slice(0, rows)
      .map((runs, y) => {
        const row = styles.row(runs);
        if (row === "") return "";
        if (!known.has(row)) known.set(row, `r${known.size}`);
        return `<use href="#${known.get(row)}" y="${y * CELL.height}"/>`;
      });
    return `<g transform="translate(${round(index * width)} 0)">${uses.join("")}</g>`;
  });
  const defs = [...known].map(([row, id]) => `<g id="${id}">${row}</g>`).join("\n");
  const css = `${styles.css()}.film{animation:film ${round(total)}s steps(1,end) infinite}@keyframes film{${steps.join("")}}`;
  const body = `<defs>${defs}</defs><svg width="${round(width)}" height="${rows * CELL.height}" overflow="hidden"><g class="film">\n${strip.join("\n")}\n</g></svg>`;
  return frame({ columns, rows, theme, title, css, body });
}

/** The same frames for players of asciinema recordings (version 2). */
export function castOf({ frames, columns, rows, title }: Omit<Recording, "theme">): string {
  let past = 0;
  const events = frames.map(({ ansi, seconds }) => {
    const event = [round(past), "o", `\u001b[0m\u001b[H\u001b[2J${ansi.replace(/\n$/, "").replaceAll("\n", "\r\n")}`];
    past += seconds;
    return JSON.stringify(event);
  });
  return `${[JSON.stringify({ version: 2, width: columns, height: rows, title }), ...events].join("\n")}\n`;
}

/** Each look has a class; what a picture does not use is not in it. */
class Styles {
  readonly #theme: ThemeName;
  readonly #classes = new Map<string, string>();

  constructor(theme: ThemeName) {
    this.#theme = theme;
  }

  /** One row as SVG, its top at 0. */
  readonly row = (runs: readonly Run[]): string => {
    const { background, text } = PALETTES[this.#theme];
    let backgrounds = "";
    let letters = "";
    for (const run of runs) {
      const { style, at, cells } = run;
      const [fg, bg] = style.reverse ? [style.bg ?? background, style.fg ?? text] : [style.fg, style.bg];
      const box = `x="${round(at * CELL.width)}"`;
      const length = round(cells * CELL.width);
      if (bg !== null)
        backgrounds += `<rect ${box} width="${length}" height="${CELL.height}" class="${this.#class(`fill:${bg}`)}"/>`;
      if (run.text.trim() === "") continue;
      const looks = [
        ...(fg === null ? [] : [`fill:${fg}`]),
        ...(style.bold ? ["font-weight:bold"] : []),
        ...(style.dim ? ["opacity:.62"] : []),
        ...(style.italic ? ["font-style:italic"] : []),
        ...(style.underline || style.strike ? [`text-decoration:${style.strike ? "line-through" : "underline"}`] : []),
      ].join(";");
      const name = looks === "" ? "" : ` class="${this.#class(looks)}"`;
      letters += `<text ${box} y="13.5" textLength="${length}"${name}>${escaped(run.text)}</text>`;
    }
    return backgrounds + letters;
  };

  css(): string {
    return [...this.#classes].map(([looks, name]) => `.${name}{${looks}}`).join("");
  }

  #class(looks: string): string {
    const name = this.#classes.get(looks) ?? `s${this.#classes.size}`;
    this.#classes.set(looks, name);
    return name;
  }
}

interface Drawn extends Size {
  readonly theme: ThemeName;
  readonly css: string;
  readonly body: string;
}

function frame({ columns, rows, theme, title, css, body }: Drawn): string {
  const { background, text } = PALETTES[theme];
  const width = round(columns * CELL.width + 2 * EDGE);
  const height = rows * CELL.height + 2 * EDGE;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">
<title>${escaped(title)}</title>
<style>text{font:14px ${FONT};fill:${text};white-space:pre}${css}</style>
<rect width="100%" height="100%" rx="8" fill="${background}" stroke="#8b949e" stroke-opacity=".4"/>
<svg x="${EDGE}" y="${EDGE}">
${body}
</svg>
</svg>
`;
}

const round = (n: number) => Math.round(n * 100) / 100;
const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
