import type { Conversation } from "./conversation.ts";
import type { AgentEventBody } from "./events.ts";
import { tellAnswer } from "./loop-events.ts";
import type { Ending } from "./outcome.ts";
import type { TurnKit } from "./turn-kit.ts";

/** Shows the final text. What failed to be written is said below it, and a hook may change it; the history keeps the answer alone. */
export async function showFinalText(
  { kind, finalText, streamed: begun = false }: Ending,
  conversation: Conversation,
  { run, mutations }: Pick<TurnKit, "run" | "mutations">,
  emit: (event: AgentEventBody) => void,
): Promise<Partial<Ending>> {
  if (finalText === null || (kind !== "answered" && kind !== "partial")) return { streamed: false };
  const footer = run.config.display.file_mutation_verifier ? mutations.footer() : null;
  const written = footer === null ? finalText : `${finalText}\n\n${footer}`;
  const text = await tellAnswer(conversation, written);
  const transformed = text !== written;
  const streamed = begun && !transformed;
  if (footer !== null && streamed) emit({ type: "text", delta: `\n\n${footer}` });
  emit({ type: "text_end", text, kind: "final", streamed });
  return { finalText: text, streamed, ...(transformed ? { transformed } : {}) };
}
