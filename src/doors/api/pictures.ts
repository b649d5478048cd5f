// Pictures in an answer: `MEDIA:/absolute/path` becomes the picture itself, as its prompt promises the agent. Runs give the path.
import { constants, open } from "node:fs/promises";
import { basename } from "node:path";
import { imageType, SHOWABLE } from "../../tools/media/pictures.ts";

const MOST_BYTES = 5_000_000;
/** No path is longer; what is held back for one is let go then. */
const LONGEST_TAG = 1_000;
const TAG = /MEDIA:[ \t]?(\/[^\s"'`<>]{1,900}\.(?:png|jpe?g|gif|webp))/gi;
/** The beginning of a tag at the end of a text: more of it may come. */
const BEGUN = /(?:M|ME|MED|MEDI|MEDIA|MEDIA:[ \t]?(?:\/[^\s"'`<>]*)?)$/i;

/** The text with its pictures in it, as Markdown. What is no picture, too large or not there stays as it was written. */
export async function withPictures(text: string): Promise<string> {
  const tags = [...text.matchAll(TAG)];
  if (tags.length === 0) return text;
  const shown = await Promise.all(tags.map(([tag, path = ""]) => pictureIn(path).catch(() => tag))); // as it was written
  let [end, result] = [0, ""];
  for (const [at, tag] of tags.entries()) {
    result += text.slice(end, tag.index) + (shown[at] ?? "");
    end = tag.index + tag[0].length;
  }
  return result + text.slice(end);
}

/** Throws for what is not to be shown. */
async function pictureIn(path: string): Promise<string> {
  // What is no file must not make the answer wait.
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const facts = await file.stat();
    if (!facts.isFile() || facts.size > MOST_BYTES) throw new Error("not a file that is shown");
    const bytes = await file.readFile();
    const type = imageType(bytes);
    if (type === null || !SHOWABLE.has(type)) throw new Error("not a picture");
    return `![${basename(path).replace(/[[\]()\\]/g, "_")}](data:${type};base64,${bytes.toString("base64")})`;
  } finally {
    await file.close();
  }
}

/** The same for a text that comes in pieces: what may be the beginning of a tag is held back until it is whole. */
export class PictureStream {
  #held = "";

  /** `isEnd`: nothing more of this text comes. */
  async take(piece: string, isEnd: boolean): Promise<string> {
    const text = this.#held + piece;
    this.#held = "";
    if (text === "") return "";
    const begun = isEnd ? null : BEGUN.exec(text.slice(-LONGEST_TAG));
    const cut = begun ? text.length - begun[0].length : text.length;
    this.#held = text.slice(cut);
    return withPictures(text.slice(0, cut));
  }
}
