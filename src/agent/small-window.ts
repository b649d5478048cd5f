// Models with little room: the user is told, and a window that holds no conversation at all is refused before anything is sent.
import { contextSize } from "../kit/formats.ts";
import { estimateTokens } from "../llm/catalogue/estimate.ts";
import { isLocalEndpoint } from "../llm/providers/hosts.ts";
import type { Target, ToolDefinition } from "../llm/wire.ts";
import { isSmallWindow } from "../tools/toolset/search-split.ts";
import { type Ending, failedEnding } from "./outcome.ts";

/** Less than this is no conversation. */
const LEAST_TALK = 2_000;

/** `128K tokens`; says so where nobody knows. */
export function windowText({ contextLength, windowAssumed }: Pick<Target, "contextLength" | "windowAssumed">): string {
  return `${contextSize(contextLength)} tokens${windowAssumed ? " (assumed)" : ""}`;
}

/** For whoever begins a conversation with such a model; null when the window is large enough. */
export function smallWindowNote({ model, contextLength }: Pick<Target, "model" | "contextLength">): string | null {
  if (!isSmallWindow(contextLength)) return null;
  return (
    `${model} has a small window (${count(contextLength)} tokens): conversations are compressed often, and tools of MCP servers and ` +
    "plugins wait behind tool search. If it is larger than that, say so with model.context_length."
  );
}

/** The end of a turn whose prompt and tools leave no room to talk; null when they do. */
export function noRoomToTalk(
  target: Pick<Target, "model" | "contextLength" | "baseUrl">,
  fixed: { readonly system: string; readonly tools: readonly ToolDefinition[] },
): Ending | null {
  const { model, contextLength, baseUrl } = target;
  if (!isSmallWindow(contextLength)) return null;
  const prompt = estimateTokens(fixed.system);
  const tools = fixed.tools.length > 0 ? estimateTokens(JSON.stringify(fixed.tools)) : 0;
  const needed = prompt + tools + LEAST_TALK;
  if (needed <= contextLength) return null;
  const local = isLocalEndpoint(baseUrl);
  const raise = local ? "Load the model with a larger context, or say" : "Say";
  return failedEnding(
    local ? "local_context_too_small" : "context_overflow_exhausted",
    `The window of ${model} is too small to talk: it holds ${count(contextLength)} tokens, and about ${count(needed)} are needed ` +
      `(system prompt ${count(prompt)}, tools ${count(tools)}, conversation ${count(LEAST_TALK)}). ${raise} how large it really is ` +
      "with model.context_length, give it fewer tools (--toolsets), or take another model.",
    `window too small: ${contextLength} of ${needed} tokens`,
  );
}

const count = (tokens: number) => tokens.toLocaleString("en-US");
