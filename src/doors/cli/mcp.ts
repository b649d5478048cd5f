// `hermes mcp`: the servers whose tools the agent may use.
import type { Command } from "commander";
import type { CliContext } from "./context.ts";

interface Json {
  readonly json?: true;
}

export interface AddFlags {
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
  const settings = () => import("./mcp-settings.ts");
  const live = () => import("./mcp-live.ts");
  command.description("servers that give the agent more tools (Model Context Protocol)");
  command
    .command("list", { isDefault: true })
    .description("servers in config.yaml, and what is known of them")
    .option("--json", "machine-readable")
    .action(async (flags: Json) => (await settings()).list(flags, ctx));
  command
    .command("add")
    .description("write a server to config.yaml and try it")
    .argument("<name>")
    .argument("[args...]", "arguments of the command, behind --args")
    .option(
      "--command <CMD>",
      "a program on this machine that speaks MCP; its arguments follow --args, as the last option",
    )
    .option("--url <URL>", "the address of a server")
    .option("--transport <KIND>", "http or sse, for --url", "http")
    .option("--auth <KIND>", "oauth: sign in with the browser")
    .option("--env <NAME=VALUE...>", "variables the program gets; {NAME} behind a dollar sign takes one of yours")
    .option("--header <NAME=VALUE...>", "headers every request carries, with the same templates")
    .option("--no-test", "do not connect to it now")
    .action(async (name: string, args: string[], flags: AddFlags) => (await settings()).add(name, args, flags, ctx));
  command
    .command("remove")
    .alias("rm")
    .description("take a server out of config.yaml; what signing in left behind goes too")
    .argument("<name>")
    .action(async (name: string) => (await settings()).remove(name, ctx));
  command
    .command("test")
    .description("connect to a server and say how it went")
    .argument("<name>")
    .option("--json", "machine-readable")
    .action(async (name: string, flags: Json) => (await live()).test(name, flags, ctx));
  command
    .command("tools")
    .description("the tools of a server, and which are on")
    .argument("<name>")
    .option("--json", "machine-readable")
    .action(async (name: string, flags: Json) => (await live()).tools(name, flags, ctx));
  command
    .command("configure")
    .description("choose the tools of a server")
    .argument("<name>")
    .option("--include <TOOLS>", "only these, separated by commas")
    .option("--exclude <TOOLS>", "all but these, separated by commas")
    .option("--all", "all of them")
    .action(async (name: string, flags: ConfigureFlags) => (await live()).configure(name, flags, ctx));
  command
    .command("login")
    .description("sign in to a server in the browser")
    .argument("<name>")
    .action(async (name: string) => (await live()).signIn(name, ctx));
}
