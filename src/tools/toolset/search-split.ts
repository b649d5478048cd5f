// Which tools of a session stand in the list, and which wait behind tool search.
import type { Config } from "../../home/config/schema.ts";
import type { ToolDefinition } from "../../llm/wire.ts";
import { prepareArguments } from "./dispatch.ts";
import type { ToolEntry } from "./registry.ts";
import { COMPOSITE, CONFIGURABLE } from "./toolsets.ts";

// The catalogue inside tool_search's description: as much about the hidden tools as fits. Made once per session.

const SHORT_CHARS = 60;

interface ListedTool {
  readonly name: string;
  readonly description: string;
  /** What it is shown under: a toolset, a server. */
  readonly group: string;
  /** The name says enough. */
  readonly plain: boolean;
}

/** Form after form until one fits: with descriptions, names, the largest groups as a number, all groups so; empty when nothing fits. */
export function listTools(tools: readonly ListedTool[], maxTokens: number): string {
  const groups = [...Map.groupBy(tools, ({ group }) => group)].sort(([a], [b]) => (a < b ? -1 : 1));
  const bySize = [...groups].sort(([, a], [, b]) => b.length - a.length).map(([group]) => group);
  const forms = [
    () => render(groups, described),
    () => render(groups, named),
    ...bySize.map((_, count) => () => {
      const collapsed = new Set(bySize.slice(0, count + 1));
      return render(groups, (members, group) => (collapsed.has(group) ? counted(members) : named(members)));
    }),
  ];
  for (const form of forms) {
    const text = form();
    if (text.length <= maxTokens * CHARS_PER_TOKEN) return text;
  }
  return "";
}

type Groups = readonly (readonly [string, readonly ListedTool[]])[];

function render(groups: Groups, members: (tools: readonly ListedTool[], group: string) => string): string {
  // The only tool of a set of ours says what the set is.
  const label = (group: string, [first, second]: readonly ListedTool[]) =>
    first?.plain && !second ? "" : `${group}: `;
  return groups.map(([group, tools]) => `${label(group, tools)}${members(tools, group)}`).join("\n");
}

const counted = (tools: readonly ListedTool[]) => `${tools.length} ${tools.length === 1 ? "tool" : "tools"}`;
const named = (tools: readonly ListedTool[]) =>
  sorted(tools)
    .map(({ name }) => name)
    .join(", ");

function described(tools: readonly ListedTool[]): string {
  if (tools.every(({ plain }) => plain)) return named(tools);
  return sorted(tools)
    .map(({ name, description }) => `\n- ${name}: ${shorten(description)}`)
    .join("");
}

const sorted = (tools: readonly ListedTool[]) => [...tools].sort((a, b) => (a.name < b.name ? -1 : 1));

/** The first sentence, at most sixty characters of it. */
function shorten(description: string): string {
  const flat = description.replace(/\s+/g, " ").trim();
  const sentence = /^(.*?)[.!?](?:\s|$)/u.exec(flat)?.[1] ?? flat;
  const characters = [...sentence];
  return characters.length <= SHORT_CHARS
    ? sentence
    : `${characters
        .slice(0, SHORT_CHARS - 1)
        .join("")
        .trimEnd()}…`;
}

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

interface ToolSource {
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

// The three tools that lead to the ones that are not in the list. They are written as plain schemas: every request carries them.

type Arguments = Readonly<Record<string, unknown>>;

export const BRIDGES: ReadonlySet<string> = new Set(["tool_call", "tool_describe", "tool_search"]);

/** `listing` names the tools behind them; it is part of the list and frozen with it. */
export function bridgeDefinitions(listing: string): readonly ToolDefinition[] {
  const more = listing === "" ? "" : ` There are:\n${listing}`;
  const text = { type: "string" };
  return [
    bridge("tool_call", "Call a tool that is not in your list.", {
      name: text,
      arguments: { type: "object", description: "As tool_describe shows them", properties: {} },
    }),
    bridge("tool_describe", "What such a tool does, and its parameters.", { name: text }),
    bridge(
      "tool_search",
      `Find tools that are not in your list; reach them with tool_describe and tool_call.${more}`,
      { query: text, limit: { type: "integer" } },
      ["query"],
    ),
  ];
}

function bridge(
  name: string,
  description: string,
  properties: Readonly<Record<string, object>>,
  required: readonly string[] = Object.keys(properties).filter((key) => key !== "arguments"),
): ToolDefinition {
  return { type: "function", function: { name, description, parameters: { type: "object", properties, required } } };
}

/** The call inside a `tool_call`, when it can go through as it is. */
export function unwrapCall(
  args: Arguments,
  find: (name: string) => ToolEntry | undefined,
): { readonly name: string; readonly args: Arguments } | null {
  const name = typeof args.name === "string" ? args.name.trim() : "";
  const entry = BRIDGES.has(name) ? undefined : find(name);
  const inner = objectOf(args.arguments);
  return entry && inner && missingArguments(entry, inner).length === 0 ? { name, args: inner } : null;
}

export function missingArguments(entry: ToolEntry, args: Arguments): readonly string[] {
  const { required } = entry.parameters;
  if (!Array.isArray(required)) return [];
  const given = prepareArguments(entry, args);
  return required.filter((key) => !(key in given));
}

/** Some models write the object as text; nothing at all is an empty one. */
export function objectOf(value: unknown): Arguments | null {
  if (value === undefined || value === null || value === "") return {};
  if (typeof value === "string") {
    try {
      return objectOf(JSON.parse(value));
    } catch {
      return null; // not JSON: the model is shown the parameters
    }
  }
  return typeof value === "object" && !Array.isArray(value) ? (value as Arguments) : null; // a parsed object
}
