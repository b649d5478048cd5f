// What a rule looks at: the programs of a line, and the places paths are measured against.
import { type Analysis, argTexts, type Invocation } from "./analysis/invocation.ts";
import { type OptionSpec, type Options, readOptions } from "./analysis/options.ts";
import { type Places, placePath } from "./places.ts";

export interface Scene extends Analysis {
  readonly places: Places;
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

/** A rule on single programs: true when one of them is named so and passes. */
export function programRule(
  key: string,
  programs: readonly string[],
  test: (invocation: Invocation, scene: Scene) => boolean,
): Rule {
  return {
    key,
    matches: (scene) =>
      scene.invocations.some((invocation) => programs.includes(invocation.program) && test(invocation, scene)),
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
