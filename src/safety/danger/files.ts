import { sedScripts } from "../analysis/executors.ts";
import {
  argTexts,
  hasLetter,
  hasLong,
  type Invocation,
  type OptionSpec,
  type Options,
  readOptions,
} from "../analysis/invocation.ts";
import { asksMkfsVersion } from "../hardline.ts";
import {
  asksForHelp,
  optionsOf,
  pathOf,
  programRule,
  type Rule,
  type RuleGroup,
  type Scene,
  writtenFiles,
} from "../scene.ts";
import { isCredentialOrStartFile, isHermesFile, isProjectSetting, isSystemConfig, isSystemFile } from "./places.ts";

const COPIERS = ["cp", "mv", "install", "ln", "rsync", "scp"];

/** Where a copy goes: the last operand, or the value of `-t`; and what it would be called there if that is a directory. */
function destination(invocation: Invocation): { readonly path: string; readonly inside: readonly string[] } {
  const options = optionsOf(invocation, {
    short: invocation.program === "install" ? "tSmog" : invocation.program === "scp" ? "cDFiJloPSX" : "tS",
    long: ["target-directory", "suffix", "mode", "owner", "group", "exclude", "include", "rsh", "chmod"],
  });
  const named = options.values.find(({ name }) => name === "t" || name === "target-directory")?.value;
  const path = named ?? (options.operands.length > 1 ? (options.operands.at(-1) ?? "") : "");
  const sources = named === undefined ? options.operands.slice(0, -1) : options.operands;
  const names = sources
    .map((source) => source.replace(/(?<!\/)\/+$/, ""))
    .map((source) => source.slice(source.lastIndexOf("/") + 1));
  return { path, inside: path === "" ? [] : names.map((name) => `${path}/${name}`) };
}

function copyRule(key: string, isTarget: (path: string) => boolean): Rule {
  return programRule(key, COPIERS, (invocation, scene) =>
    isTarget(pathOf(destination(invocation).path, invocation, scene)),
  );
}

/** A copy into a directory replaces the file of the same name there; and more than copies names the file it writes. */
function pathRule(key: string, isTarget: (path: string, program: string) => boolean): Rule {
  return {
    key,
    matches: (scene) =>
      scene.invocations.some((invocation) => {
        const { program } = invocation;
        const copied = COPIERS.includes(program) ? destination(invocation) : { path: "", inside: [] };
        return [copied.path, ...copied.inside, ...namedOutputs(invocation)]
          .filter((path) => path !== "")
          .some((path) => isTarget(pathOf(path, invocation, scene), program));
      }),
  };
}

type Editor = "short" | "long" | "script";

const sedOptions = (invocation: Invocation): Options =>
  optionsOf(invocation, { short: "efl", long: ["expression", "file", "line-length"] });

/** How the command edits in place, if it does. */
function editorOf(invocation: Invocation): Editor | null {
  if (invocation.program === "sed" || invocation.program === "gsed") {
    if (hasLong(sedOptions(invocation), "in-place", 2)) return "long";
    return hasLetter(sedOptions(invocation), "i") ? "short" : null;
  }
  if (!/^(?:perl|ruby)[0-9.]*$/.test(invocation.program)) return null;
  return hasLetter(optionsOf(invocation, { short: "eEIMmrCF" }), "i") ? "script" : null;
}

function editRule(key: string, editors: readonly Editor[], isTarget: (path: string) => boolean): Rule {
  return {
    key,
    matches: (scene) =>
      scene.invocations.some((invocation) => {
        const editor = editorOf(invocation);
        if (editor === null || !editors.includes(editor)) return false;
        return sedOptions(invocation).operands.some((operand) => isTarget(pathOf(operand, invocation, scene)));
      }),
  };
}

const CREDENTIAL_EDIT = "in-place edit of sensitive credential/SSH/shell-rc path";
const HERMES_EDIT = "in-place edit of Hermes config/env";

