// Commands that git and other programs take from settings and variables: pagers, editors, transports, aliases.
import { argTexts, type Invocation } from "./invocation.ts";

const VARIABLE =
  /^(?:GIT_(?:SSH|SSH_COMMAND|PAGER|EDITOR|SEQUENCE_EDITOR|EXTERNAL_DIFF|ASKPASS|PROXY_COMMAND)|(?:SUDO_|SYSTEMD_|FC)?EDIT(?:OR)?|VISUAL|(?:MAN|SYSTEMD_)?PAGER|LESSOPEN|LESSCLOSE|PROMPT_COMMAND|BROWSER|RSYNC_RSH|SSH_ASKPASS)$/;

/** The values of variables that name a command, set for one program or for the rest of the line. */
export function commandVariables(invocation: Invocation): readonly string[] {
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

export function gitCommandTexts(args: readonly string[]): readonly string[] {
  const verb = args.find((arg) => Object.hasOwn(COMMAND_OPTIONS, arg));
  const option = verb === undefined ? null : COMMAND_OPTIONS[verb];
  const found = args.flatMap((arg, index) => {
    const before = args[index - 1] ?? "";
    const attached = /^(--[a-z-]+)=([\s\S]*)$/.exec(arg) ?? /^(-[Oux])([\s\S]+)$/.exec(arg);
    if (before === "-c") return settingText(...splitSetting(arg));
    if (option?.test(before) && before !== "-O") return [arg];
    if (attached && option?.test(attached[1] ?? "")) return [attached[2] ?? ""];
    return /^ext::/.test(arg) ? [arg.slice("ext::".length).replace(/%(.)/g, "$1")] : [];
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
  return [rest.slice(rest.findIndex((arg) => !/^--?(?:recursive|q|quiet)$/.test(arg))).join(" ")];
}
