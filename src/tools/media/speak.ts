// Speaks a text into an audio file.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { UserError } from "../../kit/errors.ts";
import { writeRealFile } from "../../kit/files.ts";
import { asRecord, parseJson } from "../../kit/json.ts";
import { openWorkspace } from "../files/workspace.ts";
import { findProvider, providerNames } from "../toolset/availability.ts";
import type { ToolContext } from "../toolset/context.ts";
import {
  asResult,
  bytesOf,
  cacheFolder,
  chooseEndpoint,
  MediaError,
  type MediaService,
  mappingOf,
  order,
  orderFromPlugin,
  textOf,
} from "./endpoint.ts";

const MAX_PARTS = 8;
/** Platforms that show a sound as a voice message in this format only. */
const VOICE_FORMATS: Readonly<Record<string, "opus">> = { telegram: "opus" };

interface Speech {
  readonly text: string;
  readonly output_path?: string | undefined;
}

export function speak({ text, output_path }: Speech, ctx: ToolContext): Promise<string> {
  return asResult(ctx, async () => {
    if (text.trim() === "") throw new MediaError("There is no text to speak.");
    const tts = mappingOf(ctx.config.tts);
    // The provider's own sub-section wins, as in homes of older versions.
    const name = textOf(tts.provider);
    const settings = { ...tts, ...mappingOf(tts[name ?? "openai"]), ...(name ? { provider: name } : {}) };
    const speaker = await chooseSpeaker(settings, ctx);
    const format = /\.(?:ogg|opus)$/i.test(output_path ?? "") ? "opus" : (VOICE_FORMATS[ctx.platform] ?? "mp3");
    const workspace = output_path === undefined ? null : await openWorkspace(ctx);
    const given = workspace?.absolute(output_path ?? "");
    if (workspace && given !== undefined) {
      if (ctx.environment.files)
        throw new MediaError("Sound is kept on this machine, not where commands run; leave output_path out.");
      const refusal = await workspace.refuseWrite(given, false);
      if (refusal !== null) throw new MediaError(refusal);
    }
    // mp3 pieces may stand one behind the other; opus ones may not.
    const all = splitText(text, speaker.mostChars);
    const parts = all.slice(0, format === "mp3" ? MAX_PARTS : 1);
    const sounds: Buffer[] = [];
    for (const part of parts) sounds.push(await speaker.say(part, format));
    const sound = Buffer.concat(sounds);
    if (sound.length === 0) throw new MediaError("What came back holds no sound.");
    const path = given ?? join(await cacheFolder(ctx.home, "audio"), fileName(ctx, format));
    if (workspace) await writeRealFile(await workspace.files.resolve(path), sound);
    else await writeFile(path, sound, { mode: 0o600 });
    const spoken = parts.join("").length;
    return {
      file_path: path,
      media_tag: `MEDIA:${path}`,
      ...(parts.length < all.length
        ? { note: `only the first ${spoken} of ${text.length} characters are spoken` }
        : {}),
    };
  });
}

/** What speaking beside a turn looks at. */
export type Speaking = Pick<
  ToolContext,
  "config" | "env" | "home" | "platform" | "clock" | "signal" | "redact" | "pay"
>;

/** Resolves to the sound file. Rejects with a sentence for the user. */
export async function speakAloud(text: string, ctx: Speaking): Promise<string> {
  // Without an `output_path` nothing but the above is asked for.
  const { file_path: path, error } = asRecord(parseJson(await speak({ text }, ctx as ToolContext)));
  if (typeof path === "string") return path;
  throw new UserError(typeof error === "string" ? error : "The answer could not be spoken.");
}

/** Pieces of at most `most` characters, cut behind a sentence, else behind a word, else anywhere. */
export function splitText(text: string, most: number): readonly string[] {
  const pieces: string[] = [];
  let rest = text;
  while (rest.length > most) {
    const head = rest.slice(0, most);
    const sentence = Math.max(
      ...[". ", "! ", "? ", "\n", "。", "！", "？"].map((end) => head.lastIndexOf(end) + end.length - 1),
    );
    const at =
      sentence > most / 2 ? sentence + 1 : head.lastIndexOf(" ") > most / 2 ? head.lastIndexOf(" ") + 1 : whole(head);
    pieces.push(rest.slice(0, at));
    rest = rest.slice(at);
  }
  return [...pieces, rest].filter((piece) => piece.trim() !== "");
}

/** A character of two halves is not cut in the middle. */
function whole(head: string): number {
  return /[\uD800-\uDBFF]$/.test(head) ? head.length - 1 : head.length;
}

function fileName(ctx: ToolContext, format: string): string {
  return `speech_${ctx.clock.now()}_${Math.floor(ctx.clock.random() * 1e6)}.${format === "opus" ? "ogg" : "mp3"}`;
}

// Who turns text into sound: an endpoint like OpenAI's, ElevenLabs, or a plugin.

type SoundFormat = "mp3" | "opus";

interface Speaker {
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
async function chooseSpeaker(settings: Readonly<Record<string, unknown>>, ctx: ToolContext): Promise<Speaker> {
  const name = textOf(settings.provider) ?? "";
  if (providerNames("tts").includes(name)) return speakerOfPlugin(name, settings, ctx);
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

async function speakerOfPlugin(
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
      const request = {
        text,
        format,
        model: textOf(settings.model),
        voice: textOf(settings.voice),
        signal: ctx.signal,
      };
      const wanted = { task: "text_to_speech", name, model: request.model, input: text } as const;
      return orderFromPlugin(wanted, async () => bytesOf(await speak.call(found, request)), ctx);
    },
  };
}
