// `hermes safety check`, also `hermes approvals test`: what would happen to a command. Nothing is ever run.

import { homedir } from "node:os";
import { createInterface } from "node:readline";
import type { Command } from "commander";
import { relativeTime } from "../../kit/formats.ts";
import type { OpenQuestion } from "../../safety/approvals.ts";
import { isAllowlisted } from "../../safety/approvals.ts";
import type { CommandVerdict } from "../../safety/decision.ts";
import { parseCommandLine } from "../../safety/shell/parse.ts";
import { classifyCommand } from "../../safety/verdict.ts";
import { isIsolated } from "../../sandbox/container-arguments.ts";
import { type CliContext, ExitError } from "../cli-context.ts";

const EXIT = { allow: 0, ask: 2, block: 3 } as const;

interface CheckFlags {
  readonly json?: true;
}

/** `hermes safety` with its sub-command `check`. */
export function define(command: Command, ctx: CliContext): void {
  command.description("test commands against the safety policy");
  defineCheck(command.command("check"), ctx);
}

/** `hermes approvals` with its sub-command `test`: the same check under the name of the older release. */
export function defineApprovals(command: Command, ctx: CliContext): void {
  command.description("list and answer pending approvals; test commands against the safety policy");
  defineOpenQuestions(command, ctx);
  defineCheck(command.command("test"), ctx);
}

function defineCheck(command: Command, ctx: CliContext): void {
  command
    .description("check whether a command would run, need approval or be blocked; exit code 0, 2 or 3")
    .argument("[COMMAND...]", "the command, quoted as needed; without it, reads one command per line from stdin")
    .option("--json", "print one JSON object per line (place before the command)")
    .action((words: string[], flags: CheckFlags) => {
      // An option behind a command in quotes cannot be part of it.
      const [line, last, ...more] = words;
      const json = last === "--json" && more.length === 0 && /\s/.test(line ?? "");
      return check(json ? [line ?? ""] : words, json ? { json: true } : flags, ctx);
    });
}

/** One word is a line as it was typed in quotes; several are words that a shell has taken apart already. */
const lineOf = (words: readonly string[]) =>
  words.length === 1
    ? (words[0] ?? "")
    : words.map((word) => (/^[\w@%+=:,./~-]+$/.test(word) ? word : quote(word))).join(" ");

