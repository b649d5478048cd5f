// What Discord's API and its socket say, as far as it is read here.

export interface User {
  readonly id: string;
  readonly username: string;
  readonly discriminator?: string;
  readonly global_name?: string | null;
  readonly bot?: boolean;
}

export interface Member {
  readonly roles: readonly string[];
  readonly nick?: string | null;
  readonly user?: User;
}

export interface Role {
  readonly id: string;
  readonly tags?: { readonly bot_id?: string };
}

/** Of a dozen kinds with different fields; what one does not have is absent. */
export interface Channel {
  readonly id: string;
  readonly type: number;
  readonly name?: string | null;
  readonly guild_id?: string;
  readonly parent_id?: string | null;
  readonly topic?: string | null;
  readonly owner_id?: string;
  readonly last_message_id?: string | null;
  readonly member?: object;
}

export interface Guild {
  readonly id: string;
  readonly name: string;
  readonly roles: readonly Role[];
}

export interface Message {
  readonly id: string;
  readonly channel_id: string;
  readonly content: string;
  readonly author: User;
  readonly timestamp: string;
  readonly edited_timestamp: string | null;
  readonly type: number;
  readonly flags?: number;
  readonly nonce?: string | number;
  readonly webhook_id?: string;
  readonly mentions: readonly User[];
  readonly mention_roles: readonly string[];
  readonly attachments: readonly { readonly url: string; readonly filename: string; readonly size: number }[];
  readonly embeds: readonly object[];
  readonly referenced_message?: Message | null;
  readonly message_snapshots?: readonly { readonly message: { readonly content: string } }[];
  readonly sticker_items?: readonly { readonly name: string }[];
  readonly poll?: { readonly question: { readonly text?: string } };
  readonly thread?: Channel;
}

export interface Command {
  readonly name: string;
  readonly description: string;
  readonly options?: readonly { readonly name: string }[];
}

interface AnyInteraction {
  readonly id: string;
  readonly token: string;
  readonly application_id: string;
  readonly guild_id?: string;
  readonly channel_id?: string;
  readonly channel?: { readonly id: string };
  readonly user?: User;
  readonly member?: Member;
}

/** A slash command, or an entry of a menu, that was chosen. */
export interface CommandInteraction extends AnyInteraction {
  readonly type: 2;
  readonly data: {
    readonly type: number;
    readonly name: string;
    readonly options?: readonly { readonly value?: string | number | boolean }[];
  };
}

export interface ButtonInteraction extends AnyInteraction {
  readonly type: 3;
  readonly data: { readonly custom_id: string };
  readonly message: Message;
}

export type Interaction = CommandInteraction | ButtonInteraction;

export interface Mentions {
  readonly parse?: readonly ("everyone" | "roles" | "users")[];
  readonly replied_user?: boolean;
}

export interface Body {
  readonly content?: string;
  readonly nonce?: string;
  readonly enforce_nonce?: boolean;
  readonly flags?: number;
  readonly components?: readonly object[];
  readonly attachments?: readonly { readonly id: string; readonly filename: string }[];
  readonly allowed_mentions?: Mentions;
  readonly message_reference?: { readonly message_id: string; readonly fail_if_not_exists: boolean };
}

export interface FilePart {
  readonly name: string;
  readonly data: Buffer;
}

/** What the socket tells of, by its name; there are many more that nobody listens to here. */
export type Dispatch =
  | {
      readonly t: "READY";
      readonly d: {
        readonly application: { readonly id: string };
        readonly guilds: readonly { readonly id: string }[];
        readonly session_id: string;
        readonly resume_gateway_url: string;
      };
    }
  | { readonly t: "RESUMED" }
  | {
      readonly t: "GUILD_CREATE";
      readonly d: Guild & {
        readonly unavailable?: boolean;
        readonly channels: readonly Channel[];
        readonly threads: readonly Channel[];
      };
    }
  | { readonly t: "GUILD_UPDATE"; readonly d: Guild }
  | { readonly t: "GUILD_DELETE"; readonly d: { readonly id: string } }
  | {
      readonly t:
        | "CHANNEL_CREATE"
        | "CHANNEL_UPDATE"
        | "THREAD_CREATE"
        | "THREAD_UPDATE"
        | "CHANNEL_DELETE"
        | "THREAD_DELETE";
      readonly d: Channel;
    }
  | {
      readonly t: "THREAD_LIST_SYNC";
      readonly d: { readonly guild_id: string; readonly threads: readonly Channel[] };
    }
  | {
      readonly t: "MESSAGE_CREATE" | "MESSAGE_UPDATE";
      readonly d: Message & { readonly guild_id?: string; readonly member?: Member };
    }
  | { readonly t: "MESSAGE_DELETE"; readonly d: { readonly id: string; readonly channel_id: string } }
  | {
      readonly t: "MESSAGE_DELETE_BULK";
      readonly d: { readonly ids: readonly string[]; readonly channel_id: string };
    }
  | { readonly t: "INTERACTION_CREATE"; readonly d: Interaction };
