// What kind of image some bytes are. Names and headers lie; the first bytes do not.

export type ImageType =
  | "image/png"
  | "image/jpeg"
  | "image/gif"
  | "image/webp"
  | "image/bmp"
  | "image/tiff"
  | "image/svg+xml"
  | "image/x-icon";

/** Larger ones are not read at all. */
export const MOST_IMAGE_BYTES = 50 * 1024 * 1024;

/** What models take. The others are told apart so that the refusal can name them. */
export const SHOWABLE: ReadonlySet<ImageType> = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

export function imageType(bytes: Uint8Array): ImageType | null {
  const at = (start: number, text: string) =>
    Buffer.from(bytes.subarray(start, start + text.length)).toString("latin1") === text;
  if (at(0, "\x89PNG\r\n\x1a\n")) return "image/png";
  if (at(0, "\xff\xd8\xff")) return "image/jpeg";
  if (at(0, "GIF87a") || at(0, "GIF89a")) return "image/gif";
  if (at(0, "RIFF") && at(8, "WEBP")) return "image/webp";
  if (at(0, "BM")) return "image/bmp";
  if (at(0, "II*\0") || at(0, "MM\0*")) return "image/tiff";
  if (at(0, "\0\0\x01\0")) return "image/x-icon";
  const head = Buffer.from(bytes.subarray(0, 512)).toString("utf8").trimStart();
  return /^(?:<\?xml[^>]*>\s*)?(?:<!--[\s\S]*?-->\s*)?(?:<!DOCTYPE svg[^>]*>\s*)?<svg[\s>]/i.test(head)
    ? "image/svg+xml"
    : null;
}
