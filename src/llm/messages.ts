// The lingua franca: OpenAI-style messages. This is what is stored, and what every wire converts from and to.
// Field names are snake_case because they are a format: they stand in the database and in exported files.

type TextPart = { readonly type: "text"; readonly text: string };
type ImagePart = {
  readonly type: "image_url";
  readonly image_url: { readonly url: string; readonly detail?: string };
};
export type ContentPart = TextPart | ImagePart;

export type FinishReason = "stop" | "tool_calls" | "length" | "incomplete" | "content_filter";

export interface ToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: {
    readonly name: string /** JSON text, exactly as it will be sent again. */;
    readonly arguments: string;
  };
  /** Responses wire: the call id when it differs from `id`, and the id of the item that carried the call. */
  readonly call_id?: string;
  readonly response_item_id?: string;
  /** Gemini-compatible hosts: opaque state (thought signature) that must return unchanged. */
  readonly extra_content?: unknown;
}

export interface SystemMessage {
  readonly role: "system";
  readonly content: string | readonly ContentPart[];
}

export interface UserMessage {
  readonly role: "user";
  readonly content: string | readonly ContentPart[];
  /** The exact text that was sent when it differs from `content`; replayed verbatim. Pictures of a list are sent along with it. */
  readonly api_content?: string;
}

export interface AssistantMessage {
  readonly role: "assistant";
  readonly content: string | null;
  readonly tool_calls?: readonly ToolCall[];
  /** Text for display. */
  readonly reasoning?: string;
  /** Text that some providers demand back, even when empty. */
  readonly reasoning_content?: string;
  /** Structured thinking blocks, signatures included. */
  readonly reasoning_details?: readonly unknown[];
  /** The verbatim block order of an Anthropic answer in which signed thinking and tool use alternate. */
  readonly anthropic_content_blocks?: readonly unknown[];
  /** Replay state of the Responses wire; each item carries `_issuer_kind`. */
  readonly codex_reasoning_items?: readonly unknown[];
  readonly codex_message_items?: readonly unknown[];
  readonly finish_reason?: FinishReason;
}

/** Where the text of a tool result came from; approval may later depend on it. */
export type TextOrigin = "local" | "web" | "mcp" | "file" | "chat";

/** What the threat scan found in text from outside. Nothing was taken out of it. */
export interface ThreatAdvice {
  readonly risk: "high" | "low";
  readonly findings: readonly {
    readonly id: string;
    readonly line: number;
    readonly column: number;
    readonly excerpt: string;
  }[];
  readonly redacted: false;
}

export interface ToolMessage {
  readonly role: "tool";
  readonly content: string | readonly ContentPart[];
  readonly tool_call_id: string;
  readonly name?: string;
  readonly tool_name?: string;
  readonly api_content?: string;
  readonly text_origin?: TextOrigin;
  /** Never sent, and not stored. */
  readonly threats?: ThreatAdvice;
}

/** What a conversation is made of. The system prompt is not part of it; it is put in front of each request. */
export type HistoryMessage = UserMessage | AssistantMessage | ToolMessage;
export type Message = SystemMessage | HistoryMessage;

/** The text of a message's content: parts joined by newlines, images left out. */
export function textOf(content: string | readonly ContentPart[] | null): string {
  if (content === null) return "";
  if (typeof content === "string") return content;
  return content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}

/** The text of a user's message as it is sent. */
export function userTextToSend({ content, api_content }: Pick<UserMessage, "content" | "api_content">): string {
  return api_content ?? textOf(content);
}

/**
 * What a request carries of a user's message. Next to pictures, what `api_content` only adds to the text is a part of its own at the end;
 * anything else takes the place of the text.
 */
export function userContentToSend<P extends ContentPart>(message: {
  readonly content: string | readonly P[];
  readonly api_content?: string | undefined;
}): string | readonly (P | TextPart)[] {
  const { content, api_content: sent } = message;
  if (sent === undefined || typeof content === "string") return sent ?? content;
  const said = textOf(content);
  if (said === "") return [...content, { type: "text", text: sent }];
  if (sent === said) return content;
  if (sent.startsWith(`${said}\n\n`)) return [...content, { type: "text", text: sent.slice(said.length + 2) }];
  return [{ type: "text", text: sent }, ...content.filter((part) => part.type !== "text")];
}

/** What starts a turn. Only a person's turns count for nudges and titles. */
export interface UserInput {
  readonly text: string;
  readonly parts?: readonly ContentPart[];
  readonly from?: "person" | "synthetic";
  /** What is stored and shown instead of `text`, when a door put its own notes in front. */
  readonly persistText?: string;
  /** Goes out in front of the text, this once: what the door adds for the model. Never stored, never shown. */
  readonly note?: string;
}
