// The tools of one conversation, chosen once.

import { tmpdir, userInfo } from "node:os";
import type { Config } from "../home/config/schema.ts";
import { UserError } from "../kit/errors.ts";
import type { ToolDefinition } from "../llm/wire.ts";
import type { ConversationMcp } from "../mcp/open.ts";
import {
  environmentStamp,
  fingerprintChanges,
  hashToolChoice,
  hashTools,
  PROMPT_VERSION,
} from "../prompt/fingerprint.ts";
import type { Environment } from "../sandbox/environment.ts";
import { RUNS_HERE } from "../sandbox/open.ts";
import type { SessionStore } from "../sessions/store.ts";
import { AvailabilityCache } from "../tools/toolset/availability.ts";
import { loadTools } from "../tools/toolset/discover.ts";
import { registry } from "../tools/toolset/registry.ts";
import { type ForeignTools, SessionTools } from "../tools/toolset/session-tools.ts";
import { bundleName, COMPOSITE, listedNames, pluginToolsets } from "../tools/toolset/toolsets.ts";
import { isUnattended, type OpenRequest } from "./open-request.ts";

/** What the choice of tools depends on besides the request. */
export interface ToolChoice {
  readonly environment: Environment;
  readonly contextLength: number;
  /** Tools whose port this conversation does not have. */
  readonly without: readonly string[];
  /** Instead of the platform's, where neither the run nor the settings name any. */
  readonly toolsets?: readonly string[] | undefined;
  /** Nothing but these, whatever the toolsets say. */
  readonly only?: ReadonlySet<string> | undefined;
  /** Absent: tools of MCP servers are taken as they happen to be registered. */
  readonly mcp?: ConversationMcp;
  /** Adds tools that come from elsewhere than the registry. */
  readonly extend?: (tools: SessionTools) => void;
}

/**
 * The tools a conversation begins or goes on with. A new one waits a little for MCP servers; a resumed one has its list and waits for
 * nobody, unless the user chose other tools since.
 */
export async function openSessionTools(
  request: OpenRequest,
  choice: ToolChoice,
  resumed: { readonly id: string; readonly store: SessionStore } | null,
): Promise<SessionTools> {
  if (resumed) {
    const live = await openTools(request, choice);
    const hashes = toolHashes(live, request.home.config(), hashedChoice(request, choice));
    const stamp = { ...hashes, sandbox: environmentStamp(choice.environment) };
    if (await freezeTools(live, stamp, resumed.id, resumed.store)) return live;
  }
  await choice.mcp?.ready();
  return openTools(request, choice);
}

/** What decides about the tools besides the settings. */
export const hashedChoice = (
  { toolsets, mcpServers }: Pick<OpenRequest, "toolsets" | "mcpServers">,
  choice: Pick<ToolChoice, "without" | "toolsets">,
) => ({
  without: choice.without,
  servers: Object.keys(mcpServers ?? {}),
  ownList: (toolsets ?? choice.toolsets ?? []).length > 0,
});

/** Throws when the request names toolsets and none of them exists: a run without tools is never what was meant. */
export async function openTools(request: OpenRequest, choice: ToolChoice): Promise<SessionTools> {
  const { home, platform, toolsets = choice.toolsets } = request;
  const only = choice.only ?? request.start?.only;
  const config = home.config();
  const log = home.log.child("tools");
  await loadTools(log);
  const tools = await SessionTools.open({
    registry: choice.mcp?.registry ?? registry,
    availability: new AvailabilityCache(request.clock),
    platform,
    config: {
      ...config,
      tools: { ...config.tools, disabled_functions: [...config.tools.disabled_functions, ...choice.without] },
    },
    ...(toolsets ? { toolsets } : {}),
    ...(only ? { only } : {}),
    delegated: request.start?.origin === "subagent",
    environment: choice.environment,
    contextLength: choice.contextLength,
    log,
    env: (name) => home.env(name),
    ports: new Set([
      ...(canAsk(request) ? ["ask"] : []),
      ...(request.deliver ? ["deliver"] : []),
      ...(maySchedule(request) ? ["schedule"] : []),
    ]),
    explainMissing: async (name, signal) => (await choice.mcp?.explainMissing(name, signal)) ?? null,
  });
  if (toolsets && toolsets.length > 0 && toolsets.every((name) => tools.unknown.includes(name))) {
    throw new ToolsetError(
      `No such toolset: ${toolsets.join(", ")}. "hermes tools list" shows the names; --toolsets all takes everything.`,
    );
  }
  addOwnTools(tools, request.ownTools ?? []);
  choice.extend?.(tools);
  return tools;
}

/** Tools of the door itself. Throws when a name is taken: the model would call another tool than the door meant. */
function addOwnTools(tools: SessionTools, own: readonly ForeignTools[]): void {
  for (const some of own) {
    const taken = some.definitions.find(({ function: { name } }) => tools.names.has(name));
    if (taken)
      throw new UserError(`a tool of the name "${taken.function.name}" is there already; give yours another one.`);
    tools.add(some, "sorted");
  }
}

/** A user is there to answer questions. A prompt in the background counts too: it shares the list, and with it the cache, of its conversation. */
const canAsk = ({ interactive, start }: OpenRequest) => interactive || start?.origin === "background";

