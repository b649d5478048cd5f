// Pictures and sound that a plugin makes: under the same caps, and checked before anything is done with them.
import { CallRefusedError } from "../../llm/gate.ts";
import type { ToolContext } from "../toolset/context.ts";
import { MediaError, NOBODY_PAYS, type Order } from "./endpoint.ts";

export interface PluginOrder extends Pick<Order, "task" | "input"> {
  /** The provider's name. */
  readonly name: string;
  readonly model: string | undefined;
}

/** Rejects with `MediaError` for whatever the plugin's code does. */
export async function orderFromPlugin(
  { task, name, model = name, input }: PluginOrder,
  make: () => Promise<Buffer>,
  ctx: ToolContext,
): Promise<Buffer> {
  if (!ctx.pay) throw new MediaError(NOBODY_PAYS);
  const apiMode = task === "image_generation" ? "images" : "speech";
  try {
    const call = { provider: name, baseUrl: "", apiKey: "", apiMode, model, input };
    return await ctx.pay(task, call, async () => ({ value: await make(), usage: null }));
  } catch (error) {
    ctx.signal.throwIfAborted();
    if (error instanceof CallRefusedError || error instanceof MediaError) throw new MediaError(error.message);
    throw new MediaError(`"${name}", which a plugin brings, failed: ${error instanceof Error ? error.message : error}`);
  }
}

export function bytesOf(made: unknown): Buffer {
  if (made instanceof Uint8Array) return Buffer.from(made);
  throw new MediaError("What the plugin gave is no sequence of bytes (Uint8Array).");
}
