// What a conversation in a chat is told about where it is. Laid over the prompt with each request and never stored; the same bytes for as
// long as nothing in it changes: no message ids, no clock.
import { createHash } from "node:crypto";
import { type ChatSource, isShared } from "./chat.ts";
import type { PlatformEntry } from "./contract.ts";
import type { GatewaySettings } from "./settings.ts";

interface PromptFacts {
  readonly source: ChatSource;
  readonly entry: PlatformEntry;
  readonly settings: GatewaySettings;
  /** All platforms that are set up. */
  readonly platforms: readonly PlatformEntry[];
  readonly channelPrompt?: string | undefined;
}

export function contextPrompt({ source, entry, settings, platforms, channelPrompt }: PromptFacts): string {
  const masks = settings.home.config().privacy.redact_pii && entry.piiSafe === true;
  const user = masks && source.user_id ? `user_${hashed(source.user_id)}` : (source.user_name ?? source.user_id);
  const homes = platforms.flatMap((one) => {
    const channel = settings.homeChannel(one);
    if (channel === null) return [];
    return [`${one.name}: ${masks ? maskedChat(channel.target.chatId) : channel.name}`];
  });
  const lines = [
    "## Where this conversation is held",
    `Platform: ${entry.label}. ${whereOf(source, masks)}.`,
    ...(source.chat_topic ? [`Topic of the channel: ${source.chat_topic}`] : []),
    isShared(source, settings.sharing)
      ? "Several people write here; each message begins with its sender in brackets, as in [Name]."
      : `You talk with ${user ?? "one person"}.`,
    "You reach this platform through your tools and your answers alone; there is no other access to it.",
    ...(entry.hint ? [entry.hint] : []),
    `Connected platforms: ${platforms.map(({ name }) => name).join(", ")}.`,
    ...(homes.length > 0 ? [`Home channels: ${homes.join("; ")}.`] : []),
    `Scheduled jobs can deliver to: origin (this chat), local (files only), ${platforms.map(({ name }) => name).join(", ")}. An explicit target is written PLATFORM:CHAT_ID or PLATFORM:CHAT_ID:THREAD_ID.`,
    ...(channelPrompt ? ["", channelPrompt] : []),
  ];
  return lines.join("\n");
}

function whereOf(
  { chat_type: type, chat_name: name, chat_id: id = "", thread_id: thread, user_name: user }: ChatSource,
  masks: boolean,
) {
  const chat = masks ? maskedChat(id) : (name ?? id);
  if (type === "dm") return `DM with ${masks ? "the user" : (user ?? chat)}`;
  const place = type === "channel" || type === "forum" ? "channel" : "group";
  return `${place}: ${chat}${thread ? `, thread: ${masks ? hashed(thread) : thread}` : ""}`;
}

const hashed = (id: string) => createHash("sha256").update(id).digest("hex").slice(0, 12);

/** A `group:` in front says what kind of id it is. */
function maskedChat(id: string): string {
  const [, prefix = "", rest = id] = /^([a-z]{1,16}:)?([\s\S]*)$/.exec(id) ?? [];
  return prefix + hashed(rest);
}
