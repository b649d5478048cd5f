// What one half of a line prepares and the other runs: a program under another name, a file that was just written, a repository or an
// archive that was just fetched.
import { argTexts, hasLetter, type Invocation, programName, readOptions } from "../analysis/invocation.ts";
import { isShell } from "../analysis/shells.ts";
import { languageOf, languageOfFile, reachOf } from "../analysis/snippet.ts";
import { optionsOf, pathOf, type RuleGroup, type Scene } from "../scene.ts";
import { isInterpreter, runsPreparedFile } from "./code.ts";
import { isUnpacking, UNPACKERS } from "./guarded-places.ts";

// A program under another name: no later check would know it, on this line or on the next.

const COPIERS = /^(?:cp|mv|ln|link|install|rsync)$/;
const SYSTEM_PROGRAM = /^(?:\/usr)?(?:\/local)?\/s?bin\/([^/]+)$/;

/** Programs that rules are about. Another copy of `ls` harms nobody. */
const TELLING =
  /^(?:rm|shred|dd|mkfs.*|chmod|chown|chattr|kill|pkill|killall|reboot|shutdown|tee|find|xargs|sudo|su|doas|git|truncate|wipefs|systemctl|mv|cp|install|ln|env|busybox|toybox|curl|wget|nc|ncat|netcat|nc\..*|socat|ssh|scp|rsync|sed|[gmn]?awk|tar|docker|podman|kubectl|crontab|at|script|setsid|nohup|timeout|unlink|eval|openssl|base64|make|vim?|ed|perl|gdb|hermes)$/;

const isTelling = (name: string) => TELLING.test(name) || isShell(name) || isInterpreter(name);

/** Without what a version or a package adds: `python3.12`, `clang-15`, `batcat`. */
const family = (name: string) =>
  name.replace(/(?<![-_.0-9])[-_.0-9]+$/, "").replace(/^(?:nodejs|fdfind|batcat)$/, (one) => one.slice(0, -2));

