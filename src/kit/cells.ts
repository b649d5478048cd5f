// Width of text in terminal cells: wide characters (Chinese, Japanese, Korean, most emoji) take two, combining ones none.
import { eastAsianWidth } from "get-east-asian-width";

const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });
const PLAIN = /^[\x20-\x7e]*$/;
const INVISIBLE = /^[\p{Control}\p{Format}\p{Mark}\p{Surrogate}]+$/u;
const EMOJI = /\p{Emoji_Presentation}|\p{Emoji}\ufe0f|\p{Regional_Indicator}{2}/u;

export function cellWidth(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let width = 0;
  for (const { segment } of segmenter.segment(text)) width += clusterWidth(segment);
  return width;
}

/** At most `cells` wide; what was cut ends with `mark`, which counts. */
export function cutCells(text: string, cells: number, mark = ""): string {
  if (cellWidth(text) <= cells) return text;
  const room = Math.max(0, cells - cellWidth(mark));
  let width = 0;
  let kept = "";
  for (const { segment } of segmenter.segment(text)) {
    width += clusterWidth(segment);
    if (width > room) break;
    kept += segment;
  }
  return kept + (cellWidth(mark) <= cells ? mark : "");
}

/** Lines of at most `cells`, broken at blanks where there are some. */
export function wrapCells(text: string, cells: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/(?<= )/)) {
    if (cellWidth(line + word.trimEnd()) <= cells) {
      line += word;
      continue;
    }
    if (line !== "") lines.push(line.trimEnd());
    line = word;
    while (cellWidth(line.trimEnd()) > cells) {
      const head = cutCells(line, cells) || ([...line][0] ?? "");
      lines.push(head);
      line = line.slice(head.length);
    }
  }
  return [...lines, line.trimEnd()];
}

/** Blanks after it up to `cells`; never cuts. */
export function padCells(text: string, cells: number): string {
  return text + " ".repeat(Math.max(0, cells - cellWidth(text)));
}

function clusterWidth(cluster: string): number {
  const first = cluster.codePointAt(0) ?? 0;
  if (first < 0x20 || (first >= 0x7f && first < 0xa0) || INVISIBLE.test(cluster)) return 0;
  return EMOJI.test(cluster) ? 2 : eastAsianWidth(first);
}
