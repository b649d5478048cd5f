// What is said in a sound file, by an endpoint like OpenAI's or by a plugin.
import { randomUUID } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { basename, extname } from "node:path";
import { isMissing, messageOf } from "../../kit/errors.ts";
import { failureWords, readBody, sendRequest } from "../../kit/http.ts";
import { CallRefusedError } from "../../llm/gate.ts";
import { findProvider, providerNames } from "../toolset/availability.ts";
import type { ToolContext } from "../toolset/context.ts";
import {
  complaint,
  type Endpoint,
  MediaError,
  mappingOf,
  mediaEndpoint,
  NOBODY_PAYS,
  textOf,
  usageIn,
} from "./endpoint.ts";

/** What endpoints take at most. */
const MAX_BYTES = 25 * 1024 * 1024;
const MAX_ANSWER = 4 * 1024 * 1024;
const TIMEOUT_MS = 150_000;

/** Endpoints go by the name of the file. What is not listed here is sent as ogg: voice messages are that. */
const TYPES: Readonly<Record<string, string>> = {
  ".mp3": "audio/mpeg",
  ".mpga": "audio/mpeg",
  ".m4a": "audio/mp4",
  ".mp4": "audio/mp4",
  ".wav": "audio/wav",
  ".webm": "audio/webm",
  ".flac": "audio/flac",
  ".ogg": "audio/ogg",
};
/** The same sound under a name that endpoints know. */
const RENAMED: Readonly<Record<string, string>> = { ".opus": ".ogg", ".oga": ".ogg" };

/** What of a run it needs. */
type Listening = Pick<ToolContext, "config" | "env" | "signal" | "pay" | "redact">;

/** Rejects with a `MediaError`, or with the reason of the signal. */
export async function transcribe(path: string, ctx: Listening): Promise<string> {
  const stt = mappingOf(ctx.config.stt);
  if (stt.enabled === false) throw new MediaError("Speech is not transcribed here (stt.enabled is false).");
  const name = textOf(stt.provider);
  const settings = { ...stt, ...mappingOf(stt[name ?? "openai"]), ...(name ? { provider: name } : {}) };
  const sound = await readSound(path);
  try {
    const said = providerNames("transcription").includes(name ?? "")
      ? await fromPlugin(name ?? "", { path, settings }, ctx)
      : await fromEndpoint({ path, sound, settings }, ctx);
    if (said.trim() === "") throw new MediaError("No words were heard in it.");
    return said.trim();
  } catch (error) {
    ctx.signal.throwIfAborted();
    if (error instanceof CallRefusedError || error instanceof MediaError)
      throw new MediaError(ctx.redact(error.message));
    throw error;
  }
}

async function readSound(path: string): Promise<Buffer> {
  try {
    const { size } = await stat(path);
    if (size === 0) throw new MediaError("The sound file is empty.");
    if (size <= MAX_BYTES) return await readFile(path);
  } catch (error) {
    if (error instanceof MediaError) throw error;
    throw new MediaError(`The sound file cannot be read: ${isMissing(error) ? "it is missing" : messageOf(error)}.`);
  }
  throw new MediaError("The sound file is larger than 25 MB, which is too much to transcribe.");
}

interface Recording {
  readonly path: string;
  readonly sound: Buffer;
  readonly settings: Readonly<Record<string, unknown>>;
}

