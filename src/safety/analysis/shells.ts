import { printedTexts } from "../shell/resolve.ts";
import {
  argTexts,
  hasLetter,
  hasLong,
  type Invocation,
  type OptionSpec,
  type Options,
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

const plain = (path: string) => path.replace(/^(?:\.\/+)+/, "");

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

export class WrittenScripts {
  private readonly texts = new Map<string, readonly string[]>();

  note(invocation: Invocation): void {
    for (const { operator, target } of invocation.redirects) {
      if (/^(?:>>?|>\||&>)$/.test(operator)) this.add(target, printedBy(invocation));
    }
  }

  noteTee(invocation: Invocation, fed: readonly string[]): void {
    if (invocation.program !== "tee") return;
    const texts = [...fed, ...printedBy(invocation)];
    for (const text of argTexts(invocation)) if (!text.startsWith("-")) this.add(text, texts);
  }

  /** The texts of files that the invocation runs: by path, through a shell, or by sourcing them. */
  textsRunBy(invocation: Invocation): readonly string[] {
    if (this.texts.size === 0) return [];
    const { program, path } = invocation;
    const byPath = path.includes("/") ? [path] : [];
    const sourced = program === "source" || program === "." ? argTexts(invocation).slice(0, 1) : [];
    const fed = invocation.redirects.filter(({ operator }) => operator === "<").map(({ target }) => target);
    const scripts = isShell(program) ? [...shellOptions(invocation).operands.slice(0, 1), ...fed] : [];
    return [...byPath, ...sourced, ...scripts].flatMap((file) => this.take(plain(file)));
  }

  /** Once: a script may start itself anew. */
  private take(name: string): readonly string[] {
    const texts = this.texts.get(name) ?? [];
    this.texts.delete(name);
    return texts;
  }

  private add(file: string, texts: readonly string[]): void {
    if (texts.length === 0) return;
    const name = plain(file);
    this.texts.set(name, [...(this.texts.get(name) ?? []), ...texts].slice(-20));
  }
}

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
