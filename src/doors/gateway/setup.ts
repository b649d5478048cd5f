// `hermes gateway setup`: connects a chat platform. Nothing is saved before all answers fit together.
import { inProfile, profileCommand } from "../../home/paths.ts";
import { maskValue } from "../../home/secrets.ts";
import { messageOf } from "../../kit/errors.ts";
import { didYouMean } from "../../kit/similarity.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { type AdapterHost, type PlatformEntry, PlatformError, type SetupVariable } from "./contract.ts";
import { loneHost } from "./lone-host.ts";
import { installPackages, missingPackages } from "./packages.ts";
import { allPlatforms } from "./platform-list.ts";
import { GatewaySettings } from "./settings.ts";

export async function setUpPlatform(name: string | undefined, ctx: CliContext): Promise<void> {
  const { io } = ctx;
  const entries = await allPlatforms(ctx, ctx.home.log.child("gateway"));
  const settings = await GatewaySettings.open(ctx.home);
  const isInteractive = io.stdinIsTerminal && io.stdoutIsTerminal;
  const chosen = name === undefined ? null : entryOf(name, entries);
  if (!isInteractive) return chosen ? withoutTerminal(chosen, settings, ctx) : list(entries, settings, ctx);
  // Without a listener Ctrl+C would end the program before it has said what was saved.
  const onSignal = () => undefined;
  process.on("SIGINT", onSignal);
  try {
    const entry = chosen ?? (await pick(entries, settings, ctx));
    await connect(entry, settings, ctx);
  } finally {
    process.off("SIGINT", onSignal);
  }
}

function entryOf(word: string, entries: readonly PlatformEntry[]): PlatformEntry {
  const wanted = word.trim().toLowerCase();
  const found = entries.find(({ name, label }) => name === wanted || label.toLowerCase() === wanted);
  if (found) return found;
  const names = entries.map(({ name }) => name);
  const near = didYouMean(wanted, names);
  const hint = near.length > 0 ? ` Did you mean ${near.map((one) => `"${one}"`).join(" or ")}?` : "";
  throw new ExitError(
    2,
    `hermes gateway setup: there is no platform "${word}".${hint} Platforms: ${names.join(", ")}.`,
  );
}

/** In a few words, for lists. */
function stateOf(entry: PlatformEntry, settings: GatewaySettings): string {
  const { on, problem } = settings.enabled(entry);
  if (problem !== undefined) return inProfile(settings.home.paths, `not usable: ${problem}`);
  if (on) return "set up";
  return settings.platform(entry.name).enabled === false ? "disabled" : "not set up";
}

const cancelled = () => new ExitError(1, "Setup cancelled; nothing was saved.");

async function pick(
  entries: readonly PlatformEntry[],
  settings: GatewaySettings,
  { home, io }: CliContext,
): Promise<PlatformEntry> {
  const title = "Which platform do you want to connect?";
  if (home.env("TERM") === "dumb") {
    for (const entry of entries) io.out(`  ${entry.name}: ${stateOf(entry, settings)}\n`);
    const typed = await io.question(`${title} `);
    if (typed === null) throw cancelled();
    return entryOf(typed, entries);
  }
  const hint = "↑↓ move · type to filter · Enter choose · Esc cancel";
  const choices = entries.map((entry) => ({ label: entry.label, hint: stateOf(entry, settings), value: entry }));
  const [chosen] = (await io.choose({ title, hint, choices, numbers: false, quitKey: false })) ?? [];
  if (chosen === undefined) throw cancelled();
  return chosen;
}

async function connect(entry: PlatformEntry, settings: GatewaySettings, ctx: CliContext): Promise<void> {
  const { home, io } = ctx;
  io.out(`${entry.label}\n\n${inProfile(home.paths, entry.guide)}\n\n`);
  const typed = new Map<string, string>();
  let asked = entry.variables;
  let notInstalled: unknown = null;
  for (;;) {
    for (const variable of asked) await ask(variable, typed, ctx);
    const option = overlay(entry, settings, typed);
    const problem = problemOf(entry, option);
    // What was typed is kept also when its packages cannot be had now.
    if (problem === null)
      notInstalled = await installPackages(entry, home, (text) => io.err(`${text}\n`)).then(
        () => null,
        (error: unknown) => error,
      );
    const refusal = problem === null ? await refusalOf(entry, option, ctx) : null;
    if (problem === null && refusal === null) break;
    io.err(`⚠ ${problem?.text ?? `${refusal}. Ctrl+C cancels.`}\n`);
    asked = problem?.again ?? namedIn(refusal ?? "", entry);
  }
  for (const [name, value] of typed) await home.setEnv(name, value);
  if (settings.platform(entry.name).enabled === false)
    await home.setConfigKey(["platforms", entry.name, "enabled"], true);
  if (typed.size > 0) io.out(`✓ Saved ${[...typed.keys()].join(", ")} in ${home.display(home.paths.envFile)}\n`);
  if (notInstalled !== null) throw notInstalled;
  io.out(nextSteps(entry, ctx));
}

/** What the platform has against the bot, asked before anything is kept; null: nothing, or it cannot be asked, which is said. */
async function refusalOf(
  entry: PlatformEntry,
  option: AdapterHost["option"],
  { home, io, clock }: CliContext,
): Promise<string | null> {
  if (!entry.verify) return null;
  try {
    const host = loneHost(entry, option, { home, clock });
    const who = await entry.verify(host);
    const says = entry.listensOnly ? "can listen on" : "knows the bot:";
    if (who !== null) io.out(`✓ ${entry.label} ${says} ${who}\n`);
    return null;
  } catch (error) {
    if (error instanceof PlatformError && !error.retryable && error.code !== "package_missing") return error.message;
    io.err(
      `⚠ ${entry.label} could not be asked: ${inProfile(home.paths, messageOf(error))}. The gateway tries it again.\n`,
    );
    return null;
  }
}

