// Options and little languages of everyday programs with which these start or load another one. Where the command stands in the option
// it is read as a command; here is what cannot be read that way.
import { argTexts, type Invocation, readOptions } from "../analysis/invocation.ts";
import { printedBy } from "../analysis/shells.ts";
import { languageOf, reachOf } from "../analysis/snippet.ts";
import { oncePerScene, programRule, type Rule, type RuleGroup, type Scene } from "../scene.ts";

const via = (what: string) => `arbitrary program execution via ${what}`;

/** What each program is fed by the line: a heredoc, a here-string, or what the one before it prints. */
const inputsOf = oncePerScene((scene: Scene): ReadonlyMap<Invocation, readonly string[]> => {
  const fed = new Map<Invocation, readonly string[]>();
  for (const stages of scene.pipelines)
    stages.forEach((stage, index) => {
      const before = (stages[index - 1] ?? []).flatMap(printedBy);
      for (const invocation of stage) fed.set(invocation, [...before, ...printedBy(invocation)]);
    });
  return fed;
});

const textsOf = (invocation: Invocation, scene: Scene) => [
  ...argTexts(invocation),
  ...(inputsOf(scene).get(invocation) ?? []),
];

/** Strings emptied, so that a bar in one is no pipe; read in one pass, as a pattern would begin anew at every quote. */
function withoutStrings(text: string): string {
  let code = "";
  let isString = false;
  for (let at = 0; at < text.length; at++) {
    const char = text[at] ?? "";
    if (char === '"') isString = !isString;
    if (char === '"' || !isString) code += char;
    else if (char === "\\") at++;
  }
  return code;
}

