// One program run with its arguments, as a danger rule wants to see it: wrappers such as sudo already looked through.
import type { Heredoc } from "../shell/ast.ts";

export interface Invocation {
  /** Base name in lower case, without `.exe`; empty when the line does not tell. */
  readonly program: string;
  /** The name as it was written. */
  readonly path: string;
  /** What the name itself expands from: `$(curl ...)` as a command. */
  readonly nameSubstitutions: readonly Substitution[];
  readonly args: readonly Arg[];
  /** What it is run through, outermost first. */
  readonly via: readonly Wrapper[];
  readonly assignments: readonly { readonly name: string; readonly value: string }[];
  readonly redirects: readonly Redirect[];
  /** Runs on another machine or in a container. */
  readonly remote: boolean;
  /** Ends with `&`. */
  readonly background: boolean;
  /** Where the line itself changed to before; null when it did not. */
  readonly cwd: string | null;
  /** The name is computed in a way that cannot be followed. */
  readonly dynamic: boolean;
}

export interface Arg {
  readonly text: string;
  readonly substitutions: readonly Substitution[];
}

export interface Substitution {
  readonly form: "$(" | "`" | "<(" | ">(";
  readonly invocations: readonly Invocation[];
}

export interface Wrapper {
  readonly program: string;
  /** Its own options, without the command it runs. */
  readonly args: readonly string[];
}

export interface Redirect {
  readonly operator: string;
  readonly fd: string;
  readonly target: string;
  readonly heredoc: Heredoc | null;
  readonly substitutions: readonly Substitution[];
}

/** What runs at one place of a pipeline; several when the place is a group. */
export type Stage = readonly Invocation[];

export interface Analysis {
  readonly invocations: readonly Invocation[];
  readonly pipelines: readonly (readonly Stage[])[];
  /** Pipelines of one script in order, for rules on "first this, then that". */
  readonly sequences: readonly (readonly Invocation[])[];
  /** A function that pipes itself into itself in the background. */
  readonly forkBomb: boolean;
  /** Every text a rule of the user is matched against. */
  readonly texts: readonly string[];
  readonly ok: boolean;
  readonly tooDeep: boolean;
}

export const argTexts = (invocation: Invocation): readonly string[] => invocation.args.map((arg) => arg.text);

export function programName(path: string): string {
  const base = path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
  return base.toLowerCase().replace(/\.exe$/, "");
}
