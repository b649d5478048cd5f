// Pictures of the user for a model that does not see: another one says what they show. Its words ride on the message as it is sent.
import { messageOf } from "../kit/errors.ts";
import type { AuxCall, AuxiliaryClient } from "../llm/auxiliary/contract.ts";
import type { ContentPart, UserInput } from "../llm/messages.ts";
import { stripThinkBlocks } from "../llm/scrub.ts";
import { fenced } from "../prompt/fence.ts";
import { pictureQuestion } from "../tools/media/pictures.ts";
import type { Conversation } from "./conversation.ts";
import type { AgentEventBody } from "./events.ts";

const ANSWER_TOKENS = 2000;

interface Looking {
  readonly signal: AbortSignal;
  emit(event: AgentEventBody): void;
}

/** One block per picture, in order. Never rejects: a picture nobody can look at is named as such, to the model and to the user. */
export async function picturesInWords(
  conversation: Conversation,
  input: UserInput,
  looking: Looking,
): Promise<readonly string[]> {
  const pictures = (input.parts ?? []).filter((part) => part.type === "image_url");
  if (pictures.length > 0)
    looking.emit({
      type: "status",
      kind: "lifecycle",
      message: "This model cannot see pictures; another model describes them.",
    });
  const question = (input.persistText ?? input.text).trim() || "What does it show?";
  return Promise.all(pictures.map((picture) => inWords(conversation, { picture, question }, looking)));
}

interface Asked {
  readonly picture: ContentPart;
  readonly question: string;
}

/** What a model that sees answers. */
export async function describePicture(
  auxiliary: AuxiliaryClient,
  { picture, question }: Asked,
  account: Pick<AuxCall, "sessionId" | "turn" | "signal">,
): Promise<string> {
  const content = [{ type: "text" as const, text: pictureQuestion(question) }, picture];
  const messages = [{ role: "user" as const, content }];
  const { text } = await auxiliary.callAux({ task: "vision", maxTokens: ANSWER_TOKENS, messages, ...account });
  return stripThinkBlocks(text);
}

async function inWords(
  { auxiliary, transcript, turns }: Conversation,
  asked: Asked,
  { signal, emit }: Looking,
): Promise<string> {
  try {
    const account = { sessionId: transcript.sessionId, turn: turns, signal };
    const text = await describePicture(auxiliary, asked, account);
    return `[The user attached a picture. What another model sees in it:]\n${fenced("vision_analyze", text)}`;
  } catch (error) {
    const why = messageOf(error);
    if (!signal.aborted) emit({ type: "status", kind: "warn", message: `The picture could not be described: ${why}` });
    return "[The user attached a picture. You do not see pictures, and no other model could look at it: say so.]";
  }
}
