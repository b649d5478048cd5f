// The command line: profile, home, then exactly one command, loaded on demand.
import { spawn } from "node:child_process";
import { homedir } from "node:os";
import { join } from "node:path";
import { Command, CommanderError } from "commander";
import { said } from "../../home/language/words.ts";
import { type OpenHome, openHome } from "../../home/open.ts";
import { installRoot, versionLine } from "../../home/paths.ts";
import { systemClock } from "../../kit/clock.ts";
import { messageOf, UserError } from "../../kit/errors.ts";
import { lazy } from "../../kit/lazy.ts";
import { didYouMean } from "../../kit/similarity.ts";
import { createRedactor } from "../../safety/redact.ts";
import { StoreError } from "../../sessions/store.ts";
import { type CliContext, type CliIo, ExitError, processIo } from "../cli-context.ts";
import type { ChatRequest } from "../typed-input.ts";
import {
  addChatOptions,
  type ChatOptions,
  commandIndex,
  helpAsOption,
  joinNames,
  joinPrompt,
  shieldForeignWords,
  strayProfile,
} from "./argv.ts";

// Every sub-command by name. Only the module of the one that was typed is loaded.

interface SubcommandModule {
  define(command: Command, ctx: CliContext): void;
}

interface Subcommand {
  readonly name: string;
  readonly summary: string;
  /** It reports problems of the settings itself. */
  readonly showsWarnings?: true;
  load(): Promise<SubcommandModule>;
}

export const SUBCOMMANDS: readonly Subcommand[] = [
  { name: "acp", summary: "serve editors over the Agent Client Protocol", load: () => import("../acp/cli.ts") },
  {
    name: "api",
    summary: "serve the agent over an OpenAI-compatible HTTP API",
    load: () => import("../gateway/platforms/api_server/cli.ts"),
  },
  {
    name: "approvals",
    summary: "list and answer pending approvals; test a command",
    load: async () => ({ define: (await import("./safety.ts")).defineApprovals }),
  },
  {
    name: "auth",
    summary: "manage multiple API keys per provider",
    load: () => import("./auth.ts"),
  },
  { name: "backup", summary: "back up the home into one file", load: () => import("./backup.ts") },
  {
    name: "batch",
    summary: "run many prompts and save the trajectories",
    load: () => import("./batch.ts"),
  },
  {
    name: "bundles",
    summary: "manage skill bundles: several skills under one command",
    load: () => import("./skills-bundled.ts"),
  },
  {
    name: "checkpoints",
    summary: "show and delete file checkpoints",
    load: () => import("./checkpoints.ts"),
  },
  {
    name: "completion",
    summary: "print a completion script for bash, zsh or fish",
    load: () => import("./completion.ts"),
  },
  { name: "config", summary: "show and change settings", showsWarnings: true, load: () => import("./config.ts") },
  {
    name: "cron",
    summary: "run prompts on a schedule",
    load: () => import("../gateway/cron-cli.ts"),
  },
  {
    name: "doctor",
    summary: "diagnose problems and fix them",
    showsWarnings: true,
    load: () => import("./doctor.ts"),
  },
  { name: "dump", summary: "print a summary for bug reports", load: () => import("./dump.ts") },
  {
    name: "fallback",
    summary: "manage fallback models",
    load: () => import("./fallback.ts"),
  },
  {
    name: "gateway",
    summary: "talk to the agent in chats: run, set up and watch the platforms",
    load: () => import("../gateway/cli.ts"),
  },
  { name: "hooks", summary: "manage shell commands that run on agent events", load: () => import("./hooks.ts") },
  {
    name: "import",
    summary: "restore the home from a backup",
    load: async () => ({ define: (await import("./backup.ts")).defineImport }),
  },
  { name: "insights", summary: "show usage statistics", load: () => import("./insights.ts") },
  { name: "kanban", summary: "manage a board of cards", load: () => import("./kanban.ts") },
  {
    name: "login",
    summary: "save a provider key (same as auth add)",
    load: async () => ({ define: (await import("./auth.ts")).defineLogin }),
  },
  {
    name: "logout",
    summary: "remove a provider login (same as auth logout)",
    load: async () => ({ define: (await import("./auth.ts")).defineLogout }),
  },
  { name: "logs", summary: "show the log files", load: () => import("./logs.ts") },
  { name: "mcp", summary: "manage MCP servers", load: () => import("./mcp.ts") },
  { name: "memory", summary: "show, edit and undo what the agent remembers", load: () => import("./memory.ts") },
  {
    name: "model",
    summary: "choose provider and model",
    load: async () => ({ define: (await import("./setup.ts")).defineModel }),
  },
  {
    name: "pairing",
    summary: "approve people who want to talk to the agent in chats",
    load: () => import("../gateway/pairing-cli.ts"),
  },
  {
    name: "plugins",
    summary: "install and manage plugins",
    load: () => import("./plugins.ts"),
  },
  {
    name: "profile",
    summary: "manage profiles: separate agents, each with its own home",
    load: () => import("./profile.ts"),
  },
  {
    name: "prompt",
    summary: "inspect the system prompt, its files and its cache",
    load: () => import("./prompt.ts"),
  },
  {
    name: "prompt-size",
    summary: "show the size of prompt and tools (same as prompt size)",
    load: async () => ({ define: (await import("./prompt.ts")).defineSize }),
  },
  {
    name: "safety",
    summary: "test a command against the safety policy; runs nothing",
    load: () => import("./safety.ts"),
  },
  { name: "send", summary: "send a message to a chat", load: () => import("../gateway/send-cli.ts") },
  {
    name: "sessions",
    summary: "list, show, search, export and clean up conversations",
    load: () => import("./sessions.ts"),
  },
  { name: "setup", summary: "connect a model; configure terminal, tools and agent", load: () => import("./setup.ts") },
  { name: "skills", summary: "list, view and manage skills", load: () => import("./skills.ts") },
  { name: "status", summary: "show profile, model, keys and sessions", load: () => import("./status.ts") },
  { name: "tools", summary: "enable and disable toolsets", load: () => import("./tools.ts") },
  { name: "trust", summary: "manage trusted folders", load: () => import("./trust.ts") },
  { name: "update", summary: "install the latest version", load: () => import("./update.ts") },
  { name: "usage", summary: "show tokens and cost", load: () => import("./usage.ts") },
  { name: "version", summary: "show version, runtime and install path", load: () => import("./version.ts") },
  {
    name: "webhook",
    summary: "let other programs start a turn: add, list and test webhook routes",
    load: () => import("../gateway/webhook-cli.ts"),
  },
];

