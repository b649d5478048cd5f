// The context engine of one conversation, made when it is first needed.
import { bundledPlugins, isSafeMode } from "../../home/paths.ts";
import { type OpenedEngine, openContextEngine, STANDARD_ENGINE } from "../../plugins/context-engines.ts";
import type { Conversation } from "../conversation.ts";
import { thresholdFor } from "./boundaries.ts";
import { ContextCompressor } from "./compressor.ts";
import { createSummarizer } from "./summarizer.ts";

export async function openEngineFor(conversation: Conversation): Promise<OpenedEngine> {
  const { assembly } = conversation;
  const { session } = assembly;
  const { model, contextLength, baseUrl, provider, apiMode } = conversation.model.target;
  return openContextEngine({
    name: isSafeMode({ env: (name) => assembly.toolPorts?.env?.(name) })
      ? STANDARD_ENGINE
      : assembly.config().context.engine,
    model: { model, contextLength, baseUrl, provider, apiMode },
    pluginFolders: [assembly.compression?.packagePlugins ?? bundledPlugins(), assembly.paths.at("plugins")],
    log: assembly.log,
    clock: assembly.clock,
    standard: () => {
      const { target_ratio, protect_first_n, protect_last_n, abort_on_summary_failure } = assembly.config().compression;
      return new ContextCompressor({
        contextLength,
        threshold: thresholdFor(model, assembly.config().compression),
        thresholdFor: (name) => thresholdFor(name, assembly.config().compression),
        targetRatio: target_ratio,
        protectFirstN: protect_first_n,
        protectLastN: protect_last_n,
        abortOnSummaryFailure: abort_on_summary_failure,
        now: () => assembly.clock.now(),
        log: assembly.log,
        summarize: createSummarizer({
          auxiliary: conversation.auxiliary,
          main: () => conversation.model.target,
          redact: (text) => assembly.redact(text),
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