/** A run that nobody began by hand schedules nothing, and neither does what a person's conversation delegated. */
export const maySchedule = (request: Pick<OpenRequest, "origin" | "start">) =>
  !isUnattended(request) && request.start?.origin !== "subagent";

/** The request names tools that do not exist. */
class ToolsetError extends UserError {
  override name = "ToolsetError";
  override readonly exitCode = 2;
}

// In focus mode a conversation about code begins with the tools that code work needs, and no others.

/** Undefined: the usual ones. A resumed conversation keeps what it began with, whatever became of its folder. */
export async function focusToolsets(
  request: Pick<OpenRequest, "home" | "platform" | "start" | "toolsets">,
  cwd: string,
  resumed: { readonly id: string; readonly store: SessionStore } | null,
): Promise<readonly string[] | undefined> {
  const config = request.home.config();
  if (
    request.start ||
    request.toolsets ||
    isPinned(listedNames({ platform: request.platform, config }), request.platform)
  )
    return;
  const before = resumed && (await beganInFocus(resumed));
  const focused = before ?? (await findsFocus(request, cwd));
  return focused ? COMPOSITE.coding?.includes : undefined;
}

const isPinned = (names: readonly string[], platform: string) => names.some((name) => name !== bundleName(platform));

/** Null when nothing is known of its beginning. */
async function beganInFocus({ id, store }: { readonly id: string; readonly store: SessionStore }) {
  const origin: unknown = await store.getValue(id, "prompt_origin").catch(() => null); // then the folder is looked at
  if (typeof origin !== "object" || origin === null || !("coding" in origin)) return null;
  const { coding } = origin;
  return typeof coding === "object" && coding !== null && "focus" in coding && coding.focus === true;
}

async function findsFocus({ home, platform }: Pick<OpenRequest, "home" | "platform">, cwd: string): Promise<boolean> {
  const { agent, terminal } = home.config();
  if (agent.coding_context !== "focus" || !RUNS_HERE.has(terminal.backend)) return false;
  const [{ codingPosture }, { localFiles }] = await Promise.all([
    import("../prompt/coding.ts"),
    import("../tools/files/access.ts"),
  ]);
  const userHome = home.environment().HOME ?? userInfo().homedir;
  return (await codingPosture("focus", platform, { cwd, userHome, tempDir: tmpdir(), files: localFiles })).active;
}

// Tools come before everything else in what providers cache, so a session keeps the list it began with.

/**
 * Hashes of the list as it is sent, and of what the user chose; `without` are tools this conversation has no use for, `ownList` says that
 * the run named its toolsets itself.
 */
export function toolHashes(
  tools: Pick<SessionTools, "definitions" | "toolsets" | "servers">,
  config: Config,
  { without, ownList, servers }: ReturnType<typeof hashedChoice>,
): { readonly toolsHash: string; readonly toolSelection: string } {
  // A list of the run's own names the plugins it wants; otherwise all count but those that were left out.
  const plugins = ownList ? [] : pluginToolsets(registry);
  const toolSelection = hashToolChoice({
    // Servers count as chosen whether they are connected or not: one that is late is no other choice.
    // So do plugins: one that is switched on or off meanwhile waits for the next session.
    toolsets: tools.toolsets.filter((name) => !name.startsWith("mcp-") && !plugins.includes(name)),
    disabledToolsets: [...config.agent.disabled_toolsets, ...plugins.filter((name) => !tools.toolsets.includes(name))],
    disabledTools: [...config.tools.disabled_functions, ...without],
    mcpServers: [...tools.servers, ...servers],
  });
  return { toolsHash: hashTools(tools.definitions), toolSelection };
}

/**
 * The tools a resumed session goes on with: the list its prompt was sent with, as long as the user chose no other. Tools that are gone
 * answer with an error, new ones wait for the next session. False when there is no such list.
 */
async function freezeTools(
  tools: SessionTools,
  { toolsHash, ...wanted }: ReturnType<typeof toolHashes> & { readonly sandbox: string | undefined },
  sessionId: string,
  store: SessionStore,
): Promise<boolean> {
  const stamp: unknown = (await store.getPrompt(sessionId))?.fingerprint;
  if (typeof stamp !== "object" || stamp === null || !("toolsHash" in stamp)) return false;
  if (fingerprintChanges(stamp, { v: PROMPT_VERSION, ...wanted }).length > 0) return false;
  const before = stamp.toolsHash;
  if (typeof before !== "string") return false;
  if (before === toolsHash) return true;
  const list = await store.getToolList(before);
  if (!Array.isArray(list)) return false;
  const definitions: readonly ToolDefinition[] = list;
  tools.use(definitions);
  return true;
}

/** The list was changed on the user's word: the session goes on with the new one, also when it is resumed. The prompt's text stays. */
export async function restampTools(
  tools: Pick<SessionTools, "definitions">,
  hashes: ReturnType<typeof toolHashes>,
  sessionId: string,
  store: SessionStore,
): Promise<void> {
  await store.putToolList(tools.definitions);
  const record = await store.getPrompt(sessionId);
  if (typeof record?.fingerprint !== "object" || record.fingerprint === null) return;
  await store.setPrompt(sessionId, { ...record, fingerprint: { ...record.fingerprint, ...hashes } });
}