interface CliStart {
  readonly argv: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** The interactive screen; resolves to the exit code. */
  openTerminal(request: ChatRequest): Promise<number>;
}

export async function runCli(start: CliStart): Promise<number> {
  const io = processIo({ noColor: Boolean(start.env.NO_COLOR) });
  const closers: (() => Promise<void>)[] = [];
  let wasOpen = false;
  const openTerminal: CliStart["openTerminal"] = (request) => {
    wasOpen = true;
    return start.openTerminal(request);
  };
  try {
    return await run({ ...start, openTerminal }, io, closers);
  } catch (error) {
    return report(error, io);
  } finally {
    for (const close of closers.reverse()) await close();
    if (wasOpen || process.hasUncaughtExceptionCaptureCallback()) endDespiteLeftovers();
  }
}

/** A timer or a socket that a plugin or a conversation left open would keep the finished program waiting, without a terminal too. */
function endDespiteLeftovers(): void {
  const end = () => void setTimeout(() => process.exit(), LEFTOVERS_MS).unref();
  // Written at once to a terminal, and to one that is gone not at all; a pipe may still be read.
  if (process.stdout.isTTY) end();
  else process.stdout.write("", end);
}

const LEFTOVERS_MS = 1000;

const NAMES: ReadonlySet<string> = new Set(["chat", ...SUBCOMMANDS.map((entry) => entry.name)]);

