// Which tools a child gets: never more than its parent has, and none that speak for the parent or to the user.
import type { Config } from "../../home/config/schema.ts";
import { registry } from "../../tools/toolset/registry.ts";
import { hasTools, resolveToolset } from "../../tools/toolset/toolsets.ts";

const NEVER = new Set(["clarify", "memory", "send_message", "cronjob"]);

export interface ChildTools {
  readonly only: ReadonlySet<string>;
  /** Toolsets that were asked for and do not exist. */
  readonly unknown: readonly string[];
}

export function childTools(
  parent: ReadonlySet<string>,
  asked: readonly string[] | undefined,
  { mayDelegate, settings }: { readonly mayDelegate: boolean; readonly settings: Config["delegation"] },
): ChildTools {
  const names = (asked ?? []).map((name) => name.trim()).filter((name) => name !== "");
  const known = names.filter((name) => hasTools(name, registry));
  const chosen = known.length === 0 ? null : new Set(known.flatMap((name) => resolveToolset(name, registry)));
  const wanted = (name: string) => {
    if (NEVER.has(name)) return false;
    if (name === "delegate_task") return mayDelegate;
    const server = registry.get(name)?.toolset.startsWith("mcp-") === true;
    if (server && !settings.inherit_mcp_toolsets) return chosen?.has(name) ?? false;
    return chosen === null || server || chosen.has(name);
  };
  return {
    only: new Set([...parent].filter(wanted)),
    unknown: names.filter((name) => !hasTools(name, registry)),
  };
}