export const copiesAndEdits: RuleGroup = {
  reason: "replaces a file that holds settings or secrets",
  rules: [
    pathRule("copy/move file into system config path", isSystemConfig),
    copyRule("overwrite project env/config file", (path) => isProjectSetting(path) && !isHermesFile(path)),
    pathRule(
      "copy/move file into sensitive credential/SSH/shell-rc path",
      // Emptying a file of the agent's own has a rule of its own.
      (path, program) => isCredentialOrStartFile(path) || (program !== "truncate" && isHermesFile(path)),
    ),
    editRule(CREDENTIAL_EDIT, ["short"], isCredentialOrStartFile),
    editRule(`${CREDENTIAL_EDIT} (long flag)`, ["long"], isCredentialOrStartFile),
    editRule(`${CREDENTIAL_EDIT} (perl/ruby)`, ["script"], isCredentialOrStartFile),
    editRule("in-place edit of system config", ["short", "script"], isSystemConfig),
    editRule("in-place edit of system config (long flag)", ["long"], isSystemConfig),
    editRule(HERMES_EDIT, ["short"], isHermesFile),
    editRule(`${HERMES_EDIT} (long flag)`, ["long"], isHermesFile),
    editRule(`${HERMES_EDIT} (perl/ruby)`, ["script"], isHermesFile),
  ],
};

const early = (options: Options) => ({
  letters: options.letters.slice(0, options.letters.length - options.late.letters.length),
  longs: options.longs.slice(0, options.longs.length - options.late.longs.length),
});

export const deletion: RuleGroup = {
  reason: "removes files for good",
  rules: [
    programRule("move a home or system directory away", ["mv"], movesAway),
    programRule("delete in root path", ["rm", "unlink", "shred"], (invocation, scene) =>
      optionsOf(invocation).operands.some((operand) => pathOf(operand, invocation, scene).startsWith("/")),
    ),
    programRule("recursive delete", ["rm"], (invocation) => {
      const { letters } = early(optionsOf(invocation));
      return letters.includes("r") || letters.includes("R");
    }),
    programRule("recursive delete (long flag)", ["rm"], (invocation) => hasLong(optionsOf(invocation), "recursive", 3)),
    programRule("recursive delete (flags after operands)", ["rm"], (invocation) =>
      hasLetter(optionsOf(invocation), "r", "R"),
    ),
  ],
};

/** Tests of find that own the next word. */
const FIND_VALUES =
  /^-(?:i?name|i?path|i?wholename|i?regex|i?lname|type|newer.*|size|user|group|perm|[acm](?:time|min)|maxdepth|mindepth|printf)$/;

const REMOVERS = ["rm", "unlink", "shred"];

const isRunForEach = ({ via }: Invocation) =>
  via.some(({ program }) => /^(?:find|fd|fdfind|xargs|parallel)$/.test(program));

/** Below the folder one is in: nothing of the home or the system is searched. */
const searchesElsewhere = (scene: Scene) =>
  ["find", "fd", "fdfind"].some((program) =>
    scene.named(program).some((invocation) =>
      argTexts(invocation)
        .slice(0, 3)
        .some((arg) => /^(?:[/~]|\$|\.\.)/.test(arg)),
    ),
  );

