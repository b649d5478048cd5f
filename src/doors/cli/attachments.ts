// Images given on the command line, as parts of the message.
import { readFile } from "node:fs/promises";
import { extname, resolve } from "node:path";
import type { ContentPart } from "../../llm/messages.ts";
import { ExitError } from "./context.ts";

const TYPES: Readonly<Record<string, string>> = {
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".gif": "image/gif",
  ".webp": "image/webp",
};

/** What goes beside the text; null when there is nothing to attach. */
export async function attachImages(paths: readonly string[], cwd: string): Promise<readonly ContentPart[] | null> {
  if (paths.length === 0) return null;
  return Promise.all(paths.map((path) => imagePart(resolve(cwd, path))));
}

async function imagePart(path: string): Promise<ContentPart> {
  const type = TYPES[extname(path).toLowerCase()];
  if (!type)
    throw new ExitError(1, `hermes: ${path} is no image this program can send (${Object.keys(TYPES).join(" ")}).`);
  try {
    const bytes = await readFile(path);
    return { type: "image_url", image_url: { url: `data:${type};base64,${bytes.toString("base64")}` } };
  } catch (error) {
    throw new ExitError(1, `hermes: cannot read the image ${path}: ${(error as NodeJS.ErrnoException).code ?? error}.`);
  }
}
