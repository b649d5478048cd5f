// The one judgement on a command line: hardline, sudo guard, the user's own refusals, then the danger table. It never runs anything.

import { stripAnsi } from "../kit/strip-ansi.ts";
import { analyseCommand } from "./analysis/analyse.ts";
import { effectsOf } from "./danger/effects.ts";
import { copiesMadeBy } from "./danger/secret-reads.ts";
import { readsPasswordFromInput } from "./danger/system.ts";
import { type Danger, findDanger, findPathDanger } from "./danger/table.ts";
import { type ApprovalOutcome, type CommandVerdict, clearCommand, LIMIT_KEY, USER_DENY_KEY } from "./decision.ts";
import { findHardline } from "./hardline.ts";
import { matchGlob } from "./paths.ts";
import { type Homes, type Scene, setScene } from "./scene.ts";

export interface ClassifyOptions extends Homes {
  /** A sudo password is stored, so reading it from input is no guessing. */
  readonly sudoPasswordSet: boolean;
  /** Where the command would begin, if that is known. */
  readonly cwd?: string;
  /** Globs of commands the user always refuses. */
  readonly denyGlobs: readonly string[];
}

const SUDO_GUARD_KEY = "sudo password from standard input";

export function classifyCommand(command: string, options: ClassifyOptions): CommandVerdict {
  if (exceedsLimits(command)) return limitExceeded;
  const texts = spellings(command);
  const scenes = texts.map((text) => setScene(analyseCommand(text), options));
  const located = texts.flatMap((text) =>
    options.cwd ? [setScene(analyseCommand(text, plainCwd(options.cwd)), options)] : [],
  );
  if (scenes.some(({ tooDeep }) => tooDeep)) return limitExceeded;
  const effects = effectsOf([...scenes, ...located]);
  const verdict = judge(command, { scenes, located, options });
  const copies = [...new Set((located.length > 0 ? located : scenes).flatMap(copiesMadeBy))];
  return { ...verdict, ...(effects.length > 0 && { effects }), ...(copies.length > 0 && { copies }) };
}

interface Reading {
  readonly scenes: readonly Scene[];
  /** The same, with relative names counted from where the command would begin. */
  readonly located: readonly Scene[];
  readonly options: ClassifyOptions;
}

function judge(command: string, { scenes, located, options }: Reading): CommandVerdict {
  const hardline = [...scenes, ...located].map(findHardline).find((key) => key !== null);
  if (hardline) {
    return { verdict: "block", category: hardline, reason: "it would destroy or stop this machine", hardline: true };
  }
  if (!options.sudoPasswordSet && scenes.some(readsPasswordFromInput)) {
    return {
      verdict: "block",
      category: SUDO_GUARD_KEY,
      reason: "sudo -S would feed sudo a guessed password: none is stored (SUDO_PASSWORD)",
      hardline: false,
    };
  }
  const deny = findDenyGlob(command, scenes, options);
  if (deny !== null) {
    return {
      verdict: "block",
      category: USER_DENY_KEY,
      reason: `it matches "${deny}" in approvals.deny`,
      hardline: false,
    };
  }
  const danger = worst([...scenes.map(findDanger), ...located.map(findPathDanger)]);
  if (danger) return { verdict: "ask", category: danger.key, reason: `it ${danger.reason}`, hardline: false };
  return { verdict: "allow", category: null, reason: "nothing dangerous found", hardline: false };
}

/** macOS keeps its temporary files below `/private`; standing there is no danger. */
const plainCwd = (cwd: string) => cwd.replace(/^\/private(?=\/)/, "");

const limitExceeded: CommandVerdict = {
  verdict: "block",
  category: LIMIT_KEY,
  reason: "it is longer or more nested than can be checked",
  hardline: true,
};

function worst(dangers: readonly (Danger | null)[]): Danger | null {
  return dangers.reduce((best, one) => (one && (!best || one.rank < best.rank) ? one : best), null);
}

function findDenyGlob(command: string, scenes: readonly Scene[], options: ClassifyOptions): string | null {
  if (options.denyGlobs.length === 0) return null;
  const texts = new Set<string>();
  for (const text of [command, ...scenes.flatMap((scene) => scene.texts)]) {
    texts.add(text.trim().toLowerCase());
    texts.add(flatten(text, options).toLowerCase());
  }
  return (
    options.denyGlobs.find((glob) => [...texts].some((text) => matchGlob(glob.trim().toLowerCase(), text))) ?? null
  );
}

const IFS = /\$IFS(?![A-Za-z0-9_])|\$\{IFS(?:(?!\$\{IFS)[^}])*\}/g;

/**
 * The spellings of a command that are looked at; a match in any counts. The written form comes first: removing control sequences
 * or folding look-alike characters could also swallow or forge a quote, so the cleaned form never stands alone.
 */
function spellings(command: string): readonly string[] {
  const written = command.replaceAll("\0", "").replaceAll("\r\n", "\n").replace(IFS, " ");
  const cleaned = stripAnsi(command).replaceAll("\0", "").normalize("NFKC").replaceAll("\r\n", "\n").replace(IFS, " ");
  return written === cleaned ? [written] : [written, cleaned];
}

/** One flat text for the user's own globs: lines joined, escapes and empty quotes gone, both homes by their short names. */
function flatten(command: string, homes: Homes): string {
  const joined = command.replaceAll("\\\n", "");
  return foldText(foldText(joined, homes.home, "~/.hermes"), homes.osHome, "~")
    .replace(/\\(?=\S)/g, "")
    .replace(/''|""/g, "")
    .replace(/\s+/g, " ")
    .trim();
}

function foldText(text: string, directory: string, name: string): string {
  const prefix = directory.replace(/(?<![\\/])[\\/]+$/, "");
  if (prefix.split(/[\\/]/).filter(Boolean).length < 2) return text;
  return text.replaceAll(new RegExp(`${prefix.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}(?![\\w.-])`, "gi"), () => name);
}

const MAX_CHARS = 128_000;
const MAX_CHARS_UNSEPARATED = 4096;
const MAX_SEPARATORS = 25_000;

/** Longer or denser than a command has reason to be; it is refused unread. */
function exceedsLimits(command: string): boolean {
  if (command.length > MAX_CHARS) return true;
  let separators = 0;
  for (const char of command) {
    if (char === ";" || char === "&" || char === "|" || char === "\n") separators++;
  }
  return separators >= MAX_SEPARATORS || (separators === 0 && command.length > MAX_CHARS_UNSEPARATED);
}

// The decision on a command nobody is there to be asked about: what is not harmless does not run.

export function decideUnattended(command: string, options: ClassifyOptions): ApprovalOutcome {
  const { verdict, category, reason, hardline } = classifyCommand(command, options);
  const facts = { description: category, patternKey: category };
  if (verdict === "allow") return { approved: true, cleared: clearCommand(command), message: "", ...facts };
  return { approved: false, message: `${category}: ${reason}`, ...facts, ...(hardline ? { hardline } : {}) };
}
