// `hooks` of config.yaml: programs of the user's own, by event.
import { isRecord } from "../../kit/json.ts";
import { HOOKS } from "../hooks.ts";
import { splitWords } from "./words.ts";

export interface ShellHook {
  readonly event: string;
  /** As it is written in the settings; consent is given for exactly this. */
  readonly command: string;
  readonly argv: readonly string[];
  /** Which tools it is for; null = all, and every event without a tool. */
  readonly matcher: RegExp | null;
  readonly timeoutSeconds: number;
}

export interface HookSettings {
  readonly hooks: readonly ShellHook[];
  /** What is wrong with the others, one line each. */
  readonly problems: readonly string[];
}

const SECONDS = { standard: 60, least: 1, most: 300 };

export function readHookSettings(settings: Readonly<Record<string, unknown>>): HookSettings {
  const hooks: ShellHook[] = [];
  const problems: string[] = [];
  for (const [event, entries] of Object.entries(settings)) {
    if (!(event in HOOKS)) problems.push(`hooks.${event}: no event has this name; it never runs`);
    for (const [index, entry] of (Array.isArray(entries) ? entries : [entries]).entries()) {
      const read = readEntry(event, entry);
      if (typeof read === "string") problems.push(`hooks.${event}[${index}]: ${read}`);
      else hooks.push(read);
    }
  }
  return { hooks, problems };
}

function readEntry(event: string, entry: unknown): ShellHook | string {
  if (!isRecord(entry) || typeof entry.command !== "string" || entry.command.trim() === "")
    return "it needs a command, as in {command: ~/bin/check.sh}";
  const command = entry.command.trim();
  const argv = splitWords(command);
  if (argv === null) return "a quote in its command is not closed";
  if ((argv[0] ?? "") === "") return "its command names no program";
  const matcher = readMatcher(event, entry.matcher);
  if (typeof matcher === "string") return matcher;
  return { event, command, argv, matcher, timeoutSeconds: secondsOf(entry.timeout) };
}

function readMatcher(event: string, matcher: unknown): RegExp | null | string {
  if (matcher === undefined || matcher === null || matcher === "" || matcher === "*") return null;
  if (HOOKS[event]?.tool !== true) return null; // nothing to match against
  if (typeof matcher !== "string") return "its matcher is no text";
  try {
    return new RegExp(`^(?:${matcher})$`);
  } catch (error) {
    return `its matcher is no regular expression: ${error instanceof Error ? error.message : error}`;
  }
}

function secondsOf(timeout: unknown): number {
  const value = Number(timeout ?? SECONDS.standard);
  if (Number.isNaN(value)) return SECONDS.standard;
  return Math.min(SECONDS.most, Math.max(SECONDS.least, value));
}
