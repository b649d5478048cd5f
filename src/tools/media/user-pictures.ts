// A picture on its way into a user's message, from a file or from the clipboard: checked, so that no conversation carries one that every
// server refuses, and made smaller where it is larger than any server takes.
import { readFile, stat } from "node:fs/promises";
import { basename } from "node:path";
import { isMissing, messageOf } from "../../kit/errors.ts";
import type { ContentPart, UserInput } from "../../llm/messages.ts";
import { COMMON_LIMIT, fitPicture, imageSize } from "../../llm/pictures/fit.ts";
import { type ImageType, imageType, MAX_ENCODED, MAX_IMAGE_BYTES, SHOWABLE } from "./pictures.ts";

export interface Picture {
  /** Without its folder. */
  readonly name: string;
  /** Absent for what was never a file. */
  readonly path?: string;
  readonly part: ContentPart;
}

/** Why a picture cannot be sent, in words for the user. */
export class PictureError extends Error {
  override name = "PictureError";
  /** `unsupported`: a picture all right, of a kind that models do not take. */
  readonly kind: "missing" | "unsupported" | "broken" | "too_large";

  constructor(kind: PictureError["kind"], message: string) {
    super(message);
    this.kind = kind;
  }
}

export async function pictureFile(path: string): Promise<Picture> {
  const bytes = await bytesOf(path);
  return { ...(await pictureOf(bytes, { name: basename(path), shownAs: path })), path };
}

interface Naming {
  readonly name: string;
  /** How messages name it. */
  readonly shownAs: string;
}

export async function pictureOf(bytes: Buffer, { name, shownAs }: Naming): Promise<Picture> {
  const type = imageType(bytes);
  if (type === null)
    throw new PictureError("broken", `${shownAs} is not an image this program can send (png, jpeg, gif, webp).`);
  if (!SHOWABLE.has(type))
    throw new PictureError(
      "unsupported",
      `${shownAs} is ${type}; models take png, jpeg, gif and webp. Convert it first.`,
    );
  if (!isWhole(bytes, type)) throw new PictureError("broken", `${shownAs} is damaged or incomplete; it is not sent.`);
  const url = `data:${type};base64,${bytes.toString("base64")}`;
  const sent = url.length <= MAX_ENCODED ? url : await fitPicture(url, COMMON_LIMIT, new AbortController().signal);
  if (sent === null) throw tooLarge(shownAs, bytes.length);
  return { name, part: { type: "image_url", image_url: { url: sent } } };
}

async function bytesOf(path: string): Promise<Buffer> {
  let size: number;
  try {
    const facts = await stat(path);
    size = facts.size;
    if (facts.isFile() && size <= MAX_IMAGE_BYTES) return await readFile(path);
    if (!facts.isFile()) throw new Error("it is not a file");
  } catch (error) {
    const why = isMissing(error) ? "there is no such file" : messageOf(error);
    throw new PictureError("missing", `cannot read the image ${path}: ${why}.`);
  }
  throw tooLarge(path, size);
}

function tooLarge(shownAs: string, bytes: number): PictureError {
  const size = `${(bytes / 2 ** 20).toFixed(1)} MB`;
  return new PictureError(
    "too_large",
    `${shownAs} is too large to send (${size}). Send a smaller copy, as a PNG or JPEG.`,
  );
}

/** What a download that broke off or a file that is still being written does not have. */
function isWhole(bytes: Buffer, type: ImageType): boolean {
  const size = imageSize(bytes);
  switch (type) {
    case "image/png":
      return size !== null && size.width > 0 && size.height > 0 && bytes.lastIndexOf("IEND") !== -1;
    case "image/jpeg":
      return bytes.lastIndexOf(Buffer.from([0xff, 0xd9])) !== -1;
    case "image/webp":
      return bytes.length >= bytes.readUInt32LE(4) + 8;
    default:
      return size !== null;
  }
}

/** The model is told where the files of attached pictures are: it may be asked to work on them, or look again in a resumed conversation. */
export function withPaths(input: UserInput, pictures: readonly Picture[]): UserInput {
  const paths = pictures.flatMap(({ path }) => (path === undefined ? [] : [path.replace(/\p{Cc}/gu, "?")]));
  if (paths.length === 0) return input;
  const note = `[Attached: ${paths.join(", ")}]`;
  const text = input.text.trim() === "" ? note : `${input.text}\n\n${note}`;
  return { ...input, text, persistText: input.persistText ?? input.text };
}
