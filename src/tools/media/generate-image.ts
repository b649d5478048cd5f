// Has a picture made and keeps it in the home.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "../../kit/errors.ts";
import { findProvider, providerNames } from "../toolset/availability.ts";
import type { ToolContext } from "../toolset/context.ts";
import { openWebAccess } from "../web/access.ts";
import {
  asResult,
  bytesOf,
  cacheFolder,
  chooseEndpoint,
  type Endpoint,
  MediaError,
  type MediaService,
  mappingOf,
  order,
  orderFromPlugin,
  textOf,
} from "./endpoint.ts";
import { downloadImage, imageType, MAX_IMAGE_BYTES } from "./pictures.ts";

interface ImageRequest {
  readonly prompt: string;
  readonly aspect_ratio?: AspectRatio | undefined;
}

export function generateImage({ prompt, aspect_ratio = "landscape" }: ImageRequest, ctx: ToolContext): Promise<string> {
  return asResult(ctx, async () => {
    if (prompt.trim() === "") throw new MediaError("The description is empty.");
    const paint = await choosePainter(mappingOf(ctx.config.image_gen), ctx);
    const bytes = await paint(prompt, aspect_ratio);
    const type = imageType(bytes);
    if (type === null) throw new MediaError("What came back is not an image.");
    const name = `image_${ctx.clock.now()}_${Math.floor(ctx.clock.random() * 1e6)}.${type.slice(6).replace("jpeg", "jpg")}`;
    const path = join(await cacheFolder(ctx.home, "images"), name);
    await writeFile(path, bytes, { mode: 0o600 });
    return { image: path };
  });
}

// Who makes pictures: an endpoint like OpenAI's, FAL, or a plugin.

const SIZES = { landscape: "1536x1024", square: "1024x1024", portrait: "1024x1536" } as const;
const FAL_SIZES = { landscape: "landscape_16_9", square: "square_hd", portrait: "portrait_16_9" } as const;
type AspectRatio = keyof typeof SIZES;

/** Resolves to the bytes of a picture, unchecked; rejects with `MediaError`. */
type Painter = (prompt: string, aspect: AspectRatio) => Promise<Uint8Array>;

const fal: MediaService = {
  name: "fal",
  title: "FAL",
  keyName: "FAL_KEY",
  baseUrl: "https://fal.run",
  headers: (key) => ({ authorization: `Key ${key}` }),
};

async function choosePainter(settings: Readonly<Record<string, unknown>>, ctx: ToolContext): Promise<Painter> {
  const name = textOf(settings.provider) ?? "";
  if (providerNames("image_gen").includes(name)) return painterOfPlugin(name, settings, ctx);
  const endpoint = chooseEndpoint({ section: "image_gen", settings, service: fal }, ctx);
  const task = "image_generation" as const;
  if (endpoint.provider === fal.name) {
    const model = textOf(settings.model) ?? "fal-ai/flux/schnell";
    return async (prompt, aspect) => {
      const body = { prompt, image_size: FAL_SIZES[aspect], num_images: 1 };
      return pictureIn(
        await order(endpoint, { task, path: `/${model}`, model, input: prompt, body }, ctx),
        endpoint,
        ctx,
      );
    };
  }
  const model = textOf(settings.model) ?? "gpt-image-1";
  return async (prompt, aspect) => {
    const body = { model, prompt, size: SIZES[aspect], n: 1 };
    const wanted = { task, path: "/images/generations", model, input: prompt, body } as const;
    return pictureIn(await order(endpoint, wanted, ctx), endpoint, ctx);
  };
}

async function painterOfPlugin(
  name: string,
  settings: Readonly<Record<string, unknown>>,
  ctx: ToolContext,
): Promise<Painter> {
  const found = ((await findProvider("image_gen", name)) ?? {}) as { generate?: unknown }; // whatever the plugin handed over
  const { generate } = found;
  if (typeof generate !== "function")
    throw new MediaError(`The image provider "${name}" of a plugin has no generate().`);
  return (prompt, aspectRatio) => {
    const request = { prompt, aspectRatio, model: textOf(settings.model), signal: ctx.signal };
    const wanted = { task: "image_generation", name, model: request.model, input: prompt } as const;
    return orderFromPlugin(wanted, async () => bytesOf(await generate.call(found, request)), ctx);
  };
}

/** The picture itself, or the address it waits at. */
async function pictureIn(answer: Buffer, endpoint: Endpoint, ctx: ToolContext): Promise<Uint8Array> {
  let body: unknown;
  try {
    body = JSON.parse(answer.toString("utf8"));
  } catch {
    throw new MediaError("What came back is not JSON.");
  }
  const { data, images } = mappingOf(body);
  const first = mappingOf([data, images].find((list) => Array.isArray(list))?.[0]);
  const encoded = textOf(first.b64_json);
  if (encoded !== undefined) return Buffer.from(encoded, "base64");
  const url = textOf(first.url);
  if (url === undefined) throw new MediaError("The answer holds no image.");
  try {
    return await fetchPicture(url, endpoint, ctx);
  } catch (error) {
    ctx.signal.throwIfAborted();
    throw new MediaError(`The image was made but cannot be fetched: ${messageOf(error)}`);
  }
}

/** A server that the user set up may stand on this machine, and keep its pictures there. */
async function fetchPicture(url: string, endpoint: Endpoint, ctx: ToolContext): Promise<Uint8Array> {
  const [, inline] = /^data:image\/[\w.+-]+;base64,(.+)$/s.exec(url) ?? [];
  if (inline !== undefined) return Buffer.from(inline, "base64");
  if (!URL.canParse(url) || new URL(url).host !== new URL(endpoint.baseUrl).host) return downloadImage(url, ctx);
  const { status, body } = await openWebAccess(ctx).fetchService(url, { maxBytes: MAX_IMAGE_BYTES });
  if (status !== 200) throw new MediaError(`${new URL(url).host} answered HTTP ${status}.`);
  return body;
}
