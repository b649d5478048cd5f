import { analyseCommand } from "../analysis/analyse.ts";
import { sedRuns, sedScripts } from "../analysis/executors.ts";
import {
  argTexts,
  hasLetter,
  hasLong,
  type Invocation,
  type OptionSpec,
  type Options,
  readOptions,
  type Stage,
  type Substitution,
} from "../analysis/invocation.ts";
import { isShell, printedBy, readsCommandsFromInput, shellOptions, shellPayload } from "../analysis/shells.ts";
import { languageOf, reachOf } from "../analysis/snippet.ts";
import { oncePerScene, optionsOf, programRule, type Rule, type RuleGroup, type Scene, writtenFiles } from "../scene.ts";

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
  tsx: { code: "ep", short: "epr", long: ["eval", "print"], longCode: ["eval", "print"] },
  "ts-node": { code: "ep", short: "eprPTO", long: ["eval", "print"], longCode: ["eval", "print"] },
  emacs: { code: "", longCode: ["eval", "execute"] },
  octave: { code: "", longCode: ["eval"] },
  "octave-cli": { code: "", longCode: ["eval"] },
  sbcl: { code: "", longCode: ["eval"] },
  guile: { code: "c", short: "cleLs" },
  nu: { code: "c", short: "c", longCode: ["commands"] },
  xonsh: { code: "c", short: "c" },
  elvish: { code: "c", short: "" },
  bun: { code: "ep", short: "epr", longCode: ["eval", "print"] },
  php: { code: "rBRE", short: "rBREcdzf" },
};

function codeOptionsOf(program: string): CodeOptions {
  const family = program.replace(/(?<![0-9.])[0-9.]+$/, "");
  if (family === "python" || family === "ipython" || family === "pypy") return PYTHON;
  return INTERPRETERS[family] ?? OTHERS;
}

function interpreterOptions(invocation: Invocation): { readonly options: Options; readonly spec: CodeOptions } {
  const spec = codeOptionsOf(invocation.program);
  const long = [...(spec.long ?? []), ...(spec.longCode ?? [])];
  return { options: readOptions(argTexts(invocation), { ...spec, long, stopAtOperand: true }), spec };
}

/** Code written behind an option, as far as it can be read; null when the program is given none. */
interface Inline {
  readonly texts: readonly string[];
  readonly isRead: boolean;
}

function inlineScript(invocation: Invocation): Inline | null {
  if (!isInterpreter(invocation.program)) return null;
  const texts = inlineTexts(invocation);
  if (texts === null) return null;
  const isRead = (text: string) =>
    invocation.args.every((arg) => arg.text !== text || (arg.marked === undefined && arg.substitutions.length === 0));
  return { texts, isRead: texts.every(isRead) };
}

function inlineTexts(invocation: Invocation): readonly string[] | null {
  const { options, spec } = interpreterOptions(invocation);
  if (/^(?:deno|crystal)$/.test(invocation.program))
    return options.operands[0] === "eval" ? options.operands.slice(1).filter((text) => !text.startsWith("-")) : null;
  // `python -m module -c` : everything behind the module belongs to it.
  const end = spec === PYTHON ? options.letters.indexOf("m") : -1;
  const letters = end < 0 ? options.letters : options.letters.slice(0, end);
  const isCode = (name: string) => spec.code.includes(name) || (spec.longCode?.includes(name) ?? false);
  if (!letters.some((letter) => spec.code.includes(letter)) && !options.longs.some(isCode)) return null;
  // `node -pe code`: both letters are about the one text.
  const both = options.clusters.some((cluster) => cluster === "p") && options.values.some(({ value }) => value === "e");
  const values = options.values.filter(({ name, value }) => isCode(name) && !(both && value === "e"));
  // What a module is called says what it is for.
  const modules = options.values
    .filter(
      ({ name }) => (spec === INTERPRETERS.perl ? /^[Mm]$/ : /^(?:r|require|import)$/).test(name) && !isCode(name),
    )
    .map(({ value }) => (spec === INTERPRETERS.perl ? `use ${value}` : `require("${value}"); import "${value}"`));
  return [...values.map(({ value }) => value), ...(both ? options.operands.slice(0, 1) : []), ...modules];
}

