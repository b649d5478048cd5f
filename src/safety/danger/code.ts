import { argTexts, type Invocation, type Stage } from "../analysis/invocation.ts";
import { hasLetter, hasLong, type OptionSpec, type Options, readOptions } from "../analysis/options.ts";
import { sedRuns, sedScripts } from "../analysis/sed-script.ts";
import { isShell, readsCommandsFromInput, shellPayload } from "../analysis/shells.ts";
import { printedBy } from "../analysis/written-scripts.ts";
import { optionsOf, programRule, type Rule, type RuleGroup } from "../scene.ts";
import { isInterpreter, runsInput } from "./code-sources.ts";

interface CodeOptions extends OptionSpec {
  /** Letters whose value is code. */
  readonly code: string;
  readonly longCode?: readonly string[];
}

const PYTHON: CodeOptions = { code: "c", short: "cmWX" };
const OTHERS: CodeOptions = { code: "e", short: "e" };
const INTERPRETERS: Readonly<Record<string, CodeOptions>> = {
  perl: { code: "eE", short: "eEIMmF" },
  ruby: { code: "e", short: "eIrCEFK" },
  node: {
    code: "ep",
    short: "eprC",
    long: ["eval", "print", "require", "import", "loader"],
    longCode: ["eval", "print"],
  },
  nodejs: { code: "ep", short: "epr", long: ["eval", "print"], longCode: ["eval", "print"] },
  bun: { code: "ep", short: "epr", longCode: ["eval", "print"] },
  php: { code: "rBRE", short: "rBREcdzf" },
};

function codeOptionsOf(program: string): CodeOptions {
  const family = program.replace(/[0-9.]+$/, "");
  if (family === "python" || family === "ipython" || family === "pypy") return PYTHON;
  return INTERPRETERS[family] ?? OTHERS;
}

function interpreterOptions(invocation: Invocation): { readonly options: Options; readonly spec: CodeOptions } {
  const spec = codeOptionsOf(invocation.program);
  return { options: readOptions(argTexts(invocation), { ...spec, stopAtOperand: true }), spec };
}

function runsInlineScript(invocation: Invocation): boolean {
  if (!isInterpreter(invocation.program)) return false;
  const { options, spec } = interpreterOptions(invocation);
  if (invocation.program === "deno") return options.operands[0] === "eval";
  // `python -m module -c` : everything behind the module belongs to it.
  const end = spec === PYTHON ? options.letters.indexOf("m") : -1;
  const letters = end < 0 ? options.letters : options.letters.slice(0, end);
  return (
    letters.some((letter) => spec.code.includes(letter)) ||
    (spec.longCode?.some((name) => hasLong(options, name)) ?? false)
  );
}

/** `echo code | python3`: a script on the line by another door. */
const runsPrintedScript = (stages: readonly Stage[]) =>
  stages.some(
    (stage, index) =>
      stage.some((invocation) => isInterpreter(invocation.program) && runsInput(invocation)) &&
      (stages[index - 1]?.some((source) => printedBy(source).length > 0) ?? false),
  );

const hasHeredoc = ({ redirects }: Invocation) => redirects.some(({ operator }) => operator.startsWith("<<"));

function scriptFromHeredoc(invocation: Invocation): boolean {
  if (!isInterpreter(invocation.program) || !hasHeredoc(invocation)) return false;
  const [script] = interpreterOptions(invocation).options.operands;
  return script === undefined || script === "-" || script === "/dev/stdin";
}

const RG: OptionSpec = {
  short: "ABCEMTdefgjmrt",
  long: [
    "regexp",
    "file",
    "glob",
    "iglob",
    "type",
    "type-not",
    "max-count",
    "replace",
    "after-context",
    "before-context",
    "context",
    "encoding",
    "sort",
    "pre-glob",
    "ignore-file",
    "max-depth",
    "threads",
    "colors",
    "engine",
  ],
};

function toolRule(
  flag: string,
  programs: readonly string[],
  spec: OptionSpec,
  test: (options: Options) => boolean,
): Rule {
  return programRule(`arbitrary program execution via ${flag}`, programs, (invocation) =>
    test(optionsOf(invocation, spec)),
  );
}

const MAN: OptionSpec = {
  short: "CLMSsemPprETRD",
  long: ["pager", "config-file", "locale", "manpath", "sections", "prompt"],
};

export const inlineCode: RuleGroup = {
  reason: "runs a program that is written on the command line",
  rules: [
    {
      key: "shell command via -c/-lc flag",
      matches: (scene) =>
        scene.invocations.some((invocation) => isShell(invocation.program) && shellPayload(invocation) !== null),
    },
    {
      key: "script execution via -e/-c flag",
      matches: (scene) => scene.invocations.some(runsInlineScript) || scene.pipelines.some(runsPrintedScript),
    },
    { key: "script execution via heredoc", matches: (scene) => scene.invocations.some(scriptFromHeredoc) },
    {
      key: "shell execution via heredoc",
      matches: (scene) =>
        scene.invocations.some((invocation) => readsCommandsFromInput(invocation) && hasHeredoc(invocation)),
    },
    programRule("arbitrary program execution via sed e", ["sed", "gsed"], (invocation) =>
      sedScripts(argTexts(invocation)).some((script) => sedRuns(script).length > 0),
    ),
    toolRule("rg --pre", ["rg"], RG, (options) => hasLong(options, "pre")),
    toolRule("rg --hostname-bin", ["rg"], RG, (options) => hasLong(options, "hostname-bin", 5)),
    toolRule("sort --compress-program", ["sort", "gsort"], { short: "kStTo" }, (options) =>
      hasLong(options, "compress-program", 3),
    ),
    toolRule("man -P", ["man"], MAN, (options) => hasLetter(options, "P")),
    toolRule("man -H", ["man"], MAN, (options) => hasLetter(options, "H") || hasLong(options, "html", 2)),
    toolRule("man --pager", ["man"], MAN, (options) => hasLong(options, "pager", 3)),
    toolRule("ag --pager", ["ag"], { short: "ABCGgm" }, (options) => hasLong(options, "pager", 3)),
  ],
};
