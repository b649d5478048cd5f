// Where pictures and speech are made: an endpoint that speaks OpenAI's protocol, with its key.
import { CallRefusedError, type PaidUsage } from "../../llm/gate.ts";
import { isUsableKey, keyForHost, needsNoKey } from "../../llm/providers/keys.ts";
import { ProviderError } from "../../llm/providers/provider-error.ts";
import { resolveRuntimeProvider } from "../../llm/providers/resolve.ts";
import { normalizeUsage } from "../../llm/usage.ts";
import { createModelFetch } from "../../llm/wires/model-fetch.ts";
import type { ToolContext } from "../toolset/context.ts";

const MOST_BYTES = 64 * 1024 * 1024;
const TIMEOUT_MS = 150_000;

/** The service cannot be used or refused; the message is for the model and the user. */
export class MediaError extends Error {
  override name = "MediaError";
}

/** The settings name a provider that nobody knows. */
export class UnknownProviderError extends MediaError {
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
  ctx: ToolContext,
): Endpoint {
  const env = (name: string) => ctx.env?.(name);
  const baseUrl = textOf(settings.base_url)?.replace(/\/+$/, "");
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
    return { provider: runtime.provider, baseUrl: runtime.baseUrl.replace(/\/+$/, ""), apiKey: runtime.apiKey };
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
export interface Order {
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
    const { headers: _, ...place } = endpoint;
    return await ctx.pay(task, { ...place, apiMode, model, input }, async () => {
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
    throw new MediaError(`${endpoint.baseUrl} cannot be reached: ${error instanceof Error ? error.message : error}`);
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
function usageIn(answer: Buffer): PaidUsage | null {
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
    if (size > MOST_BYTES) {
      await reader.cancel();
      throw new MediaError("The answer is larger than 64 MB and was not kept.");
    }
    parts.push(value);
  }
  return Buffer.concat(parts);
}

function complaint(answer: Buffer): string {
  const text = answer.toString("utf8").slice(0, 2000);
  try {
    const { message } = mappingOf(mappingOf(JSON.parse(text)).error);
    return typeof message === "string" ? message.slice(0, 500) : text.slice(0, 500);
  } catch {
    return text.slice(0, 500); // not JSON: as it came
  }
}
