// What the log keeps of a turn: that it ran, what it cost, what went wrong. Never what was said.
import type { Logger } from "../home/log.ts";
import type { AgentEventBody } from "./events.ts";

export function logEvent(log: Logger, event: AgentEventBody): void {
  switch (event.type) {
    case "tool_end":
      return log.debug(`tool ${event.call.name} ${event.failed ? "failed" : "ended"} after ${Math.round(event.ms)} ms`);
    case "usage": {
      const { inputTokens, outputTokens, cacheReadTokens } = event.usage;
      return log.debug(`${event.task} call: ${inputTokens} tokens in, ${cacheReadTokens} cached, ${outputTokens} out`);
    }
    case "compressed":
      return log.info(`compressed (${event.kind}): ${event.before} tokens before, ${event.after} now`);
    case "status":
      if (event.kind === "warn") log.warn(event.message);
      if (event.kind === "lifecycle") log.info(event.message);
      return;
    case "done": {
      const { outcome } = event;
      const { exitReason, apiCalls, error, finalText, model, provider } = outcome;
      const line = `turn ended: ${exitReason}, ${apiCalls} model calls to ${model} at ${provider}`;
      return outcome.failed ? log.warn(`${line}: ${error ?? finalText ?? "no reason given"}`) : log.info(line);
    }
  }
}
