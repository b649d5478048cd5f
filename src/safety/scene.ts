// What a rule looks at: the programs of a line, and the homes that paths are folded to.
import {
  type Analysis,
  argTexts,
  type Invocation,
  type OptionSpec,
  type Options,
  readOptions,
} from "./analysis/invocation.ts";

export interface Scene extends Analysis {
  readonly homes: Homes;
  /** The invocations of one program. */
  named(program: string): readonly Invocation[];
}

export function setScene(analysis: Analysis, homes: Homes, keep?: (invocation: Invocation) => boolean): Scene {
  const invocations = keep ? analysis.invocations.filter(keep) : analysis.invocations;
  const byProgram = Map.groupBy(invocations, ({ program }) => program);
  return { ...analysis, invocations, homes, named: (program) => byProgram.get(program) ?? [] };
}

export interface Rule {
  /** Shown to the user and stored in allowlists; never reworded. */
  readonly key: string;
  matches(scene: Scene): boolean;
}

export interface RuleGroup {
  /** What such a command does, for a person. */
  readonly reason: string;
  readonly rules: readonly Rule[];
}

/** For what several rules look at: worked out once for each scene. */
export function oncePerScene<T extends object>(work: (scene: Scene) => T): (scene: Scene) => T {
  const done = new WeakMap<Scene, T>();
  return (scene) => {
    const known = done.get(scene);
    if (known) return known;
    const result = work(scene);
    done.set(scene, result);
    return result;
  };
}

/** A rule on single programs: true when one of them is named so and passes. */
export function programRule(
  key: string,
  programs: readonly string[],
  test: (invocation: Invocation, scene: Scene) => boolean,
): Rule {
  return {
    key,
    matches: (scene) => programs.some((program) => scene.named(program).some((invocation) => test(invocation, scene))),
  };
}

export const optionsOf = (invocation: Invocation, spec?: OptionSpec): Options =>
  readOptions(argTexts(invocation), spec);

export const pathOf = (written: string, invocation: Invocation, scene: Scene): string =>
  canonicalPath(written, invocation.cwd, scene.homes);

/** Only prints its help or version. */
export const asksForHelp = (invocation: Invocation): boolean =>
  invocation.args.length === 1 && /^--(?:help|version)$/.test(invocation.args[0]?.text ?? "");

/** Every file a redirection writes to. */
export function writtenFiles(invocation: Invocation): readonly string[] {
  return invocation.redirects
    .filter(({ operator, target }) => /^(?:&?>>?|>\||<>|>&)$/.test(operator) && !/^(?:[0-9]+|-)$/.test(target))
    .map(({ target }) => target);
}

// Where a path written on a command line points, as far as the line alone shows.

export interface Homes {
  /** The resolved HERMES home; folded to `~/.hermes`. */
  readonly home: string;
  /** The resolved home of the user; folded to `~`. */
  readonly osHome: string;
  /** Files that earlier lines copied something secret to, as `copies` of their verdicts named them. */
  readonly secretCopies?: readonly string[];
}

/** One canonical spelling: `~` for the home, no `//`, `/./` or `x/..`, no slash at the end, lower case. */
function canonicalPath(written: string, cwd: string | null, homes: Homes): string {
  const path = expandHome(written);
  const anchored = isAnchored(path) || cwd === null ? path : `${expandHome(cwd)}/${path}`;
  // Collapsed before folding: `/home/x/../me` is `/home/me`.
  const plain = collapse(anchored).replace(PROCESS_ROOT, "/");
  return collapse(fold(fold(plain, homes.home, "~/.hermes"), homes.osHome, "~")).toLowerCase();
}

/** The root as a process sees it, which is the root. */
const PROCESS_ROOT = /^(?:\/proc\/(?:self|thread-self|[0-9]+)(?:\/task\/[0-9]+)?\/root(?=\/|$))+\/?/;

const isAnchored = (path: string) => /^[/~$\\]|^[A-Za-z]:/.test(path);

function expandHome(path: string): string {
  return path
    .replaceAll("\\", "/")
    .replace(/^\$\{?HERMES_HOME\}?(?=\/|$)/i, "~/.hermes")
    .replace(/^\$\{?HOME\}?(?=\/|$)/i, "~")
    .replace(/^~\+(?=\/|$)/, ".")
    .replace(/^~root(?=\/|$)/, "/root")
    .replace(/^~([a-z_][a-z0-9_.-]*)(?=\/|$)/i, "/home/$1");
}

/** A root or one-part directory is never folded: `/root` would hide every path below it. */
function fold(path: string, directory: string, name: string): string {
  const prefix = directory.replaceAll("\\", "/").replace(/(?<!\/)\/+$/, "");
  if (prefix.split("/").filter(Boolean).length < 2) return path;
  const lower = path.toLowerCase();
  const wanted = prefix.toLowerCase();
  if (lower === wanted) return name;
  return lower.startsWith(`${wanted}/`) ? name + path.slice(prefix.length) : path;
}

function collapse(path: string): string {
  const absolute = path.startsWith("/");
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue;
    const last = parts.at(-1);
    if (part !== "..") parts.push(part);
    else if (last !== undefined && last !== ".." && last !== "~") parts.pop();
    else if (!absolute) parts.push("..");
  }
  return (absolute ? "/" : "") + parts.join("/");
}
