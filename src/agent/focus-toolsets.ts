// In focus mode a conversation about code begins with the tools that code work needs, and no others.
import { tmpdir, userInfo } from "node:os";
import { configuredBackend } from "../prompt/probes/prompt-backend.ts";
import type { SessionStore } from "../sessions/store.ts";
import { listedNames } from "../tools/toolset/toolsets.ts";
import { bundleName, COMPOSITE } from "../tools/toolset-table.ts";
import type { AgentWish } from "./wish.ts";

/** Undefined: the usual ones. A resumed conversation keeps what it began with, whatever became of its folder. */
export async function focusToolsets(
  wish: Pick<AgentWish, "home" | "platform" | "start" | "toolsets">,
  cwd: string,
  resumed: { readonly id: string; readonly store: SessionStore } | null,
): Promise<readonly string[] | undefined> {
  const config = wish.home.config();
  if (wish.start || wish.toolsets || isPinned(listedNames({ platform: wish.platform, config }), wish.platform)) return;
  const before = resumed && (await beganInFocus(resumed));
  const focused = before ?? (await findsFocus(wish, cwd));
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

async function findsFocus({ home, platform }: Pick<AgentWish, "home" | "platform">, cwd: string): Promise<boolean> {
  const { agent, terminal } = home.config();
  if (agent.coding_context !== "focus" || configuredBackend(terminal, cwd)?.type === "remote") return false;
  const [{ codingPosture }, { hostFiles }] = await Promise.all([
    import("../prompt/coding.ts"),
    import("../prompt/ports.ts"),
  ]);
  const userHome = home.environment().HOME ?? userInfo().homedir;
  return (await codingPosture("focus", platform, { cwd, userHome, tempDir: tmpdir(), files: hostFiles })).active;
}
