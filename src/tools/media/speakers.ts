// Who turns text into sound: an endpoint like OpenAI's, ElevenLabs, or whatever a plugin brings.

import { findProvider, providerNames } from "../extra-providers.ts";
import type { ToolContext } from "../toolset/context.ts";
import { bytesOf, orderFromPlugin } from "./brought.ts";
import { MediaError, order, textOf } from "./endpoint.ts";
import { chooseEndpoint, type MediaService } from "./services.ts";

export type SoundFormat = "mp3" | "opus";

export interface Speaker {
  /** Characters one request may hold. */
  readonly mostChars: number;
  /** Rejects with `MediaError`. */
  say(text: string, format: SoundFormat): Promise<Buffer>;
}

const OPENAI_CHARS = 4096;
const ELEVENLABS_CHARS = 10_000;
const elevenlabs: MediaService = {
  name: "elevenlabs",
  title: "ElevenLabs",
  keyName: "ELEVENLABS_API_KEY",
  baseUrl: "https://api.elevenlabs.io",
  headers: (key) => ({ "xi-api-key": key }),
};

/** `settings`: those of `tts` and of the provider it names. */
export async function chooseSpeaker(settings: Readonly<Record<string, unknown>>, ctx: ToolContext): Promise<Speaker> {
  const name = textOf(settings.provider) ?? "";
  if (providerNames("tts").includes(name)) return broughtSpeaker(name, settings, ctx);
  const endpoint = chooseEndpoint({ section: "tts", settings, service: elevenlabs }, ctx);
  if (endpoint.provider !== elevenlabs.name) {
    const [model, voice] = [textOf(settings.model) ?? "gpt-4o-mini-tts", textOf(settings.voice) ?? "alloy"];
    return {
      mostChars: OPENAI_CHARS,
      say(input, format) {
        const body = { model, voice, input, response_format: format };
        return order(endpoint, { task: "text_to_speech", path: "/audio/speech", model, input, body }, ctx);
      },
    };
  }
  const model = textOf(settings.model_id) ?? textOf(settings.model) ?? "eleven_multilingual_v2";
  const voice = textOf(settings.voice_id) ?? textOf(settings.voice) ?? "21m00Tcm4TlvDq8ikWAM";
  return {
    mostChars: ELEVENLABS_CHARS,
    say(input, format) {
      const output = format === "opus" ? "opus_48000_64" : "mp3_44100_128";
      const path = `/v1/text-to-speech/${encodeURIComponent(voice)}?output_format=${output}`;
      const body = { text: input, model_id: model };
      return order(endpoint, { task: "text_to_speech", path, model, input, body }, ctx);
    },
  };
}

async function broughtSpeaker(
  name: string,
  settings: Readonly<Record<string, unknown>>,
  ctx: ToolContext,
): Promise<Speaker> {
  const found = ((await findProvider("tts", name)) ?? {}) as { speak?: unknown; mostChars?: unknown }; // whatever the plugin handed over
  const { speak, mostChars } = found;
  if (typeof speak !== "function") throw new MediaError(`The speech provider "${name}" of a plugin has no speak().`);
  return {
    mostChars: typeof mostChars === "number" && mostChars > 0 ? mostChars : OPENAI_CHARS,
    say(text, format) {
      const wish = { text, format, model: textOf(settings.model), voice: textOf(settings.voice), signal: ctx.signal };
      const wanted = { task: "text_to_speech", name, model: wish.model, input: text } as const;
      return orderFromPlugin(wanted, async () => bytesOf(await speak.call(found, wish)), ctx);
    },
  };
}
