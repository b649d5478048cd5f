// Where pictures and speech are made: an endpoint that speaks OpenAI's protocol, with its key.

import { access, mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { HomePaths } from "../../home/paths.ts";
import { messageOf } from "../../kit/errors.ts";
import { CallRefusedError, type PaidUsage } from "../../llm/gate.ts";
import { isUsableKey, keyForHost, needsNoKey } from "../../llm/providers/keys.ts";
import { resolveRuntimeProvider } from "../../llm/providers/resolve.ts";
import { ProviderError } from "../../llm/providers/settings.ts";
import { normalizeUsage } from "../../llm/usage.ts";
import { createModelFetch } from "../../llm/wires/model-fetch.ts";
import { providerNames } from "../toolset/availability.ts";
import type { ToolContext } from "../toolset/context.ts";

const MAX_BYTES = 64 * 1024 * 1024;
const TIMEOUT_MS = 150_000;

/** The service cannot be used or refused; the message is for the model and the user. */
export class MediaError extends Error {
  override name = "MediaError";
}

/** The settings name a provider that nobody knows. */
class UnknownProviderError extends MediaError {
  override name = "UnknownProviderError";
}

export interface Endpoint {
  readonly provider: string;
  readonly baseUrl: string;
  readonly apiKey: string;
  /** How it wants the key; default `authorization: Bearer`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Where the key may go; the gate sees to it. */
  readonly keyHosts?: readonly string[];
}

/** `section` is where the settings stand in config.yaml: `provider`, or `base_url` and `api_key`. */
export function mediaEndpoint(
  section: string,
  settings: Readonly<Record<string, unknown>>,
  ctx: Pick<ToolContext, "config" | "env">,
): Endpoint {
  const env = (name: string) => ctx.env?.(name);
  const baseUrl = textOf(settings.base_url)?.replace(/(?<!\/)\/+$/, "");
  const own = textOf(settings.api_key);
  if (baseUrl !== undefined) {
    const apiKey = own ?? keyForHost(baseUrl, env)?.key ?? (needsNoKey(baseUrl) ? "none" : undefined);
    if (apiKey === undefined) throw new MediaError(`No key for ${baseUrl}: set ${section}.api_key in config.yaml.`);
    return { provider: textOf(settings.provider) ?? "custom", baseUrl, apiKey };
  }
  const provider = textOf(settings.provider) ?? "openai";
  const requested = provider === "openai" ? "openai-api" : provider;
  try {
    const runtime = resolveRuntimeProvider({ requested, apiKey: own, config: ctx.config, env });
    if (!isUsableKey(runtime.apiKey)) throw new ProviderError("missing_key", `${provider} has no key.`);
    if (runtime.apiMode !== "chat_completions" && requested !== "openai-api")
      throw new MediaError(`${provider} does not speak OpenAI's protocol; set ${section}.base_url in config.yaml.`);
    return { provider: runtime.provider, baseUrl: runtime.baseUrl.replace(/(?<!\/)\/+$/, ""), apiKey: runtime.apiKey };
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    if (error.code === "invalid_provider") throw new UnknownProviderError(error.message);
    throw new MediaError(
      `Not configured: ${error.message} Set OPENAI_API_KEY (hermes config set OPENAI_API_KEY ...), or ${section}.base_url and ${section}.api_key in config.yaml.`,
    );
  }
}

export const NOBODY_PAYS = "Nobody keeps account of costs in this run, so nothing was sent.";

/** One thing to be made: what for, by which model, from which words. */
interface Order {
  readonly task: "image_generation" | "text_to_speech";
  readonly path: string;
  readonly model: string;
  readonly input: string;
  readonly body: object;
}

/** The body of the answer, paid for by the conversation; rejects with `MediaError`. */
export async function order(endpoint: Endpoint, wanted: Order, ctx: ToolContext): Promise<Buffer> {
  const { task, path, model, input, body } = wanted;
  if (!ctx.pay) throw new MediaError(NOBODY_PAYS);
  const apiMode = task === "image_generation" ? "images" : "speech";
  try {
    const { headers: _, ...target } = endpoint;
    return await ctx.pay(task, { ...target, apiMode, model, input }, async () => {
      const value = await postJson(endpoint, path, body, ctx);
      return { value, usage: usageIn(value) };
    });
  } catch (error) {
    if (error instanceof CallRefusedError) throw new MediaError(error.message);
    throw error;
  }
}

async function postJson(endpoint: Endpoint, path: string, body: object, ctx: ToolContext): Promise<Buffer> {
  const late = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const response = await createModelFetch()(`${endpoint.baseUrl}${path}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(endpoint.headers ?? { authorization: `Bearer ${endpoint.apiKey}` }),
      },
      body: JSON.stringify(body),
      signal: AbortSignal.any([ctx.signal, late]),
    });
    const answer = await readAll(response.body);
    if (!response.ok) throw new MediaError(`${endpoint.baseUrl} answered ${response.status}: ${complaint(answer)}`);
    return answer;
  } catch (error) {
    ctx.signal.throwIfAborted();
    if (error instanceof MediaError) throw error;
    if (late.aborted) throw new MediaError(`${endpoint.baseUrl} did not answer within ${TIMEOUT_MS / 1000} s.`);
    throw new MediaError(`${endpoint.baseUrl} cannot be reached: ${messageOf(error)}`);
  }
}

/** A handler's result: what it gives, or its `MediaError` in words. */
export async function asResult(ctx: ToolContext, work: () => Promise<object>): Promise<string> {
  try {
    return JSON.stringify({ success: true, ...(await work()) });
  } catch (error) {
    ctx.signal.throwIfAborted();
    if (!(error instanceof MediaError)) throw error;
    return JSON.stringify({ success: false, error: ctx.redact(error.message) });
  }
}

export function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}

export function mappingOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}; // a plain object
}

/** Null: it did not say, or it is no JSON at all. */
export function usageIn(answer: Buffer): PaidUsage | null {
  if (answer[0] !== 0x7b) return null;
  try {
    const { usage } = mappingOf(JSON.parse(answer.toString("utf8")));
    const { inputTokens, outputTokens } = normalizeUsage(usage, { apiMode: "codex_responses" });
    return inputTokens === null || outputTokens === null ? null : { inputTokens, outputTokens };
  } catch {
    return null; // whoever uses the answer says what is wrong with it
  }
}

async function readAll(
  body: {
    getReader(): { read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>; cancel(): Promise<void> };
  } | null,
): Promise<Buffer> {
  const reader = body?.getReader();
  const parts: Uint8Array[] = [];
  let size = 0;
  while (reader) {
    const { done, value } = await reader.read();
    if (done || !value) break;
    size += value.length;
    if (size > MAX_BYTES) {
      await reader.cancel();
      throw new MediaError("The answer is larger than 64 MB and was not kept.");
    }
    parts.push(value);
  }
  return Buffer.concat(parts);
}

export function complaint(answer: Buffer): string {
  const text = answer.toString("utf8").slice(0, 2000);
  try {
    const { message } = mappingOf(mappingOf(JSON.parse(text)).error);
    return typeof message === "string" ? message.slice(0, 500) : text.slice(0, 500);
  } catch {
    return text.slice(0, 500); // not JSON: as it came
  }
}

// Services for pictures and speech that do not speak OpenAI's protocol: where they stand, whose key they take.

export interface MediaService {
  /** As `provider` names it in config.yaml. */
  readonly name: string;
  readonly title: string;
  readonly keyName: string;
  readonly baseUrl: string;
  headers(key: string): Readonly<Record<string, string>>;
}

interface Choice {
  readonly section: "image_gen" | "tts";
  readonly settings: Readonly<Record<string, unknown>>;
  readonly service: MediaService;
}

/** A name in the settings that nobody here goes by. */
function unknownName({ section, settings, service }: Choice): MediaError {
  const provided = providerNames(section);
  const others = provided.length > 0 ? `, ${provided.join(", ")} of your plugins` : "";
  return new MediaError(
    `${section}.provider in config.yaml is "${textOf(settings.provider)}", which is not there. Use openai, ${service.name}, a provider of models that speaks ` +
      `OpenAI's protocol${others}, or give ${section}.base_url and ${section}.api_key instead.`,
  );
}

/** The service when the settings name it, or when nothing is named and only its key is there; else an endpoint like OpenAI's. */
export function chooseEndpoint({ section, settings, service }: Choice, ctx: ToolContext): Endpoint {
  const named = textOf(settings.provider);
  if (named === service.name) return serviceEndpoint({ section, settings, service }, ctx);
  try {
    return mediaEndpoint(section, settings, ctx);
  } catch (error) {
    if (error instanceof UnknownProviderError) throw unknownName({ section, settings, service });
    if (!(error instanceof MediaError) || named !== undefined || textOf(settings.base_url) !== undefined) throw error;
    if (ctx.env?.(service.keyName)?.trim()) return serviceEndpoint({ section, settings, service }, ctx);
    throw new MediaError(`${error.message} ${service.title} is used when ${service.keyName} is set.`);
  }
}

function serviceEndpoint({ section, settings, service }: Choice, ctx: ToolContext): Endpoint {
  const own = textOf(settings.api_key);
  const apiKey = own ?? ctx.env?.(service.keyName)?.trim() ?? "";
  if (apiKey === "")
    throw new MediaError(
      `Not configured: ${service.title} has no key. Set ${service.keyName} (hermes config set ${service.keyName} ...) or ${section}.api_key in config.yaml.`,
    );
  const baseUrl = (textOf(settings.base_url) ?? service.baseUrl).replace(/(?<!\/)\/+$/, "");
  // A key that belongs to the service goes nowhere else; one that is set with another address belongs to that.
  const bound = own === undefined ? { keyHosts: [new URL(service.baseUrl).hostname] } : {};
  return { provider: service.name, baseUrl, apiKey, headers: service.headers(apiKey), ...bound };
}

// Pictures and sound that a plugin makes: under the same caps, and checked before anything is done with them.

interface PluginOrder extends Pick<Order, "task" | "input"> {
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
    throw new MediaError(`"${name}", which a plugin provides, failed: ${messageOf(error)}`);
  }
}

export function bytesOf(made: unknown): Buffer {
  if (made instanceof Uint8Array) return Buffer.from(made);
  throw new MediaError("What the plugin gave is not a sequence of bytes (Uint8Array).");
}

// Where media files are kept. A home that has the folders of an older version goes on with them.

const OLD_NAMES = {
  images: "image_cache",
  audio: "audio_cache",
  videos: "video_cache",
  documents: "document_cache",
  screenshots: "browser_screenshots",
  vision: "temp_vision_images",
} as const;

/** The folder, made if it is missing. */
export async function cacheFolder(home: HomePaths, kind: keyof typeof OLD_NAMES): Promise<string> {
  const old = home.at(OLD_NAMES[kind]);
  const isThere = await access(old).then(
    () => true,
    () => false,
  );
  const folder = isThere ? old : join(home.cacheDir, kind);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return folder;
}
