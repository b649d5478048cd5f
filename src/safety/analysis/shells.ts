import { normalize } from "node:path/posix";
import { printedTexts } from "../shell/resolve.ts";
import {
  argTexts,
  hasLetter,
  hasLong,
  type Invocation,
  type OptionSpec,
  type Options,
  type Redirect,
  readOptions,
} from "./invocation.ts";

const SHELLS = new Set([
  "sh",
  "bash",
  "zsh",
  "dash",
  "ksh",
  "ksh93",
  "mksh",
  "pdksh",
  "ash",
  "fish",
  "csh",
  "tcsh",
  "rbash",
]);

export const isShell = (program: string) => SHELLS.has(program);

export function shellOptions(invocation: Invocation): Options {
  const args = argTexts(invocation).map((text) => (text.startsWith("+") ? `-${text.slice(1)}` : text));
  return readOptions(args, {
    short: "oO",
    long: ["rcfile", "init-file", "init-command", "command"],
    stopAtOperand: true,
  });
}

/** The text behind `-c`; null when the shell is not given one. */
export function shellPayload(invocation: Invocation): string | null {
  const options = shellOptions(invocation);
  const long = options.values.find(({ name }) => name === "command" || name === "init-command");
  if (long) return long.value;
  return hasLetter(options, "c") ? (options.operands[0] ?? "") : null;
}

/** A shell that takes its commands from its input. */
export function readsCommandsFromInput(invocation: Invocation): boolean {
  if (invocation.program === "at" || invocation.program === "batch") return true;
  if (!isShell(invocation.program)) return false;
  const options = shellOptions(invocation);
  if (hasLetter(options, "c") || hasLong(options, "command")) return false;
  const [script] = options.operands;
  return script === undefined || script === "-" || script === "/dev/stdin" || hasLetter(options, "s");
}

// `cat > x.sh <<E ... ; bash x.sh`: what one command of a line writes into a file, a later one may run.

