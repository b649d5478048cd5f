// What a rule looks at: the programs of a line, and the places paths are measured against.
import { type Analysis, argTexts, type Invocation } from "./analysis/invocation.ts";
import { type OptionSpec, type Options, readOptions } from "./analysis/options.ts";
import { type Places, placePath } from "./places.ts";

export interface Scene extends Analysis {
  readonly places: Places;
  /** The invocations of one program. */
  named(program: string): readonly Invocation[];
}

export function setScene(analysis: Analysis, places: Places, keep?: (invocation: Invocation) => boolean): Scene {
  const invocations = keep ? analysis.invocations.filter(keep) : analysis.invocations;
  const byProgram = Map.groupBy(invocations, ({ program }) => program);
  return { ...analysis, invocations, places, named: (program) => byProgram.get(program) ?? [] };
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
  placePath(written, invocation.cwd, scene.places);

/** Only tells about itself. */
export const asksForHelp = (invocation: Invocation): boolean =>
  invocation.args.length === 1 && /^--(?:help|version)$/.test(invocation.args[0]?.text ?? "");

/** Every file a redirection writes to. */
export function writtenFiles(invocation: Invocation): readonly string[] {
  return invocation.redirects
    .filter(({ operator, target }) => /^(?:&?>>?|>\||<>|>&)$/.test(operator) && !/^(?:[0-9]+|-)$/.test(target))
    .map(({ target }) => target);
}
