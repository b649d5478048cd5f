// The external memory of a conversation, if the user chose one: recall in front of a turn, everything else behind it.

import { messageOf } from "../kit/errors.ts";
import { sanitizeParameters } from "../llm/json-schema.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import type { Memory } from "../memory/open.ts";
import { type AttachedProvider, attachProvider } from "../memory/providers/attached.ts";
import type { ProviderContext } from "../memory/providers/contract.ts";
import { findMemoryProvider } from "../memory/providers/find.ts";
import type { PromptSource } from "../prompt/contract.ts";
import { recallBlock } from "../prompt/recall.ts";
import type { EndReason } from "../sessions/store.ts";
import { registry } from "../tools/toolset/registry.ts";
import type { SessionTools } from "../tools/toolset/session-tools.ts";
import type { CompressionPorts, ConversationFollower } from "./assembly.ts";
import type { OpenRequest } from "./open-request.ts";

/** Runs that remember nothing outside: a parent or a schedule speaks there, not the user. */
const WITHOUT = new Set(["cron", "subagent"]);

export interface OpenedProvider {
  readonly attached: AttachedProvider;
  readonly recall: NonNullable<PromptSource["recall"]>;
  readonly follower: ConversationFollower;
  readonly compression: Pick<CompressionPorts, "preCompress" | "compressed">;
  addTools(tools: SessionTools): void;
  /** The last words of a conversation; waits a while for what is still to be written. */
  close(end: {
    readonly reason: EndReason;
    readonly messages: readonly HistoryMessage[];
    readonly next?: string | undefined;
  }): Promise<void>;
}

interface ProviderQuestion {
  readonly request: OpenRequest;
  readonly sessionId: string;
  readonly title?: string | null | undefined;
  readonly memory: Memory | null;
}

/** Never rejects. Null = the built-in memory alone; `warn` hears why, when the user had chosen one. */
export async function openProvider(
  question: ProviderQuestion,
  warn: (text: string) => void,
): Promise<OpenedProvider | null> {
  const { request, sessionId, memory } = question;
  const { home, clock } = request;
  const name = home.config().memory.provider.trim();
  if (name === "" || WITHOUT.has(request.source)) return null;
  const trouble = (reason: string) =>
    warn(`Memory provider "${name}" is not used: ${reason}. The built-in memory stays on.`);
  const log = home.log.child("memory");
  const context: ProviderContext = {
    ...{ paths: home.paths, clock, log },
    config: () => home.config(),
    env: (key) => home.env(key),
  };
  try {
    const provider = await findMemoryProvider(name, context);
    if (!provider) {
      trouble("there is no such provider; `hermes memory setup` lists them");
      return null;
    }
    const about = {
      hermesHome: home.paths.dir,
      platform: request.platform,
      agentContext: "primary" as const,
      agentIdentity: home.paths.profile,
      sessionTitle: question.title ?? undefined,
    };
    const isCoreTool = (tool: string) => registry.has(tool);
    const options = { provider, sessionId, about, paths: home.paths, clock, log, isCoreTool };
    const attached = await attachProvider(options, trouble);
    if (!attached) return null;
    memory?.onCommitted((write) => attached.memoryWritten(write));
    return { attached, ...portsOf(attached) };
  } catch (error) {
    log.warn(`memory provider ${name} could not be loaded`, error);
    trouble(`it could not be loaded: ${messageOf(error)}`);
    return null;
  }
}

function portsOf(attached: AttachedProvider): Omit<OpenedProvider, "attached"> {
  return {
    addTools: (tools) => addProviderTools(tools, attached),
    async close({ reason, messages, next }) {
      attached.ended(messages, { isRealEnd: !NO_END.has(reason), next });
      await attached.close();
    },
    async recall(text, run, input) {
      // With pictures memory keeps quiet: its words would stand for what it has not seen.
      if (input?.from === "synthetic" || (input?.parts ?? []).length > 0) return [];
      const { sessionId, turn, signal } = run;
      const block = recallBlock(await attached.recall(text, { sessionId, turn, signal }));
      return block === null ? [] : [block];
    },
    follower: {
      turnEnded({ input, outcome }) {
        const { finalText, messages, sessionId } = outcome;
        if (!finalText || outcome.interrupted || outcome.failed || input.from === "synthetic") return;
        attached.turnEnded({ sessionId, user: input.persistText ?? input.text, assistant: finalText, messages });
      },
      rewound: (sessionId) => attached.switched(sessionId, { rewound: true }),
      delegated: (task, result, childSessionId) => attached.delegated(task, result, childSessionId),
    },
    compression: {
      preCompress: (messages) => attached.preCompress(messages),
      async compressed({ oldSessionId, newSessionId }) {
        if (oldSessionId !== newSessionId) attached.switched(newSessionId, { parentSessionId: oldSessionId });
      },
    },
  };
}

/** The provider's tools, where the memory toolset is on. */
function addProviderTools(tools: SessionTools, attached: AttachedProvider): void {
  if (!tools.toolsets.includes("memory")) return;
  const definitions = attached.tools.map(({ name, description, parameters }) => ({
    type: "function" as const,
    function: { name, description, parameters: sanitizeParameters(parameters) },
  }));
  // What was once said may have come from anywhere.
  tools.add({ definitions, textOrigin: "chat", call: (name, args) => attached.callTool(name, args) }, "sorted");
}

const NO_END: ReadonlySet<EndReason> = new Set(["branched", "compression", "resumed_other", "session_switch"]);