/** A command that awk puts together, or a shell that it feeds. A plain string is read as a command elsewhere. */
function awkHides(text: string): boolean {
  if (/\|\s{0,9}"\s{0,9}(?:\/(?:usr\/)?bin\/)?(?:(?:ba|da|z|k)?sh|python3?|perl|node|xargs)\b/.test(text)) return true;
  const code = withoutStrings(text);
  return /\bsystem\s{0,9}\((?!\s{0,9}""\s{0,9}\))|(?<!\|)\|(?!\|)&?\s{0,9}(?!getline\b)[A-Za-z_$(]|[\w)$]\s{0,9}\|&?\s{0,9}getline\b/.test(
    code,
  );
}

const EDITORS = ["vim", "nvim", "vi", "ex", "view", "gvim"];
const EDITOR_CODE =
  /(?:^|[:|+\s])(?:py3?|py3?thon3?|python3?|pyx|lua|perl|rub?y?|tcl|mzscheme)(?:do|file)?\s|\b(?:delete|writefile|rename|job_start|jobstart|term_start|termopen|libcall(?:nr)?|luaeval|py3?eval|execute|feedkeys)\s{0,9}\(|^(?:\+|:)?(?:so|source|ru|runtime)!?\s+\S/;

const COMPRESSORS =
  /^(?:\S*\/)?(?:g?zip|pigz|xz|pixz|zstd(?:mt)?|lz4|lzip|plzip|lzma|lzop|p?bzip2|lbzip2|brotli|unzstd|zcat|gunzip)(?:\s+-\S+)*$/;
const TAR = {
  short: "CfIFbgHKLNTVXx",
  long: [
    "use-compress-program",
    "to-command",
    "info-script",
    "new-volume-script",
    "checkpoint-action",
    "rsh-command",
    "rmt-command",
  ],
};

function tarRuns(invocation: Invocation): boolean {
  const { values } = readOptions(argTexts(invocation), TAR);
  return values.some(({ name, value }) => {
    if (name === "I" || (name.length > 2 && "use-compress-program".startsWith(name))) return !COMPRESSORS.test(value);
    if (name === "checkpoint-action") return value.startsWith("exec");
    return /^(?:F|to-c|info-script|new-v|rsh-|rmt-)/.test(name);
  });
}

/** What one reaches a host through in everyday life. */
const TRANSPORT =
  /^["']?(?:none$|(?:\S*\/)?(?:ssh|nc|ncat|cloudflared|aws|gcloud|tsh|connect|connect-proxy|corkscrew|socat|tailscale|session-manager-plugin|autossh|mosh|sudo rsync|rsync|sudo -\w+ rsync)(?:\s|["']|$))/;
const isOwnFile = (value: string) => /^["']?(?:\.{1,2}\/|\/tmp\/|\/var\/tmp\/|\/dev\/shm\/|~|\$)/.test(value);

function transportRuns(invocation: Invocation): boolean {
  const args = argTexts(invocation);
  const named = args.flatMap((arg, index) => {
    const match =
      /^(?:-o)?(?:ProxyCommand|LocalCommand|KnownHostsCommand|RemoteCommand|PKCS11Provider|SecurityKeyProvider)[= ]([\s\S]*)$/i.exec(
        arg,
      );
    if (match) return [match[1] ?? ""];
    const option = args[index - 1] ?? "";
    if (/^(?:scp|sftp)$/.test(invocation.program) && option === "-S") return [arg];
    if (invocation.program === "rsync") {
      const long = /^--(?:rsh|rsync-path)=([\s\S]*)$/.exec(arg)?.[1];
      return long !== undefined ? [long] : /^(?:-\w*e|--rsh|--rsync-path)$/.test(option) ? [arg] : [];
    }
    return [];
  });
  return named.some((value) => value !== "" && (!TRANSPORT.test(value) || isOwnFile(value)));
}

const LIBRARY = /\.(?:so(?:\.[0-9]+)*|dylib|dll)(?=$|['")\s,])/;
const LIBRARY_LOADERS = [
  "ssh-keygen",
  "ssh-add",
  "ssh",
  "openssl",
  "sqlite3",
  "psql",
  "mysql",
  "duckdb",
  "gcc",
  "g++",
  "clang",
  "pkcs11-tool",
  "redis-cli",
  "nginx",
  "httpd",
  "php",
];

function loadsLibrary(invocation: Invocation): boolean {
  const args = argTexts(invocation);
  const { program } = invocation;
  if (args.some((arg) => /\bload_extension\s{0,9}\(|^\.load\s/.test(arg))) return true;
  if (/^(?:gcc|g\+\+|clang)$/.test(program))
    return args.some((arg) => /^-(?:fplugin=|wrapper$|B\.?\/)|^-specs=/.test(arg));
  if (program === "openssl")
    return args.some(
      (arg, index) =>
        LIBRARY.test(arg) &&
        /^(?:engine|-engine|-provider|-provider-path|-t|dynamic)$|SO_PATH/.test(args[index - 1] ?? "engine"),
    );
  if (program === "ssh-keygen" || program === "ssh-add" || program === "ssh")
    return args.some((arg, index) => LIBRARY.test(arg) && /^-[DsIew]$/.test(args[index - 1] ?? ""));
  return program === "php"
    ? args.some((arg) => /^-?d?\s*(?:zend_)?extension=/.test(arg) || /auto_prepend_file=/.test(arg))
    : false;
}

const DEBUGGER_CODE =
  /^\s{0,9}(?:python|py|pi|python-interactive|source|script|guile|gu|command script|call\s+(?:\(\w+\)\s?)?(?:system|execl?v?p?|popen)\b)/;

const debuggerRule: Rule = programRule(via("a debugger"), ["gdb", "lldb"], (invocation, scene) =>
  textsOf(invocation, scene).some(
    (text) =>
      (DEBUGGER_CODE.test(text) && reachOf(languageOf("python"), text).asks) ||
      /^\s{0,9}(?:source|command script)\s/.test(text),
  ),
);

const SYSTEM_SHELL = /^(?:\/usr)?(?:\/local)?(?:\/bin\/)?(?:env )?(?:ba|da|z|k|a)?sh(?:\s.*)?$/;

export const loaders: RuleGroup = {
  reason: "has a program start or load another one",
  rules: [
    programRule(via("m4 syscmd"), ["m4", "gm4"], (invocation, scene) =>
      textsOf(invocation, scene).some((text) => /\be?syscmd\b|\bundivert\s{0,9}\(/.test(text)),
    ),
    programRule(via("awk"), ["awk", "gawk", "mawk", "nawk"], (invocation, scene) =>
      textsOf(invocation, scene).some((text) => awkHides(text) || /^@load\b/.test(text)),
    ),
    programRule(via("an editor"), EDITORS, (invocation, scene) =>
      textsOf(invocation, scene).some((text) => EDITOR_CODE.test(text)),
    ),
    debuggerRule,
    programRule(via("tar"), ["tar", "gtar", "bsdtar"], tarRuns),
    programRule(via("a transport"), ["ssh", "scp", "sftp", "rsync", "sshfs", "mosh", "autossh"], transportRuns),
    programRule(via("make SHELL"), ["make", "gmake"], (invocation) =>
      argTexts(invocation).some((arg) => /^\.?SHELL=/.test(arg) && !SYSTEM_SHELL.test(arg.slice(arg.indexOf("=") + 1))),
    ),
    programRule(via("wget"), ["wget", "wget2"], (invocation) =>
      argTexts(invocation).some((arg) => /^--use-askpass(?:=|$)/.test(arg)),
    ),
    programRule(via("nmap --script"), ["nmap"], (invocation) =>
      argTexts(invocation).some((arg, index, args) => {
        const value = args[index - 1] === "--script" ? arg : /^--script=(.*)$/.exec(arg)?.[1];
        return value !== undefined && /[/]|\.nse\b/.test(value);
      }),
    ),
    programRule("load a library by its path", LIBRARY_LOADERS, loadsLibrary),
  ],
};
