// Files a program writes because its arguments say so: `curl -o`, `tar -C`, `dd of=`, `sort -o`, editors that need no hands.
import { argTexts, type Invocation } from "./analysis/invocation.ts";
import { hasLetter, type OptionSpec, readOptions } from "./analysis/options.ts";

interface Outputs extends OptionSpec {
  /** Options whose value is a file or a directory to write to. */
  readonly writes?: readonly string[];
  /** Every operand is written: `patch file`, `yq -i file`. */
  readonly operands?: "always" | string;
}

const EDITOR: Outputs = { short: "cSsuU", long: ["cmd"], operands: "always" };
const OUTPUTS: Readonly<Record<string, Outputs>> = {
  curl: { short: "oHdAbceFmuxXTwKrECDYyQPtz", long: ["output", "output-dir"], writes: ["o", "output", "output-dir"] },
  wget: {
    short: "oOaPUe",
    long: ["output-document", "output-file", "directory-prefix"],
    writes: ["O", "P", "o", "output-document", "output-file", "directory-prefix"],
  },
  aria2c: { short: "od", long: ["out", "dir"], writes: ["o", "d", "out", "dir"] },
  tar: { short: "Cf", long: ["directory"], writes: ["C", "directory"] },
  unzip: { short: "d", writes: ["d"] },
  sort: { short: "kStTo", long: ["output"], writes: ["o", "output"] },
  patch: { short: "pidDorBzVYgF", long: ["output"], writes: ["o", "output", "d", "directory"], operands: "always" },
  sponge: { operands: "always" },
  truncate: { short: "sr", operands: "always" },
  yq: { operands: "i" },
  ed: { short: "p", operands: "always" },
};
const UNATTENDED_EDITORS = new Set(["vim", "nvim", "vi", "ex"]);

export function namedOutputs(invocation: Invocation): readonly string[] {
  const { program } = invocation;
  const args = argTexts(invocation);
  if (program === "dd") return args.filter((arg) => /^of=/i.test(arg)).map((arg) => arg.slice("of=".length));
  if (/^[gmn]?awk$/.test(program)) return args.includes("inplace") ? readOptions(args, { short: "ivfF" }).operands : [];
  if (program === "find") return args.filter((_, index) => /^-(?:fprint[0f]?|fls)$/.test(args[index - 1] ?? ""));
  const spec = UNATTENDED_EDITORS.has(program) ? unattended(program, args) : find(program);
  if (!spec) return [];
  const options = readOptions(args, spec);
  const named = options.values.filter(({ name }) => spec.writes?.includes(name)).map(({ value }) => value);
  const all = spec.operands === "always" || (spec.operands !== undefined && hasLetter(options, spec.operands));
  return all ? [...named, ...options.operands] : named;
}

const find = (program: string) => (Object.hasOwn(OUTPUTS, program) ? OUTPUTS[program] : undefined);

/** An editor that a person sits at changes what the person wants. */
const unattended = (program: string, args: readonly string[]) =>
  program === "ex" || args.some((arg) => /^(?:\+.|-c$|-es?$|--cmd$|-S$)/.test(arg)) ? EDITOR : undefined;
