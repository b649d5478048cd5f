import { isSafeMode } from "../../../home/safe-mode.ts";
import type { ServerStatus } from "../../../mcp/contract.ts";
import { McpHub } from "../../../mcp/hub.ts";
import { parseServers } from "../../../mcp/settings.ts";
import { hubPorts } from "../../../mcp/shared.ts";
import type { CliContext } from "../context.ts";
import type { Finding } from "./finding.ts";

/** A server that takes longer is called slow, not broken. */
const REACH_MS = 10_000;

/** Connects to every server that is on, side by side, as a conversation would. */
export async function checkServers(ctx: CliContext): Promise<readonly Finding[]> {
  const { home, clock, cwd } = ctx;
  const { servers, problems } = parseServers(home.config().mcp_servers);
  const wrong = problems.map((text): Finding => ({ level: "warn", text }));
  const off = servers
    .filter(({ enabled }) => !enabled)
    .map(({ name }): Finding => ({ level: "ok", text: `${name}: off` }));
  const on = servers.filter(({ enabled }) => enabled);
  if (isSafeMode(home)) return [{ level: "ok", text: "HERMES_SAFE_MODE is set: none is used" }];
  if (on.length === 0) return [...wrong, ...off, ...(wrong.length + off.length > 0 ? [] : [NONE])];
  const hub = await McpHub.open(hubPorts({ home, clock, cwd, platform: "cli" }), () => undefined);
  try {
    hub.start(on.map((settings) => ({ ...settings, lazy: false })));
    await hub.settled(REACH_MS);
    return [...wrong, ...hub.statuses().flatMap(findings), ...off];
  } finally {
    await hub.close();
  }
}

const NONE: Finding = { level: "ok", text: "none configured" };

function findings({ name, state, reason, tools, warnings }: ServerStatus): Finding[] {
  const looks = warnings.map((text): Finding => ({ level: "warn", text }));
  if (state === "connected") return [{ level: "ok", text: `${name}: ${tools} tools` }, ...looks];
  if (state === "connecting" || state === "waiting")
    return [{ level: "warn", text: `${name}: no answer within ${REACH_MS / 1000} s`, fix: `hermes mcp test ${name}` }];
  // Conversations go on without it: nothing of ours is broken.
  return [{ level: "warn", text: reason ?? `${name}: ${state}` }];
}