async function fromEndpoint({ path, sound, settings }: Recording, ctx: Listening): Promise<string> {
  if (textOf(settings.provider) === "local" && textOf(settings.base_url) === undefined)
    throw new MediaError(
      "stt.provider in config.yaml is local, and there is no local transcription here. Set stt.provider to openai, or stt.base_url to a server of yours.",
    );
  const endpoint = mediaEndpoint("stt", settings, ctx);
  const model = textOf(settings.model) ?? "whisper-1";
  if (!ctx.pay) throw new MediaError(NOBODY_PAYS);
  const language = textOf(settings.language);
  const form = multipart({ model, response_format: "json", ...(language ? { language } : {}) }, { path, sound });
  const { headers: _, ...target } = endpoint;
  // It is paid by the minute: there are no words yet that a cap could count.
  const answer = await ctx.pay("transcription", { ...target, apiMode: "transcription", model, input: "" }, async () => {
    const value = await post(endpoint, form, ctx.signal);
    return { value, usage: usageIn(value) };
  });
  const text = answer.toString("utf8");
  if (!/^\s*\{/.test(text)) return text;
  try {
    return textOf(mappingOf(JSON.parse(text)).text) ?? "";
  } catch {
    throw new MediaError(`${endpoint.baseUrl} gave an answer that cannot be read.`);
  }
}

interface Form {
  readonly type: string;
  readonly body: Buffer;
}

function multipart(fields: Readonly<Record<string, string>>, { path, sound }: Omit<Recording, "settings">): Form {
  const boundary = `----hermes${randomUUID()}`;
  const ending = extname(path).toLowerCase();
  const known = RENAMED[ending] ?? (ending in TYPES ? ending : ".ogg");
  const name = `${basename(path, extname(path)).replace(/[^\w-]/g, "_")}${known}`;
  const parts = Object.entries(fields).map(
    ([key, value]) => `--${boundary}\r\ncontent-disposition: form-data; name="${key}"\r\n\r\n${value}\r\n`,
  );
  const head = `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${name}"\r\ncontent-type: ${TYPES[known]}\r\n\r\n`;
  const body = Buffer.concat([Buffer.from(parts.join("") + head), sound, Buffer.from(`\r\n--${boundary}--\r\n`)]);
  return { type: `multipart/form-data; boundary=${boundary}`, body };
}

async function post(endpoint: Endpoint, { type, body }: Form, signal: AbortSignal): Promise<Buffer> {
  const late = AbortSignal.timeout(TIMEOUT_MS);
  const { baseUrl, apiKey } = endpoint;
  try {
    const incoming = await sendRequest(new URL(`${baseUrl}/audio/transcriptions`), {
      method: "POST",
      headers: { "content-type": type, ...(endpoint.headers ?? { authorization: `Bearer ${apiKey}` }) },
      body,
      signal: AbortSignal.any([signal, late]),
      connectMs: 30_000,
    });
    const chunks: Buffer[] = [];
    for await (const chunk of readBody(incoming, MAX_ANSWER)) chunks.push(chunk);
    const answer = Buffer.concat(chunks);
    const status = incoming.statusCode ?? 0;
    if (status < 200 || status > 299) throw new MediaError(`${baseUrl} answered ${status}: ${complaint(answer)}`);
    return answer;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof MediaError) throw error;
    if (late.aborted) throw new MediaError(`${baseUrl} did not answer within ${TIMEOUT_MS / 1000} s.`);
    throw new MediaError(`${baseUrl} ${failureWords(error)}.`);
  }
}

async function fromPlugin(name: string, { path, settings }: Omit<Recording, "sound">, ctx: Listening): Promise<string> {
  const found = ((await findProvider("transcription", name)) ?? {}) as { transcribe?: unknown }; // whatever the plugin handed over
  const { transcribe } = found;
  if (typeof transcribe !== "function")
    throw new MediaError(`The transcription provider "${name}" of a plugin has no transcribe().`);
  if (!ctx.pay) throw new MediaError(NOBODY_PAYS);
  const model = textOf(settings.model) ?? name;
  const call = { provider: name, baseUrl: "", apiKey: "", apiMode: "transcription", model, input: "" };
  return ctx.pay("transcription", call, async () => {
    try {
      const request = { path, model: textOf(settings.model), language: textOf(settings.language), signal: ctx.signal };
      const said: unknown = await transcribe.call(found, request);
      if (typeof said !== "string") throw new MediaError("What the plugin gave is not a text.");
      return { value: said, usage: null };
    } catch (error) {
      ctx.signal.throwIfAborted();
      if (error instanceof MediaError) throw error;
      throw new MediaError(`"${name}", which a plugin provides, failed: ${messageOf(error)}`);
    }
  });
}
