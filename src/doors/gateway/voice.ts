// Which chats are answered aloud, and what of an answer is spoken. The file is the original's.
import { readFile } from "node:fs/promises";
import type { OpenHome } from "../../home/open.ts";
import { codeOf } from "../../kit/errors.ts";
import { writeFileAtomic } from "../../kit/files.ts";
import { asRecord, parseJson } from "../../kit/json.ts";
import type { ChatSource } from "./chat.ts";

/** `voice_only`: answers to voice messages; `all`: every answer. */
type VoiceMode = "off" | "voice_only" | "all";

const FILE = "gateway_voice_mode.json";
const MODES: ReadonlySet<unknown> = new Set(["off", "voice_only", "all"]);
const SPOKEN_CHARS = 4000;

const keyOf = ({ platform, chat_id: chat, user_id: user }: ChatSource) => `${platform}:${chat ?? user ?? ""}`;

/** Of the chat; where nobody chose, `voice.auto_tts` decides. */
export async function voiceMode(home: OpenHome, source: ChatSource): Promise<VoiceMode> {
  const chosen = (await readModes(home))[keyOf(source)];
  if (MODES.has(chosen)) return chosen as VoiceMode; // one of them
  return home.config().voice.auto_tts ? "voice_only" : "off";
}

export async function setVoiceMode(home: OpenHome, source: ChatSource, mode: VoiceMode): Promise<void> {
  const modes = { ...(await readModes(home)), [keyOf(source)]: mode };
  await writeFileAtomic(home.paths.at(FILE), `${JSON.stringify(modes, null, 2)}\n`, { mode: 0o600 });
}

/** A file that cannot be read chooses nothing. */
async function readModes({ paths }: OpenHome): Promise<Readonly<Record<string, unknown>>> {
  try {
    return asRecord(parseJson(await readFile(paths.at(FILE), "utf8")));
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
    return {};
  }
}

export const VOICE_WORDS: Readonly<Record<string, { readonly mode: VoiceMode; readonly says: string }>> = {
  on: { mode: "voice_only", says: "Voice messages are answered aloud here." },
  tts: { mode: "all", says: "Every answer is read aloud here." },
  off: { mode: "off", says: "Answers are not read aloud here." },
};

/** Words without what is there for the eye: code, tables, addresses, marks. Empty: there is nothing to say. */
export function spokenText(answer: string): string {
  const text = answer
    .replace(/```[\s\S]*?(?:```|$)/g, " ")
    .replace(/^[ \t]{0,80}(?:MEDIA:|\[\[)[^\n]*$/gm, " ")
    .replace(/^[ \t]{0,80}\|[^\n]*$/gm, " ")
    .replace(/!?\[([^\]\n]{0,500})\]\([^)\s]{0,2000}\)/g, "$1")
    .replace(/\bhttps?:\/\/\S{1,2000}/g, " ")
    .replace(/^[ \t]{0,80}(?:#{1,6}|>|[-*+])[ \t]/gm, "")
    .replace(/[`*_~|]/g, "")
    .replace(/[ \t]{2,}/g, " ")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .join("\n");
  return [...text].slice(0, SPOKEN_CHARS).join("");
}
