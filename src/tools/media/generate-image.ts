// Asks an image model for a picture and keeps it in the home.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ToolContext } from "../context.ts";
import { downloadImage } from "./analyze-image.ts";
import { cacheFolder } from "./cache-folder.ts";
import { asResult, MediaError, mappingOf, mediaEndpoint, order, textOf } from "./endpoint.ts";
import { imageType } from "./image-type.ts";

const SIZES = { landscape: "1536x1024", square: "1024x1024", portrait: "1024x1536" } as const;

export interface ImageWish {
  readonly prompt: string;
  readonly aspect_ratio?: keyof typeof SIZES | undefined;
}

export function generateImage({ prompt, aspect_ratio = "landscape" }: ImageWish, ctx: ToolContext): Promise<string> {
  return asResult(ctx, async () => {
    if (prompt.trim() === "") throw new MediaError("The description is empty.");
    const settings = mappingOf(ctx.config.image_gen);
    const endpoint = mediaEndpoint("image_gen", settings, ctx);
    const model = textOf(settings.model) ?? "gpt-image-1";
    const body = { prompt, size: SIZES[aspect_ratio], n: 1 };
    const wanted = { task: "image_generation", path: "/images/generations", model, input: prompt, body } as const;
    const answer = await order(endpoint, wanted, ctx);
    const bytes = await imageIn(answer, ctx);
    const type = imageType(bytes);
    if (type === null) throw new MediaError("What came back is no image.");
    const name = `image_${ctx.clock.now()}_${Math.floor(ctx.clock.random() * 1e6)}.${type.slice(6).replace("jpeg", "jpg")}`;
    const path = join(await cacheFolder(ctx.home, "images"), name);
    await writeFile(path, bytes, { mode: 0o600 });
    return { image: path };
  });
}

/** The picture itself, or the address it waits at. */
async function imageIn(answer: Buffer, ctx: ToolContext): Promise<Uint8Array> {
  let body: unknown;
  try {
    body = JSON.parse(answer.toString("utf8"));
  } catch {
    throw new MediaError("What came back is no JSON.");
  }
  const { data } = mappingOf(body);
  const first = mappingOf(Array.isArray(data) ? data[0] : null);
  const encoded = textOf(first.b64_json);
  if (encoded !== undefined) return Buffer.from(encoded, "base64");
  const url = textOf(first.url);
  if (url === undefined) throw new MediaError("The answer holds no image.");
  return downloadImage(url, ctx).catch((error: unknown) => {
    ctx.signal.throwIfAborted();
    throw new MediaError(`The image was made but cannot be fetched: ${error instanceof Error ? error.message : error}`);
  });
}
