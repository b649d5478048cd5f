// Has a picture made and keeps it in the home.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ToolContext } from "../toolset/context.ts";
import { cacheFolder } from "./cache-folder.ts";
import { asResult, MediaError, mappingOf } from "./endpoint.ts";
import { imageType } from "./image-type.ts";
import { type AspectRatio, choosePainter } from "./painters.ts";

export interface ImageWish {
  readonly prompt: string;
  readonly aspect_ratio?: AspectRatio | undefined;
}

export function generateImage({ prompt, aspect_ratio = "landscape" }: ImageWish, ctx: ToolContext): Promise<string> {
  return asResult(ctx, async () => {
    if (prompt.trim() === "") throw new MediaError("The description is empty.");
    const paint = await choosePainter(mappingOf(ctx.config.image_gen), ctx);
    const bytes = await paint(prompt, aspect_ratio);
    const type = imageType(bytes);
    if (type === null) throw new MediaError("What came back is no image.");
    const name = `image_${ctx.clock.now()}_${Math.floor(ctx.clock.random() * 1e6)}.${type.slice(6).replace("jpeg", "jpg")}`;
    const path = join(await cacheFolder(ctx.home, "images"), name);
    await writeFile(path, bytes, { mode: 0o600 });
    return { image: path };
  });
}
