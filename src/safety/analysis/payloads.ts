// Commands that travel inside the arguments of another: `bash -c '...'`, `find -exec`, `ssh host ...`.
import { UNKNOWN } from "../shell/ast.ts";
import { printedTexts } from "../shell/resolve.ts";
import { executedBy, executedFromInput } from "./executors.ts";
import { type Arg, argTexts, type Invocation, readOptions } from "./invocation.ts";
import { isShell, readsCommandsFromInput, shellPayload } from "./shells.ts";

export type Payload =
  /** A text some shell will parse. */
  | { readonly type: "text"; readonly text: string; readonly remote: boolean }
  /** Words that are run as they are. */
  | { readonly type: "words"; readonly words: readonly Arg[]; readonly remote: boolean };

export function payloadsOf(invocation: Invocation): readonly Payload[] {
  return [...commandVariables(invocation).map((value) => text(value)), ...ownPayloads(invocation)];
}

function ownPayloads(invocation: Invocation): readonly Payload[] {
  const { program } = invocation;
  if (isShell(program)) return shellTexts(invocation);
  const read = Object.hasOwn(READERS, program) ? READERS[program] : undefined;
  if (read) return read(invocation);
  const executed = executedBy(invocation);
  if (!executed) return [];
  const fed = inputTexts(invocation).map((payload) => (payload.type === "text" ? payload.text : ""));
  const texts = [...executed.texts, ...executedFromInput(program, fed)];
  return [...texts.map((value) => text(value)), ...wordsFrom(executed.words, false)];
}

const text = (value: string, remote = false): Payload => ({ type: "text", text: value, remote });

function shellTexts(invocation: Invocation): readonly Payload[] {
  const payload = shellPayload(invocation);
  const found = [...(payload === null ? [] : [text(payload)]), ...printedScripts(invocation)];
  return readsCommandsFromInput(invocation) ? [...found, ...inputTexts(invocation)] : found;
}

const sourcedTexts = (invocation: Invocation) => [...printedScripts(invocation), ...inputTexts(invocation)];

/** `bash <(echo ...)`: the script is what the inner command prints. */
function printedScripts({ args }: Invocation): readonly Payload[] {
  return args
    .flatMap(({ substitutions }) => substitutions)
    .filter(({ form }) => form === "<(")
    .flatMap(({ invocations }) => invocations)
    .flatMap((inner) => printedTexts(inner.program, argTexts(inner)) ?? [])
    .map((value) => text(value));
}

/** What a heredoc or here-string feeds in. */
function inputTexts(invocation: Invocation): readonly Payload[] {
  return invocation.redirects.flatMap((redirect) => {
    if (redirect.heredoc) return [text(redirect.heredoc.body)];
    return redirect.operator === "<<<" ? [text(redirect.target)] : [];
  });
}

const READERS: Readonly<Record<string, (invocation: Invocation) => readonly Payload[]>> = {
  eval: (invocation) => [text(argTexts(invocation).join(" "))],
  trap: (invocation) => firstOperand(invocation),
  source: sourcedTexts,
  ".": sourcedTexts,
  sudo: inputTexts,
  su: (invocation) => [...optionTexts(invocation, "c", ["command", "session-command"]), ...inputTexts(invocation)],
  runuser: (invocation) => optionTexts(invocation, "c", ["command"]),
  script: (invocation) => [...optionTexts(invocation, "c", ["command"]), ...scriptWords(invocation)],
  watch: (invocation) =>
    joined(readOptions(argTexts(invocation), { short: "n", long: ["interval"], stopAtOperand: true }).operands),
  watchexec: (invocation) =>
    joined(
      readOptions(argTexts(invocation), {
        short: "wefiodsN",
        long: ["watch", "exts", "filter", "ignore", "shell", "signal", "debounce"],
        stopAtOperand: true,
      }).operands,
    ),
  parallel: parallelWords,
  "-c": (invocation) => (invocation.via.at(-1)?.program === "flock" ? joined(argTexts(invocation)) : []),
  env: splitString,
  "[[": conditionWords,
  at: inputTexts,
  batch: inputTexts,
  alias: (invocation) => argTexts(invocation).map((arg) => text(arg.slice(arg.indexOf("=") + 1))),
  git: (invocation) => gitCommandTexts(argTexts(invocation)).map((value) => text(value)),
  xargs: xargsWords,
  find: findWords,
  fd: fdWords,
  fdfind: fdWords,
  ssh: sshText,
  scp: (invocation) => localCommands(readOptions(argTexts(invocation), { short: "cDFiJloPSX" }).values),
  sftp: (invocation) => localCommands(readOptions(argTexts(invocation), { short: "BbcDFiJloPRSsX" }).values),
  docker: containerWords,
  podman: containerWords,
  "docker-compose": (invocation) => composeWords(invocation, 0),
  capsh: capshWords,
  kubectl: afterDashes,
  oc: afterDashes,
};

