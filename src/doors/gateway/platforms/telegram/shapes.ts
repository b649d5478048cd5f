// What the Bot API says, as far as it is read here.

interface Person {
  readonly id: number;
  readonly is_bot: boolean;
  readonly first_name?: string;
  readonly last_name?: string;
  readonly username?: string;
}

interface Chat {
  readonly id: number;
  readonly type: "private" | "group" | "supergroup" | "channel";
  readonly title?: string;
  readonly username?: string;
  readonly is_forum?: boolean;
}

export type MessageEntity = { readonly offset: number; readonly length: number } & (
  | { readonly type: "text_mention"; readonly user: Person }
  | { readonly type: "mention" | "bot_command" | "url" }
);

interface StoredFile {
  readonly file_id: string;
  readonly file_unique_id: string;
  readonly file_size?: number;
  readonly file_name?: string;
}

export interface Sticker extends StoredFile {
  readonly emoji?: string;
  readonly set_name?: string;
  readonly is_video?: boolean;
  readonly is_animated?: boolean;
  readonly thumbnail?: StoredFile;
}

interface Place {
  readonly latitude: number;
  readonly longitude: number;
}

export type MessageOrigin =
  | { readonly type: "hidden_user"; readonly sender_user_name: string }
  | { readonly type: "user"; readonly sender_user: Person }
  | { readonly type: "chat"; readonly sender_chat: Chat }
  | { readonly type: "channel"; readonly chat: Chat };

export interface Message {
  readonly message_id: number;
  readonly date: number;
  readonly chat: Chat;
  readonly from?: Person;
  readonly sender_chat?: Chat;
  readonly message_thread_id?: number;
  readonly is_topic_message?: boolean;
  readonly media_group_id?: string;
  readonly text?: string;
  readonly caption?: string;
  readonly entities?: readonly MessageEntity[];
  readonly caption_entities?: readonly MessageEntity[];
  readonly reply_to_message?: Message;
  readonly quote?: { readonly text: string };
  readonly forward_origin?: MessageOrigin;
  readonly photo?: readonly StoredFile[];
  readonly video?: StoredFile;
  readonly video_note?: StoredFile;
  readonly animation?: StoredFile;
  readonly audio?: StoredFile & { readonly title?: string };
  readonly voice?: StoredFile;
  readonly document?: StoredFile;
  readonly sticker?: Sticker;
  readonly location?: Place;
  readonly venue?: { readonly title: string; readonly address: string; readonly location: Place };
  readonly forum_topic_created?: { readonly name: string };
  readonly forum_topic_edited?: { readonly name?: string };
}

export interface CallbackQuery {
  readonly id: string;
  readonly from: Person;
  readonly message?: Pick<Message, "message_id" | "chat">;
  readonly data?: string;
}

export interface Update {
  readonly update_id: number;
  readonly message?: Message;
  readonly edited_message?: Message;
  readonly channel_post?: Message;
  readonly edited_channel_post?: Message;
  readonly callback_query?: CallbackQuery;
  readonly guest_message?: Message;
}
