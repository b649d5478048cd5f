// A typed message on its way to the agent: `@` references are expanded for the model, the stored text stays as typed.

import type { OpenRequest } from "../agent/open-request.ts";
import type { OpenAgent } from "../agent/opened.ts";
import type { UserInput } from "../llm/messages.ts";
import type { Picture } from "../tools/media/user-pictures.ts";

export interface Notify {
  /** A quiet line: what was attached. */
  note(text: string): void;
  warn(text: string): void;
}

// Loading the reader of references is only worth it where something looks like one.
const LOOKS_LIKE_ONE = /@(?:diff|staged|file:|folder:|git:|url:|["'`]|[^\s@]{1,300}?\.(?:png|jpe?g|gif|webp))/i;

/** The input to run; null when it must not be sent and the reason was shown. */
export async function withReferences(
  input: UserInput,
  conversation: Pick<OpenAgent, "attachReferences">,
  notify: Notify,
): Promise<UserInput | null> {
  // Notes of the program and texts of skills are not the user's words.
  if (input.from === "synthetic" || input.persistText !== undefined || !LOOKS_LIKE_ONE.test(input.text)) return input;
  const expansion = await conversation.attachReferences(input.text).catch((error: unknown) => {
    if (error instanceof Error && error.name === "AbortError") return "interrupted" as const;
    throw error;
  });
  if (expansion === null) return input;
  if (expansion === "interrupted") {
    notify.warn("Interrupted while reading the files in your message. Nothing was sent.");
    return null;
  }
  for (const warning of expansion.warnings) notify.warn(warning);
  if (expansion.blocked) {
    notify.warn("Nothing was sent. Reference fewer files, or line ranges such as @file:PATH:10-80.");
    return null;
  }
  const { describeExpansion } = await import("../prompt/references/expand.ts");
  notify.note(describeExpansion(expansion));
  if (!expansion.expanded) return input;
  const parts = [...(input.parts ?? []), ...expansion.pictures];
  return { ...input, text: expansion.message, persistText: input.text, ...(parts.length > 0 ? { parts } : {}) };
}

// A name of a picture behind an `@`.
const PICTURE = /@[^\s@]{1,300}\.(?:png|jpe?g|gif|webp)/i;

/** Pictures are attached to it, or will be when what it points at is read. */
export function carriesPictures({ text, parts }: UserInput): boolean {
  return (parts?.length ?? 0) > 0 || PICTURE.test(text);
}

// What a user asked for on the command line, for any door that holds a conversation.

export interface ChatRequest extends OpenRequest {
  readonly verbose: boolean;
  /** Lines instead of a screen: no cursor control, no colours. */
  readonly plain?: boolean;
  /** The terminal takes colour. */
  readonly color: boolean;
  /** Pictures for the first message. */
  readonly pictures?: readonly Picture[] | undefined;
}

export type { ResumeRequest } from "../agent/open-request.ts";