const joined = (words: readonly string[], remote = false) => (words.length > 0 ? [text(words.join(" "), remote)] : []);

function firstOperand(invocation: Invocation): readonly Payload[] {
  const [first] = readOptions(argTexts(invocation)).operands;
  return first === undefined || first === "-" ? [] : [text(first)];
}

function optionTexts(invocation: Invocation, short: string, long: readonly string[]): readonly Payload[] {
  const { values } = readOptions(argTexts(invocation), { short: `${short}gGsw`, long: [...long, "shell", "group"] });
  return values.filter(({ name }) => name === short || long.includes(name)).map(({ value }) => text(value));
}

/** BSD's `script file command ...`. */
function scriptWords(invocation: Invocation): readonly Payload[] {
  const { firstOperand: at } = readOptions(argTexts(invocation), { short: "cEIOBTtmo", stopAtOperand: true });
  return wordsFrom(invocation.args.slice(at + 1), false);
}

function splitString(invocation: Invocation): readonly Payload[] {
  const args = argTexts(invocation);
  const at = args.findIndex((arg) => /^(?:-[a-zA-Z0]*S|--split-string(?:=|$))/.test(arg));
  if (at < 0) return [];
  const own = (args[at] ?? "").replace(/^(?:-[a-zA-Z0]*?S|--split-string=?)/, "");
  return joined([own, ...args.slice(at + 1)]);
}

/** A shell without `[[` would run what stands behind `&&`, `||` and `;` in it. */
function conditionWords(invocation: Invocation): readonly Payload[] {
  const parts: Arg[][] = [[]];
  for (const arg of invocation.args) {
    if (/^[;&|]$/.test(arg.text)) parts.push([]);
    else parts.at(-1)?.push(arg);
  }
  return parts.slice(1).flatMap((words) => wordsFrom(words, false));
}

function xargsWords(invocation: Invocation): readonly Payload[] {
  const options = readOptions(argTexts(invocation), {
    short: "aIdELnPs",
    long: ["arg-file", "delimiter", "max-args", "max-procs", "max-chars", "process-slot-var"],
    stopAtOperand: true,
  });
  const token = options.values.find(({ name }) => name === "I")?.value ?? "{}";
  return wordsFrom(markPlaceholder(invocation.args.slice(options.firstOperand), token), false);
}

/** `xargs -I{} {}`: what runs is what comes in. */
function markPlaceholder([name, ...rest]: readonly Arg[], token: string): readonly Arg[] {
  if (!name) return [];
  return [name.text === token ? { ...name, marked: UNKNOWN } : name, ...rest];
}

/** `capsh ... -- -c text`: the words behind the dashes go to a shell. */
function capshWords(invocation: Invocation): readonly Payload[] {
  const at = invocation.args.findIndex(({ text: arg }) => arg === "--");
  return at < 0 ? [] : wordsFrom([{ text: "bash", substitutions: [] }, ...invocation.args.slice(at + 1)], false);
}

/** One word is a text for the shell; several are a command and its arguments. */
function parallelWords(invocation: Invocation): readonly Payload[] {
  const { firstOperand: at } = readOptions(argTexts(invocation), {
    short: "jaISnNLd",
    long: ["jobs", "arg-file"],
    stopAtOperand: true,
  });
  const words = invocation.args.slice(at);
  const [first] = words;
  return first && /\s/.test(first.text) ? joined(words.map(({ text: word }) => word)) : wordsFrom(words, false);
}

const wordsFrom = (words: readonly Arg[], remote: boolean): readonly Payload[] =>
  words.length > 0 ? [{ type: "words", words, remote }] : [];

const FIND_RUNS = new Set(["-exec", "-execdir", "-ok", "-okdir"]);

