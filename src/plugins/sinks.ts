// Where registrations of plugins go: the registries of the other rooms.

import type { ProviderFactory } from "../memory/providers/contract.ts";
import { registerMemoryProvider } from "../memory/providers/find.ts";
import { registerProvider } from "../tools/extra-providers.ts";
import type { ToolContext } from "../tools/toolset/context.ts";
import { type ForeignToolSpec, registry, type ToolOutput } from "../tools/toolset/registry.ts";
import type { OfferedTool, PluginSinks } from "./active-plugin.ts";
import { type EngineFactory, registerContextEngine } from "./context-engines.ts";
import type { ConversationPort } from "./contract.ts";
import { current } from "./hosts.ts";

const STANDARD_SECONDS = 300;

export const pluginSinks: PluginSinks = {
  tool(tool, by) {
    const before = registry.get(tool.name);
    const taken = registry.register(specOf(tool), { by, ...(tool.override ? { override: true } : {}) });
    if (!taken) {
      throw new Error(
        `the name belongs to a tool of the toolset "${before?.toolset}"; override: true and plugins.entries.${by.plugin}.allow_tool_override would let it take its place`,
      );
    }
    return () => {
      if (registry.get(tool.name)?.toolset !== tool.toolset) return;
      registry.deregister(tool.name);
      // What it had taken the place of comes back.
      if (before && before.toolset !== tool.toolset) registry.register(before.spec as ForeignToolSpec); // either kind goes in as it came out
    };
  },
  memoryProvider: (name, create) => registerMemoryProvider(name, create as ProviderFactory), // what it makes is checked when it is made
  contextEngine: (name, create) => registerContextEngine(name, create as EngineFactory), // checked when it is made
  provider: registerProvider,
};

function specOf(tool: OfferedTool): ForeignToolSpec {
  const { name, toolset, description, emoji, requiresEnv, maxResultChars, deferred, available } = tool;
  return {
    name,
    toolset,
    description,
    parameters: tool.parameters ?? { type: "object", properties: {} },
    timeoutMs: () => (tool.timeout ?? STANDARD_SECONDS) * 1000,
    ...(emoji === undefined ? {} : { emoji }),
    ...(requiresEnv === undefined ? {} : { requiresEnv }),
    ...(maxResultChars === undefined ? {} : { maxResultChars }),
    ...(deferred === undefined ? {} : { deferred }),
    ...(available === undefined ? {} : { available: () => available() }),
    // The dispatcher holds what comes back to the contract of results.
    handler: async (args, ctx) => (await run(tool, args, ctx)) as ToolOutput,
  };
}

function run(tool: OfferedTool, args: Readonly<Record<string, unknown>>, ctx: ToolContext): Promise<unknown> {
  const call = {
    sessionId: ctx.sessionId,
    taskId: ctx.taskId,
    callId: ctx.callId,
    platform: ctx.platform,
    cwd: ctx.environment.cwd,
    signal: ctx.signal,
    log: ctx.log,
    env: (name: string) => ctx.env?.(name),
    progress: (text?: string) => ctx.progress(text),
  };
  const conversation = ctx.conversation as ConversationPort | undefined; // put there by the conversation of the call
  return conversation ? current.run(conversation, () => tool.handler(args, call)) : tool.handler(args, call);
}