/** Names many files that the line does not list: everything here, what a program prints, or what a loop goes through. */
function namesMany(text: string, marked: string | undefined, scene: Scene): boolean {
  const path = text.replace(/^\.\//, "");
  if (/^(?:\*\*?(?:\/\*)*|\.\*)$|^(?:\$\(|`)\s{0,9}(?:git|find|fd|fdfind|ls|rg|locate|cat)\b/.test(path)) return true;
  const isLoop = ["for", "select", "read", "mapfile", "readarray"].some((word) => scene.named(word).length > 0);
  return isLoop && (marked !== undefined || (/[*?]/.test(path) && !/\.(?:log|tmp|out|bak|cache|old)$/.test(path)));
}

/** An edit in place that keeps nothing: `sed -i d`, `perl -i -ne ''`. */
function emptiesInPlace(invocation: Invocation): boolean {
  if (editorOf(invocation) === null) return false;
  if (/^g?sed$/.test(invocation.program))
    return sedScripts(argTexts(invocation)).some((script) => /^\s{0,9}(?:1,\$)?\s{0,9}d[;\s]{0,9}$/.test(script));
  const { letters, values } = optionsOf(invocation, { short: "eEIMmrCF" });
  const code = values.filter(({ name }) => /^[eE]$/.test(name)).map(({ value }) => value);
  const keeps = letters.includes("n")
    ? /\b(?:print|printf|say|puts|p|putc|write)\b/
    : /^(?![\s\S]*\$_\s{0,9}=\s{0,9}(?:""|''|undef))/;
  return code.length > 0 && /[np]/.test(letters.join("")) && !code.some((text) => keeps.test(text));
}

const EMPTIES = /^(?:|:|true)$/;

/** Empties, overwrites or moves away whatever it is handed, one file after the other. */
function spoilsEach(invocation: Invocation, scene: Scene): boolean {
  const { program, args, redirects } = invocation;
  const isEach = isRunForEach(invocation);
  const many = args.filter(({ text, marked }) => namesMany(text, marked, scene));
  const emptied = redirects.filter(({ operator }) => operator === ">" || operator === ">|");
  const prints = program === "cat" ? args.every(({ text }) => text === "/dev/null") : EMPTIES.test(program);
  if (prints && emptied.some(({ target, marked }) => namesMany(target, marked, scene))) return true;
  if (emptiesInPlace(invocation)) return true;
  if (!isEach && many.length === 0) return false;
  const { operands } = optionsOf(invocation, { short: "tS" });
  const [first = ""] = operands;
  const target = operands.at(-1) ?? "";
  if (/^(?:truncate|sponge)$/.test(program)) return true;
  if (/^(?:tee|dd)$/.test(program)) return isEach;
  if (program === "cp" || program === "ln") return first.startsWith("/dev/");
  if (program === "chmod") return isEach && /^0*[0-3]?00$|^[ugoa]*[-=][rwx]*r|^0+$/.test(first);
  if (program !== "mv") return false;
  if (!isEach) return /^\/(?:tmp|var\/tmp|dev)(?:\/|$)/.test(target);
  return target.includes("{}") ? searchesElsewhere(scene) : /^[/~$]|^\.\.(?:\/|$)/.test(target);
}

export const massDelete: RuleGroup = {
  reason: "removes or changes every file a search finds",
  rules: [
    programRule("xargs with rm", REMOVERS, ({ via }) =>
      via.some(({ program }) => program === "xargs" || program === "parallel"),
    ),
    programRule("find -exec/-execdir rm", REMOVERS, ({ via }) =>
      via.some(({ program }) => /^(?:find|fd|fdfind)$/.test(program)),
    ),
    {
      key: "change every file a search finds",
      matches: (scene) => scene.invocations.some((invocation) => spoilsEach(invocation, scene)),
    },
    programRule("find -delete", ["find"], (invocation) =>
      argTexts(invocation).some((arg, index, args) => arg === "-delete" && !FIND_VALUES.test(args[index - 1] ?? "")),
    ),
  ],
};

/** More kinds than the hardline knows: a question costs little. */
const isDevice = (path: string) =>
  /^\/dev\/(?:sd[a-z]|nvme[0-9]|hd[a-z]|mmcblk[0-9]|vd[a-z]|xvd[a-z]|r?disk[0-9]|dm-|mapper\/|md[0-9]|loop[0-9])/.test(
    path,
  );

function writesDevice(invocation: Invocation, scene: Scene): boolean {
  if (writtenFiles(invocation).some((file) => isDevice(pathOf(file, invocation, scene)))) return true;
  const { program } = invocation;
  if (program === "dd") return operandsOf(invocation, scene).some((path) => isDevice(path));
  if (program === "cp" || program === "mv") {
    return isDevice(pathOf(optionsOf(invocation).operands.at(-1) ?? "", invocation, scene));
  }
  return /^(?:shred|blkdiscard)$/.test(program) && optionsOf(invocation).operands.some(isDevice);
}

const operandsOf = (invocation: Invocation, scene: Scene) =>
  argTexts(invocation)
    .filter((arg) => /^of=/i.test(arg))
    .map((arg) => pathOf(arg.slice(3), invocation, scene));

export const disk: RuleGroup = {
  reason: "writes to disks below the file system",
  rules: [
    {
      key: "format filesystem",
      matches: (scene) =>
        scene.invocations.some(
          (invocation) =>
            /^(?:mkfs(?:\..*)?|mke2fs|newfs(?:_.*)?|mkswap|wipefs)$/.test(invocation.program) &&
            !asksForHelp(invocation) &&
            !asksMkfsVersion(invocation),
        ),
    },
    programRule("disk copy", ["dd"], (invocation) => argTexts(invocation).some((arg) => /^if=/i.test(arg))),
    { key: "write to block device", matches: (scene) => scene.invocations.some((one) => writesDevice(one, scene)) },
  ],
};

/** Others may write: an octal whose last digit holds 2, or a clause that gives `w` to o or a. */
function opensToOthers(mode: string): boolean {
  if (/^[0-7]{1,5}$/.test(mode)) return (Number.parseInt(mode.at(-1) ?? "0", 8) & 2) !== 0;
  return mode.split(",").some((clause) => /^[ug]*[oa][ugoa]*(?:[-+=][rwxXst]*)*[+=][rwxXst]*w/.test(clause));
}

const isOpen = (invocation: Invocation) => {
  const options = optionsOf(invocation);
  return opensToOthers(options.operands[0] ?? "");
};

function makesRootOwner(invocation: Invocation): boolean {
  return /^(?:root|\+?0)(?:[:.]|$)/.test(optionsOf(invocation, { long: ["from"] }).operands[0] ?? "");
}

export const permissions: RuleGroup = {
  reason: "opens files to everybody or changes their owner",
  rules: [
    programRule(
      "world/other-writable permissions",
      ["chmod"],
      (invocation) => isOpen(invocation) && !hasLong(optionsOf(invocation), "recursive", 3),
    ),
    programRule("recursive world/other-writable (long flag)", ["chmod"], isOpen),
    programRule(
      "recursive chown to root",
      ["chown"],
      (invocation) => makesRootOwner(invocation) && hasLetter(optionsOf(invocation), "R"),
    ),
    programRule(
      "recursive chown to root (long flag)",
      ["chown"],
      (invocation) => makesRootOwner(invocation) && hasLong(optionsOf(invocation), "recursive", 3),
    ),
    programRule(
      "recursive permissions of a system or home directory",
      ["chmod", "chown", "chgrp"],
      (invocation, scene) => {
        const options = optionsOf(invocation);
        if (!hasLetter(options, "R") && !hasLong(options, "recursive", 3)) return false;
        return argTexts(invocation).some((arg) => !arg.startsWith("-") && WHOLE.test(pathOf(arg, invocation, scene)));
      },
    ),
    programRule("lock a system or home directory", ["chmod", "chown", "chgrp"], locksOut),
  ],
};

/** Nothing works any more when such a directory changes hands. */
const WHOLE =
  /^(?:~|\/|\/home\/[^/]+|\/users\/[^/]+|\/(?:etc|usr|var|bin|sbin|boot|lib|lib64|home|users|root|opt|dev|srv)|\/usr\/(?:s?bin|lib|lib64|share)|\/var\/(?:lib|log|spool))(?:\/\*)?$/;
/** A file of the system itself, for which something else looks where it is. */
const OF_SYSTEM = /^\/(?:etc|usr|bin|sbin|boot|lib|lib64|dev)\//;

/** Owner and mode of the directory itself: what the owner may no longer do there, nobody can. */
function locksOut(invocation: Invocation, scene: Scene): boolean {
  const [mode = "", ...targets] = argTexts(invocation).filter(
    (arg) => !/^-[a-zA-Z]|^--/.test(arg) || /^-[rwx]+$/.test(arg),
  );
  if (!targets.some((target) => WHOLE.test(pathOf(target, invocation, scene)))) return false;
  return invocation.program !== "chmod" ||
    /^0*[0-6]?[0-3][0-7]{2}$|^0+$|(?:^|,)[ugoa]*-|(?:^|,)[ua]*=(?:,|$)/.test(mode)
    ? !/^(?:go|og|[go])-/.test(mode)
    : false;
}

/** The source of a move is gone from where it was. */
function movesAway(invocation: Invocation, scene: Scene): boolean {
  const options = optionsOf(invocation, { short: "tS", long: ["target-directory", "suffix"] });
  const named = options.values.some(({ name }) => name === "t" || name === "target-directory");
  const sources = (named ? options.operands : options.operands.slice(0, -1)).map((path) =>
    pathOf(path, invocation, scene),
  );
  const target = named ? "" : (options.operands.at(-1) ?? "");
  return (
    pathOf(target, invocation, scene) === "/dev/null" ||
    sources.some((path) => WHOLE.test(path) || OF_SYSTEM.test(path) || isCredentialOrStartFile(path))
  );
}

const teeFiles = (invocation: Invocation) => (invocation.program === "tee" ? optionsOf(invocation).operands : []);

function writeRule(
  key: string,
  files: (invocation: Invocation) => readonly string[],
  isTarget: (path: string) => boolean,
): Rule {
  const hits = (invocation: Invocation, scene: Scene) =>
    files(invocation).some((file) => isTarget(pathOf(file, invocation, scene)));
  return { key, matches: (scene) => scene.invocations.some((invocation) => hits(invocation, scene)) };
}

export const sensitiveWrites: RuleGroup = {
  reason: "writes to a file that holds settings or secrets",
  rules: [
    writeRule("overwrite system file via tee", teeFiles, isSystemFile),
    writeRule("overwrite system file via redirection", writtenFiles, isSystemFile),
    writeRule("overwrite project env/config via tee", teeFiles, isProjectSetting),
    writeRule("overwrite project env/config via redirection", writtenFiles, isProjectSetting),
  ],
};

// Files a program writes because its arguments say so: `curl -o`, `tar -C`, `dd of=`, `sort -o`, editors that need no hands.

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
  "7z": { short: "o", writes: ["o"] },
};
/** Whatever the program: what it calls an output is written. */
const OUTPUT_OPTION =
  /^(?:-o|-out|--out|--outfile|--output|--output-file|--output-dir|--outdir|--dest|--destination|--target|--target-dir)(?:=([\s\S]*))?$/;
const NO_OUTPUT_OPTION = new Set(
  "ls ps grep egrep fgrep rg ag ssh scp sftp set shopt mount set column cut lsblk lsof strace".split(" "),
);
const UNATTENDED_EDITORS = new Set(["vim", "nvim", "vi", "ex"]);

/** Every file that a command line names as written, by whatever means; links by both of their names. */
export function filesWrittenBy(invocation: Invocation): readonly string[] {
  const { program } = invocation;
  const args = argTexts(invocation);
  const copied = COPIERS.includes(program) ? destination(invocation) : { path: "", inside: [] };
  const edited = editorOf(invocation) === null ? [] : editedFiles(sedOptions(invocation));
  const outputs = NO_OUTPUT_OPTION.has(program)
    ? []
    : args.flatMap((arg, index) => {
        const match = OUTPUT_OPTION.exec(arg);
        return match ? [match[1] ?? args[index + 1] ?? ""] : [];
      });
  const scripts = /^g?sed$/.test(program) ? sedScripts(args) : /^[gmn]?awk$/.test(program) ? args : [];
  const inside = scripts.flatMap((script) => (program.endsWith("sed") ? sedWrites(script) : awkWrites(script)));
  const cloned = program === "git" && args.includes("clone") ? optionsOf(invocation).operands.slice(2) : [];
  return [
    ...[copied.path, ...copied.inside, ...edited, ...outputs, ...inside, ...cloned],
    ...[...writtenFiles(invocation), ...teeFiles(invocation), ...namedOutputs(invocation)],
  ].filter((path) => path !== "");
}

/** Without `-e` the first operand is the script. */
const editedFiles = ({ operands, values }: Options) =>
  values.some(({ name }) => /^(?:[ef]|expression|file)$/.test(name)) ? operands : operands.slice(1);

const sedWrites = (script: string) =>
  [...script.matchAll(/(?:^|[;{}\s/0-9$gp])w\s{1,9}([^\s;}]+)/g)].map((match) => match[1] ?? "");
const awkWrites = (script: string) => [...script.matchAll(/>{1,2}\s{0,9}"([^"]+)"/g)].map((match) => match[1] ?? "");

function namedOutputs(invocation: Invocation): readonly string[] {
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
