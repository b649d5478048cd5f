// Where a message comes from, and the address of the conversation that belongs to it.
import { disarm } from "../../prompt/fence.ts";

type ChatType = "dm" | "group" | "channel" | "thread" | "webhook" | "forum";

/** Who wrote where. Stored with the conversation as its origin, under these names (the original's). */
export interface ChatSource {
  readonly platform: string;
  readonly chat_id?: string | undefined;
  readonly chat_name?: string | undefined;
  readonly chat_type: ChatType;
  readonly user_id?: string | undefined;
  readonly user_name?: string | undefined;
  readonly thread_id?: string | undefined;
  readonly chat_topic?: string | undefined;
  /** Another id of the same person or chat, where a platform has two. */
  readonly user_id_alt?: string | undefined;
  readonly chat_id_alt?: string | undefined;
  readonly guild_id?: string | undefined;
  readonly parent_chat_id?: string | undefined;
  readonly message_id?: string | undefined;
}

/** `group_sessions_per_user`, `thread_sessions_per_user`. */
interface SharingSettings {
  readonly perUserInGroups: boolean;
  readonly perUserInThreads: boolean;
}

/**
 * The key of a chat. Opaque: ids of some platforms contain colons, so nobody takes it apart again. A group gives each member a conversation
 * of their own, a thread is shared, unless the settings say otherwise.
 */
export function sessionKeyOf(source: ChatSource, settings: SharingSettings): string {
  const { platform, chat_type: type } = source;
  const chat = canonicalId(platform, source.chat_id);
  const thread = source.thread_id || undefined;
  const parts = ["agent", "main", platform];
  if (type === "dm") return [...parts, "dm", ...(chat ? [chat, thread] : [thread])].filter(isPart).join(":");
  const isPersonal = thread ? settings.perUserInThreads : settings.perUserInGroups;
  const participant = isPersonal ? canonicalId(platform, source.user_id_alt || source.user_id) : undefined;
  return [...parts, type, chat, thread, participant].filter(isPart).join(":");
}

/** The key of a chat as all its members share it. */
export const chatKeyOf = (source: ChatSource) =>
  sessionKeyOf(source, { perUserInGroups: false, perUserInThreads: false });

const isPart = (part: string | undefined): part is string => part !== undefined && part !== "";

/** A name or title that others chose, as one short line that speaks for nobody: in a prompt it must not begin a line of its own. */
export function plainTitle(text: string, most = 100): string {
  const line = disarm(text)
    .replace(/[\s\p{C}\p{Zl}\p{Zp}]+/gu, " ")
    .trim();
  const points = [...line];
  return points.length > most ? `${points.slice(0, most - 1).join("")}…` : line;
}

/** Several people write in one conversation: the model has to be told who. */
export function isShared({ chat_type: type, thread_id: thread }: ChatSource, settings: SharingSettings): boolean {
  if (type === "dm") return false;
  return thread ? !settings.perUserInThreads : !settings.perUserInGroups;
}

/** Capital letters mean nothing in their addresses. */
const WITHOUT_CASE: ReadonlySet<string> = new Set(["email", "xmpp"]);

/** WhatsApp writes one person in many ways: `+49…`, `49…:3@s.whatsapp.net`. Groups keep their whole id. */
export function canonicalId(platform: string, id: string | undefined): string | undefined {
  if (id && WITHOUT_CASE.has(platform)) return id.trim().toLowerCase();
  if (!id || !platform.startsWith("whatsapp") || id.endsWith("@g.us")) return id || undefined;
  const [person = ""] = id.trim().split("@");
  return person.replace(/^\+/, "").split(":")[0];
}