/** The input of `perl -n` names files to read, and a name with a bar is a command to it. */
const readsFromCommand = (invocation: Invocation) =>
  /^perl[0-9.]*$/.test(invocation.program) && argTexts(invocation).some((arg) => /^\s*\||\|\s*$/.test(arg));

function runsInlineScript(invocation: Invocation): boolean {
  const inline = inlineScript(invocation);
  if (!inline) return false;
  if (!inline.isRead || inline.texts.length === 0 || readsFromCommand(invocation)) return true;
  return inline.texts.some((text) => asksAbout(invocation, text));
}

/** Whether code that the program is given does more than compute, print, read, and write files of the project. */
function asksAbout(invocation: Invocation, text: string): boolean {
  // Shells of their own, in which every word is a command.
  if (/^(?:nu|xonsh|elvish)$/.test(invocation.program)) return true;
  const { asks, writes } = reachOf(languageOf(invocation.program), text);
  return asks || writes.some((path) => !isOfProject(path));
}

/** Below the folder one is in, and none of the files that something runs or reads by itself. */
const isOfProject = (path: string) =>
  !/^[/~$\\]|^[A-Za-z]:|(?:^|\/)\.\.(?:\/|$)/.test(path) &&
  !/(?:^|\/)\.(?:git|env|envrc|npmrc|husky)(?:[./]|$)/.test(path);

/** Whether code that stands on the line talks to another machine. */
export function codeTalksOut(invocation: Invocation): boolean {
  if (!isInterpreter(invocation.program)) return false;
  const fed = invocation.redirects.flatMap(({ operator, heredoc, target }) =>
    operator.startsWith("<<") ? [heredoc?.body ?? target] : [],
  );
  const texts = [...(inlineScript(invocation)?.texts ?? []), ...fed];
  return texts.some((text) => reachOf(languageOf(invocation.program), text).network);
}

/** `echo code | python3`: a script on the line by another door. */
const runsPrintedScript = (stages: readonly Stage[]) =>
  stages.some((stage, index) =>
    stage.some(
      (invocation) =>
        isInterpreter(invocation.program) &&
        runsInput(invocation) &&
        (stages[index - 1]?.flatMap(printedBy).some((text) => asksAbout(invocation, text)) ?? false),
    ),
  );

const hasHeredoc = ({ redirects }: Invocation) => redirects.some(({ operator }) => operator.startsWith("<<"));

