// The one judgement on a command line: hardline, sudo guard, the user's own refusals, then the danger table. It never runs anything.
import { analyseCommand } from "./analysis/analyse.ts";
import { readsPasswordFromInput } from "./danger/sudo.ts";
import { type Danger, findDanger, findPlacedDanger } from "./danger/table.ts";
import type { CommandVerdict } from "./decision.ts";
import { matchGlob } from "./glob.ts";
import { findHardline, LIMIT_KEY } from "./hardline.ts";
import { exceedsLimits, flatten, spellings } from "./normalise.ts";
import type { Places } from "./places.ts";
import { type Scene, setScene } from "./scene.ts";

export interface ClassifyOptions extends Places {
  /** A sudo password is stored, so reading it from input is no guessing. */
  readonly sudoPasswordSet: boolean;
  /** Where the command would begin, if that is known. */
  readonly cwd?: string;
  /** Globs of commands the user always refuses. */
  readonly denyGlobs: readonly string[];
}

export const SUDO_GUARD_KEY = "sudo password from standard input";
export const USER_DENY_KEY = "refused by approvals.deny";

export function classifyCommand(command: string, options: ClassifyOptions): CommandVerdict {
  if (exceedsLimits(command)) return limitExceeded;
  const texts = spellings(command);
  const scenes = texts.map((text) => setScene(analyseCommand(text), options));
  const placed = texts.flatMap((text) =>
    options.cwd ? [setScene(analyseCommand(text, plainCwd(options.cwd)), options)] : [],
  );
  if (scenes.some(({ tooDeep }) => tooDeep)) return limitExceeded;

  const hardline = [...scenes, ...placed].map(findHardline).find((key) => key !== null);
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
  const danger = worst([...scenes.map(findDanger), ...placed.map(findPlacedDanger)]);
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
