// What runs code, and where code comes from: shared by the rules on downloads and on decoded texts.
import { argTexts, type Invocation, type Stage, type Substitution } from "../analysis/invocation.ts";
import { hasLetter, hasLong, readOptions } from "../analysis/options.ts";
import { isShell } from "../analysis/shells.ts";
import { oncePerScene, type Scene } from "../scene.ts";

export const isInterpreter = (program: string) =>
  /^(?:python[0-9.]*|pypy[0-9.]*|perl[0-9.]*|ruby[0-9.]*|node|nodejs|deno|bun|php[0-9.]*|lua[0-9.]*|luajit|rscript|osascript|julia|tclsh|groovy|elixir|ipython[0-9.]*|ghc|scala|jshell)$/.test(
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

export const isDownload = ({ program, args }: Invocation) =>
  /^(?:curl|wget|wget2|aria2c|http|https|xh|fetch)$/.test(program) ||
  (program === "lynx" && args.some(({ text }) => /^-(?:source|dump)$/.test(text)));

/** True when what `isSource` prints is piped, however far, into something that runs it. */
export function isPipedToShell(scene: Scene, isSource: (invocation: Invocation) => boolean): boolean {
  return scene.pipelines.some((stages) => {
    const from = stages.findIndex((stage) => stage.some(isSource));
    return from >= 0 && stages.slice(from + 1).some((stage: Stage) => stage.some(runsInput));
  });
}

/** What commands that run code are handed by expansion: `bash <(...)`, `eval "$(...)"`, `sh -c "$(...)"`, or `$(...)` alone. */
export const executedSubstitutions = oncePerScene((scene): readonly Substitution[] =>
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

export function isDecoder({ program, args }: Invocation): boolean {
  const texts = args.map(({ text }) => text);
  if (/^(?:uudecode|gunzip|zcat|gzcat|bzcat|bunzip2|xzcat|unxz|zstdcat|unzstd|base58|basez)$/.test(program))
    return true;
  if (/^(?:gzip|bzip2|xz|zstd|lz4)$/.test(program)) {
    return texts.some((text) => /^(?:-[a-zA-Z0-9]*d[a-zA-Z0-9]*|--(?:decompress|uncompress))$/.test(text));
  }
  if (!/^(?:base64|gbase64|base32|basenc)$/.test(program)) return false;
  const options = readOptions(texts, { short: "wbio", long: ["wrap", "break", "input", "output"] });
  return hasLetter(options, "d", "D") || hasLong(options, "decode", 1);
}

export function isHexDecoder({ program, args }: Invocation): boolean {
  if (program !== "xxd") return false;
  return args.some(({ text }) => /^-(?:[a-z]*r[a-z]*|-?revert|-?reverse)$/.test(text));
}

export function isOpensslDecoder({ program, args }: Invocation): boolean {
  if (program !== "openssl") return false;
  return args.some(({ text }) => text === "-d" || text === "-decrypt");
}
