// Tools come before everything else in what providers cache, so a session keeps the list it began with.
import type { Config } from "../home/config/schema.ts";
import type { ToolDefinition } from "../llm/wire.ts";
import { fingerprintChanges, hashToolChoice, hashTools, PROMPT_VERSION } from "../prompt/fingerprint.ts";
import type { SessionStore } from "../sessions/store.ts";
import { registry } from "../tools/toolset/registry.ts";
import type { Toolbox } from "../tools/toolset/toolbox.ts";
import { pluginToolsets } from "../tools/toolset/toolsets.ts";

/**
 * Hashes of the list as it is sent, and of what the user chose; `without` are tools this conversation has no use for, `ownList` says that
 * the run named its toolsets itself.
 */
export function toolHashes(
  tools: Pick<Toolbox, "definitions" | "toolsets" | "servers">,
  config: Config,
  { without, ownList }: { readonly without: readonly string[]; readonly ownList: boolean },
): { readonly toolsHash: string; readonly toolSelection: string } {
  // A list of the run's own names the plugins it wants; otherwise all count but those that were left out.
  const plugins = ownList ? [] : pluginToolsets(registry);
  const toolSelection = hashToolChoice({
    // Servers count as chosen whether they are connected or not: one that is late is no other choice.
    // So do plugins: one that is switched on or off meanwhile waits for the next session.
    toolsets: tools.toolsets.filter((name) => !name.startsWith("mcp-") && !plugins.includes(name)),
    disabledToolsets: [...config.agent.disabled_toolsets, ...plugins.filter((name) => !tools.toolsets.includes(name))],
    disabledTools: [...config.tools.disabled_functions, ...without],
    mcpServers: tools.servers,
  });
  return { toolsHash: hashTools(tools.definitions), toolSelection };
}

/**
 * The tools a resumed session goes on with: the list its prompt was sent with, as long as the user chose no other. Tools that are gone
 * answer with an error, new ones wait for the next session. Null when there is no such list.
 */
export async function freezeTools(
  tools: Toolbox,
  { toolsHash, toolSelection }: ReturnType<typeof toolHashes>,
  sessionId: string,
  store: SessionStore,
): Promise<Toolbox | null> {
  const stamp: unknown = (await store.getPrompt(sessionId))?.fingerprint;
  if (typeof stamp !== "object" || stamp === null || !("toolsHash" in stamp)) return null;
  if (fingerprintChanges(stamp, { v: PROMPT_VERSION, toolSelection }).length > 0) return null;
  const before = stamp.toolsHash;
  if (typeof before !== "string") return null;
  if (before === toolsHash) return tools;
  const list = await store.getToolList(before);
  if (!Array.isArray(list)) return null;
  const definitions: readonly ToolDefinition[] = list;
  return tools.withDefinitions(definitions);
}

/** The list was changed on the user's word: the session goes on with the new one, also when it is resumed. The prompt's text stays. */
export async function restampTools(
  tools: Pick<Toolbox, "definitions">,
  hashes: ReturnType<typeof toolHashes>,
  sessionId: string,
  store: SessionStore,
): Promise<void> {
  await store.putToolList(tools.definitions);
  const record = await store.getPrompt(sessionId);
  if (typeof record?.fingerprint !== "object" || record.fingerprint === null) return;
  await store.setPrompt(sessionId, { ...record, fingerprint: { ...record.fingerprint, ...hashes } });
}
