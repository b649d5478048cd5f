import type { UserMessage } from "../llm/messages.ts";
import { sanitizeSurrogates } from "../llm/surrogates.ts";
import { StoreError } from "../sessions/store.ts";
import type { RunContext } from "../tools/context.ts";
import type { Conversation } from "./conversation.ts";
import type { UserInput } from "./events.ts";
import type { UserEntry } from "./transcript.ts";

const NO_TEXT = "[empty message]";

/** Puts what the user said on disk, behind whatever a crash left open. */
export async function storeUserMessage(conversation: Conversation, input: UserInput): Promise<UserEntry> {
  const { transcript } = conversation;
  await transcript.closeCrashedCalls();
  return transcript.appendUser(withOpening(userMessage(input), conversation.takeOpening()));
}

function withOpening(message: UserMessage, opening: string | null): UserMessage {
  if (opening === null) return message;
  const { content, api_content } = message;
  // A list of parts has nothing beside it that is only sent.
  if (typeof content !== "string") return { ...message, content: [{ type: "text", text: opening }, ...content] };
  return { ...message, api_content: `${opening}\n\n${api_content ?? content}` };
}

/** Blocks that only the model sees ride on the user message as it is sent; the stored text stays what the user wrote. */
export async function recallFor(
  { transcript, options }: Conversation,
  entry: UserEntry,
  input: UserInput,
  run: RunContext,
): Promise<UserEntry> {
  const { content, api_content } = entry.message;
  // A list has no place for a block behind the text.
  if (!options.prompt.recall || typeof content !== "string") return entry;
  try {
    const blocks = await options.prompt.recall(input.persistText ?? input.text, run, input);
    if (blocks.length === 0) return entry;
    return await transcript.amendUser(entry, [api_content ?? content, ...blocks].join("\n\n"));
  } catch (error) {
    if (error instanceof StoreError) throw error;
    options.ports.log.warn("recall failed; the message is sent as it is", error);
    return entry;
  }
}

function userMessage(input: UserInput): UserMessage {
  const text = sanitizeSurrogates(input.text);
  if (input.parts && input.parts.length > 0) {
    const spoken = text.trim() === "" ? [] : [{ type: "text", text } as const];
    return { role: "user", content: [...spoken, ...input.parts] };
  }
  const content = sanitizeSurrogates(input.persistText ?? text);
  const sent = text.trim() === "" ? NO_TEXT : text;
  return sent === content ? { role: "user", content } : { role: "user", content, api_content: sent };
}
