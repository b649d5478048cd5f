// The plugins and shell hooks of one conversation. Nothing of them is loaded as long as none is configured.
import { stat } from "node:fs/promises";
import { bundledPlugins, isSafeMode } from "../home/paths.ts";
import { isStandard } from "../plugins/context-engines.ts";
import type { OpenRequest } from "./open-request.ts";
import type { ConversationPlugins } from "./plugins.ts";

type PluginRequest = Pick<OpenRequest, "home" | "clock" | "cwd" | "platform" | "interactive" | "start" | "acceptHooks">;

/** Never rejects for what a plugin did: the conversation goes on without it, and its notes say so. */
export async function openPlugins(request: PluginRequest): Promise<ConversationPlugins | null> {
  if (isSafeMode(request.home) || !(await isAnythingWanted(request))) return null;
  const { openConversationPlugins } = await import("./plugins.ts");
  return openConversationPlugins(request);
}

/** The tools of the plugins that are on, as a conversation would get them. */
export async function registerPluginTools(place: Pick<OpenRequest, "home" | "clock" | "cwd">): Promise<void> {
  if (isSafeMode(place.home) || (place.home.config().plugins.enabled ?? []).length === 0) return;
  const { sharedPlugins } = await import("../plugins/shared.ts");
  await sharedPlugins(place).host.refresh();
}

async function isAnythingWanted({ home }: PluginRequest): Promise<boolean> {
  const { plugins, hooks, memory, context } = home.config();
  if ((plugins.enabled ?? []).length > 0 || Object.keys(hooks).length > 0) return true;
  const provider = memory.provider.trim();
  if ((provider !== "" && provider !== "local") || !isStandard(context.engine)) return true;
  return (await stat(bundledPlugins()).catch(() => null)) !== null; // none came with the program
}
