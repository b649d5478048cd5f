// What a turn said and came to, as every form of answer needs it: the text as it may be shown, the tokens, and how it ended.
import type { AgentEvent, ToolCallView, TurnOutcome } from "../../agent/events.ts";
import type { HistoryMessage } from "../../llm/messages.ts";
import { feedRow } from "../feed.ts";

interface TokenCount {
  readonly input: number;
  readonly output: number;
}

/** How a turn ended, for clients that look closer than at the text. */
export interface Ending {
  readonly outcome: TurnOutcome;
  /** The final text; empty when there is none. */
  readonly text: string;
  readonly finish: "stop" | "length" | "error";
  /** Present when the work was not done. */
  readonly incomplete?: {
    readonly completed: false;
    readonly partial: boolean;
    readonly failed: boolean;
    readonly error: string | null;
    readonly error_code: "output_truncated" | "agent_error";
  };
  /** The model said nothing at all: what there is of a text is ours. */
  readonly isEmpty: boolean;
  readonly tokens: TokenCount;
}

/**
 * Follows the events of one turn.
 *
 * - `take` answers with what is to be shown of the event: pieces that make the text when they are put together.
 * - After `done`, `ending` says how it ended.
 */
export class AnswerReader {
  #shown = "";
  /** The newest of the texts, as far as it came. */
  #segment = "";
  #isSegmentOpen = false;
  #input = 0;
  #output = 0;
  #outcome: TurnOutcome | null = null;

  /** All that was shown so far. */
  get shown(): string {
    return this.#shown;
  }

  get isOver(): boolean {
    return this.#outcome !== null;
  }

  take(event: AgentEvent): string {
    switch (event.type) {
      case "text":
        return this.#show(event.delta);
      case "text_end": {
        const piece = event.streamed ? "" : this.#show(event.text);
        this.#isSegmentOpen = false;
        return piece;
      }
      case "tool_start":
        this.#segment = "";
        return "";
      case "usage":
        if (event.task === "main") {
          this.#input += event.usage.promptTokens ?? 0;
          this.#output += event.usage.outputTokens ?? 0;
        }
        return "";
      case "done":
        this.#outcome = event.outcome;
        return "";
      default:
        return "";
    }
  }

  get ending(): Ending {
    const outcome = this.#outcome;
    if (outcome === null) throw new Error("the turn has not ended");
    const { finalText, completed, partial, failed, interrupted, interruptMessage, exitReason, error } = outcome;
    const isTruncated = exitReason.startsWith("truncated_response");
    const why = interrupted
      ? (interruptMessage ?? finalText ?? "the turn was interrupted")
      : (error ?? (failed ? finalText : null));
    const finish =
      partial && isTruncated ? "length" : failed || interrupted || (!completed && why !== null) ? "error" : "stop";
    return {
      outcome,
      // Of an interrupt the final text only says that there was one.
      text: interrupted ? this.#shown : (finalText ?? this.#shown),
      finish,
      isEmpty: (failed || interrupted) && this.#shown.trim() === "",
      tokens: this.tokens,
      ...(completed
        ? {}
        : {
            incomplete: {
              completed: false,
              ...{ partial, failed: failed || interrupted, error: why },
              error_code: isTruncated ? "output_truncated" : "agent_error",
            },
          }),
    };
  }

  /** The conversation behind the turn. What an interrupt cut off is part of it: its reader has seen it. */
  get messages(): readonly HistoryMessage[] {
    const { messages } = this.ending.outcome;
    const isCut = this.#segment.trim() !== "" && messages.at(-1)?.role !== "assistant";
    return isCut ? [...messages, { role: "assistant", content: this.#segment }] : messages;
  }

  get tokens(): TokenCount {
    return { input: this.#input, output: this.#output };
  }

  #show(piece: string): string {
    if (piece === "") return "";
    const isNext = !this.#isSegmentOpen && this.#shown !== "";
    this.#isSegmentOpen = true;
    this.#segment = isNext || this.#shown === "" ? piece : this.#segment + piece;
    const shown = isNext ? `\n\n${piece}` : piece;
    this.#shown += shown;
    return shown;
  }
}

/** Tools of the program's own bookkeeping are nobody's business. */
export const isHidden = ({ name }: Pick<ToolCallView, "name">) => name.startsWith("_");

/** Emoji and line of a call, for people. */
export function callLook(call: ToolCallView, redact: (text: string) => string) {
  const { emoji, detail } = feedRow(call);
  return { emoji, label: redact(call.preview || detail) };
}

/** Which conversation it was, and whose memory: said with every answer of a turn. */
export const sessionHeaders = (
  sessionId: string,
  sessionKey: string | undefined,
): Readonly<Record<string, string>> => ({
  ...nameHeader("x-hermes-session-id", sessionId),
  ...(sessionKey === undefined ? {} : nameHeader("x-hermes-session-key", sessionKey)),
});

/** Whole and unchanged, as it is sent back; a name in letters that no header carries is left out. */
const nameHeader = (header: string, name: string) => (/^[\x20-\x7e]*$/.test(name) ? { [header]: name } : {});

/** The first words of a reason, as a header can carry them. */
export const asHeader = (text: string) =>
  text
    .replace(/[^\x20-\x7e]+/g, " ")
    .slice(0, 200)
    .trim();
