// The plugins and shell hooks of one conversation. Nothing of them is loaded as long as none is configured.
import { stat } from "node:fs/promises";
import { bundledPlugins, isSafeMode } from "../home/paths.ts";
import { isStandard } from "../plugins/context-engines.ts";
import type { ConversationPlugins } from "./plugins.ts";
import type { AgentWish } from "./wish.ts";

type PluginWish = Pick<AgentWish, "home" | "clock" | "cwd" | "platform" | "interactive" | "start" | "acceptHooks">;

/** Never rejects for what a plugin did: the conversation goes on without it, and its notes say so. */
export async function openPlugins(wish: PluginWish): Promise<ConversationPlugins | null> {
  if (isSafeMode(wish.home) || !(await isAnythingWanted(wish))) return null;
  const { openConversationPlugins } = await import("./plugins.ts");
  return openConversationPlugins(wish);
}

/** The tools of the plugins that are on, as a conversation would get them. */
export async function registerPluginTools(place: Pick<AgentWish, "home" | "clock" | "cwd">): Promise<void> {
  if (isSafeMode(place.home) || (place.home.config().plugins.enabled ?? []).length === 0) return;
  const { sharedPlugins } = await import("../plugins/shared.ts");
  await sharedPlugins(place).host.refresh();
}

async function isAnythingWanted({ home }: PluginWish): Promise<boolean> {
  const { plugins, hooks, memory, context } = home.config();
  if ((plugins.enabled ?? []).length > 0 || Object.keys(hooks).length > 0) return true;
  const provider = memory.provider.trim();
  if ((provider !== "" && provider !== "local") || !isStandard(context.engine)) return true;
  return (await stat(bundledPlugins()).catch(() => null)) !== null; // none came with the program
}
