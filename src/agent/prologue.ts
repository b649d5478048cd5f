import { sanitizeSurrogates } from "../kit/surrogates.ts";
import { type UserInput, type UserMessage, userTextToSend } from "../llm/messages.ts";
import { withRecall } from "../prompt/recall.ts";
import { StoreError } from "../sessions/store.ts";
import type { RunContext } from "../tools/toolset/context.ts";
import type { Conversation } from "./conversation.ts";
import type { AgentOptions } from "./options.ts";
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
  return { ...message, api_content: withRecall(opening, [userTextToSend(message)]) };
}

/** Blocks that only the model sees ride on the user message as it is sent; the stored text stays what the user wrote. */
export async function recallFor(
  { transcript, options }: Conversation,
  entry: UserEntry,
  input: UserInput,
  { run, pictures }: { readonly run: RunContext; readonly pictures: readonly string[] },
): Promise<UserEntry> {
  const blocks = [...pictures, ...(await recall(options, input, run))];
  if (blocks.length === 0) return entry;
  const sent = userTextToSend(entry.message);
  return transcript.amendUser(entry, sent === "" ? blocks.join("\n\n") : withRecall(sent, blocks));
}

async function recall({ prompt, ports }: AgentOptions, input: UserInput, run: RunContext): Promise<readonly string[]> {
  try {
    return (await prompt.recall?.(input.persistText ?? input.text, run, input)) ?? [];
  } catch (error) {
    if (error instanceof StoreError) throw error;
    ports.log.warn("recall failed; the message is sent without it", error);
    return [];
  }
}

function userMessage(input: UserInput): UserMessage {
  const text = sanitizeSurrogates(input.text);
  const kept = sanitizeSurrogates(input.persistText ?? text);
  const parts = input.parts ?? [];
  if (parts.length === 0) return withSent({ role: "user", content: kept }, text.trim() === "" ? NO_TEXT : text);
  const spoken = kept.trim() === "" ? [] : [{ type: "text", text: kept } as const];
  return withSent({ role: "user", content: [...spoken, ...parts] }, text === kept ? undefined : text);
}

function withSent(message: UserMessage, sent: string | undefined): UserMessage {
  return sent === undefined || sent === message.content ? message : { ...message, api_content: sent };
}
