// Functions of the embedding program as tools: checked, run and held to their contract like every other tool.
import { UserError } from "../../kit/errors.ts";
import { isRecord } from "../../kit/json.ts";
import { prepareArguments, runTool } from "../../tools/toolset/dispatch.ts";
import { type ForeignToolSpec, type ToolEntry, toolEntry } from "../../tools/toolset/registry.ts";
import type { ForeignTools } from "../../tools/toolset/session-tools.ts";
import type { AgentTool } from "./contract.ts";

const NAME = /^[\w-]{1,64}$/;

/** Two groups: those whose results are the program's own words, and those that may carry text of strangers. Throws for what is no tool. */
export function ownTools(tools: readonly AgentTool[]): readonly ForeignTools[] {
  const seen = new Set<string>();
  for (const tool of tools) {
    check(tool);
    if (seen.has(tool.name)) throw new UserError(`tools: there are two of the name "${tool.name}".`);
    seen.add(tool.name);
  }
  const trusted = tools.filter((tool) => tool.trusted === true);
  const others = tools.filter((tool) => tool.trusted !== true);
  return [
    ...(trusted.length > 0 ? [{ ...group(trusted), textOrigin: "local" as const }] : []),
    ...(others.length > 0 ? [{ ...group(others), textOrigin: "mcp" as const }] : []),
  ];
}

function check(tool: AgentTool): void {
  if (!isRecord(tool)) throw new UserError("tools: each is an object with name, description and run.");
  const { name, description, parameters, run } = tool;
  if (typeof name !== "string" || !NAME.test(name))
    throw new UserError(
      `tools: ${JSON.stringify(name)} cannot be the name of a tool (letters, digits, _ and -, at most 64).`,
    );
  if (typeof description !== "string" || description.trim() === "")
    throw new UserError(`tools: "${name}" has no description; the model chooses by it.`);
  if (typeof run !== "function") throw new UserError(`tools: "${name}" has no function run.`);
  if (parameters !== undefined && (!isRecord(parameters) || parameters.type !== "object"))
    throw new UserError(
      `tools: the parameters of "${name}" are not a JSON Schema of an object ({type: "object", ...}).`,
    );
}

function group(tools: readonly AgentTool[]): ForeignTools {
  const entries = new Map(tools.map((tool) => [tool.name, entryOf(tool)]));
  return {
    definitions: [...entries.values()].map(({ name, spec, parameters }) => ({
      type: "function",
      function: { name, description: spec.description, parameters },
    })),
    call(name, args, ctx) {
      const entry = entries.get(name);
      if (!entry) throw new Error(`unknown tool: ${name}`);
      return runTool(entry, prepareArguments(entry, args), ctx);
    },
  };
}

function entryOf(tool: AgentTool): ToolEntry {
  const { name, description, parameters = { type: "object", properties: {} } } = tool;
  const spec: ForeignToolSpec = {
    ...{ name, description, parameters, toolset: "library" },
    async handler(args, { signal, sessionId }) {
      const result: unknown = await tool.run(args, { signal, sessionId });
      return typeof result === "string" ? result : (JSON.stringify(result) ?? "null");
    },
  };
  return toolEntry(spec);
}
