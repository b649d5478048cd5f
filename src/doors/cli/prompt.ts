// `hermes prompt`: what the model is told, from which files, what it costs, and where its cached beginning broke.
import { type Command, InvalidArgumentError, Option } from "commander";
import type { CliContext } from "./context.ts";
import { positiveNumber } from "./present.ts";

export function define(command: Command, ctx: CliContext): void {
  command.description("what the model is told: look at it, check it, see what its cache cost");
  const sub = (name: string, about: string) => command.command(name).description(about);
  const json = () => new Option("--json", "machine-readable");
  const platform = () => new Option("--platform <P>", "as this platform sees it, e.g. cli, telegram").default("cli");
  const cwd = () => new Option("--cwd <DIR>", "as if started there");

  sub("show", "the system prompt of a new conversation, or of a stored one")
    .addOption(json())
    .option("--blocks", "the blocks with their sizes instead of the text")
    .option("--block <ID>", "one block only")
    .addOption(new Option("--layer <L>", "one layer only").choices(["stable", "context", "volatile"]))
    .option("--session <ID>", "the prompt that this conversation was sent with")
    .addOption(platform())
    .option("--model <M>", "for this model")
    .option("--provider <P>", "of this provider")
    .addOption(cwd())
    .option("--context-length <N>", "for a window of so many tokens", positiveNumber)
    .option("--tools <LIST>", "with these tools, comma-separated", names)
    .option("--system-message <T>", "with a caller's own text")
    .option("--now <ISO>", "as if it were this time", isoTime)
    .option("--ignore-rules", "without SOUL.md, project files and memory")
    .action(async (flags) => (await import("./prompt/show.ts")).show(flags, ctx));
  sizeOptions(sub("size", "how large prompt, skills, memory and tools are")).action(async (flags) =>
    (await import("./prompt/show.ts")).size(flags, ctx),
  );
  sub("files", "every context file that was looked at, and what became of it")
    .addOption(cwd())
    .addOption(json())
    .action(async (flags) => (await import("./prompt/files.ts")).files(flags, ctx));
  sub("scan", "what the threat scan finds in a file. Exit code: 0 nothing, 1 something, 2 error")
    .argument("<file>", "a path, or - for standard input")
    .addOption(new Option("--scope <S>", "how strict").choices(["all", "context", "strict"]).default("context"))
    .addOption(json())
    .action(async (file: string, flags) => (await import("./prompt/files.ts")).scan(file, flags, ctx));
  sub("trust", "load this file although it looks suspicious, until it changes")
    .argument("<file>")
    .option("-y, --yes", "do not ask")
    .addOption(json())
    .action(async (file: string, flags) => (await import("./prompt/files.ts")).trust(file, flags, ctx));
  sub("untrust", "take that back")
    .argument("<file>")
    .addOption(json())
    .action(async (file: string, flags) => (await import("./prompt/files.ts")).untrust(file, flags, ctx));
  sub("refs", "what a message becomes when its @-references are followed")
    .argument("<message...>")
    .addOption(cwd())
    .option("--context-length <N>", "for a window of so many tokens", positiveNumber, 0)
    .addOption(json())
    .action(async (words: string[], flags) => (await import("./prompt/files.ts")).refs(words.join(" "), flags, ctx));
  sub("hints", "what tool calls would discover: JSON lines {tool, args} in, a JSON string or null per line out")
    .addOption(cwd())
    .addOption(json())
    .action(async (flags) => (await import("./prompt/files.ts")).hints(flags, ctx));
  sub("cache-plan", "where cache markers go: a JSON request in, the marked one out")
    .addOption(json())
    .action(async () => (await import("./prompt/blame.ts")).cachePlan(ctx));
  sub("blame", "a conversation call by call: read from cache, written, missed, and who broke the beginning")
    .argument("<session>", "id, the beginning of one, or a title")
    .addOption(json())
    .action(async (session: string, flags) => (await import("./prompt/blame.ts")).blame(session, flags, ctx));
}

/** `hermes prompt-size` is `hermes prompt size`. */
export function defineSize(command: Command, ctx: CliContext): void {
  sizeOptions(command.description("how large prompt, skills, memory and tools are")).action(async (flags) =>
    (await import("./prompt/show.ts")).size(flags, ctx),
  );
}

function sizeOptions(command: Command): Command {
  return command
    .option("--platform <P>", "as this platform sees it, e.g. cli, telegram", "cli")
    .option("--json", "machine-readable");
}

const names = (text: string) => text.split(",").flatMap((name) => (name.trim() === "" ? [] : [name.trim()]));

function isoTime(text: string): number {
  const at = Date.parse(text);
  if (Number.isNaN(at)) throw new InvalidArgumentError("A time like 2026-01-31T12:00:00Z is expected.");
  return at;
}