function findWords(invocation: Invocation): readonly Payload[] {
  const found: Payload[] = [];
  invocation.args.forEach((arg, index) => {
    if (!FIND_RUNS.has(arg.text)) return;
    const rest = invocation.args.slice(index + 1);
    const end = rest.findIndex(({ text: word }) => word === ";" || word === "+");
    found.push(...wordsFrom(markPlaceholder(end < 0 ? rest : rest.slice(0, end), "{}"), false));
  });
  return found;
}

function fdWords(invocation: Invocation): readonly Payload[] {
  const at = invocation.args.findIndex(({ text: arg }) => /^(?:-[xX]|--exec(?:-batch)?)$/.test(arg));
  return at < 0 ? [] : wordsFrom(markPlaceholder(invocation.args.slice(at + 1), "{}"), false);
}

function sshText(invocation: Invocation): readonly Payload[] {
  const { operands, values } = readOptions(argTexts(invocation), {
    short: "BbcDEeFIiJLlmOopQRSWw",
    stopAtOperand: true,
  });
  const isHere = /^(?:[^@]*@)?(?:localhost|127(?:\.[0-9]+){3}|::1|\[::1\])$/i.test(operands[0] ?? "");
  return [...localCommands(values), ...joined(operands.slice(1), !isHere)];
}

const localCommands = (values: readonly { readonly value: string }[]): readonly Payload[] =>
  values
    .flatMap(({ value }) => /^(?:ProxyCommand|LocalCommand)[= ](.*)$/i.exec(value)?.[1] ?? [])
    .map((value) => text(value));

function afterDashes(invocation: Invocation): readonly Payload[] {
  const at = invocation.args.findIndex(({ text: arg }) => arg === "--");
  const runs = invocation.args.slice(0, at).some(({ text: arg }) => arg === "exec" || arg === "run" || arg === "debug");
  return at < 0 || !runs ? [] : wordsFrom(invocation.args.slice(at + 1), true);
}

const RUN_FLAGS = [
  "detach",
  "init",
  "interactive",
  "no-healthcheck",
  "oom-kill-disable",
  "privileged",
  "publish-all",
  "quiet",
  "read-only",
  "rm",
  "sig-proxy",
  "tty",
  "no-TTY",
  "no-deps",
  "service-ports",
  "build",
  "help",
];

function containerWords(invocation: Invocation): readonly Payload[] {
  const args = argTexts(invocation);
  const global = readOptions(args, {
    short: "Hcl",
    long: ["host", "context", "config", "log-level", "tlscacert", "tlscert", "tlskey", "url", "connection", "identity"],
    stopAtOperand: true,
  });
  let at = global.firstOperand;
  if (args[at] === "compose") return composeWords(invocation, at + 1);
  if (args[at] === "container") at++;
  return runWords(invocation, at);
}

function composeWords(invocation: Invocation, from: number): readonly Payload[] {
  const rest = readOptions(argTexts(invocation).slice(from), {
    short: "fp",
    long: ["file", "project-name", "project-directory", "profile", "env-file", "ansi", "progress", "parallel"],
    stopAtOperand: true,
  });
  return runWords(invocation, from + rest.firstOperand);
}

/** `exec CONTAINER cmd` and `run IMAGE cmd`; `at` points at the verb. */
function runWords(invocation: Invocation, at: number): readonly Payload[] {
  const args = argTexts(invocation);
  const verb = args[at];
  if (verb !== "exec" && verb !== "run") return [];
  const options = readOptions(args.slice(at + 1), { short: "aceghlmpuvw", longFlags: RUN_FLAGS, stopAtOperand: true });
  const entry = options.values.find(({ name }) => name === "entrypoint")?.value;
  const words = invocation.args.slice(at + 1 + options.firstOperand + 1);
  return wordsFrom(entry ? [{ text: entry, substitutions: [] }, ...words] : words, true);
}

// Commands that git and other programs take from settings and variables: pagers, editors, transports, aliases.

const VARIABLE =
  /^(?:GIT_(?:SSH|SSH_COMMAND|PAGER|EDITOR|SEQUENCE_EDITOR|EXTERNAL_DIFF|ASKPASS|PROXY_COMMAND)|(?:SUDO_|SYSTEMD_|FC)?EDIT(?:OR)?|VISUAL|(?:MAN|SYSTEMD_)?PAGER|LESSOPEN|LESSCLOSE|PROMPT_COMMAND|BROWSER|RSYNC_RSH|SSH_ASKPASS)$/;

