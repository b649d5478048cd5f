// The tools of one conversation, chosen once.
import { UserError } from "../kit/errors.ts";
import type { ConversationMcp } from "../mcp/open.ts";
import type { Environment } from "../sandbox/environment.ts";
import type { SessionStore } from "../sessions/store.ts";
import { AvailabilityCache } from "../tools/toolset/availability.ts";
import { loadTools } from "../tools/toolset/discover.ts";
import { registry } from "../tools/toolset/registry.ts";
import { openToolbox, type Toolbox } from "../tools/toolset/toolbox.ts";
import { freezeTools, toolHashes } from "./frozen-tools.ts";
import type { AgentWish } from "./wish.ts";

export interface ToolPlace {
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
  /** Tools that come from elsewhere than the registry. */
  readonly extend?: (tools: Toolbox) => Toolbox;
}

/**
 * The tools a conversation begins or goes on with. A new one waits a little for MCP servers; a resumed one has its list and waits for
 * nobody, unless the user chose other tools since.
 */
export async function openSessionTools(
  wish: AgentWish,
  place: ToolPlace,
  resumed: { readonly id: string; readonly store: SessionStore } | null,
): Promise<Toolbox> {
  if (resumed) {
    const live = await openTools(wish, place);
    const hashes = toolHashes(live, wish.home.config(), hashedChoice(wish, place));
    const frozen = await freezeTools(live, hashes, resumed.id, resumed.store);
    if (frozen) return frozen;
  }
  await place.mcp?.ready();
  return openTools(wish, place);
}

/** What decides about the tools beside the settings. */
export const hashedChoice = (
  { toolsets }: Pick<AgentWish, "toolsets">,
  place: Pick<ToolPlace, "without" | "toolsets">,
) => ({
  without: place.without,
  ownList: (toolsets ?? place.toolsets ?? []).length > 0,
});

/** Throws when the wish names toolsets and none of them exists: a run without tools is never what was meant. */
export async function openTools(wish: AgentWish, place: ToolPlace): Promise<Toolbox> {
  const { home, platform, toolsets = place.toolsets } = wish;
  const only = place.only ?? wish.start?.only;
  const config = home.config();
  const log = home.log.child("tools");
  await loadTools(log);
  const toolbox = await openToolbox({
    registry,
    availability: new AvailabilityCache(wish.clock),
    platform,
    config: {
      ...config,
      tools: { ...config.tools, disabled_functions: [...config.tools.disabled_functions, ...place.without] },
    },
    ...(toolsets ? { toolsets } : {}),
    ...(only ? { only } : {}),
    delegated: wish.start?.origin === "subagent",
    environment: place.environment,
    contextLength: place.contextLength,
    log,
    env: (name) => home.env(name),
    ports: new Set([...Object.keys(portsOf(wish)), ...(canAsk(wish) ? ["ask"] : [])]),
    explainMissing: async (name, signal) => (await place.mcp?.explainMissing(name, signal)) ?? null,
  });
  if (toolsets && toolsets.length > 0 && toolsets.every((name) => toolbox.unknown.includes(name))) {
    throw new ToolsetError(
      `No such toolset: ${toolsets.join(", ")}. "hermes tools list" shows the names; --toolsets all takes everything.`,
    );
  }
  return place.extend?.(toolbox) ?? toolbox;
}

/** Somebody can be asked; a prompt in the background has the same list as the conversation beside it, whose cache it shares. */
const canAsk = ({ interactive, start }: AgentWish) => interactive || start?.origin === "background";

/** What a door hands to tools. A scheduled run makes no jobs and sends nothing itself: its answer is delivered. */
export function portsOf({ ports, start }: AgentWish): NonNullable<AgentWish["ports"]> {
  return ports && start?.origin !== "cron" ? ports : {};
}

/** The wish names tools that do not exist. */
export class ToolsetError extends UserError {
  override name = "ToolsetError";
  override readonly exitCode = 2;
}
