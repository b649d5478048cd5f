// `hermes mcp test|tools|configure|login`: what needs the server itself.

import type { McpTool, ServerStatus } from "../../mcp/contract.ts";
import { McpError } from "../../mcp/errors.ts";
import { ListingCache, McpHub } from "../../mcp/hub.ts";
import { isWanted, type Listing } from "../../mcp/server-tools.ts";
import type { ServerSettings } from "../../mcp/settings.ts";
import { toolName } from "../../mcp/settings.ts";
import { hubPorts } from "../../mcp/shared.ts";
import { type CliContext, ExitError } from "./context.ts";
import type { ConfigureFlags } from "./mcp.ts";
import { requireConsent, requireServer } from "./mcp-chosen.ts";

interface Tried {
  readonly status: ServerStatus;
  readonly tools: readonly McpTool[];
  /** Everything the server offers, also what is switched off. */
  readonly listing: Listing | null;
  readonly ms: number;
}

/** Connects once, looks, and closes. */
export async function tryServer(settings: ServerSettings, ctx: CliContext): Promise<Tried> {
  const { home, clock, cwd } = ctx;
  const wish = { home, clock, cwd, platform: "cli" };
  const ports = hubPorts(wish);
  const hub = await McpHub.open(ports, () => undefined);
  const began = clock.now();
  try {
    // Somebody waits for the answer: one that is sure not to come this minute is given up.
    hub.start([{ ...settings, lazy: false }]);
    await hub.settled(settings.connectMs + 1000);
    const server = hub.get(settings.name);
    if (!server) throw new Error("the server was not started");
    const { status, tools } = server;
    const ms = clock.now() - began;
    await hub.close();
    const cache = await ListingCache.open(ports.cacheFile);
    const connected = status.state === "connected";
    return { status, tools, listing: connected ? cache.get(settings) : null, ms };
  } finally {
    await hub.close();
  }
}

export async function test(name: string, { json }: { readonly json?: true }, ctx: CliContext): Promise<void> {
  const settings = requireServer(name, ctx);
  await requireConsent(settings, ctx);
  const { status, tools, ms } = await tryServer(settings, ctx);
  const ok = status.state === "connected";
  if (json) {
    const { state, reason, warnings } = status;
    const names = tools.map((tool) => tool.name);
    ctx.io.out(`${JSON.stringify({ name, ok, state, reason, ms, tools: names, warnings }, null, 2)}\n`);
    if (!ok) throw new ExitError(1);
    return;
  }
  if (!ok) throw new ExitError(1, status.reason ?? `MCP server "${name}" did not answer.`);
  ctx.io.out(`${name} answers (${ms} ms): ${tools.length} tools\n`);
  for (const tool of tools) ctx.io.out(`  ${tool.name}\n`);
  for (const warning of status.warnings) ctx.io.err(`⚠ ${warning}\n`);
}

export async function tools(name: string, { json }: { readonly json?: true }, ctx: CliContext): Promise<void> {
  const settings = requireServer(name, ctx);
  const { listing, warnings } = await listingOf(settings, ctx);
  const rows = listing.tools.map((tool) => ({
    tool: tool.name,
    name: toolName(name, tool.name),
    enabled: isWanted(tool.name, settings),
    description: tool.description ?? tool.title ?? "",
  }));
  if (json) return ctx.io.out(`${JSON.stringify({ server: name, tools: rows, warnings }, null, 2)}\n`);
  const width = Math.max(0, ...rows.map((row) => row.tool.length));
  for (const row of rows) {
    ctx.io.out(
      `${row.enabled ? "✓" : "✗"} ${row.tool.padEnd(width)}  ${firstSentence(row.description)}`.trimEnd().concat("\n"),
    );
  }
  for (const warning of warnings) ctx.io.err(`⚠ ${warning}\n`);
  ctx.io.out(`\nhermes mcp configure ${name} chooses; hermes tools disable ${name}:TOOL switches one off.\n`);
}

