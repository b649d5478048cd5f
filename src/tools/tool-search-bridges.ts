// The three tools that lead to the ones that are not in the list. They are written as plain schemas: every request carries them.
import type { ToolDefinition } from "../llm/wire.ts";
import { prepareArguments } from "./toolset/dispatch.ts";
import type { ToolEntry } from "./toolset/registry.ts";

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