/** One variable. Enter keeps what is set, or leaves it out. */
async function ask(
  { name, about, secret, optional }: SetupVariable,
  typed: Map<string, string>,
  { home, io }: CliContext,
): Promise<void> {
  const present = typed.get(name) ?? home.env(name);
  const shown = present === undefined ? "" : secret ? maskValue(present) : present;
  const without = shown !== "" ? ` (Enter = keep ${shown})` : optional ? " (Enter = none)" : "";
  const prompt = `${name}, ${about}${without}: `;
  for (;;) {
    const answer = await (secret ? io.secret(prompt) : io.question(prompt));
    if (answer === null) throw cancelled();
    const value = answer.trim();
    if (value === "") return;
    const problem = wrongInput(name, value, secret === true);
    if (problem === null) return void typed.set(name, value);
    io.err(`⚠ ${problem}\n`);
  }
}

/** What is never right, whatever the platform. */
function wrongInput(name: string, value: string, isSecret: boolean): string | null {
  if (/[\0-\x1f\x7f]/.test(value)) return "It contains control characters; copy it again.";
  if (value.startsWith(`${name}=`)) return `Only the value, without ${name}=.`;
  if (isSecret && name.endsWith("_TOKEN") && /\s/.test(value)) return "A token has no spaces; copy it again.";
  return null;
}

/** The settings as they would be with what was typed. */
function overlay(
  { name }: PlatformEntry,
  settings: GatewaySettings,
  typed: ReadonlyMap<string, string>,
): AdapterHost["option"] {
  const option = settings.option(name);
  return (key, variable) => (variable === undefined ? undefined : typed.get(variable)) ?? option(key, variable);
}

/** What does not fit, and which variables are asked for again; null when it is set up. */
function problemOf(
  entry: PlatformEntry,
  option: AdapterHost["option"],
): { readonly text: string; readonly again: readonly SetupVariable[] } | null {
  const needed = entry.variables.filter(({ optional }) => !optional);
  if (entry.identity(option) === null) {
    const missing = needed.filter(({ name }) => option("", name) === undefined);
    const again = missing.length > 0 ? missing : needed;
    return { text: `${again.map(({ name }) => name).join(", ")} is needed. Ctrl+C cancels.`, again };
  }
  const text = entry.check?.(option) ?? null;
  if (text === null) return null;
  return { text, again: namedIn(text, entry) };
}

/** The variables that a sentence is about; all that are needed when it names none. */
function namedIn(text: string, { variables }: PlatformEntry): readonly SetupVariable[] {
  const words = new Set(text.match(/\w+/g));
  const named = variables.filter(({ name }) => words.has(name));
  return named.length > 0 ? named : variables.filter(({ optional }) => !optional);
}

function nextSteps(entry: PlatformEntry, { home }: CliContext): string {
  const typed = (args: string) => profileCommand(home.paths, args);
  const users = `${entry.name.toUpperCase()}_ALLOWED_USERS`;
  const isOpen = entry.trustsTransport === true || home.env(users) || home.env("GATEWAY_ALLOWED_USERS");
  const steps = [
    `${typed("gateway run")}    start it here, or in the background: ${typed("gateway start")}`,
    "Then write to the bot.",
    ...(isOpen
      ? []
      : [
          `It answers with a pairing code. Approve it: ${typed(`pairing approve ${entry.name} CODE`)}`,
          `Or name who may write: ${typed(`config set ${users} ID`)}`,
        ]),
    `${typed("gateway install")}    start it with your login`,
  ];
  return `\n${entry.label} is set up. Next:\n${steps.map((step) => `  ${step}`).join("\n")}\n`;
}

// Where nobody can answer.

function list(entries: readonly PlatformEntry[], settings: GatewaySettings, { io, home }: CliContext): void {
  const width = Math.max(0, ...entries.map(({ name }) => name.length));
  for (const entry of entries) io.out(`${entry.name.padEnd(width)}  ${stateOf(entry, settings)}\n`);
  io.out(`What to set for one of them: ${profileCommand(home.paths, "gateway setup PLATFORM")}\n`);
}

/** Says what to set; what is set up already gets its packages. Exit 1 while something is missing. */
async function withoutTerminal(entry: PlatformEntry, settings: GatewaySettings, ctx: CliContext): Promise<void> {
  const { home, io } = ctx;
  const problem = problemOf(entry, settings.option(entry.name));
  if (problem === null) {
    const missing = await missingPackages(entry, home);
    if (missing.length > 0) await installPackages(entry, home, (text) => io.err(`${text}\n`));
    const refusal = await refusalOf(entry, settings.option(entry.name), ctx);
    if (refusal !== null) throw new ExitError(1, `${entry.label} is not usable: ${refusal}.`);
    return io.out(nextSteps(entry, ctx));
  }
  const width = Math.max(...entry.variables.map(({ name }) => name.length));
  const lines = entry.variables.map(({ name, about, optional }) => {
    const state = home.env(name) === undefined ? (optional ? "optional" : "missing") : "set";
    return `  ${profileCommand(home.paths, `config set ${name.padEnd(width)} VALUE`)}   ${state}: ${about}`;
  });
  io.out(
    `${entry.label}\n\n${inProfile(home.paths, entry.guide)}\n\nSet these, then run this command again:\n${lines.join("\n")}\n`,
  );
  throw new ExitError(1, `${entry.label} is not set up: ${problem.text.replace(" Ctrl+C cancels.", "")}`);
}
