// `hermes acp`: the program as an editor starts it. Its standard output is the protocol and nothing else.
import { Readable } from "node:stream";
import type { Command } from "commander";
import { t } from "../../home/language/words.ts";
import { versionLine } from "../../home/paths.ts";
import { messageOf } from "../../kit/errors.ts";
import { type CliContext, ExitError, protocolOnly } from "../cli-context.ts";
import { onStopSignal } from "../stop-signals.ts";

interface Flags {
  readonly version?: true;
  readonly check?: true;
  readonly setup?: true;
  readonly setupBrowser?: true;
  readonly yes?: true;
}

/** One line of a client: a prompt with pictures and files. */
const MOST_MESSAGE_BYTES = 128 * 1024 * 1024;

export function define(command: Command, ctx: CliContext): void {
  command
    .description("serve editors over the Agent Client Protocol (ACP) on stdin and stdout; editors start it themselves")
    .option("--version", "show the version")
    .option("--check", "check that everything it needs is installed; exit code 0 or 1")
    .option("--setup", "connect a model, step by step")
    .option("--setup-browser", "install the library that drives browsers")
    .option("-y, --yes", "install without asking")
    .action(async (flags: Flags) => {
      if (flags.version) return ctx.io.out(`${versionLine()}\n`);
      if (flags.check) return check(ctx);
      if (flags.setup) return setup(ctx);
      if (flags.setupBrowser) return setupBrowser(ctx, flags.yes === true);
      await serve(ctx);
    });
}

async function serve(ctx: CliContext): Promise<void> {
  const { home, io, clock } = ctx;
  if (io.stdinIsTerminal && io.stdoutIsTerminal)
    io.err(
      `${t("Editors start this command and talk to it over stdin and stdout. To talk to Hermes yourself: hermes")}\n`,
    );
  const { output, restore } = protocolOnly();
  // What the log says to a person goes to its file; stderr is the editor's own log.
  const [{ ndJsonStream }, { serveEditor }] = await Promise.all([
    import("@agentclientprotocol/sdk"),
    import("./server.ts"),
  ]);
  const input = Readable.toWeb(io.stdin) as ReadableStream<Uint8Array>; // the same stream, seen by the other library
  const stream = ndJsonStream(output, input, { maxMessageBytes: MOST_MESSAGE_BYTES });
  const stop = new AbortController();
  const signals = onStopSignal({ stop: () => stop.abort(), graceSeconds: home.env("HERMES_SIGTERM_GRACE"), clock });
  try {
    await serveEditor(stream, { home, clock, store: ctx.conversationStore, stop: stop.signal });
  } finally {
    signals.stopListening();
    restore();
    io.stdin.destroy();
  }
  if (signals.code !== null) throw new ExitError(signals.code);
}

async function check(ctx: CliContext): Promise<void> {
  const { home, io } = ctx;
  const problems: string[] = [];
  await Promise.all([import("@agentclientprotocol/sdk"), import("./server.ts")]).catch((error) =>
    problems.push(messageOf(error)),
  );
  await ctx.store().catch((error) => problems.push(messageOf(error)));
  const [guard] = home.unreadGuards();
  if (guard !== undefined) problems.push(guard);
  if (problems.length > 0) throw new ExitError(1, problems.join("\n"));
  const { chooseTarget } = await import("../../agent/open-model.ts");
  const chosen = await chooseTarget(home, {}, { offline: true }).catch((error) => {
    throw new ExitError(1, messageOf(error));
  });
  io.out(`${versionLine()}\n`);
  io.out(
    chosen.demo
      ? `${t("ACP is ready, but no model is connected. Connect one: hermes acp --setup")}\n`
      : `${t("ACP is ready; model: {model}", { model: chosen.target.model })}\n`,
  );
}

async function setup(ctx: CliContext): Promise<void> {
  const code = await ctx.rerun(["setup", "model"]);
  if (code !== 0) throw new ExitError(code);
}

async function setupBrowser({ home, io }: CliContext, isSure: boolean): Promise<void> {
  if (!isSure) {
    if (!io.stdinIsTerminal) throw new ExitError(2, t("Not a terminal: add --yes to install the browser library."));
    const typed = await io.question(`${t("Install the library that drives browsers (about 14 MB)? [Y/n]")} `);
    if (typed === null || !/^(?:y(?:es)?)?$/i.test(typed.trim())) throw new ExitError(1, t("Nothing was installed."));
  }
  const { loadDriver } = await import("../../tools/browser/driver.ts");
  try {
    await loadDriver({ home: home.paths, env: (name) => home.env(name), notify: (text) => io.err(`${text}\n`) });
  } catch (error) {
    throw new ExitError(1, messageOf(error));
  }
  io.out(`${t("The browser library is installed.")}\n`);
}
