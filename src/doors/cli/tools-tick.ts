// `hermes tools` on a terminal: the toolsets of a platform as a list to tick.
import type { ToolRegistry } from "../../tools/toolset/registry.ts";
import type { ToolsetQuestion } from "../../tools/toolset/toolsets.ts";
import type { CliContext } from "./context.ts";

export interface TickPorts {
  load(platform: string): Promise<{ readonly registry: ToolRegistry; readonly question: ToolsetQuestion }>;
  save(verb: "enable" | "disable", names: string[], platform: string): Promise<void>;
}

/** Enter saves and ends, another platform's name saves and goes on there, q ends without saving. */
export async function tickToolsets(ctx: CliContext, { load, save }: TickPorts): Promise<void> {
  const { PLATFORMS } = await import("../../tools/toolset-table.ts");
  let platform = "cli";
  for (;;) {
    const { registry, question } = await load(platform);
    const before = await switchesOf(registry, question);
    const platforms = new Set([...PLATFORMS, ...Object.keys(question.config.platform_toolsets)]);
    const ended = await tick(platform, before, platforms, ctx);
    if (ended.type === "quit") return;
    const changed = (on: boolean) =>
      before.filter((row) => row.on !== on && ended.on.has(row.name) === on).map(({ name }) => name);
    const [enable, disable] = [changed(true), changed(false)];
    if (enable.length > 0) await save("enable", enable, platform);
    if (disable.length > 0) await save("disable", disable, platform);
    if (ended.next === null) return;
    platform = ended.next;
  }
}

interface Switch {
  readonly name: string;
  readonly description: string;
  readonly on: boolean;
}

async function switchesOf(registry: ToolRegistry, question: ToolsetQuestion): Promise<readonly Switch[]> {
  const { CONFIGURABLE } = await import("../../tools/toolset-table.ts");
  const { chooseToolsets, switchableToolsets } = await import("../../tools/toolset/toolsets.ts");
  const chosen = chooseToolsets(question, registry);
  return [
    ...switchableToolsets(registry).map((name) => ({
      name,
      description: CONFIGURABLE[name]?.description ?? "of a plugin",
      on: chosen.toolsets.includes(name),
    })),
    ...Object.keys(question.config.mcp_servers).map((name) => ({
      name,
      description: "MCP server",
      on: chosen.servers.includes(name),
    })),
  ];
}

type Ended =
  | { readonly type: "quit" }
  | { readonly type: "save"; readonly on: ReadonlySet<string>; readonly next: string | null };

async function tick(
  platform: string,
  rows: readonly Switch[],
  platforms: ReadonlySet<string>,
  { io }: CliContext,
): Promise<Ended> {
  const on = new Set(rows.filter((row) => row.on).map(({ name }) => name));
  const width = Math.max(...rows.map(({ name }) => name.length));
  for (;;) {
    io.out(`\nToolsets on ${platform}\n\n`);
    for (const [index, { name, description }] of rows.entries())
      io.out(`${String(index + 1).padStart(4)} [${on.has(name) ? "✓" : " "}] ${name.padEnd(width)}  ${description}\n`);
    const answer = await io.question(
      "\nNumbers or names to switch, a platform to go there, Enter to save, q to leave: ",
    );
    const words = (answer ?? "q").split(/[\s,]+/).filter((word) => word !== "");
    if (words[0]?.toLowerCase() === "q") return { type: "quit" };
    if (words.length === 0) return { type: "save", on, next: null };
    for (const word of words) {
      const row = rows[Number(word) - 1] ?? rows.find(({ name }) => name === word);
      if (row) on.delete(row.name) || on.add(row.name);
      else if (platforms.has(word)) return { type: "save", on, next: word };
      else io.out(`There is no toolset and no platform ${word}.\n`);
    }
  }
}
