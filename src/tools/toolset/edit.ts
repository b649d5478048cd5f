// `hermes tools enable|disable` as a function: from the settings in force to the settings to write.
import type { Config } from "../../home/config/schema.ts";
import type { ToolRegistry } from "./registry.ts";
import {
  BUNDLES,
  COMPOSITE,
  CONFIGURABLE,
  chooseToolsets,
  listedNames,
  pluginToolsets,
  switchableToolsets,
  type ToolsetQuestion,
} from "./toolsets.ts";

interface ToolsetChange {
  readonly enable: boolean;
  /** Toolsets, MCP servers, or `server:tool`. */
  readonly names: readonly string[];
}

type ToolsetEdit =
  | { readonly unknown: readonly string[]; readonly valid: readonly string[] }
  | {
      /** Config keys (as path segments) and their new values; empty when nothing changes. */
      readonly writes: readonly { readonly path: readonly string[]; readonly value: unknown }[];
      /** Toolsets that were switched off everywhere and had to be freed from that first. */
      readonly freed: readonly string[];
    };

/** What has to be written. One unknown name and nothing is. */
export function editToolsets(
  change: ToolsetChange,
  question: Omit<ToolsetQuestion, "toolsets">,
  registry: ToolRegistry,
): ToolsetEdit {
  const { config, platform } = question;
  const valid = [...switchableToolsets(registry), ...Object.keys(config.mcp_servers)];
  // A name without tools that the settings of an older or newer version switched on can be taken out again.
  const removable = change.enable ? [] : chooseToolsets(question, registry).toolsets;
  const unknown = change.names.filter(
    (name) =>
      !(valid.includes(serverOf(name) ?? name.replace(/^mcp-/, "")) || removable.includes(name)) ||
      isNoToolOfIts(name, config, registry),
  );
  if (unknown.length > 0) return { unknown, valid };

  const toolsets = change.names.filter((name) => !name.includes(":"));
  const list = toolsets.length > 0 ? platformList(toolsets, change.enable, question, registry) : null;
  const disabled = config.agent.disabled_toolsets;
  const freed = change.enable ? toolsets.filter((name) => disabled.includes(name)) : [];
  const plugins = pluginToolsets(registry);
  const writes = [
    ...(list ? [{ path: ["platform_toolsets", platform], value: list }] : []),
    ...(list && plugins.length > 0 ? [{ path: ["known_plugin_toolsets", platform], value: plugins }] : []),
    ...(freed.length > 0
      ? [{ path: ["agent", "disabled_toolsets"], value: disabled.filter((name) => !freed.includes(name)) }]
      : []),
    ...serverToolWrites(change, config),
  ];
  return { writes: writes.filter(({ path, value }) => !isSame(valueAt(config, path), value)), freed };
}

/** The platform's whole list after the change: single names, so that it says exactly what is on. */
function platformList(
  names: readonly string[],
  enable: boolean,
  question: Omit<ToolsetQuestion, "toolsets">,
  registry: ToolRegistry,
): string[] {
  const { config } = question;
  const everywhere = { ...config, agent: { ...config.agent, disabled_toolsets: [] } };
  const before = listedNames(question);
  const plugins = pluginToolsets(registry);
  const on = new Set(chooseToolsets({ ...question, config: everywhere }, registry).toolsets);
  for (const name of names) enable ? on.add(name) : on.delete(name);
  // Composite sets cannot lose a member: they are replaced by what they stand for when one of it is switched off.
  const composites = before.filter((name) => name in COMPOSITE && on.has(name));
  const servers = Object.keys(config.mcp_servers);
  const known = (name: string) =>
    name in CONFIGURABLE || name in COMPOSITE || name in BUNDLES || name === "no_mcp" || plugins.includes(name);
  const foreign = before.filter((name) => !known(name) && !servers.includes(name.replace(/^mcp-/, "")));
  return [
    ...Object.keys(CONFIGURABLE).filter((name) => on.has(name)),
    ...composites,
    ...plugins.filter((name) => on.has(name)),
    ...mcpNames(before, names, enable, servers),
    // Names of toolsets that are not loaded now were chosen too.
    ...foreign,
  ];
}

/** All servers need no mention, none is `no_mcp`, and everything between is a list. */
function mcpNames(
  before: readonly string[],
  names: readonly string[],
  enable: boolean,
  servers: readonly string[],
): readonly string[] {
  const plain = (list: readonly string[]) =>
    list.map((name) => name.replace(/^mcp-/, "")).filter((name) => servers.includes(name));
  const named = plain(before);
  const allowed = new Set(before.includes("no_mcp") ? [] : named.length > 0 ? named : servers);
  for (const name of plain(names)) enable ? allowed.add(name) : allowed.delete(name);
  if (allowed.size === servers.length) return before.includes("no_mcp") && servers.length === 0 ? ["no_mcp"] : [];
  return allowed.size === 0 ? ["no_mcp"] : [...allowed];
}

/** Where a server has a list of wanted tools, that list decides and is what changes; its utilities know the other one alone. */
function serverToolWrites({ names, enable }: ToolsetChange, config: Config) {
  const byServer = Map.groupBy(
    names.filter((name) => name.includes(":")),
    (name) => serverOf(name) ?? "",
  );
  return [...byServer].flatMap(([server, entries]) => {
    const path = ["mcp_servers", server, "tools"];
    const included = namesAt(config, [...path, "include"]);
    const excluded = namesAt(config, [...path, "exclude"]) ?? new Set();
    for (const entry of entries) {
      const tool = entry.slice(server.length + 1);
      if (enable) {
        excluded.delete(tool);
        included?.add(tool);
      } else if (!included?.delete(tool)) excluded.add(tool);
    }
    return [
      ...(included ? [{ path: [...path, "include"], value: [...included] }] : []),
      { path: [...path, "exclude"], value: [...excluded] },
    ];
  });
}

/** A misspelt tool would be "switched off" while the real one runs on. What a server has is known once it was connected. */
function isNoToolOfIts(name: string, config: Config, registry: ToolRegistry): boolean {
  const server = serverOf(name);
  if (server === null) return false;
  const tool = name.slice(server.length + 1);
  const lists = ["include", "exclude"].map((key) => namesAt(config, ["mcp_servers", server, "tools", key]));
  const on = registry.toolsOf(`mcp-${server}`);
  const registered = `mcp_${server}_${tool}`.replace(/[^A-Za-z0-9_]/g, "_");
  // With a list of wanted tools the others are not known; long names are cut when they are registered.
  if (on.length === 0 || lists[0] || lists[1]?.has(tool) || registered.length > LONGEST_NAME) return false;
  return !on.includes(registered);
}

const LONGEST_NAME = 64;

function namesAt(config: Config, path: readonly string[]): Set<string> | null {
  const value = valueAt(config, path);
  return value === undefined || value === null ? null : new Set([value].flat().map(String));
}

function serverOf(name: string): string | null {
  const colon = name.indexOf(":");
  return colon > 0 ? name.slice(0, colon) : null;
}

function valueAt(config: Config, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (value, key) => (typeof value === "object" && value !== null ? (value as Record<string, unknown>)[key] : undefined), // a mapping
    config,
  );
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one ?? []) === JSON.stringify(other);
}
