// Programs that run the command written behind their own options.
import { type OptionSpec, readOptions } from "./options.ts";

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

export interface Unwrapped {
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
