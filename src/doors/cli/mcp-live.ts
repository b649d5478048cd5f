// `hermes mcp test|tools|configure|login`: what needs the server itself.

import { plural } from "../../kit/formats.ts";
import { unifiedDiff } from "../../kit/unified-diff.ts";
import type { McpTool, ServerStatus } from "../../mcp/contract.ts";
import { ListingCache, McpHub } from "../../mcp/hub.ts";
import { ToolPins } from "../../mcp/pins.ts";
import { isWanted, type Listing } from "../../mcp/server-tools.ts";
import type { ServerSettings } from "../../mcp/settings.ts";
import { toolName } from "../../mcp/settings.ts";
import { hubPorts } from "../../mcp/shared.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { revealed } from "../terminal-text.ts";
import type { ConfigureFlags } from "./mcp.ts";
import { requireConsent, requireServer } from "./mcp-chosen.ts";
import { printJson, tick } from "./present.ts";

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
  const request = { home, clock, cwd, platform: "cli" };
  const ports = hubPorts(request);
  const hub = await McpHub.open(ports, () => undefined);
  const began = clock.now();
  try {
    // The user waits: connect at once, and give up after the connect timeout.
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
    printJson(ctx, { name, ok, state, reason, ms, tools: names, warnings });
    if (!ok) throw new ExitError(1);
    return;
  }
  if (!ok) throw new ExitError(1, status.reason ?? `MCP server "${name}" did not answer.`);
  ctx.io.out(`${name} answers (${ms} ms): ${plural(tools.length, "tool")}\n`);
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
  if (json) return printJson(ctx, { server: name, tools: rows, warnings });
  const width = Math.max(0, ...rows.map((row) => row.tool.length));
  for (const row of rows) {
    ctx.io.out(
      `${row.enabled ? "✓" : "✗"} ${row.tool.padEnd(width)}  ${firstSentence(row.description)}`.trimEnd().concat("\n"),
    );
  }
  for (const warning of warnings) ctx.io.err(`⚠ ${warning}\n`);
  ctx.io.out(`\nhermes mcp configure ${name} selects tools; hermes tools disable ${name}:TOOL disables one.\n`);
}

export async function review(name: string, { json }: { readonly json?: true }, ctx: CliContext): Promise<void> {
  const settings = requireServer(name, ctx);
  // Connecting pins what is new: what the user has not seen is asked for first.
  const before = await ToolPins.open(ctx.home.paths.at("mcp_pins.json"));
  const { listing } = await listingOf(settings, ctx);
  const changes = before.unread(settings, listing);
  if (json) return printJson(ctx, { server: name, changes });
  if (changes.length === 0) return ctx.io.out(`The tools of ${name} have not changed.\n`);
  for (const { tool, kind, before: old, now, threats } of changes) {
    const why = threats.length > 0 ? ` (reads like an attack: ${threats.join(", ")})` : "";
    ctx.io.out(`${tool}: ${kind}${why}\n`);
    ctx.io.out(revealed(await unifiedDiff(old && asText(tool, old), asText(tool, now))));
    ctx.io.out("\n");
  }
  ctx.io.out(`hermes mcp accept ${name} accepts these changes.\n`);
}

const asText = (path: string, { description, inputSchema }: Listing["tools"][number]) => ({
  path,
  text: `${description ?? ""}\n${JSON.stringify(inputSchema, null, 2)}\n`,
});

export async function accept(name: string, ctx: CliContext): Promise<void> {
  const settings = requireServer(name, ctx);
  const { listing } = await listingOf(settings, ctx);
  const pins = await ToolPins.open(ctx.home.paths.at("mcp_pins.json"));
  const changed = pins.unread(settings, listing).map(({ tool }) => tool);
  await pins.accept(settings, listing);
  const what = changed.length === 0 ? "nothing changed" : changed.join(", ");
  ctx.io.out(`Accepted the current tools of ${name}: ${what}. New conversations use them.\n`);
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
    `${on.length} of ${names.length} tools of ${name} enabled: ${on.join(", ") || "none"}\nThe change applies to new conversations.\n`,
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
      show: (url) => io.out(`Open this URL in your browser and sign in:\n\n  ${url}\n\n`),
      paste: () => io.question("If the browser is on another machine, paste the final URL here: "),
      // Without a terminal nobody can press Ctrl+C, so the wait is limited.
      signal: AbortSignal.any([stop.signal, AbortSignal.timeout(300_000)]),
    });
    io.out(`Signed in to ${name}. Tokens are in ${home.display(tokensFile)}.\n`);
    if (settings.endpoint.type !== "stdio" && !settings.endpoint.oauth)
      await home.setConfigKey(["mcp_servers", name, "auth"], "oauth");
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

async function ask(settings: ServerSettings, names: readonly string[], ctx: CliContext): Promise<Choice | null> {
  const checked = new Set(names.filter((name) => isWanted(name, settings)));
  const include = await tick(ctx, {
    title: `Tools of ${settings.name}`,
    otherwise: "--include, --exclude or --all",
    checked,
    choices: names.map((name) => ({ label: name, value: name })),
  });
  if (include === null || (include.length === checked.size && include.every((name) => checked.has(name)))) return null;
  return { include: include.length === names.length ? null : include, exclude: null };
}

function firstSentence(text: string): string {
  const line = text.trim().split("\n")[0] ?? "";
  return line.length > 80 ? `${line.slice(0, 79)}…` : line;
}
