// One call of a tool with the arguments a model wrote, as a session makes it.
import type { ToolContext } from "../../src/tools/toolset/context.ts";
import { prepareArguments, runTool, toolError } from "../../src/tools/toolset/dispatch.ts";
import type { ToolOutput, ToolRegistry } from "../../src/tools/toolset/registry.ts";

export async function dispatch(
  tools: ToolRegistry,
  name: string,
  args: Readonly<Record<string, unknown>>,
  ctx: ToolContext,
): Promise<ToolOutput> {
  const entry = tools.get(name);
  if (!entry) return toolError(`Unknown tool: ${name}`);
  return runTool(entry, prepareArguments(entry, args), ctx);
}
