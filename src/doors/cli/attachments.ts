// Images given on the command line, as parts of the message.
import { readFile, stat } from "node:fs/promises";
import { resolve } from "node:path";
import type { ContentPart } from "../../llm/messages.ts";
import { ExitError } from "./context.ts";

/** What goes beside the text; null when there is nothing to attach. */
export async function attachImages(paths: readonly string[], cwd: string): Promise<readonly ContentPart[] | null> {
  if (paths.length === 0) return null;
  return Promise.all(paths.map((path) => imagePart(resolve(cwd, path))));
}

async function imagePart(path: string): Promise<ContentPart> {
  const { imageType, MOST_IMAGE_BYTES, SHOWABLE } = await import("../../tools/media/image-type.ts");
  const bytes = await bytesOf(path, MOST_IMAGE_BYTES);
  const type = imageType(bytes);
  if (type === null || !SHOWABLE.has(type))
    throw new ExitError(1, `hermes: ${path} is no image this program can send (png, jpeg, gif, webp).`);
  return { type: "image_url", image_url: { url: `data:${type};base64,${bytes.toString("base64")}` } };
}

async function bytesOf(path: string, most: number): Promise<Buffer> {
  try {
    if ((await stat(path)).size <= most) return await readFile(path);
  } catch (error) {
    throw new ExitError(1, `hermes: cannot read the image ${path}: ${(error as NodeJS.ErrnoException).code ?? error}.`);
  }
  throw new ExitError(1, `hermes: ${path} is too large to send; 50 MB are allowed.`);
}
