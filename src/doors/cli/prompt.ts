// `hermes prompt`: what the model is told, from which files, what it costs, and where its cached beginning broke.
import { type Command, InvalidArgumentError, Option } from "commander";
import type { CliContext } from "../cli-context.ts";
import { positiveNumber } from "./present.ts";

export function define(command: Command, ctx: CliContext): void {
  command.description("inspect the system prompt, its files and its cache");
  const sub = (name: string, about: string) => command.command(name).description(about);
  const json = () => new Option("--json", "machine-readable");
  const platform = () => new Option("--platform <P>", "as seen by this platform, e.g. cli, telegram").default("cli");
  const cwd = () => new Option("--cwd <DIR>", "as if started in this folder");

  sub("show", "print the system prompt of a new or stored conversation")
    .addOption(json())
    .option("--blocks", "list the blocks with their sizes instead of the text")
    .option("--block <ID>", "only one block")
    .addOption(new Option("--layer <L>", "only one layer").choices(["stable", "context", "volatile"]))
    .option("--session <ID>", "the prompt of this conversation")
    .addOption(platform())
    .option("--model <M>", "for this model")
    .option("--provider <P>", "for this provider")
    .addOption(cwd())
    .option("--context-length <N>", "for a context window of N tokens", positiveNumber)
    .option("--tools <LIST>", "with these tools, comma-separated", names)
    .option("--system-message <T>", "with a caller's own text")
    .option("--now <ISO>", "pretend it is this time", isoTime)
    .option("--ignore-rules", "without SOUL.md, project files and memory")
    .action(async (flags) => (await import("./prompt/show.ts")).show(flags, ctx));
  sizeOptions(sub("size", "show the size of prompt, skills, memory and tools")).action(async (flags) =>
    (await import("./prompt/show.ts")).size(flags, ctx),
  );
  sub("files", "list context files and whether each was loaded")
    .addOption(cwd())
    .addOption(json())
    .action(async (flags) => (await import("./prompt/files.ts")).files(flags, ctx));
  sub("scan", "scan a file for threats; exit code 0 nothing found, 1 something found, 2 error")
    .argument("<file>", "a path, or - for stdin")
    .addOption(new Option("--scope <S>", "how strict").choices(["all", "context", "strict"]).default("context"))
    .addOption(json())
    .action(async (file: string, flags) => (await import("./prompt/files.ts")).scan(file, flags, ctx));
  sub("trust", "load this file despite warnings, until it changes")
    .argument("<file>")
    .option("-y, --yes", "do not ask for confirmation")
    .addOption(json())
    .action(async (file: string, flags) => (await import("./prompt/files.ts")).trust(file, flags, ctx));
  sub("untrust", "stop trusting a file")
    .argument("<file>")
    .addOption(json())
    .action(async (file: string, flags) => (await import("./prompt/files.ts")).untrust(file, flags, ctx));
  sub("refs", "expand the @-references of a message")
    .argument("<message...>")
    .addOption(cwd())
    .option("--context-length <N>", "for a context window of N tokens", positiveNumber, 0)
    .addOption(json())
    .action(async (words: string[], flags) => (await import("./prompt/files.ts")).refs(words.join(" "), flags, ctx));
  sub(
    "hints",
    "show which context files tool calls would load; reads JSON lines {tool, args}, prints a JSON string or null per line",
  )
    .addOption(cwd())
    .addOption(json())
    .action(async (flags) => (await import("./prompt/files.ts")).hints(flags, ctx));
  sub("cache-plan", "place cache markers; reads a JSON request, prints the marked one")
    .addOption(json())
    .action(async () => (await import("./prompt/blame.ts")).cachePlan(ctx));
  sub("blame", "show cache use of a conversation call by call: read, written, missed, and what broke the prefix")
    .argument("<session>", "id, id prefix or title")
    .addOption(json())
    .action(async (session: string, flags) => (await import("./prompt/blame.ts")).blame(session, flags, ctx));
}

/** `hermes prompt-size` is `hermes prompt size`. */
export function defineSize(command: Command, ctx: CliContext): void {
  sizeOptions(command.description("show the size of prompt, skills, memory and tools")).action(async (flags) =>
    (await import("./prompt/show.ts")).size(flags, ctx),
  );
}

function sizeOptions(command: Command): Command {
  return command
    .option("--platform <P>", "as seen by this platform, e.g. cli, telegram", "cli")
    .option("--json", "machine-readable");
}

const names = (text: string) => text.split(",").flatMap((name) => (name.trim() === "" ? [] : [name.trim()]));

function isoTime(text: string): number {
  const at = Date.parse(text);
  if (Number.isNaN(at)) throw new InvalidArgumentError("Must be a time such as 2026-01-31T12:00:00Z.");
  return at;
}