async function run(start: CliStart, io: CliIo, closers: (() => Promise<void>)[]): Promise<number> {
  const home = await openHome({
    argv: start.argv,
    env: start.env,
    osHome: start.env.HOME || homedir(),
    cwd: currentFolder(),
    ignoreUserConfig: isAsked(start.argv, "--ignore-user-config", "--safe-mode") || undefined,
    redactorFor: (settings) => createRedactor(settings),
  });
  closers.push(() => home.close());
  const { language } = home.config().display;
  if (language !== "en") await (await import("../../home/language/languages.ts")).useLanguage(language);
  const badProfile = strayProfile(home.argv);
  if (badProfile !== null) throw new ExitError(2, notAProfile(badProfile));
  const argv = helpAsOption(joinNames(joinPrompt(shieldForeignWords(home.argv)), NAMES));
  const at = commandIndex(argv);
  const word = argv[at];
  const isChat = word === undefined || word === "chat";
  const entry = SUBCOMMANDS.find((candidate) => candidate.name === word);
  if (!isChat && !entry) {
    const { runPluginCommand } = await import("./plugins.ts");
    const ended = await runPluginCommand(word, argv.slice(at + 1), {
      home,
      io,
      clock: systemClock,
      cwd: process.cwd(),
    });
    if (ended === null) throw await unknownCommand(word, NAMES);
    return ended;
  }

  const ctx = cliContext(home, io, start, closers);
  const command = new Command(entry ? `hermes ${entry.name}` : "hermes");
  command.exitOverride().configureOutput({
    writeOut: io.out,
    writeErr: io.err,
    outputError: (text, write) => write(`hermes: ${text.replace(/^error: /, "").trimEnd()}\nSee --help.\n`),
  });
  command.configureHelp({
    minWidthToWrap: 20, // long terms would leave none of 80 columns to wrap in
    styleTitle: said,
    styleCommandDescription: said,
    styleSubcommandDescription: said,
    styleOptionDescription: described,
    styleArgumentDescription: described,
  });
  let code = 0;
  if (entry && !entry.showsWarnings) for (const warning of home.warnings) io.err(`⚠ ${warning}\n`);
  if (entry) (await entry.load()).define(command, ctx);
  else {
    chatCommand(command)
      .addHelpText(
        "after",
        `\n${said("Commands:")}\n${commandList()}\n\n${said("Run hermes COMMAND --help for the options of a command.")}`,
      )
      .action(async (options: ChatOptions & { version?: boolean }) => {
        if (options.version) return io.out(`${versionLine()}\n`);
        code = await (await import("./chat.ts")).runChat(options, ctx, start.openTerminal);
      });
  }
  applyOutput(command, command);
  const own = word === undefined ? argv : helpAsOption(argv.toSpliced(at, 1));
  const stranger = entry ? await unknownSubcommand(command, own[0]) : null;
  if (stranger) throw stranger;
  await command.parseAsync(own, { from: "user" });
  return code;
}

function currentFolder(): string {
  try {
    return process.cwd();
  } catch {
    throw new ExitError(1, "the current folder no longer exists; cd to another one.");
  }
}

/** Asked before the options are parsed, because the settings are read before. */
function isAsked(argv: readonly string[], ...options: readonly string[]): boolean {
  const end = argv.indexOf("--");
  return (end < 0 ? argv : argv.slice(0, end)).some((word) => options.includes(word));
}

/** Sub-commands of sub-commands report and exit like their parents. */
function applyOutput(command: Command, root: Command): void {
  for (const child of command.commands) {
    child.copyInheritedSettings(root);
    applyOutput(child, root);
  }
}

