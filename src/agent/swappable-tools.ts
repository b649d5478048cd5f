// A list of tools that can be exchanged between turns. Whoever holds it sees the one in force.
import type { Toolbox } from "../tools/toolset/toolbox.ts";

export interface SwappableTools {
  readonly tools: Toolbox;
  /** Tool state stays: it belongs to the conversation, not to the list. */
  swap(other: Toolbox): void;
}

export function swappableTools(first: Toolbox): SwappableTools {
  let current = first;
  let chosen: Pick<Toolbox, "toolsets" | "servers"> = first;
  const tools: Toolbox = {
    get definitions() {
      return current.definitions;
    },
    get names() {
      return current.names;
    },
    get toolsets() {
      return chosen.toolsets;
    },
    get servers() {
      return chosen.servers;
    },
    unknown: first.unknown,
    state: first.state,
    call: (name, args, ctx) => current.call(name, args, ctx),
    prepare: (name, args) => current.prepare(name, args),
    unwrap: (name, args) => current.unwrap(name, args),
    limitResult: (result, ctx) => current.limitResult(result, ctx),
    limitBatch: (results, ctx) => current.limitBatch(results, ctx),
    textOrigin: (name) => current.textOrigin(name),
    isParallelTool: (name) => current.isParallelTool(name),
    timeoutMs: (name, args) => current.timeoutMs(name, args),
    showsLife: (name) => current.showsLife(name),
    hydrate: (history) => current.hydrate(history),
    withDefinitions: (definitions) => current.withDefinitions(definitions),
  };
  return {
    tools,
    swap(other) {
      chosen = other;
      current = first.withDefinitions(other.definitions);
    },
  };
}
