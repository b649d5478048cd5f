// `hermes mcp`: the servers whose tools the agent may use.
import type { Command } from "commander";
import { plural, relativeTime } from "../../kit/formats.ts";
import { ListingCache } from "../../mcp/hub.ts";
import { commandLine } from "../../mcp/launch-check.ts";
import { OAuthFiles } from "../../mcp/oauth-provider.ts";
import { countTools } from "../../mcp/server-tools.ts";
import { parseServer, type ServerSettings } from "../../mcp/settings.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import type { ServeFlags } from "../mcp-server/cli.ts";
import { requireConsent, requireServer } from "./mcp-chosen.ts";
import { printJson } from "./present.ts";

interface Json {
  readonly json?: true;
}

interface AddFlags {
  readonly command?: string;
  readonly url?: string;
  readonly transport?: string;
  readonly auth?: string;
  readonly env?: readonly string[];
  readonly header?: readonly string[];
  readonly test: boolean;
}

export interface ConfigureFlags {
  readonly include?: string;
  readonly exclude?: string;
  readonly all?: true;
}

export function define(command: Command, ctx: CliContext): void {
  const live = () => import("./mcp-live.ts");
  command.description("manage MCP servers, which give the agent more tools (Model Context Protocol)");
  command
    .command("list", { isDefault: true })
    .description("list configured servers and their status")
    .option("--json", "machine-readable")
    .action(async (flags: Json) => list(flags, ctx));
  command
    .command("add")
    .description("add a server to config.yaml and test it")
    .argument("<name>")
    .argument("[args...]", "arguments for the command, after --args")
    .option("--command <CMD>", "local program to start; pass its arguments with --args as the last option")
    .option("--url <URL>", "server URL")
    .option("--transport <KIND>", "transport for --url: http or sse", "http")
    .option("--auth <KIND>", "oauth: sign in with the browser")
    .option("--env <NAME=VALUE...>", `environment variables for the program; \${NAME} refers to one of yours`)
    .option("--header <NAME=VALUE...>", `headers for every request; \${NAME} works here too`)
    .option("--no-test", "do not connect now")
    .action(async (name: string, args: string[], flags: AddFlags) => add(name, args, flags, ctx));
  command
    .command("remove")
    .alias("rm")
    .description("remove a server from config.yaml, with its stored login")
    .argument("<name>")
    .action(async (name: string) => remove(name, ctx));
  command
    .command("test")
    .description("connect to a server and report the result")
    .argument("<name>")
    .option("--json", "machine-readable")
    .action(async (name: string, flags: Json) => (await live()).test(name, flags, ctx));
  command
    .command("tools")
    .description("list the tools of a server and which are enabled")
    .argument("<name>")
    .option("--json", "machine-readable")
    .action(async (name: string, flags: Json) => (await live()).tools(name, flags, ctx));
  command
    .command("review")
    .description("show what changed in a server's tools since you accepted them")
    .argument("<name>")
    .option("--json", "machine-readable")
    .action(async (name: string, flags: Json) => (await live()).review(name, flags, ctx));
  command
    .command("accept")
    .description("accept the current tools of a server")
    .argument("<name>")
    .action(async (name: string) => (await live()).accept(name, ctx));
  command
    .command("configure")
    .description("select the tools of a server")
    .argument("<name>")
    .option("--include <TOOLS>", "only these, comma-separated")
    .option("--exclude <TOOLS>", "all except these, comma-separated")
    .option("--all", "all tools")
    .action(async (name: string, flags: ConfigureFlags) => (await live()).configure(name, flags, ctx));
  command
    .command("login")
    .description("sign in to a server in the browser")
    .argument("<name>")
    .action(async (name: string) => (await live()).signIn(name, ctx));
  command
    .command("serve")
    .description("serve this Hermes to other agents as an MCP server, on stdin and stdout or over HTTP")
    .option("--http [HOST:PORT]", "streamable HTTP instead of stdin and stdout (127.0.0.1:8647)")
    .option("--read-only", "only tools that read: no sending, no approvals, no prompts")
    .option("--verbose", "a line on stderr for each call")
    .action(async (flags: ServeFlags) => (await import("../mcp-server/cli.ts")).serve(flags, ctx));
}

// `hermes mcp list|add|remove`: what stands in config.yaml.

export async function list({ json }: { readonly json?: true }, ctx: CliContext): Promise<void> {
  const { home, io } = ctx;
  const cache = await ListingCache.open(home.paths.at("cache", "mcp_tools.json"));
  const rows = await Promise.all(
    Object.entries(home.config().mcp_servers).map(async ([name, entry]) => {
      const { settings, problems } = parseServer(name, entry);
      const listing = settings && cache.get(settings);
      return {
        name,
        transport: settings?.endpoint.type ?? null,
        target: settings ? home.redact(targetOf(settings)) : null,
        enabled: settings?.enabled ?? false,
        tools: listing && settings ? countTools(listing, settings) : null,
        failed: settings?.enabled ? cache.failed(settings) : null,
        auth: settings ? await authOf(settings, ctx) : null,
        problems,
      };
    }),
  );
  if (json) return printJson({ io }, { servers: rows });
  if (rows.length === 0) {
    return io.out(
      "No MCP servers. Add one: hermes mcp add NAME --command CMD --args ARGS..., or hermes mcp add NAME --url URL\n",
    );
  }
  const width = Math.max(...rows.map((row) => row.name.length));
  for (const row of rows) {
    const known = row.tools === null ? "not connected yet" : plural(row.tools, "tool");
    const trouble = row.failed ? `failed ${relativeTime(row.failed.at / 1000, ctx.clock.now() / 1000)}` : null;
    const state = row.transport === null ? null : row.enabled ? (trouble ?? known) : "disabled";
    const facts = [row.transport ?? "unusable", state, row.auth].filter((fact) => fact !== null).join(", ");
    const mark = row.enabled && !row.failed ? "✓" : "✗";
    io.out(`${mark} ${row.name.padEnd(width)}  ${facts}  ${row.target ?? ""}`.trimEnd().concat("\n"));
    if (row.failed) io.out(`    ${row.failed.reason}\n`);
    for (const problem of row.problems) io.err(`⚠ ${problem}\n`);
  }
}

