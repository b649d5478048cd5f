// `hermes api`: the API server alone, without chats and without a schedule.
import type { Command } from "commander";
import { inProfile } from "../../../../home/paths.ts";
import { readApiSettings, refusalToStart, startWarnings } from "../../../api/settings.ts";
import { type CliContext, ExitError } from "../../../cli-context.ts";
import { masked } from "../../answer.ts";
import { listenForEnd, outliveStrayErrors } from "../../ending.ts";
import { GatewaySettings } from "../../settings.ts";
import { readStatus } from "../../state-file.ts";

interface Flags {
  readonly host?: string;
  readonly port?: string;
}

export function define(command: Command, ctx: CliContext): void {
  command
    .description("serve the agent over an OpenAI-compatible HTTP API until Ctrl+C, without a gateway")
    .option("--host <ADDRESS>", "address to listen on (API_SERVER_HOST, 127.0.0.1)")
    .option("--port <N>", "port to listen on; 0 = any free one (API_SERVER_PORT, 8642)")
    .action((flags: Flags) => serve(flags, ctx));
}

/** How long a program that has ended may take to close what it opened. */
const LINGER_MS = 10_000;

async function serve(flags: Flags, ctx: CliContext): Promise<void> {
  const { home, io, clock, cwd } = ctx;
  if (home.unwritable !== null) throw new ExitError(1, home.unwritable);
  const log = home.log.child("gateway");
  const out = (line: string) => {
    const said = inProfile(home.paths, line);
    log.info(said);
    io.out(`${masked(said, home.redact)}\n`);
  };
  const option = (await GatewaySettings.open(home)).option("api_server");
  const given = { host: flags.host, port: flags.port };
  const settings = readApiSettings(
    (key, variable) => (key === "host" || key === "port" ? given[key] : undefined) ?? option(key, variable),
    home,
  );
  const refusal = refusalToStart(settings);
  if (refusal !== null) throw new ExitError(1, refusal);
  const hasTerminal = io.stdinIsTerminal && io.stdoutIsTerminal;
  const listener = listenForEnd({ home, clock, hasTerminal });
  const stopCatching = outliveStrayErrors(log, (line) => out(`[API Server] warning: ${line}`));
  try {
    for (const warning of startWarnings(settings)) out(`[API Server] warning: ${warning}`);
    const { startApi } = await import("../../../api/server.ts");
    const store = await ctx.store();
    const status = () => readStatus(home, store, clock);
    const server = await startApi({ home, store, clock, cwd, status }, settings);
    out(`[API Server] listening on ${server.url}`);
    const sweeping = setInterval(() => void sweep(), SWEEP_MS).unref();
    const sweep = async () =>
      (await store.work()).sweep().catch((error) => log.warn("old runs were not removed", error));
    if (!listener.stop.aborted)
      await new Promise<void>((resolve) => listener.stop.addEventListener("abort", () => resolve(), { once: true }));
    clearInterval(sweeping);
    out(`[API Server] stopping: ${listener.ending?.why ?? "asked to"}`);
    await server.close();
    out("[API Server] stopped");
    const code = listener.ending?.exitCode ?? 0;
    setTimeout(() => process.exit(code), LINGER_MS).unref();
    if (code !== 0) throw new ExitError(code);
  } finally {
    stopCatching();
    listener.close();
  }
}

const SWEEP_MS = 3_600_000;
