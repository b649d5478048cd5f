// How a server's tools are called towards the model.
import { createHash } from "node:crypto";

const LONGEST = 64;

/** `mcp_<server>_<tool>` in characters every provider takes; longer names are cut and told apart by a hash. */
export function toolName(server: string, tool: string): string {
  return fit(`mcp_${plain(server)}_${plain(tool)}`);
}

/** The name behind `mcp__server__tool`, the way other clients write it; null for everything else. */
export function fromDoubleUnderscores(name: string): string | null {
  const [, server, tool] = /^mcp__(.+?)__(.+)$/s.exec(name) ?? [];
  return server === undefined || tool === undefined ? null : toolName(server, tool);
}

export function toolsetName(server: string): string {
  return `mcp-${server}`;
}

function plain(text: string): string {
  return text.replace(/[^A-Za-z0-9_]/gu, "_");
}

function fit(name: string): string {
  if (name.length <= LONGEST) return name;
  const hash = createHash("sha256").update(name).digest("hex").slice(0, 8);
  return `${name.slice(0, LONGEST - hash.length - 1)}_${hash}`;
}