const quote = (word: string) => `'${word.replaceAll("'", `'\\''`)}'`;

async function check(words: readonly string[], flags: CheckFlags, ctx: CliContext): Promise<void> {
  if (words.length > 0) {
    const given = lineOf(words);
    const problem = unfinished(given);
    if (problem !== null) throw new ExitError(2, `Not checked: ${problem}.`);
    const verdict = judge(given, ctx);
    show(given, verdict, flags, ctx);
    if (EXIT[verdict.verdict] !== 0) throw new ExitError(EXIT[verdict.verdict]);
    return;
  }
  if (ctx.io.stdinIsTerminal) {
    throw new ExitError(1, "No command to check. Give one, e.g. hermes safety check ls -la, or pipe in a list.");
  }
  let lines = 0;
  for await (const line of createInterface({ input: ctx.io.stdin, crlfDelay: Number.POSITIVE_INFINITY })) {
    if (line.trim() === "") continue;
    lines++;
    const problem = unfinished(line);
    const broken = { verdict: "unfinished", category: null, reason: problem ?? "", hardline: false } as const;
    show(line, problem === null ? judge(line, ctx) : broken, flags, ctx);
  }
  if (lines === 0) throw new ExitError(2, "Nothing was checked: stdin contains no command.");
}

/** Why a line is none that a shell would run as it stands; null when it is one. */
function unfinished(line: string): string | null {
  const { ok, script } = parseCommandLine(line);
  if (!ok) return "unclosed quote, bracket or substitution";
  if (script.pipelines.length === 0) return "it contains no command";
  return /(?:\||&&|\\)\s*$/.test(line) ? "it is incomplete" : null;
}

/** The rules as they stand in this home: a standing yes or a switched-off mode turns a question into a yes. */
function judge(command: string, { home }: CliContext): CommandVerdict {
  const { approvals, command_allowlist, terminal } = home.config();
  if (terminal.backend === "docker" && isIsolated(terminal))
    return {
      verdict: "allow",
      category: null,
      reason: "commands run in a container, isolated from this machine",
      hardline: false,
    };
  const verdict = classifyCommand(command, {
    home: home.paths.dir,
    osHome: home.env("HOME") ?? homedir(),
    sudoPasswordSet: home.env("SUDO_PASSWORD") !== undefined,
    denyGlobs: approvals.deny,
  });
  if (verdict.verdict !== "ask") return verdict;
  if (approvals.mode === "off") return { ...verdict, verdict: "allow", reason: "approvals.mode is off" };
  if (!isAllowlisted(command, verdict.category, command_allowlist)) return verdict;
  return { ...verdict, verdict: "allow", reason: "command_allowlist allows it" };
}

type Shown = Omit<CommandVerdict, "verdict"> & { readonly verdict: CommandVerdict["verdict"] | "unfinished" };

function show(command: string, verdict: Shown, flags: CheckFlags, { io }: CliContext): void {
  const { category, reason } = verdict;
  if (flags.json) {
    io.out(`${JSON.stringify({ command, verdict: verdict.verdict, category, reason })}\n`);
    return;
  }
  const key = category === null ? "" : ` [${category}${verdict.hardline ? ", hardline" : ""}]`;
  io.out(`${verdict.verdict}${key} ${reason}: ${command}\n`);
}

// `hermes approvals list` and `answer`: questions of agents in other processes.

const CHOICES = ["once", "session", "always", "deny"];

function defineOpenQuestions(command: Command, ctx: CliContext): void {
  command
    .command("list", { isDefault: true })
    .description("list pending approvals of all running conversations in this home")
    .option("--json", "print one JSON object per line")
    .action((flags: { readonly json?: true }) => list(flags, ctx));
  command
    .command("answer")
    .description("answer a pending approval")
    .argument("<ID>", "its id or a prefix of it")
    .argument("<CHOICE>", CHOICES.join(", "))
    .argument("[REASON...]", "reason given to the agent when you deny")
    .action((id: string, choice: string, reason: string[]) => answer(id, choice, reason.join(" "), ctx));
}

async function list({ json }: { readonly json?: true }, ctx: CliContext): Promise<void> {
  const rows = await (await ctx.store()).questions();
  if (rows.length === 0 && !json) return ctx.io.out("No pending approvals.\n");
  for (const row of rows) {
    const { command, description } = shownOf(row);
    if (json)
      ctx.io.out(
        `${JSON.stringify({ id: row.id, session_id: row.sessionId, kind: row.kind, command, description, asked_at: row.askedAt, expires_at: row.expiresAt })}\n`,
      );
    else
      ctx.io.out(
        `${row.id.slice(0, 8)}  ${relativeTime(row.askedAt, ctx.clock.now() / 1000)}  [${description}] ${command}\n`,
      );
  }
}

async function answer(id: string, choice: string, reason: string, ctx: CliContext): Promise<void> {
  if (!CHOICES.includes(choice))
    throw new ExitError(1, `"${choice}" is not an answer. Choose one of: ${CHOICES.join(", ")}.`);
  const store = await ctx.store();
  const found = (await store.questions()).filter((row) => row.id.startsWith(id));
  const [row] = found;
  if (found.length > 1) throw new ExitError(1, `${id} is ambiguous. Give more of the id.`);
  const given = { choice, reason: reason || undefined };
  if (!row || !(await store.answerQuestion(row.id, given, "cli")))
    throw new ExitError(1, `No pending approval ${id}. "hermes approvals list" shows them.`);
  ctx.io.out(`Answered "${choice}": ${shownOf(row).command}\n`);
}

function shownOf({ payload }: OpenQuestion): { command: string; description: string } {
  const { command, description } = (payload ?? {}) as Readonly<Record<string, unknown>>; // written by any version; looked at as text
  return { command: String(command ?? ""), description: String(description ?? "") };
}
