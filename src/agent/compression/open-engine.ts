// The context engine of one conversation, made when it is first needed.
import { bundledPlugins, isSafeMode } from "../../home/paths.ts";
import { type OpenedEngine, openContextEngine, STANDARD_ENGINE } from "../../plugins/context-engines.ts";
import type { Conversation } from "../conversation.ts";
import { thresholdFor } from "./boundaries.ts";
import { ContextCompressor } from "./compressor.ts";
import { createSummarizer } from "./summarizer.ts";

export async function openEngineFor(conversation: Conversation): Promise<OpenedEngine> {
  const { ports, session } = conversation.options;
  const { model, contextLength, baseUrl, provider, apiMode } = conversation.model.target;
  return openContextEngine({
    name: isSafeMode({ env: (name) => ports.toolPorts?.env?.(name) }) ? STANDARD_ENGINE : ports.config().context.engine,
    model: { model, contextLength, baseUrl, provider, apiMode },
    pluginFolders: [ports.compression?.packagePlugins ?? bundledPlugins(), ports.home.at("plugins")],
    log: ports.log,
    clock: ports.clock,
    standard: () => {
      const { target_ratio, protect_first_n, protect_last_n, abort_on_summary_failure } = ports.config().compression;
      return new ContextCompressor({
        contextLength,
        threshold: thresholdFor(model, ports.config().compression),
        thresholdFor: (name) => thresholdFor(name, ports.config().compression),
        targetRatio: target_ratio,
        protectFirstN: protect_first_n,
        protectLastN: protect_last_n,
        abortOnSummaryFailure: abort_on_summary_failure,
        now: () => ports.clock.now(),
        log: ports.log,
        summarize: createSummarizer({
          auxiliary: conversation.auxiliary,
          main: () => conversation.model.target,
          redact: (text) => ports.redact(text),
          purpose: () => ({
            sessionId: conversation.transcript.sessionId,
            turn: conversation.turns,
            ...(session.jobId ? { jobId: session.jobId } : {}),
          }),
          warn: (message) => conversation.context.warn(message),
        }),
      });
    },
  });
}
