// Which tools of a session stand in the list, and which wait behind tool search.
import type { Config } from "../../home/config/schema.ts";
import type { ToolDefinition } from "../../llm/wire.ts";
import { listTools } from "../tool-search-listing.ts";
import { COMPOSITE, CONFIGURABLE } from "../toolset-table.ts";
import type { ToolEntry } from "./registry.ts";

const CHARS_PER_TOKEN = 4;
const UNKNOWN_WINDOW_TOKENS = 10_000;
const SMALL_WINDOW = 64_000;

type Settings = Config["tools"]["tool_search"];

export interface SplitFacts {
  readonly settings: Settings;
  /** 0 when nobody knows. */
  readonly contextLength: number;
  /** The run works on one card of the task board: its tools are what it is there for. */
  readonly kanbanWorker: boolean;
}

/** The core tools that wait. Foreign ones are weighed first: `weighForeign`. */
export function isDeferredCore(entry: ToolEntry, { settings, kanbanWorker }: SplitFacts): boolean {
  if (settings.enabled === "off" || isForeign(entry.toolset)) return false;
  if (kanbanWorker && entry.toolset === "kanban") return false;
  return entry.traits.deferred === true;
}

/** Too little room for more than our own tools; a window of 0 is one nobody knows. */
export function isSmallWindow(contextLength: number): boolean {
  return contextLength > 0 && contextLength < SMALL_WINDOW;
}

/** Whether tools of servers and plugins wait, all of them or none. */
export function deferForeign(definitions: readonly ToolDefinition[], { settings, contextLength }: SplitFacts): boolean {
  if (settings.enabled !== "auto") return settings.enabled === "on";
  if (isSmallWindow(contextLength)) return definitions.length > 0;
  const tokens = JSON.stringify(definitions).length / CHARS_PER_TOKEN;
  return definitions.length > 0 && tokens > share(settings, contextLength);
}

/** Neither ours nor part of a set of ours: it came from a server or a plugin. */
export function isForeign(toolset: string): boolean {
  return !(toolset in CONFIGURABLE) && !(toolset in COMPOSITE);
}

/** What the list says about the tools that wait. Availability is not asked: that would load each of them before the first request. */
export function listingFor(entries: readonly ToolEntry[], { settings, contextLength }: SplitFacts): string {
  if (settings.listing === "off") return "";
  const most = Math.min(Math.max(settings.listing_max_tokens, 200), 60_000);
  const tokens = settings.listing === "on" ? most : Math.min(most, share(settings, contextLength));
  const tools = entries.map((entry) => ({
    name: entry.name,
    description: entry.traits.description,
    group: sourceOf(entry.toolset).source_name,
    plain: !isForeign(entry.toolset),
  }));
  return listTools(tools, tokens);
}

export interface ToolSource {
  readonly source: "core" | "mcp" | "plugin";
  /** The toolset, the server or the plugin's toolset. */
  readonly source_name: string;
}

export function sourceOf(toolset: string): ToolSource {
  if (toolset.startsWith("mcp-")) return { source: "mcp", source_name: toolset.slice("mcp-".length) };
  return { source: isForeign(toolset) ? "plugin" : "core", source_name: toolset };
}

function share({ threshold_pct }: Settings, contextLength: number): number {
  return contextLength > 0 ? (contextLength * threshold_pct) / 100 : UNKNOWN_WINDOW_TOKENS;
}
