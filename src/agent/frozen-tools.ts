// Tools come before everything else in what providers cache, so a session keeps the list it began with.
import type { Config } from "../home/config/schema.ts";
import type { ToolDefinition } from "../llm/wire.ts";
import { fingerprintChanges, hashToolChoice, hashTools, PROMPT_VERSION } from "../prompt/fingerprint.ts";
import type { SessionStore } from "../sessions/store.ts";
import type { Toolbox } from "../tools/toolbox.ts";

/** Hashes of the list as it is sent, and of what the user chose; `without` are tools this conversation has no use for. */
export function toolHashes(
  tools: Pick<Toolbox, "definitions" | "toolsets">,
  config: Config,
  without: readonly string[],
): { readonly toolsHash: string; readonly toolSelection: string } {
  const toolSelection = hashToolChoice({
    toolsets: tools.toolsets,
    disabledToolsets: config.agent.disabled_toolsets,
    disabledTools: [...config.tools.disabled_functions, ...without],
    mcpServers: Object.keys(config.mcp_servers),
  });
  return { toolsHash: hashTools(tools.definitions), toolSelection };
}

/**
 * The tools a resumed session goes on with: the list its prompt was sent with, as long as the user chose no other. Tools that are gone
 * answer with an error, new ones wait for the next session.
 */
export async function freezeTools(
  tools: Toolbox,
  { toolsHash, toolSelection }: ReturnType<typeof toolHashes>,
  sessionId: string,
  store: SessionStore,
): Promise<Toolbox> {
  const stamp: unknown = (await store.getPrompt(sessionId))?.fingerprint;
  if (typeof stamp !== "object" || stamp === null || !("toolsHash" in stamp)) return tools;
  if (fingerprintChanges(stamp, { v: PROMPT_VERSION, toolSelection }).length > 0) return tools;
  const before = stamp.toolsHash;
  if (typeof before !== "string" || before === toolsHash) return tools;
  const list = await store.getToolList(before);
  if (!Array.isArray(list)) return tools;
  const definitions: readonly ToolDefinition[] = list;
  return { ...tools, definitions, names: new Set(definitions.map((tool) => tool.function.name)) };
}