/** The values of variables that name a command, set for one program or for the rest of the line. */
function commandVariables(invocation: Invocation): readonly string[] {
  const exported = /^(?:export|declare|typeset)$/.test(invocation.program) ? argTexts(invocation) : [];
  const given = exported.map((arg) => ({ name: arg.split("=", 1)[0] ?? "", value: arg.slice(arg.indexOf("=") + 1) }));
  return [...invocation.assignments, ...given]
    .filter(({ name }) => VARIABLE.test(name))
    .map(({ value }) => value.replace(/^\|+-?\s*/, ""));
}

const SETTING =
  /^(?:core\.(?:pager|editor|sshcommand|fsmonitor|askpass|gitproxy)|pager\..*|sequence\.editor|diff\.(?:external|.*\.(?:command|textconv))|(?:diff|merge)tool\..*\.cmd|merge\..*\.driver|filter\..*\.(?:clean|smudge|process)|credential\.(?:.*\.)?helper|gpg\.(?:.*\.)?program|remote\..*\.(?:uploadpack|receivepack|vcs)|interactive\.difffilter|browser\..*\.cmd|uploadpack\.packobjectshook|sendemail\..*cmd|trailer\..*\.c(?:omman|m)d)$/i;

/** The command in a setting; for an alias and a helper only behind `!`, else it is a word of git itself. */
function settingText(key: string, value: string): readonly string[] {
  if (/^alias\./i.test(key)) return value.startsWith("!") ? [value.slice(1)] : [];
  return SETTING.test(key) ? [value.replace(/^!/, "")] : [];
}

const COMMAND_OPTIONS: Readonly<Record<string, RegExp>> = {
  rebase: /^(?:-x|--exec)$/,
  difftool: /^(?:-x|--extcmd)$/,
  clone: /^(?:-u|--upload-pack)$/,
  fetch: /^--upload-pack$/,
  pull: /^--upload-pack$/,
  "ls-remote": /^--(?:upload-pack|exec)$/,
  push: /^--(?:receive-pack|exec)$/,
  archive: /^--exec$/,
  grep: /^(?:-O|--open-files-in-pager)$/,
  "filter-branch": /^--(?:(?:tree|index|parent|msg|commit|tag-name|env)-filter|setup)$/,
};

function gitCommandTexts(args: readonly string[]): readonly string[] {
  const verb = args.find((arg) => Object.hasOwn(COMMAND_OPTIONS, arg));
  const option = verb === undefined ? null : COMMAND_OPTIONS[verb];
  const found = args.flatMap((arg, index) => {
    const before = args[index - 1] ?? "";
    const attached = /^(--[a-z-]+)=([\s\S]*)$/.exec(arg) ?? /^(-[Oux])([\s\S]+)$/.exec(arg);
    if (before === "-c") return settingText(...splitSetting(arg));
    if (option?.test(before) && before !== "-O") return [arg];
    if (attached && option?.test(attached[1] ?? "")) return [attached[2] ?? ""];
    return /^ext::/.test(arg) ? [arg.slice("ext::".length).replace(/%(.)/g, "\\$1")] : [];
  });
  return [...found, ...configText(args), ...restText(args)];
}

function splitSetting(text: string): [string, string] {
  const equals = text.indexOf("=");
  return equals < 0 ? [text, ""] : [text.slice(0, equals), text.slice(equals + 1)];
}

/** `git config [set] key value`. */
function configText(args: readonly string[]): readonly string[] {
  if (!args.includes("config")) return [];
  return args.flatMap((arg, index) => settingText(arg, args[index + 1] ?? ""));
}

/** `submodule foreach cmd` and `bisect run cmd`. */
function restText(args: readonly string[]): readonly string[] {
  const at = args.findIndex((arg, index) => {
    const noun = args[index - 1];
    return (noun === "submodule" && arg === "foreach") || (noun === "bisect" && arg === "run");
  });
  if (at < 0) return [];
  const rest = args.slice(at + 1);
  const words = rest.slice(rest.findIndex((arg) => !/^--?(?:recursive|q|quiet)$/.test(arg)));
  // One word is a text for a shell, several are the words of a command.
  return [words.length === 1 ? (words[0] ?? "") : words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ")];
}
