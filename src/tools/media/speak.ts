// Speaks a text into an audio file.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { openWorkspace } from "../files/workspace.ts";
import type { ToolContext } from "../toolset/context.ts";
import { cacheFolder } from "./cache-folder.ts";
import { asResult, MediaError, mappingOf, textOf } from "./endpoint.ts";
import { chooseSpeaker } from "./speakers.ts";

const MOST_PARTS = 8;
/** Platforms that show a sound as a voice message in this format only. */
const VOICE_FORMATS: Readonly<Record<string, "opus">> = { telegram: "opus" };

export interface Speech {
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
    const parts = all.slice(0, format === "mp3" ? MOST_PARTS : 1);
    const sounds: Buffer[] = [];
    for (const part of parts) sounds.push(await speaker.say(part, format));
    const sound = Buffer.concat(sounds);
    if (sound.length === 0) throw new MediaError("What came back holds no sound.");
    const path = given ?? join(await cacheFolder(ctx.home, "audio"), fileName(ctx, format));
    await writeFile(path, sound, { mode: 0o600 });
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