/** One name for a file, wherever the line has gone in between. */
function nameOf(written: string, { cwd }: Invocation): string {
  const path = written.replace(/^(?:\.\/+)+/, "").replace(/^(?:\$PWD|\$\{PWD\}|\$\(pwd\))\//, "");
  return normalize(cwd === null || /^[/~$]/.test(path) ? path : `${cwd}/${path}`);
}

/** What an invocation prints, as far as the line shows: `echo`, `printf`, or `cat` with a heredoc. */
export function printedBy(invocation: Invocation): readonly string[] {
  const fed = invocation.redirects.flatMap(({ operator, heredoc, target }) => {
    if (heredoc) return [heredoc.body];
    return operator === "<<<" ? [target] : [];
  });
  return [...fed, ...(printedTexts(invocation.program, argTexts(invocation)) ?? [])];
}

/** Hands its input on unchanged. */
export const passesOn = (invocation: Invocation): boolean =>
  invocation.program === "tee" ||
  (invocation.program === "cat" && invocation.args.every(({ text }) => text.startsWith("-")) && !hasInput(invocation));

const hasInput = ({ redirects }: Invocation) => redirects.some(({ operator }) => operator.startsWith("<"));

/** A file that the line wrote; `isSeen` is false when part of it is what a program printed. */
interface Written {
  readonly texts: readonly string[];
  readonly isSeen: boolean;
}

/** A file that the line wrote and then runs: its text, or null when the line does not show it. */
export interface WrittenRun {
  readonly invocation: Invocation;
  readonly file: string;
  readonly text: string | null;
}

export class WrittenScripts {
  private readonly files = new Map<string, Written>();

  note(invocation: Invocation): void {
    for (const { operator, target, marked } of invocation.redirects) {
      if (!/^(?:>>?|>\||&>)$/.test(operator)) continue;
      const texts = printedBy(invocation);
      // `> x` alone empties a file, and `jq` changes what one reads before: its settings are as good as they were.
      const isKnown =
        texts.length > 0 || invocation.program === "" || (invocation.program === "jq" && target.endsWith(".json"));
      this.add(nameOf(target, invocation), texts, marked === undefined && isKnown);
    }
    if (/^(?:cp|mv|ln|install)$/.test(invocation.program)) this.noteCopy(invocation);
  }

  /** `{ echo a; echo b; } > x`. */
  noteGroup(redirects: readonly Redirect[], inside: readonly Invocation[]): void {
    const printers = inside.filter(({ redirects: own }) => !own.some(({ operator }) => operator.includes(">")));
    const texts = printers.map((one) => printedBy(one).join("\n"));
    const [first] = inside;
    for (const { operator, target } of redirects)
      if (/^(?:>>?|>\||&>)$/.test(operator) && printers.length > 0 && first)
        this.add(
          nameOf(target, first),
          [texts.join("\n")],
          texts.every((text) => text !== ""),
        );
  }

  private noteCopy(invocation: Invocation): void {
    const { operands } = readOptions(argTexts(invocation), { short: "tSmog" });
    const [from, to] = operands;
    const known = from === undefined ? undefined : this.files.get(nameOf(from, invocation));
    if (known && to !== undefined && operands.length === 2) this.files.set(nameOf(to, invocation), known);
  }

  noteTee(invocation: Invocation, fed: readonly string[]): void {
    if (invocation.program !== "tee") return;
    const texts = [...fed, ...printedBy(invocation)];
    for (const text of argTexts(invocation))
      if (!text.startsWith("-")) this.add(nameOf(text, invocation), texts, texts.length > 0);
  }

  /** The texts of files that the invocation runs as commands: by path, through a shell, or by sourcing them. */
  textsRunBy(invocation: Invocation): readonly string[] {
    if (this.files.size === 0) return [];
    const { program, path } = invocation;
    const byPath = path.includes("/") ? [path] : [];
    return [...byPath, ...shellScripts(invocation)]
      .flatMap((file) => this.take(nameOf(file, invocation)))
      .concat(
        buildFiles(program, argTexts(invocation)).flatMap((file) =>
          (this.files.get(nameOf(file, invocation))?.texts ?? []).flatMap((text) =>
            buildCommands(program, argTexts(invocation), text),
          ),
        ),
      );
  }

  /** The files that the invocation runs as code, and those whose text the line does not show. */
  codeRunBy(invocation: Invocation): readonly WrittenRun[] {
    if (this.files.size === 0) return [];
    const isCode = codeFiles(invocation);
    const unseen = [...shellScripts(invocation), ...buildFiles(invocation.program, argTexts(invocation))];
    return [...this.files].flatMap(([file, { texts, isSeen }]): readonly WrittenRun[] => {
      const runs = isCode(file) || unseen.some((script) => nameOf(script, invocation) === file);
      if (!runs) return [];
      if (!isSeen) return [{ invocation, file, text: null }];
      return isCode(file) ? texts.map((text) => ({ invocation, file, text })) : [];
    });
  }

  /** Once: a script may start itself anew. */
  private take(name: string): readonly string[] {
    const known = this.files.get(name);
    if (!known?.isSeen) return known?.texts ?? [];
    this.files.delete(name);
    return known.texts;
  }

  private add(file: string, texts: readonly string[], isSeen: boolean): void {
    const before = this.files.get(file);
    this.files.set(file, {
      texts: [...(before?.texts ?? []), ...texts].slice(-20),
      isSeen: isSeen && (before?.isSeen ?? true),
    });
  }
}

function shellScripts(invocation: Invocation): readonly string[] {
  const { program } = invocation;
  if (program === "source" || program === ".") return argTexts(invocation).slice(0, 1);
  if (!isShell(program)) return [];
  const fed = invocation.redirects.filter(({ operator }) => operator === "<").map(({ target }) => target);
  return [...shellOptions(invocation).operands.slice(0, 1), ...fed];
}

const RUNS_CODE =
  /^(?:i?python[0-9.]*|pypy[0-9.]*|perl[0-9.]*|ruby[0-9.]*|node|nodejs|deno|bun|tsx|ts-node|php[0-9.]*|lua[0-9.]*|luajit|rscript|julia|tclsh|wish|groovy|elixir|osascript|[gmn]?awk|go|expect|guile|racket|swift|raku|m4|sed|gsed|octave|emacs|sbcl|crystal|kotlin|scala)$/;

/** Whether the invocation runs a file by this name, given by hand or found by itself. */
function codeFiles(invocation: Invocation): (file: string) => boolean {
  const { program } = invocation;
  const args = argTexts(invocation);
  const fed = invocation.redirects.filter(({ operator }) => operator === "<").map(({ target }) => target);
  const operands = args.filter((arg) => !arg.startsWith("-"));
  const [script] = /^(?:run|test|serve)$/.test(operands[0] ?? "") ? operands.slice(1) : operands;
  const loaded = args.filter((_, index) => /^(?:-[fri]|--(?:file|require|import))$/.test(args[index - 1] ?? ""));
  const scripts = RUNS_CODE.test(program) ? [script, ...loaded, ...fed] : [];
  const words = args.join(" ");
  const runsTests = program === "pytest" || /(?:^| )-m (?:pytest|unittest)/.test(words);
  const builds = /^pip[0-9.]*$/.test(program) || /(?:^| )-m (?:pip|build)/.test(words);
  return (file) =>
    scripts.some((one) => one !== undefined && nameOf(one, invocation) === file) ||
    (runsTests && /(?:^|\/)(?:conftest|test_[^/]*|[^/]*_test)\.py$/.test(file)) ||
    (builds && /(?:^|\/)setup\.py$/.test(file)) ||
    (program === "rake" && /(?:^|\/)rakefile$/i.test(file)) ||
    (loadsSettings(program) && SETTINGS_CODE.test(file));
}

/** Code that a tool loads by itself when it starts. */
const SETTINGS_CODE =
  /(?:^|\/)(?:[\w.-]+\.config\.[cm]?[jt]s|\.[\w-]+rc\.[cm]?js|gulpfile\.[cm]?[jt]s|gruntfile\.js|noxfile\.py|fabfile\.py|tasks\.py|dodo\.py|gemfile|[\w-]+\.gemspec|vagrantfile|fastfile|podfile|guardfile)$/i;
const loadsSettings = (program: string) =>
  /^(?:npx|bunx|pnpx|npm|pnpm|yarn|bun|jest|vitest|vite|eslint|prettier|webpack|rollup|esbuild|tailwindcss|postcss|babel|next|nuxt|astro|svelte-kit|playwright|cypress|mocha|karma|gulp|grunt|nox|fab|invoke|inv|doit|bundle|gem|vagrant|fastlane|pod|guard|turbo|nx)$/.test(
    program,
  );

const PACKAGE_MANAGERS = /^(?:npm|pnpm|yarn|bun)$/;

/** What a build tool reads its commands from. */
function buildFiles(program: string, args: readonly string[]): readonly string[] {
  if (/^g?make$/.test(program)) {
    const named = readOptions(args, { short: "fCjIoWl", long: ["file", "makefile"] }).values;
    return [
      ...named.filter(({ name }) => /^(?:f|file|makefile)$/.test(name)).map(({ value }) => value),
      ...["Makefile", "makefile", "GNUmakefile"],
    ];
  }
  if (program === "just") return ["justfile", "Justfile", ".justfile"];
  return PACKAGE_MANAGERS.test(program) ? ["package.json"] : [];
}

function buildCommands(program: string, args: readonly string[], text: string): readonly string[] {
  if (!PACKAGE_MANAGERS.test(program)) return makeTexts([text]);
  const [verb = "install", name = ""] = args.filter((arg) => !arg.startsWith("-"));
  const script = /^(?:run|run-script)$/.test(verb) ? name : verb;
  const runs = /^(?:install|i|ci|add)$/.test(script)
    ? /^(?:pre|post)?install$|^(?:pre|post)?prepare$/
    : { test: (key: string) => key === script || key === `pre${script}` || key === `post${script}` };
  return scriptsIn(text).flatMap(([key, command]) => (runs.test(key) ? [command] : []));
}

function scriptsIn(text: string): readonly (readonly [string, string])[] {
  try {
    const { scripts }: { readonly scripts?: Readonly<Record<string, unknown>> } = JSON.parse(text) ?? {};
    return Object.entries(scripts ?? {}).flatMap(([name, value]) => (typeof value === "string" ? [[name, value]] : []));
  } catch {
    // Printed in pieces or with a slip: nothing that a package manager would run.
    return [];
  }
}

/** A rule may hold its command behind `;`, or on lines of its own behind a tab. */
export const makeTexts = (args: readonly string[]): readonly string[] =>
  args
    .flatMap((text) => text.split(/\n|\\n/))
    .map((line) => {
      const rule = line.indexOf(";");
      return (line.slice(0, rule + 1).includes(":") ? line.slice(rule + 1) : line).trim();
    })
    .map((line) => line.replace(/^[-@+]+/, ""));

// Programs that run the command written behind their own options.

interface WrapperSpec extends OptionSpec {
  /** Words of its own in front of the command: `timeout 5 cmd`. */
  readonly operands?: number;
  /** With one of these it runs nothing, or nothing that stands as words behind it. */
  readonly idle?: string;
  readonly idleLongs?: readonly string[];
}

/** The options of sudo that take a value. */
export const SUDO_OPTIONS = {
  short: "ugpCrtTUDR",
  long: [
    "user",
    "group",
    "prompt",
    "close-from",
    "role",
    "type",
    "command-timeout",
    "other-user",
    "chdir",
    "chroot",
    "host",
  ],
};

const WRAPPERS: Readonly<Record<string, WrapperSpec>> = {
  sudo: SUDO_OPTIONS,
  doas: { short: "uC" },
  env: { short: "uC", long: ["unset", "chdir"], idle: "S", idleLongs: ["split-string"] },
  exec: { short: "a" },
  command: { idle: "vV" },
  builtin: {},
  nohup: {},
  setsid: {},
  time: { short: "fo", long: ["format", "output"] },
  nice: { short: "n", long: ["adjustment"] },
  ionice: { short: "cn", long: ["class", "classdata"], idle: "pP" },
  timeout: { short: "ks", long: ["kill-after", "signal"], operands: 1 },
  stdbuf: { short: "ioe", long: ["input", "output", "error"] },
  unbuffer: {},
  chroot: { long: ["userspec", "groups"], operands: 1 },
  unshare: { short: "SGR", long: ["setuid", "setgid", "root", "wd"] },
  nsenter: { short: "tSG", long: ["target", "setuid", "setgid"] },
  setpriv: { long: ["reuid", "regid", "groups", "inh-caps", "bounding-set", "ambient-caps"] },
  runuser: { short: "ug", long: ["user", "group"] },
  pkexec: { long: ["user"] },
  strace: { short: "eopPasuEI" },
  ltrace: { short: "eopalsuFn" },
  busybox: {},
  toybox: {},
  taskset: { operands: 1 },
  chrt: { operands: 1 },
  caffeinate: { short: "tw" },
  flock: { short: "wE", long: ["timeout", "wait", "conflict-exit-code"], operands: 1 },
  "systemd-run": { short: "pEuMHtG", long: ["property", "setenv", "unit", "slice", "uid", "gid", "working-directory"] },
  "systemd-inhibit": { long: ["what", "who", "why", "mode"] },
  fakeroot: {},
  eatmydata: {},
  rlwrap: {},
  "xvfb-run": { short: "ens" },
  "dbus-run-session": {},
  torsocks: {},
  proxychains: { short: "f" },
  proxychains4: { short: "f" },
  "ld.so": { long: ["library-path", "preload", "argv0", "audit"] },
  setarch: {},
  linux32: {},
  linux64: {},
  // `setarch x86_64 cmd`: the machine stands where a program would.
  x86_64: {},
  i386: {},
  i686: {},
  aarch64: {},
  numactl: { short: "NmCpilr", long: ["cpunodebind", "physcpubind", "membind", "preferred", "interleave"] },
  cgexec: { short: "g" },
  prlimit: { short: "p", long: ["pid"] },
  cpulimit: { short: "lpe", long: ["limit", "pid", "exe"] },
  valgrind: {},
  catchsegv: {},
  chronic: {},
  ifne: {},
  entr: { idle: "s" },
  firejail: {},
  proot: { short: "rbwqk" },
  daemonize: { short: "acpuloeE" },
  dtach: { short: "AcnN" },
  "ssh-agent": { short: "aEt", idle: "k" },
  sshpass: { short: "pfdP" },
  faketime: { operands: 1 },
  torify: {},
  tsocks: {},
  uvx: { short: "p", long: ["from", "with", "python"] },
  direnv: { operands: 2 },
  noglob: {},
  nocorrect: {},
};

interface Unwrapped {
  /** Index in `args` where the command behind the wrapper begins. */
  readonly commandAt: number;
  readonly assignments: readonly { readonly name: string; readonly value: string }[];
}

const NAME_VALUE = /^([A-Za-z_][A-Za-z0-9_]*)=([\s\S]*)$/;

/** Null when the program is no wrapper, or runs nothing this time. */
export function unwrap(program: string, args: readonly string[]): Unwrapped | null {
  const name = /^ld(?:64)?(?:-linux.*|-musl.*)?\.so(?:\.[0-9]+)*$/.test(program) ? "ld.so" : program;
  const spec = Object.hasOwn(WRAPPERS, name) ? WRAPPERS[name] : undefined;
  if (!spec) return null;
  const options = readOptions(args, { ...spec, stopAtOperand: true });
  if (spec.idle && options.letters.some((letter) => spec.idle?.includes(letter))) return null;
  // Without a user named by option it is another `su`, whose command stands behind -c.
  if (program === "runuser" && !options.values.some(({ name: given }) => given === "u" || given === "user"))
    return null;
  if (spec.idleLongs?.some((name) => options.longs.includes(name))) return null;
  let at = options.firstOperand;
  if (program === "env" && args[at] === "-") at++;
  at += spec.operands ?? 0;
  const assignments: { name: string; value: string }[] = [];
  // `time A=1 cmd` is a prefix of the shell; for the others a name with `=` would be no program anyway.
  while (at < args.length) {
    const match = NAME_VALUE.exec(args[at] ?? "");
    if (!match) break;
    assignments.push({ name: match[1] ?? "", value: match[2] ?? "" });
    at++;
  }
  if (at >= args.length) return null;
  return { commandAt: at, assignments };
}