export async function add(name: string, args: string[], flags: AddFlags, ctx: CliContext): Promise<void> {
  const { home, io } = ctx;
  if (!/^[\p{L}\p{N}][\p{L}\p{N}_-]{0,63}$/u.test(name)) {
    throw new ExitError(
      2,
      `"${name}" is not a valid server name: use letters, digits, - and _, at most 64 characters.`,
    );
  }
  if (name in home.config().mcp_servers) {
    throw new ExitError(1, `Server "${name}" already exists. Remove it first: hermes mcp remove ${name}`);
  }
  const entry = entryOf(args, flags);
  const { settings, problems } = parseServer(name, expanded(entry, ctx));
  if (!settings) throw new ExitError(2, problems.join("\n"));
  for (const problem of problems) io.err(`⚠ ${problem}\n`);
  await requireConsent(settings, ctx);
  await home.setConfigKey(["mcp_servers", name], entry);
  io.out(`Added ${name} to ${home.display(home.paths.configFile)}.\n`);
  if (!flags.test) return;
  if (settings.endpoint.type !== "stdio" && settings.endpoint.oauth) {
    return io.out(`Sign in before it can be used: hermes mcp login ${name}\n`);
  }
  const { tryServer } = await import("./mcp-live.ts");
  const { status } = await tryServer(settings, ctx);
  if (status.state === "connected")
    io.out(
      `Connected: ${plural(status.tools, "tool")}. New conversations can use them; /reload-mcp adds them to a running one.\n`,
    );
  else
    io.err(
      `Saved, but the server could not be reached. ${status.reason ?? ""}\nTry again with: hermes mcp test ${name}\n`,
    );
}

async function remove(name: string, ctx: CliContext): Promise<void> {
  const { home, io } = ctx;
  requireServer(name, ctx);
  await home.unsetConfigKey(["mcp_servers", name]);
  const files = new OAuthFiles(home.paths.at("mcp-tokens"), name);
  for (const file of ["tokens", "client", "meta"] as const) await files.remove(file);
  io.out(`Removed ${name}.\n`);
}

function entryOf(args: readonly string[], flags: AddFlags): Record<string, unknown> {
  if ((flags.command === undefined) === (flags.url === undefined)) {
    throw new ExitError(2, "Use either --command CMD [--args ARGS...] or --url URL.");
  }
  if (flags.url === undefined) {
    if (flags.auth !== undefined || flags.header) throw new ExitError(2, "--auth and --header require --url.");
    return { command: flags.command, ...(args.length > 0 ? { args: [...args] } : {}), ...pairs("env", flags.env) };
  }
  if (args.length > 0 || flags.env) throw new ExitError(2, "--args and --env require --command.");
  if (!["http", "sse"].includes(flags.transport ?? "http"))
    throw new ExitError(2, `--transport must be http or sse, not "${flags.transport}".`);
  if (flags.auth !== undefined && flags.auth !== "oauth")
    throw new ExitError(2, `--auth only supports oauth; pass a key with --header.`);
  return {
    url: flags.url,
    ...(flags.transport === "sse" ? { transport: "sse" } : {}),
    ...pairs("headers", flags.header),
    ...(flags.auth ? { auth: flags.auth } : {}),
  };
}

function pairs(key: string, given: readonly string[] | undefined): Record<string, unknown> {
  if (!given) return {};
  const entries = given.map((text) => {
    const [, name, value] = /^([^=:\s]+)\s*[=:]\s*(.*)$/s.exec(text) ?? [];
    if (name === undefined) throw new ExitError(2, `"${text}" is not NAME=VALUE.`);
    return [name, value] as const;
  });
  return { [key]: Object.fromEntries(entries) };
}

/** As it will be read back: templates filled in. */
function expanded(entry: Record<string, unknown>, { home }: CliContext): unknown {
  return JSON.parse(
    JSON.stringify(entry, (_key, value: unknown) =>
      typeof value === "string"
        ? value.replace(/\$\{(\w+)\}/g, (whole, name: string) => home.env(name) ?? whole)
        : value,
    ),
  );
}

function targetOf({ endpoint }: ServerSettings): string {
  if (endpoint.type === "stdio") return commandLine(endpoint);
  return `${endpoint.url.origin}${endpoint.url.pathname}`;
}

async function authOf({ name, endpoint }: ServerSettings, { home }: CliContext): Promise<string | null> {
  if (endpoint.type === "stdio" || !endpoint.oauth) return null;
  const tokens = await new OAuthFiles(home.paths.at("mcp-tokens"), name).read("tokens");
  return tokens ? "signed in" : "not signed in";
}
