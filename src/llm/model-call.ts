// One request, one stream: its events go to the door as they come, what it amounted to goes back to the loop.

import { withGrace } from "../kit/clock.ts";
import type { AssistantMessage, FinishReason } from "./messages.ts";
import { RecallScrubber, scrubRecall, ThinkScrubber } from "./scrub.ts";
import type { RateLimits, Usage } from "./usage.ts";
import type { ModelError, ModelEvent } from "./wire.ts";

export type Reply =
  | {
      readonly type: "answer";
      readonly message: AssistantMessage;
      readonly finishReason: FinishReason;
      /** The visible text that was already shown. */
      readonly streamed: string;
      /** What the provider said is left. */
      readonly rateLimits?: RateLimits;
    }
  /** The connection broke after the answer had begun. */
  | {
      readonly type: "lost";
      readonly text: string;
      readonly pendingTools: readonly string[];
      readonly error: ModelError;
    }
  | { readonly type: "failed"; readonly error: ModelError }
  | { readonly type: "interrupted" };

/** A wire ends within a tenth of a second of its abort; one that does not is not waited for. */
const GRACE_MS = 250;

/** What of a stream a person may see as it comes. */
type StreamedEvent =
  | { readonly type: "text"; readonly delta: string }
  | { readonly type: "text_end"; readonly text: string; readonly kind: "interim"; readonly streamed: false }
  | { readonly type: "thinking"; readonly delta: string }
  | { readonly type: "tool_pending"; readonly name: string };

interface Listener {
  emit(event: StreamedEvent): void;
  usage(usage: Usage): void;
}

export async function listenToModel(
  stream: AsyncIterable<ModelEvent>,
  signal: AbortSignal,
  listener: Listener,
): Promise<Reply> {
  let deaf = false;
  const listening = listen(stream, {
    emit: (event) => deaf || listener.emit(event),
    usage: (usage) => deaf || listener.usage(usage),
  });
  const settled = await withGrace(listening, signal, GRACE_MS);
  deaf = true;
  if (signal.aborted || !settled.done) return { type: "interrupted" };
  return settled.value;
}

async function listen(stream: AsyncIterable<ModelEvent>, listener: Listener): Promise<Reply> {
  const scrubber = new ThinkScrubber();
  const recall = new RecallScrubber();
  const flush = () => recall.feed(scrubber.flush()) + recall.flush();
  let streamed = "";
  let thinkingShown = false;
  let toolsBegun = false;
  const show = (visible: string) => {
    // Text behind the first tool call stays in the message, but the screen has moved on.
    if (visible === "" || toolsBegun) return;
    streamed += visible;
    listener.emit({ type: "text", delta: visible });
  };
  try {
    for await (const event of stream) {
      switch (event.type) {
        case "text":
          show(recall.feed(scrubber.feed(event.delta)));
          break;
        case "thinking":
          thinkingShown = true;
          listener.emit({ type: "thinking", delta: event.delta });
          break;
        case "remark": {
          const text = scrubRecall(event.text).trim();
          // Behind the beginning of an answer it would look like the end of it.
          if (text !== "" && streamed === "")
            listener.emit({ type: "text_end", text, kind: "interim", streamed: false });
          break;
        }
        case "tool_pending":
          show(flush());
          toolsBegun = true;
          listener.emit({ type: "tool_pending", name: event.name });
          break;
        case "tool_call":
          break;
        case "usage":
          listener.usage(event.usage);
          break;
        case "done": {
          show(flush());
          const { finishReason, rateLimits } = event;
          const message = withoutRecall(event.message);
          if (!thinkingShown && message.reasoning) listener.emit({ type: "thinking", delta: message.reasoning });
          return { type: "answer", message, finishReason, streamed, rateLimits };
        }
        case "failed":
          show(flush());
          return brokenOff(event.error);
      }
    }
  } catch (error) {
    return { type: "failed", error: asModelError(error) };
  }
  return { type: "failed", error: { message: "the stream ended without an answer", code: "stream_ended" } };
}

/** A block that the model repeated must not come back as if it had been said. */
function withoutRecall(message: AssistantMessage): AssistantMessage {
  const { content } = message;
  if (typeof content !== "string") return message;
  const visible = scrubRecall(content);
  return visible === content ? message : { ...message, content: visible };
}

function brokenOff(error: ModelError): Reply {
  const { text = "", pendingTools = [] } = error.partial ?? {};
  if (text.trim() === "" && pendingTools.length === 0) return { type: "failed", error };
  return { type: "lost", text, pendingTools, error };
}

function asModelError(error: unknown): ModelError {
  if (!(error instanceof Error)) return { message: String(error) };
  return { message: error.message, name: error.name };
}