function scriptFromHeredoc(invocation: Invocation): boolean {
  if (!isInterpreter(invocation.program) || !hasHeredoc(invocation)) return false;
  const [script] = interpreterOptions(invocation).options.operands;
  if (script !== undefined && script !== "-" && script !== "/dev/stdin") return false;
  return invocation.redirects.some(({ operator, marked, substitutions, heredoc, target }) => {
    if (!operator.startsWith("<<")) return false;
    if (heredoc?.doubtful) return true;
    const isFilledIn = substitutions.length > 0 || heredoc?.parts.some(({ type }) => type === "variable");
    return marked !== undefined || isFilledIn || asksAbout(invocation, heredoc?.body ?? target);
  });
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

const READ_ALIKE = /^(?:sh|bash|dash|ash|ksh|zsh)$/;
/** They run what they are given as it stands, with no more rights and nothing put in. */
const RUN_AS_GIVEN =
  /^(?:timeout|env|nice|ionice|time|stdbuf|nohup|command|exec|docker|podman|docker-compose|kubectl|oc)$/;
const OF_SYSTEM = /^(?:(?:\/usr)?(?:\/local)?\/bin\/)?[^/]+$/;
/** What is put in from outside: parameters of the text, and the place where a program such as xargs puts what it was handed. */
const PUT_IN = /\$[@*#0-9]|\$\{[!#]?[@*0-9]|\{\}/;
/** zsh runs code out of globs and expansions that another shell takes for text. */
const PLAIN_WORDS = /^[\w\s./:@%+,;&|'"-]*$/;

/** Whether the text behind `-c` is one that the rules have read as it will run: what it does is judged, not that it is handed over. */
function isSeenThrough(invocation: Invocation): boolean {
  const payload = shellPayload(invocation);
  if (payload === null) return true;
  const { program, path, args } = invocation;
  const options = shellOptions(invocation);
  if (!invocation.via.every((one) => RUN_AS_GIVEN.test(one.program))) return false;
  if (!READ_ALIKE.test(program) || !OF_SYSTEM.test(path) || options.longs.length > 0 || hasLetter(options, "s"))
    return false;
  const given = args.find(({ text }) => text === payload);
  if (!given || given.marked !== undefined || given.substitutions.length > 0 || PUT_IN.test(payload)) return false;
  return (program !== "zsh" || PLAIN_WORDS.test(payload)) && payload.trim() !== "" && analyseCommand(payload).ok;
}

export const inlineCode: RuleGroup = {
  reason: "runs a program that is written on the command line",
  rules: [
    {
      key: "shell command via -c/-lc flag",
      matches: (scene) =>
        scene.invocations.some((invocation) => isShell(invocation.program) && !isSeenThrough(invocation)),
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

// What runs code, and where code comes from: shared by the rules on downloads and on decoded texts.

export const isInterpreter = (program: string) =>
  /^(?:python[0-9.]*|pypy[0-9.]*|perl[0-9.]*|ruby[0-9.]*|node|nodejs|deno|bun|php[0-9.]*|lua[0-9.]*|luajit|rscript|osascript|julia|tclsh|groovy|elixir|ipython[0-9.]*|ghc|scala|jshell|tsx|ts-node|r|emacs|octave|octave-cli|sbcl|guile|racket|clojure|clj|bb|raku|swift|iex|crystal|nu|xonsh|elvish|qjs|gjs|janet)$/.test(
    program,
  );

/** A shell, or an interpreter that got no script to run and so runs its input. */
export function runsInput(invocation: Invocation): boolean {
  if (isShell(invocation.program)) return true;
  if (!isInterpreter(invocation.program)) return false;
  const options = readOptions(argTexts(invocation), { short: "cemErRWX", stopAtOperand: true });
  const [script] = options.operands;
  return !hasLetter(options, "c", "e", "m", "E") && (script === undefined || script === "-" || script === "/dev/stdin");
}

const isDownload = ({ program, args }: Invocation) =>
  /^(?:curl|wget|wget2|aria2c|http|https|xh|fetch)$/.test(program) ||
  (program === "lynx" && args.some(({ text }) => /^-(?:source|dump)$/.test(text)));

/** True when what `isSource` prints is piped, however far, into something that runs it. */
function isPipedToShell(scene: Scene, isSource: (invocation: Invocation) => boolean): boolean {
  return scene.pipelines.some((stages) => {
    const from = stages.findIndex((stage) => stage.some(isSource));
    return from >= 0 && stages.slice(from + 1).some((stage: Stage) => stage.some(runsInput));
  });
}

/** What commands that run code are handed by expansion: `bash <(...)`, `eval "$(...)"`, `sh -c "$(...)"`, or `$(...)` alone. */
const executedSubstitutions = oncePerScene((scene): readonly Substitution[] =>
  scene.invocations.flatMap((invocation) => [
    ...invocation.nameSubstitutions,
    ...invocation.args.flatMap(({ substitutions }) =>
      substitutions.filter(({ form }) => runsArgument(invocation, form)),
    ),
    ...(runsInput(invocation) ? invocation.redirects.flatMap(({ substitutions }) => substitutions) : []),
  ]),
);

function runsArgument(invocation: Invocation, form: Substitution["form"]): boolean {
  const { program } = invocation;
  if (/^(?:eval|source|\.)$/.test(program)) return true;
  if (!isShell(program) && !isInterpreter(program)) return false;
  return form === "<(" || argTexts(invocation).some((arg) => /^-[a-zA-Z]*[ceEpr]$/.test(arg));
}

function isDecoder({ program, args }: Invocation): boolean {
  const texts = args.map(({ text }) => text);
  if (/^(?:uudecode|gunzip|zcat|gzcat|bzcat|bunzip2|xzcat|unxz|zstdcat|unzstd|base58|basez)$/.test(program))
    return true;
  if (/^(?:gzip|bzip2|xz|zstd|lz4)$/.test(program)) {
    return texts.some((text) => /^(?:-(?=[a-ce-zA-Z0-9]*d)[a-zA-Z0-9]+|--(?:decompress|uncompress))$/.test(text));
  }
  if (!/^(?:base64|gbase64|base32|basenc)$/.test(program)) return false;
  const options = readOptions(texts, { short: "wbio", long: ["wrap", "break", "input", "output"] });
  return hasLetter(options, "d", "D") || hasLong(options, "decode", 1);
}

function isHexDecoder({ program, args }: Invocation): boolean {
  if (program !== "xxd") return false;
  return args.some(({ text }) => /^-(?:(?=[a-qs-z]*r)[a-z]+|-?revert|-?reverse)$/.test(text));
}

function isOpensslDecoder({ program, args }: Invocation): boolean {
  if (program !== "openssl") return false;
  return args.some(({ text }) => text === "-d" || text === "-decrypt");
}

export const remoteCode: RuleGroup = {
  reason: "runs code straight from the network",
  rules: [
    { key: "pipe remote content to shell", matches: (scene) => isPipedToShell(scene, isDownload) },
    {
      key: "execute remote script via process substitution",
      matches: (scene) =>
        executedSubstitutions(scene).some(({ form, invocations }) => form === "<(" && invocations.some(isDownload)),
    },
    {
      key: "execute remote content via command substitution",
      matches: (scene) =>
        executedSubstitutions(scene).some(
          ({ form, invocations }) => (form === "$(" || form === "`") && invocations.some(isDownload),
        ),
    },
  ],
};

const decodedRule = (what: string, isSource: (invocation: Invocation) => boolean): Rule => ({
  key: `pipe ${what} to shell (possible command obfuscation)`,
  matches: (scene) =>
    isPipedToShell(scene, isSource) ||
    executedSubstitutions(scene).some(({ invocations }) => invocations.some(isSource)),
});

export const decodedCode: RuleGroup = {
  reason: "runs code that is hidden in an encoding",
  rules: [
    decodedRule("decoded content", isDecoder),
    decodedRule("xxd-decoded content", isHexDecoder),
    decodedRule("tr-transformed output", ({ program }) => /^(?:tr|rev|cut|g?sed|[gmn]?awk)$/.test(program)),
    decodedRule("openssl-decoded content", isOpensslDecoder),
  ],
};

/** True when a file is fetched and a later command of the same line runs it. */
export const runsDownloadedFile = (scene: Scene): boolean =>
  runsPreparedFile(scene, downloadedFiles) || scene.invocations.some(runsAddress);

/** `deno run https://…`, `npx github:…`: the program is an address. */
function runsAddress(invocation: Invocation): boolean {
  const args = argTexts(invocation);
  if (invocation.program === "deno") return /^(?:run|serve|install)$/.test(args[0] ?? "") && args.some(isAddress);
  const runs = /^(?:npx|bunx|pnpx|uvx)$/.test(invocation.program) || /^(?:dlx|x)$/.test(args[0] ?? "");
  const [first = ""] = readOptions(args[0] === "dlx" ? args.slice(1) : args, { stopAtOperand: true }).operands;
  return runs && (isAddress(first) || /^(?:github|gitlab|bitbucket|gist|git\+\w+):/.test(first));
}

const isAddress = (text: string) => /^https?:\/\/(?!localhost|127\.)/.test(text);

/** `scp host:x.sh .`, `kubectl cp pod:/x.sh x.sh`: the copy has the name it is given, or keeps its own. */
function copiedFromElsewhere(invocation: Invocation): readonly string[] {
  const { program } = invocation;
  const args = argTexts(invocation);
  const copies =
    /^(?:scp|rsync)$/.test(program) ||
    (/^(?:kubectl|docker|podman|aws|gsutil|gcloud|rclone)$/.test(program) &&
      args.some((arg) => /^(?:cp|copy)$/.test(arg)));
  if (!copies) return [];
  const { operands } = readOptions(args, { short: "eiFJlPSXnc" });
  const from = operands.slice(0, -1).filter((source) => /^(?:s3:\/\/|gs:\/\/|[\w.@-]+:)/.test(source));
  return from.length === 0 ? [] : [operands.at(-1) ?? "", ...from.map((source) => source.split(/[/:]/).at(-1) ?? "")];
}

function downloadedFiles(invocation: Invocation): readonly string[] {
  if (!isDownload(invocation)) return copiedFromElsewhere(invocation);
  const isCurl = invocation.program === "curl";
  const options = readOptions(argTexts(invocation), {
    short: isCurl ? "oHdAbceFmuxXTwKrECDYyQPtz" : "oOaPUe",
    long: [
      "output",
      "output-document",
      "header",
      "data",
      "user",
      "user-agent",
      "request",
      "max-time",
      "output-dir",
      "dir",
      "out",
    ],
  });
  const named = options.values
    .filter(({ name }) => /^(?:output|output-document|out)$/.test(name) || name === (isCurl ? "o" : "O"))
    .map(({ value }) => value);
  const remote = options.operands
    .map((url) => url.replace(/[?#][\s\S]*$/, ""))
    .map((url) => url.slice(url.lastIndexOf("/") + 1))
    .filter((name) => name !== "");
  return [...named, ...writtenFiles(invocation), ...remote];
}

const plain = (path: string) => path.replace(/^(?:\.\/+)+/, "");

/** True when some command runs a file that an earlier one of the same script prepared. */
export function runsPreparedFile(scene: Scene, preparedBy: (invocation: Invocation) => readonly string[]): boolean {
  return scene.sequences.some((sequence) => {
    const prepared = new Set<string>();
    return sequence.some((invocation) => {
      if (prepared.size > 0 && runsOneOf(invocation, prepared)) return true;
      for (const file of preparedBy(invocation)) prepared.add(plain(file));
      return false;
    });
  });
}

/** By its path, through an interpreter, or by sourcing it. */
function runsOneOf(invocation: Invocation, files: ReadonlySet<string>): boolean {
  if (invocation.path.includes("/") && files.has(plain(invocation.path))) return true;
  const { program } = invocation;
  if (!isShell(program) && !isInterpreter(program) && program !== "source" && program !== ".") return false;
  const fed = invocation.redirects.filter(({ operator }) => operator === "<").map(({ target }) => target);
  const [script] = readOptions(argTexts(invocation), { short: "oO", stopAtOperand: true }).operands;
  return [script, ...fed].some((file) => file !== undefined && files.has(plain(file)));
}

/** The files a command makes executable. */
function madeExecutable(invocation: Invocation): readonly string[] {
  if (invocation.program !== "chmod") return [];
  const [mode = "", ...files] = optionsOf(invocation).operands;
  const executable = /[+=][rwXst]*x/.test(mode) || /^[0-7]*[1357][0-7]{0,2}$/.test(mode);
  return executable ? files : [];
}

/** `chmod +x dist/* && ./dist/run`: which file it is may not be written out. */
function runsLocalFileAfter(scene: Scene): boolean {
  return scene.sequences.some((sequence) => {
    const from = sequence.findIndex((invocation) => madeExecutable(invocation).length > 0);
    return from >= 0 && sequence.slice(from + 1).some(({ path }) => path.startsWith("./"));
  });
}

export const chmodRun: RuleGroup = {
  reason: "makes a file executable and runs it at once",
  rules: [
    {
      key: "chmod +x followed by immediate execution",
      matches: (scene) => runsPreparedFile(scene, madeExecutable) || runsLocalFileAfter(scene),
    },
  ],
};

const NETCATS = new Set(["nc", "ncat", "netcat", "nc.traditional", "nc.openbsd"]);
const isNetwork = ({ program, args }: Invocation) =>
  // With `-z` it looks whether somebody listens, and sends nothing.
  (NETCATS.has(program) &&
    !args.some(({ text }) => /^-[a-z]+$/i.test(text) && text.includes("z") && !/[ec]/.test(text))) ||
  program === "telnet" ||
  program === "socat" ||
  (program === "openssl" && args[0]?.text === "s_client");

/** A shell whose input or output is a connection. */
export function isReverseShell(scene: Scene): boolean {
  return scene.invocations.some(connects) || scene.pipelines.some(pipesShellToNetwork);
}

function connects(invocation: Invocation): boolean {
  const { program } = invocation;
  if (invocation.redirects.some(({ target }) => /^\/dev\/(?:tcp|udp)\//.test(target))) return true;
  if (NETCATS.has(program)) {
    const options = optionsOf(invocation, { short: "cegGiIopPqsTvVwWxX" });
    return hasLetter(options, "e", "c") || hasLong(options, "exec", 1) || hasLong(options, "sh-exec", 2);
  }
  return program === "socat" && invocation.args.some(({ text }) => /(?:^|,)(?:exec|system):/i.test(text));
}

function pipesShellToNetwork(stages: readonly Stage[]): boolean {
  const shells = stages.some((stage) => stage.some(({ program }) => isShell(program)));
  return shells && stages.some((stage) => stage.some(isNetwork));
}
