// Which messages of a group are meant for us, by the options that every platform shares.
import type { Logger } from "../../home/log.ts";
import type { AdapterHost } from "./contract.ts";

interface GroupDefaults {
  readonly requireMention: boolean;
  /** The start of the variables: `TELEGRAM` for `TELEGRAM_REQUIRE_MENTION`. */
  readonly prefix: string;
  /** How the variables call a chat, where that is not `CHATS`: `CHANNELS`, `ROOMS`. */
  readonly chats?: string;
}

/** What is known of a message outside of a direct chat. */
interface GroupMessage {
  readonly chatId: string;
  readonly threadId?: string | undefined;
  readonly parentChatId?: string | undefined;
  readonly text: string;
  readonly mentionsUs: boolean;
  readonly repliesToUs?: boolean;
  readonly isCommand?: boolean;
  /** We have written in this thread before. */
  readonly isFollowed?: boolean;
}

/** Read for every message: the settings may have changed. */
export function isForUs(message: GroupMessage, option: AdapterHost["option"], defaults: GroupDefaults, log: Logger) {
  const { prefix, chats = "CHATS" } = defaults;
  const ids = [message.threadId, message.chatId, message.parentChatId];
  const isIn = (list: ReadonlySet<string>) => list.has("*") || ids.some((id) => id !== undefined && list.has(id));
  const low = chats.toLowerCase();
  const allowed = listIn(option(`allowed_${low}`, `${prefix}_ALLOWED_${chats}`) ?? option("allowed_chats"));
  if (allowed.size > 0 && !isIn(allowed)) return false;
  if (isIn(listIn(option(`free_response_${low}`, `${prefix}_FREE_RESPONSE_${chats}`) ?? option("free_response_chats"))))
    return true;
  const required = isYes(option("require_mention", `${prefix}_REQUIRE_MENTION`), defaults.requireMention);
  if (!required) return true;
  if (message.mentionsUs || message.repliesToUs || message.isCommand || message.isFollowed) return true;
  return patternsIn(option("mention_patterns", `${prefix}_MENTION_PATTERNS`), log).some((one) =>
    one.test(message.text.slice(0, MOST_CHARS)),
  );
}

/** A pattern is the owner's, the text anybody's: a slow one must not be fed without end. */
const MOST_CHARS = 2000;

/** `true`, `"yes"`, `1`; anything unknown is the default. */
export function isYes(value: unknown, fallback: boolean): boolean {
  if (typeof value === "boolean") return value;
  if (/^(?:1|true|yes|on)$/i.test(String(value ?? "").trim())) return true;
  if (/^(?:0|false|no|off)$/i.test(String(value ?? "").trim())) return false;
  return fallback;
}

/** A list of the settings, or words between commas. */
export function listIn(value: unknown): ReadonlySet<string> {
  const words = Array.isArray(value) ? value.map(String) : String(value ?? "").split(",");
  return new Set(words.map((word) => word.trim()).filter((word) => word !== ""));
}

function patternsIn(value: unknown, log: Logger): readonly RegExp[] {
  const texts = Array.isArray(value) ? value.map(String) : typeof value === "string" && value !== "" ? [value] : [];
  return texts.flatMap((text) => {
    try {
      return [new RegExp(text, "iu")];
    } catch {
      log.warn(`mention_patterns: "${text}" is not a regular expression; it is ignored`);
      return [];
    }
  });
}

/** What the settings lay over a chat: by its thread, the chat itself, the one above it. */
export function channelSettings(
  ids: readonly (string | undefined)[],
  option: AdapterHost["option"],
): { readonly channelPrompt?: string; readonly skills?: readonly string[] } {
  const prompts = option("channel_prompts");
  const bindings = option("channel_skill_bindings");
  const known = ids.filter((id): id is string => id !== undefined && id !== "");
  const prompt = known
    .map((id) => (typeof prompts === "object" && prompts !== null ? (prompts as Record<string, unknown>)[id] : null))
    .find((text): text is string => typeof text === "string" && text.trim() !== "");
  const bound = known
    .map((id) => (Array.isArray(bindings) ? bindings.find((row) => String(row?.id) === id) : undefined))
    .find((row) => row !== undefined);
  const skills = [...listIn(bound?.skills ?? bound?.skill)];
  return { ...(prompt ? { channelPrompt: prompt } : {}), ...(skills.length > 0 ? { skills } : {}) };
}
