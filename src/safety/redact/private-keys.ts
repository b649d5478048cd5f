import type { Marks } from "./marks.ts";

const BEGIN = /-----BEGIN (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----/g;
const END = /-----END (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----/g;
/** What follows a header whose end was cut off: lines of base64, also with line breaks written as `\n`. */
const BODY = /(?:(?:[^\S]|\\[nr])*[A-Za-z0-9+/=]{16,})*/y;

/** Whole blocks; of a block without an end, its header and the lines of the key. */
export function redactPrivateKeys(text: string, marks: Marks): string {
  if (!text.includes("PRIVATE KEY")) return text;
  const out: string[] = [];
  let position = 0;
  let mayEnd = true;
  BEGIN.lastIndex = 0;
  for (let begin = BEGIN.exec(text); begin; begin = BEGIN.exec(text)) {
    // Once no end was found there is none further on: looking again for every header would take quadratic time.
    END.lastIndex = BEGIN.lastIndex;
    mayEnd = mayEnd && END.exec(text) !== null;
    const end = mayEnd ? END.lastIndex : bodyEnd(text, BEGIN.lastIndex);
    out.push(text.slice(position, begin.index), marks.privateKey(text.slice(begin.index, end)));
    position = end;
    BEGIN.lastIndex = end;
  }
  out.push(text.slice(position));
  return out.join("");
}

function bodyEnd(text: string, from: number): number {
  BODY.lastIndex = from;
  BODY.exec(text);
  return Math.max(from, BODY.lastIndex);
}