/** The programs that a copy is made of; what was copied before counts by what it is. */
function copiedPrograms(invocation: Invocation, known: ReadonlyMap<string, string>): readonly string[] {
  return invocation.args.flatMap(({ text, substitutions }) => {
    const isLookup = substitutions.some(({ invocations }) =>
      invocations.some(
        ({ program, via }) =>
          /^(?:which|type|command|whereis)$/.test(program) || via.some((one) => one.program === "command"),
      ),
    );
    const name = known.get(plain(text)) ?? SYSTEM_PROGRAM.exec(text)?.[1] ?? (isLookup ? programName(text) : undefined);
    // What lies in a folder for administrators is for nobody else.
    const isTold = name !== undefined && (isTelling(name.toLowerCase()) || /\/sbin\//.test(text));
    return isTold ? [name.toLowerCase()] : [];
  });
}

const plain = (path: string) => path.replace(/^(?:\.\/+)+/, "");

function renamesProgram(scene: Scene): boolean {
  return scene.sequences.some((sequence) => {
    const known = new Map<string, string>();
    return sequence.some((invocation) => {
      if (!COPIERS.test(invocation.program)) return false;
      const { operands } = optionsOf(invocation, { short: "tSmog" });
      const [program] = copiedPrograms(invocation, known);
      const target = operands.at(-1) ?? "";
      if (program === undefined || operands.length < 2) return false;
      if (/\/$|^\.{1,2}$/.test(target)) {
        known.set(plain(`${target.replace(/\/$/, "")}/${program}`), program);
        return false;
      }
      known.set(plain(target), program);
      return family(programName(target)) !== family(program);
    });
  });
}

// A file that the line wrote.

const runsWrittenFile = (scene: Scene): boolean =>
  scene.written.some(({ invocation, file, text }) => {
    if (text === null) return true;
    const byProgram = languageOf(invocation.program);
    const language = byProgram === "other" || /^pip/.test(invocation.program) ? languageOfFile(file) : byProgram;
    // awk, sed, expect: what they would run is read as commands where they are given it on the line.
    return reachOf(language, text).asks;
  }) || runsPreparedFile(scene, decodedFiles);

/** Files that come out of a cipher or an encoding. */
function decodedFiles(invocation: Invocation): readonly string[] {
  if (!/^(?:openssl|gpg2?|base64|uudecode|xxd|dd|age|zstd|gzip|xz|python[0-9.]*)$/.test(invocation.program)) return [];
  const args = argTexts(invocation);
  const named = args.flatMap((arg, index) => {
    const match = /^(?:-o|-out|--output|--out)(?:=(.*))?$/.exec(arg) ?? /^of=(.*)$/.exec(arg);
    return match ? [match[1] ?? args[index + 1] ?? ""] : [];
  });
  const written = args.flatMap((arg) =>
    [...arg.matchAll(/\bopen\(\s{0,9}["']([^"']{1,200})["']/g)].map(([, name = ""]) => name),
  );
  return [...named, ...written, ...(invocation.program === "xxd" ? args.slice(-1) : [])];
}

// A repository or an archive that was just fetched.

function clonedFolder(invocation: Invocation): string | null {
  const { operands: words, values } = readOptions(argTexts(invocation), {
    short: "bcoujC",
    long: ["branch", "depth", "config", "origin", "upload-pack", "jobs", "reference", "template", "filter"],
  });
  const at = words.findIndex((word) => /^(?:clone|co|checkout)$/.test(word));
  const clones =
    (/^(?:git|hg|jj)$/.test(invocation.program) && words[at] === "clone") ||
    (/^(?:gh|glab)$/.test(invocation.program) && words[0] === "repo" && words[1] === "clone") ||
    (invocation.program === "svn" && at === 0);
  const isModule = invocation.program === "git" && words[0] === "submodule" && words[1] === "add";
  const copier = words.findIndex((word) => /^(?:degit|tiged|giget)(?:@\S*)?$/.test(word));
  const isCopier = /^(?:npx|bunx|pnpx|pnpm|yarn)$/.test(invocation.program) && copier >= 0;
  const [from, to] = isModule ? words.slice(2) : words.slice((isCopier ? copier : at) + 1);
  if ((!clones && !isModule && !isCopier) || from === undefined) return null;
  // A copy of what is here already is nothing new.
  if (/^(?:\.{0,2}\/|~|file:)/.test(from)) return null;
  const folder =
    to ??
    from
      .replace(/(?<!\/)\/+$/, "")
      .replace(/\.git$/, "")
      .split(/[/:]/)
      .at(-1) ??
    "";
  const start = values.find(({ name }) => name === "C")?.value;
  return start === undefined || /^[/~$]/.test(folder) ? folder : `${start}/${folder}`;
}

const unpacks = (invocation: Invocation) => UNPACKERS.test(invocation.program) && isUnpacking(invocation);

/** Its own scripts and installers. What a package manager builds or installs there is everyday work. */
function ownScript(invocation: Invocation): string | null {
  const { program, path } = invocation;
  const args = argTexts(invocation);
  if (/^(?:g?make|just)$/.test(program)) {
    const folder = readOptions(args, { short: "fCjIoWl" }).values.find(({ name }) => name === "C")?.value ?? ".";
    return `${folder}/Makefile`;
  }
  if (path.includes("/") && !/^(?:\/usr)?(?:\/local)?\/s?bin\//.test(path)) return path;
  if (!isShell(program) && !isInterpreter(program) && program !== "source" && program !== ".") return null;
  const options = readOptions(args, { short: "oOWX", stopAtOperand: true });
  return hasLetter(options, "c", "e", "m") ? null : (options.operands[0] ?? null);
}

function runsFetched(scene: Scene): boolean {
  return scene.sequences.some((sequence) => {
    const fresh: string[] = [];
    let isUnpacked = false;
    return sequence.some((invocation) => {
      const folder = clonedFolder(invocation);
      if (folder !== null) fresh.push(pathOf(folder, invocation, scene));
      if (unpacks(invocation)) isUnpacked = true;
      if (fresh.length === 0 && !isUnpacked) return false;
      const script = ownScript(invocation);
      if (script === null) return false;
      const target = pathOf(script, invocation, scene);
      return isUnpacked || fresh.some((one) => target === one || target.startsWith(`${one}/`));
    });
  });
}

export const prepared: RuleGroup = {
  reason: "prepares a program and runs it at once, or hides one under another name",
  rules: [
    { key: "program copied under another name", matches: renamesProgram },
    { key: "run a file that the line wrote", matches: runsWrittenFile },
    { key: "run code that was just fetched", matches: runsFetched },
  ],
};