export async function configure(name: string, flags: ConfigureFlags, ctx: CliContext): Promise<void> {
  const settings = requireServer(name, ctx);
  const given = [flags.include, flags.exclude, flags.all].filter((one) => one !== undefined);
  if (given.length > 1) throw new ExitError(2, "Use one of --include, --exclude and --all.");
  const { listing } = await listingOf(settings, ctx);
  const names = listing.tools.map((tool) => tool.name);
  const choice = given.length === 1 ? chosenBy(flags, names) : await ask(settings, names, ctx);
  if (choice === null) return ctx.io.out("Nothing changed.\n");
  const { home, io } = ctx;
  for (const key of ["include", "exclude"] as const) {
    const path = ["mcp_servers", name, "tools", key];
    const list = choice[key];
    if (list !== null) await home.setConfigKey(path, list);
    else if (key === "include" ? settings.include !== null : settings.exclude.length > 0)
      await home.unsetConfigKey(path);
  }
  const on = names.filter((tool) => isWanted(tool, { include: choice.include, exclude: choice.exclude ?? [] }));
  io.out(
    `${on.length} of ${names.length} tools of ${name} are on: ${on.join(", ") || "none"}\nNew sessions use the change.\n`,
  );
}

export async function signIn(name: string, ctx: CliContext): Promise<void> {
  const { home, io } = ctx;
  const settings = requireServer(name, ctx);
  const { login } = await import("../../mcp/oauth-login.ts");
  const stop = new AbortController();
  const interrupt = () => stop.abort();
  process.once("SIGINT", interrupt);
  try {
    const { tokensFile } = await login(settings, {
      tokensDir: home.paths.at("mcp-tokens"),
      cwd: ctx.cwd,
      osHome: home.osHome,
      log: home.log.child("mcp"),
      redact: (text) => home.redact(text),
      show: (url) => io.out(`Open this address in your browser and sign in:\n\n  ${url}\n\n`),
      paste: () => io.question("If the browser is on another machine, paste the address it ends at here: "),
      // Without a terminal nobody can press Ctrl+C: the wait has an end of its own.
      signal: AbortSignal.any([stop.signal, AbortSignal.timeout(300_000)]),
    });
    io.out(`Signed in to ${name}. Tokens are in ${home.display(tokensFile)}.\n`);
    if (settings.place.type !== "stdio" && !settings.place.oauth)
      await home.setConfigKey(["mcp_servers", name, "auth"], "oauth");
  } catch (error) {
    throw error instanceof McpError ? new ExitError(1, error.message) : error;
  } finally {
    process.off("SIGINT", interrupt);
  }
}

async function listingOf(
  settings: ServerSettings,
  ctx: CliContext,
): Promise<{ listing: Listing; warnings: readonly string[] }> {
  await requireConsent(settings, ctx);
  const { listing, status } = await tryServer(settings, ctx);
  if (!listing) throw new ExitError(1, status.reason ?? `MCP server "${settings.name}" did not answer.`);
  return { listing, warnings: status.warnings };
}

interface Choice {
  readonly include: readonly string[] | null;
  readonly exclude: readonly string[] | null;
}

function chosenBy({ include, exclude }: ConfigureFlags, names: readonly string[]): Choice {
  const read = (text: string | undefined) => {
    if (text === undefined) return null;
    const wanted = text
      .split(",")
      .map((name) => name.trim())
      .filter((name) => name !== "");
    const unknown = wanted.filter((name) => !names.includes(name));
    if (unknown.length > 0)
      throw new ExitError(
        1,
        `No such tool: ${unknown.join(", ")}. Nothing was changed. There are: ${names.join(", ")}`,
      );
    return wanted;
  };
  return { include: read(include), exclude: read(exclude) };
}

async function ask(settings: ServerSettings, names: readonly string[], { io }: CliContext): Promise<Choice | null> {
  for (const [index, name] of names.entries()) {
    io.out(`${String(index + 1).padStart(3)} ${isWanted(name, settings) ? "✓" : "✗"} ${name}\n`);
  }
  const answer = await io.question('Numbers of the tools to use, e.g. "1 3 5-7", or "all"; Enter leaves it as it is: ');
  if (answer === null || answer.trim() === "") return null;
  if (answer.trim() === "all") return { include: null, exclude: null };
  const picked = new Set(
    answer.split(/[\s,]+/).flatMap((word) => {
      const [, from, to] = /^(\d+)(?:-(\d+))?$/.exec(word) ?? [];
      if (from === undefined) throw new ExitError(2, `"${word}" is no number of the list. Nothing was changed.`);
      const last = Number(to ?? from);
      return Array.from({ length: Math.max(0, last - Number(from) + 1) }, (_, index) => Number(from) + index);
    }),
  );
  return { include: names.filter((_, index) => picked.has(index + 1)), exclude: null };
}

function firstSentence(text: string): string {
  const line = text.trim().split("\n")[0] ?? "";
  return line.length > 80 ? `${line.slice(0, 79)}…` : line;
}
