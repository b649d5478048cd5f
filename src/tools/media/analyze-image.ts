// Fetches or reads an image and shows it to a model.

import { WebError } from "../../safety/url-fetch.ts";
import { UrlRefusedError } from "../../safety/url-guard.ts";
import { holdsSecret } from "../../safety/url-guard-secrets.ts";
import { describeFileError } from "../files/access.ts";
import { openWorkspace } from "../files/workspace.ts";
import type { ToolContext } from "../toolset/context.ts";
import type { ToolOutput } from "../toolset/registry.ts";
import { openWebAccess } from "../web/access.ts";
import { imageType, MOST_IMAGE_BYTES, SHOWABLE } from "./image-type.ts";
import { showPicture } from "./pictures.ts";

/** The image cannot be had; the message says why. */
class ImageError extends Error {
  override name = "ImageError";
}

export interface ImageQuestion {
  readonly image_url: string;
  readonly question: string;
}

export async function analyzeImage({ image_url, question }: ImageQuestion, ctx: ToolContext): Promise<ToolOutput> {
  try {
    const source = image_url.trim();
    const bytes = /^https?:/i.test(source) ? await downloadImage(source, ctx) : await readImage(source, ctx);
    const type = imageType(bytes);
    if (type === null) throw new ImageError(`${image_url} is no image: its content is none of the known kinds.`);
    if (!SHOWABLE.has(type)) {
      throw new ImageError(`${image_url} is ${type}; models look at png, jpeg, gif and webp. Convert it first.`);
    }
    return await showPicture({ bytes, type }, question, { image: source.slice(0, 500) }, ctx);
  } catch (error) {
    ctx.signal.throwIfAborted();
    const known = error instanceof ImageError || error instanceof UrlRefusedError || error instanceof WebError;
    if (!known) throw error;
    return JSON.stringify({ success: false, error: error.message });
  }
}

export async function downloadImage(address: string, ctx: ToolContext): Promise<Uint8Array> {
  if (holdsSecret(address, ctx.redact)) throw new ImageError("The address holds one of your keys; it is not sent.");
  const limits = { timeoutMs: 1000 * ctx.config.auxiliary.vision.download_timeout, maxBytes: MOST_IMAGE_BYTES };
  const answer = await openWebAccess(ctx).fetch(address, limits);
  if (answer.status >= 400) throw new ImageError(`${address} answered ${answer.status} ${answer.statusText}.`);
  return answer.body;
}

async function readImage(path: string, ctx: ToolContext): Promise<Uint8Array> {
  if (/^[a-z][a-z0-9+.-]+:\/\//i.test(path) && !path.startsWith("file://")) {
    throw new ImageError(`Only http and https addresses and files can be looked at, not ${path.slice(0, 100)}`);
  }
  const workspace = await openWorkspace(ctx);
  const file = workspace.absolute(path.replace(/^file:\/\//, ""));
  const refusal = await workspace.refuseRead(file);
  if (refusal !== null) throw new ImageError(refusal);
  try {
    const facts = await workspace.files.facts(file);
    if (facts?.type !== "file") throw new ImageError(`File not found: ${path}`);
    if (facts.size > MOST_IMAGE_BYTES)
      throw new ImageError(`${path} is too large: ${facts.size} bytes, 50 MB are allowed.`);
    return await workspace.files.read(file);
  } catch (error) {
    if (error instanceof ImageError) throw error;
    ctx.signal.throwIfAborted();
    throw new ImageError(describeFileError(error, path));
  }
}
