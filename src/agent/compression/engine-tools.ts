import type { ContextEngine } from "../../plugins/engine.ts";
import type { ToolRunnerPort } from "../options.ts";

/** The tools of a conversation and those its context engine brings along. A name that is taken stays with whoever had it. */
export function withEngineTools(tools: ToolRunnerPort, engine: ContextEngine): ToolRunnerPort {
  const own = (engine.getToolSchemas?.() ?? []).filter((tool) => !tools.names.has(tool.function.name));
  const ownNames = new Set(own.map((tool) => tool.function.name));
  return {
    ...tools,
    // A reload may change the list behind it.
    get definitions() {
      return [...tools.definitions, ...own];
    },
    get names() {
      return new Set([...tools.names, ...ownNames]);
    },
    async call(name, args, ctx) {
      if (!ownNames.has(name) || !engine.handleToolCall) return tools.call(name, args, ctx);
      try {
        return await engine.handleToolCall(name, args);
      } catch (error) {
        return JSON.stringify({ error: error instanceof Error ? error.message : String(error) });
      }
    },
  };
}