/** In the user's language; behind it stands what commander adds about values. */
function described(text: string): string {
  const added = / \((?:choices|default|preset): (?:(?! \()[^\n])*\)$/.exec(text)?.index ?? text.length;
  return said(text.slice(0, added)) + text.slice(added);
}

function commandList(): string {
  return ["chat".padEnd(12).concat(said("start an interactive conversation (default)"))]
    .concat(SUBCOMMANDS.map((entry) => entry.name.padEnd(12).concat(said(entry.summary))))
    .map((line) => `  ${line}`)
    .join("\n");
}

/** Of a group of sub-commands; one that takes arguments itself reads the word as such. */
async function unknownSubcommand(group: Command, word: string | undefined): Promise<ExitError | null> {
  const names = group.commands.flatMap((child) => [child.name(), ...child.aliases()]);
  if (names.length === 0 || group.registeredArguments.length > 0) return null;
  if (word === undefined || word.startsWith("-") || names.includes(word)) return null;
  const { synonymsOf } = await import("./foreign-commands.ts");
  const same = synonymsOf(word, names);
  const asked = `${group.name()} ${word}`.replace(/^hermes /, "");
  const hint = same.length > 0 ? didMean(same) : meant(word, names);
  return new ExitError(2, `unknown command "${asked}".${hint} "${group.name()} --help" lists the commands.`);
}

const notAProfile = (name: string) =>
  `"${name}" is not a profile name (letters, digits, - and _, at most 64). "hermes profile list" lists the profiles.${/\s/.test(name) ? " To answer one prompt: hermes -z PROMPT." : ""}`;

async function unknownCommand(word: string, names: ReadonlySet<string>): Promise<ExitError> {
  const habit = (await import("./foreign-commands.ts")).habitHint(word);
  const hint = habit === null ? meant(word, [...names]) : ` ${habit}`;
  return new ExitError(2, `unknown command "${word}".${hint} "hermes --help" lists the commands.`);
}

function meant(word: string, names: readonly string[]): string {
  const near = didYouMean(word, names);
  return near.length > 0 ? didMean(near) : "";
}

const didMean = (names: readonly string[]) => ` Did you mean ${names.map((name) => `"${name}"`).join(" or ")}?`;

function cliContext(home: OpenHome, io: CliIo, start: CliStart, closers: (() => Promise<void>)[]): CliContext {
  let told = false;
  const open = async (how: { readonly readOnly?: boolean; readonly inMemory?: boolean }) => {
    const { openSessionStore } = await import("../../sessions/open.ts");
    const store = await openSessionStore({
      path: home.paths.stateDb,
      journalMode: home.config().database.journal_mode,
      log: home.log.child("sessions"),
      clock: systemClock,
      sessionsDir: home.paths.sessionsDir,
      slowSearchMs: Number(home.env("HERMES_SEARCH_SLOW_MS")) || 1000,
      onLost: (copy) => {
        if (!told)
          io.err(`hermes: this home has no conversations, but there is a copy: hermes sessions restore ${copy}\n`);
        told = true;
      },
      onBusy: () => io.err("hermes: waiting for another hermes process to release the database ...\n"),
      ...how,
    });
    closers.push(() => store.close());
    return store;
  };
  const ctx: CliContext = {
    home,
    io,
    clock: systemClock,
    cwd: process.cwd(),
    commands: NAMES,
    tree: () => commandTree(ctx),
    store: lazy(() => {
      const readOnly = home.unwritable !== null;
      return open({ readOnly }).catch((error: unknown) => {
        if (readOnly || !(error instanceof StoreError) || error.code !== "read_only") throw error;
        return open({ readOnly: true }); // the file alone cannot be written
      });
    }),
    conversationStore: lazy(() => open({ inMemory: home.unwritable !== null })),
    rerun: (args) =>
      new Promise((resolve, reject) => {
        const child = spawn(process.execPath, [join(installRoot(), "bin", "hermes.mjs"), ...args], {
          stdio: "inherit",
          env: { ...start.env, HERMES_HOME: home.paths.dir },
        });
        child.on("error", reject);
        child.on("exit", (exitCode) => resolve(exitCode ?? 1));
      }),
  };
  return ctx;
}

/** All commands with their options. Nothing of `ctx` is used before one of them runs. */
export async function commandTree(ctx: CliContext): Promise<Command> {
  const root = chatCommand(new Command("hermes"));
  root.addCommand(addChatOptions(new Command("chat")).description("start an interactive conversation (default)"));
  for (const { name, summary, load } of SUBCOMMANDS) {
    const command = new Command(name);
    (await load()).define(command, ctx);
    root.addCommand(command.summary(summary));
  }
  return root;
}

const chatCommand = (command: Command) =>
  addChatOptions(command)
    .usage("[options] [command]")
    .description("A personal AI agent that learns. Without a command, it starts an interactive conversation.");

/** Messages that name the program or carry a mark of their own get no `hermes:` in front. */
const STANDS_ALONE = /^(?:hermes|Usage:|✗)(?:\s|:)/;

/** `ENOENT: no such file or directory, open '/x'` is for programmers. */
const SYSTEM_WORDS = /\bE[A-Z]{3,}: ([a-z][a-z ,-]*?), [a-z]+(?: '([^'\n]*)')?(?: -> '[^'\n]*')?/g;

function plainly(message: string): string {
  return message.replace(SYSTEM_WORDS, (found, words: string, path: string | undefined) => {
    const known = path === undefined || message.replace(found, "").includes(path);
    return known ? words : `${words}: ${path}`;
  });
}

/** Every way a command can fail, as one line and an exit code. */
function report(error: unknown, io: CliIo): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  const message = plainly(messageOf(error));
  if (message !== "") io.err(`${STANDS_ALONE.test(message) ? "" : "hermes: "}${message}\n`);
  return error instanceof UserError ? error.exitCode : 1;
}
