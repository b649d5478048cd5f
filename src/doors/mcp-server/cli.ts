// `hermes mcp serve`: the program as an MCP client starts it. On stdio its standard output is the protocol and nothing else.
import { Writable } from "node:stream";
import { inProfile } from "../../home/paths.ts";
import { type ApiSettings, readApiSettings, refusalToStart, startWarnings } from "../api/settings.ts";
import { type CliContext, ExitError, protocolOnly } from "../cli-context.ts";
import { masked } from "../gateway/answer.ts";
import { listenForEnd, outliveStrayErrors } from "../gateway/ending.ts";
import { GatewaySettings } from "../gateway/settings.ts";
import { onStopSignal } from "../stop-signals.ts";
import type { McpParts } from "./contract.ts";

export interface ServeFlags {
  readonly http?: string | true;
  readonly readOnly?: true;
  readonly verbose?: true;
}

const HOST = "127.0.0.1";
const PORT = 8647;
/** One message of a client. */
const MOST_MESSAGE_BYTES = 4_000_000;
/** How long a program that has ended may take to close what it opened. */
const LINGER_MS = 10_000;

export async function serve(flags: ServeFlags, ctx: CliContext): Promise<void> {
  const { home, clock, cwd } = ctx;
  if (home.unwritable !== null) throw new ExitError(1, home.unwritable);
  const address = flags.http === undefined ? { host: HOST, port: PORT } : addressOf(flags.http);
  const option = (await GatewaySettings.open(home)).option("api_server");
  const settings = readApiSettings(
    (key, variable) => (key === "host" || key === "port" ? address[key] : option(key, variable)),
    home,
  );
  if (flags.http === undefined) return serveStdio(flags, ctx, settings);
  const refusal = refusalToStart(settings, "--http");
  if (refusal !== null) throw new ExitError(1, refusal);
  await serveOverHttp(flags, ctx, settings, async () => ({ ...{ home, clock, cwd }, store: await ctx.store() }));
}

/** `PORT`, `HOST` or `HOST:PORT`; an IPv6 address in brackets. */
function addressOf(given: string | true): { readonly host: string; readonly port: number } {
  if (given === true) return { host: HOST, port: PORT };
  const [, host = "", port] = /^(\[[^\]]+\]|[^:]*?)(?::?(\d{1,5}))?$/.exec(given.trim()) ?? [];
  const number = Number(port ?? PORT);
  if ((host === "" && port === undefined) || number > 65_535)
    throw new ExitError(2, `--http takes HOST:PORT, for example ${HOST}:${PORT}; "${given}" is not one.`);
  return { host: host.replace(/^\[|\]$/g, "") || HOST, port: number };
}

async function serveStdio({ readOnly, verbose }: ServeFlags, ctx: CliContext, limits: ApiSettings): Promise<void> {
  const { home, io, clock, cwd } = ctx;
  if (io.stdinIsTerminal && io.stdoutIsTerminal)
    io.err("MCP clients start this command and talk to it over stdin and stdout. How: docs/guide/mcp-server.md\n");
  const { output, restore } = protocolOnly();
  const [{ serveStdio: connect, StdioServerTransport }, { openHouse }] = await Promise.all([
    import("@modelcontextprotocol/server/stdio"),
    import("./server.ts"),
  ]);
  const stop = new AbortController();
  const signals = onStopSignal({ stop: () => stop.abort(), graceSeconds: home.env("HERMES_SIGTERM_GRACE"), clock });
  const log = home.log.child("mcp");
  try {
    const parts: McpParts = { home, clock, cwd, store: await ctx.store() };
    const watch = verbose ? (line: string) => io.err(`${line}\n`) : undefined;
    const house = await openHouse(parts, { limits, watch });
    const transport = new StdioServerTransport(io.stdin, Writable.fromWeb(output), {
      maxBufferSize: MOST_MESSAGE_BYTES,
    });
    const handle = connect(() => house.serverFor({ acts: readOnly !== true, isKnown: true }), {
      transport,
      onerror: (error) => log.debug("a message on stdin", error),
    });
    await new Promise<void>((resolve) => {
      const ended = transport.onclose;
      transport.onclose = () => {
        ended?.();
        resolve();
      };
      // Whoever started us is gone.
      io.stdin.once("end", resolve).once("close", resolve).once("error", resolve);
      stop.signal.addEventListener("abort", () => resolve(), { once: true });
    });
    await handle.close();
    await house.close();
  } finally {
    signals.stopListening();
    restore();
    io.stdin.destroy();
  }
  if (signals.code !== null) throw new ExitError(signals.code);
}

async function serveOverHttp(
  { readOnly, verbose }: ServeFlags,
  { home, io, clock }: CliContext,
  settings: ApiSettings,
  open: () => Promise<McpParts>,
): Promise<void> {
  const log = home.log.child("mcp");
  const out = (line: string) => {
    const said = inProfile(home.paths, line);
    log.info(said);
    io.out(`${masked(said, home.redact)}\n`);
  };
  const listener = listenForEnd({ home, clock, hasTerminal: io.stdinIsTerminal && io.stdoutIsTerminal });
  const stopCatching = outliveStrayErrors(log, (line) => out(`[MCP Server] warning: ${line}`));
  try {
    for (const warning of startWarnings(settings)) out(`[MCP Server] warning: ${warning}`);
    const [{ openHouse }, { serveHttp }, parts] = await Promise.all([
      import("./server.ts"),
      import("./http.ts"),
      open(),
    ]);
    const watch = verbose ? (line: string) => io.err(`${line}\n`) : undefined;
    const house = await openHouse(parts, { limits: settings, watch });
    const server = await serveHttp(parts, house, { settings, acts: readOnly !== true });
    out(`[MCP Server] listening on ${server.url}`);
    if (!listener.stop.aborted)
      await new Promise<void>((resolve) => listener.stop.addEventListener("abort", () => resolve(), { once: true }));
    out(`[MCP Server] stopping: ${listener.ending?.why ?? "asked to"}`);
    await server.close();
    out("[MCP Server] stopped");
    const code = listener.ending?.exitCode ?? 0;
    setTimeout(() => process.exit(code), LINGER_MS).unref();
    if (code !== 0) throw new ExitError(code);
  } finally {
    stopCatching();
    listener.close();
  }
}
