import type { Marks } from "./marks.ts";

const MARK = /-----(BEGIN|END) (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----/g;
/** What follows a header whose end was cut off: lines of base64, also with line breaks written as `\n`. */
const BODY = /(?:(?:[^\S]|\\[nr])*[A-Za-z0-9+/=]{16,})*/y;
/** Only the last line of a key is shorter. */
const SHORTEST_LINE = 16;
/** Longer than any key. */
const REACH = 16_384;

/** Whole blocks; of a block that was cut, what is there: its header and the lines behind it, or its end and the lines before it. */
export function redactPrivateKeys(text: string, marks: Marks): string {
  if (!text.includes("PRIVATE KEY")) return text;
  const found = [...text.matchAll(MARK)];
  const ends = found.filter(([, kind]) => kind === "END");
  const out: string[] = [];
  let position = 0;
  let nextEnd = 0;
  const hide = (start: number, end: number) => {
    out.push(text.slice(position, start), marks.privateKey(text.slice(start, end)));
    position = end;
  };
  for (const mark of found) {
    if (mark.index < position) continue;
    const behind = mark.index + mark[0].length;
    if (mark[1] === "END") {
      const start = bodyStart(text, position, mark.index);
      if (start < mark.index) hide(start, behind);
      continue;
    }
    while ((ends[nextEnd]?.index ?? Infinity) < behind) nextEnd++;
    const end = ends[nextEnd];
    hide(mark.index, end ? end.index + end[0].length : bodyEnd(text, behind));
  }
  out.push(text.slice(position));
  return out.join("");
}

function bodyEnd(text: string, from: number): number {
  BODY.lastIndex = from;
  BODY.exec(text);
  return Math.max(from, BODY.lastIndex);
}

/** Back over lines of base64, as `bodyEnd` goes forward. The last one may be short, where others or nothing stand before it. */
function bodyStart(text: string, from: number, end: number): number {
  const lines = text.slice(Math.max(from, end - REACH), end).split(/(?<=\n|\\n)/);
  let start = end;
  let sure = end;
  for (let at = lines.length - 1; at >= 0; at--) {
    const line = lines[at] ?? "";
    const content = line.replace(/(?:\s|\\[nr])+$/, "").trimStart();
    const isLast = at === lines.length - 1;
    if (!/^[A-Za-z0-9+/=]+$/.test(content) || (content.length < SHORTEST_LINE && !isLast)) break;
    start -= line.length;
    if (content.length >= SHORTEST_LINE || start === 0) sure = start;
  }
  return sure;
}
