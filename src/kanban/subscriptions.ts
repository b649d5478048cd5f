// Which chats hear of a card, and up to which event they have heard. Rows of `kanban_notify_subs`.
import type { Connection } from "../sessions/connection.ts";
import type { Change } from "./schema.ts";

/** A row of `kanban_notify_subs`. */
export interface Subscription {
  readonly task_id: string;
  readonly platform: string;
  readonly chat_id: string;
  readonly chat_type: string | null;
  /** Empty: the chat itself. */
  readonly thread_id: string;
  readonly user_id: string | null;
  /** Whose gateway sends. Null: the first one that takes it. */
  readonly notifier_profile: string | null;
  /** An object in JSON. */
  readonly delivery_metadata: string | null;
  readonly created_at: number;
  /** Everything up to it is promised. */
  readonly last_event_id: number;
}

/** What names a subscription. */
type SubscriptionKey = Pick<Subscription, "task_id" | "platform" | "chat_id" | "thread_id">;

/** A chat to be told. */
export interface ToldChat {
  readonly platform: string;
  readonly chatId: string;
  readonly chatType?: string | undefined;
  readonly threadId?: string | undefined;
  readonly userId?: string | undefined;
  readonly profile?: string | undefined;
}

/** Who makes a card, as a tool or a command knows it. */
interface Creator {
  readonly platform: string;
  readonly profile: string;
  /** Absent: no chat. */
  readonly chat?: { readonly chatId: string; readonly threadId?: string | undefined } | undefined;
  readonly sender?: { readonly userId: string } | undefined;
  readonly config: { readonly kanban: { readonly auto_subscribe_on_create: boolean } };
}

const KEY = "task_id = ? AND platform = ? AND chat_id = ? AND thread_id = ?";
const keyOf = ({ task_id, platform, chat_id, thread_id }: SubscriptionKey) => [task_id, platform, chat_id, thread_id];

/** From now on; a chat that hears of the card already goes on where it was. False: it did already. */
export function subscribe({ db, now }: Change, card: string, chat: ToldChat): boolean {
  const { platform, chatId, chatType = null, threadId = "", userId = null, profile = null } = chat;
  const { changes } = db.run(
    `INSERT OR IGNORE INTO kanban_notify_subs
       (task_id, platform, chat_id, chat_type, thread_id, user_id, notifier_profile, created_at, last_event_id)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, (SELECT COALESCE(MAX(id), 0) FROM task_events WHERE task_id = ?))`,
    ...[card, platform, chatId, chatType, threadId, userId, profile, now, card],
  );
  return changes > 0;
}

/** Whoever makes a card in a chat hears there what becomes of it. Answers whether they do. */
export function subscribeCreator(change: Change, card: string, creator: Creator): boolean {
  const { platform, profile, chat, sender, config } = creator;
  if (!chat || !config.kanban.auto_subscribe_on_create) return false;
  subscribe(change, card, { platform, profile, ...chat, userId: sender?.userId });
  return true;
}

/** Who hears of a card hears of what it is split into, from the first event on that follows its creation. */
export function handOnSubscriptions({ db, now }: Change, from: readonly string[], to: string): void {
  db.run(
    `INSERT OR IGNORE INTO kanban_notify_subs
       (task_id, platform, chat_id, chat_type, thread_id, user_id, notifier_profile, delivery_metadata, created_at, last_event_id)
     SELECT ?, platform, chat_id, chat_type, thread_id, user_id, notifier_profile, delivery_metadata, ?,
       (SELECT COALESCE(MAX(id), 0) FROM task_events WHERE task_id = ?)
     FROM kanban_notify_subs WHERE task_id IN (SELECT value FROM json_each(?))`,
    ...[to, now, to, JSON.stringify(from)],
  );
}

/** Of one card, or of all. */
export function subscriptionsOf(db: Connection, card?: string): readonly Subscription[] {
  const order = "ORDER BY task_id, created_at, platform, chat_id, thread_id";
  return card === undefined
    ? db.all<Subscription>(`SELECT * FROM kanban_notify_subs ${order}`)
    : db.all<Subscription>(`SELECT * FROM kanban_notify_subs WHERE task_id = ? ${order}`, card);
}

/** False: there was none. */
export function unsubscribe({ db }: Change, key: SubscriptionKey): boolean {
  return db.run(`DELETE FROM kanban_notify_subs WHERE ${KEY}`, ...keyOf(key)).changes > 0;
}

/** A row that names no profile belongs to the first gateway that takes it: two would tell everything twice. */
export function adoptSubscription({ db }: Change, key: SubscriptionKey, profile: string): boolean {
  const sql = `UPDATE kanban_notify_subs SET notifier_profile = ? WHERE ${KEY} AND COALESCE(notifier_profile, '') = ''`;
  return db.run(sql, profile, ...keyOf(key)).changes > 0;
}

/** What follows up to this event is promised. A card that is over by then has nothing more to tell. */
export function moveCursor(change: Change, subscription: Subscription, event: number): void {
  const { db } = change;
  db.run(
    `UPDATE kanban_notify_subs SET last_event_id = MAX(last_event_id, ?) WHERE ${KEY}`,
    ...[event, ...keyOf(subscription)],
  );
  const more = db.get("SELECT 1 FROM task_events WHERE task_id = ? AND id > ?", subscription.task_id, event);
  const card = db.get<{ status: string }>("SELECT status FROM tasks WHERE id = ?", subscription.task_id);
  if (!more && (!card || card.status === "done" || card.status === "archived")) unsubscribe(change, subscription);
}
