// What the line alone does not show: names and targets that a variable of the session or another program decides, code that comes
// through a pipe, and variables, settings and builtins that make a harmless program load code.
import {
  argTexts,
  hasLetter,
  type Invocation,
  readOptions,
  type Stage,
  type Substitution,
} from "../analysis/invocation.ts";
import { isShell, passesOn, printedBy, readsCommandsFromInput } from "../analysis/shells.ts";
import { oncePerScene, optionsOf, type RuleGroup, type Scene } from "../scene.ts";
import { UNKNOWN } from "../shell/ast.ts";
import { isInterpreter, runsInput } from "./code.ts";
import { gitCommand } from "./system.ts";

/** They print settings for the shell, which is what one evaluates them for. */
const SETTINGS_PRINTERS =
  /^(?:ssh-agent|gpg-agent|keychain|direnv|brew|pyenv|rbenv|nodenv|goenv|jenv|fnm|nvm|volta|opam|starship|zoxide|mise|asdf|docker-machine|minikube|dircolors|lesspipe|luarocks|conda|mamba|micromamba|poetry|pipx|register-python-argcomplete|thefuck|fzf|atuin|rustup|oh-my-posh|aws-vault|saml2aws)$/;

const printsSettings = ({ program, args }: Invocation) =>
  SETTINGS_PRINTERS.test(program) ||
  args.some(({ text }) => /^(?:completions?|shellenv|shell-init|init|hook)$/.test(text));

const areSettings = (substitutions: readonly Substitution[]) =>
  substitutions.length > 0 &&
  substitutions.every(({ invocations }) => invocations.length > 0 && invocations.every(printsSettings));

function runsUnseenName({ program, args, unseenName, nameSubstitutions }: Invocation): boolean {
  if (unseenName && !areSettings(nameSubstitutions)) return true;
  const evaluated = program === "eval" ? args : [];
  return evaluated.some(({ marked, substitutions }) => marked?.startsWith(UNKNOWN) && !areSettings(substitutions));
}

/** Files whose place does not matter to what they do. */
const TELLING_NAME =
  /^(?:\.(?:bash|zsh|z|k|c|tc)[\w.]*|\.(?:profile|xprofile|gitconfig|vimrc|envrc|npmrc|netrc|env)|authorized_keys|sudoers|crontab|pre-commit|post-\w+|pre-push|commit-msg|soul\.md|memory\.md|user\.md|config\.yaml|(?:site|user)customize\.py|[\w.@-]+\.(?:service|timer|socket|desktop|plist|pth))$/i;

/** Whether a target with marks may well be any file: its start is unknown, or its folder is and the name tells. */
function mayBeAnything(marked: string): boolean {
  const at = marked.indexOf(UNKNOWN);
  const slash = marked.lastIndexOf("/");
  const base = marked.slice(slash + 1);
  if (!base.includes(UNKNOWN)) return TELLING_NAME.test(base);
  const before = marked.slice(0, at);
  // In a folder that the line names, and not the home itself: `logs/$name`.
  if (before.includes("/"))
    return /^(?:~|\$HOME|\$\{HOME\}|\/root|\/home\/[^/]+)?\/\.?$/.test(before.slice(0, before.lastIndexOf("/") + 1));
  if (before !== "") return before.startsWith(".");
  return !/\.[a-z0-9]{1,8}$/i.test(marked) || TELLING_NAME.test(`x${marked.slice(marked.lastIndexOf(UNKNOWN) + 1)}`);
}

function writesUnseenFile(invocation: Invocation): boolean {
  const written = invocation.redirects.filter(({ operator }) => /^(?:&?>>?|>\||<>|>&)$/.test(operator));
  const targets = written.map(({ marked }) => marked);
  const args = /^(?:tee|sponge)$/.test(invocation.program)
    ? invocation.args.map(({ marked }) => marked)
    : invocation.program === "dd"
      ? invocation.args.filter(({ text }) => text.startsWith("of=")).map(({ marked }) => marked?.slice("of=".length))
      : [];
  return [...targets, ...args].some((marked) => marked !== undefined && mayBeAnything(marked));
}

// Code that comes through a pipe, a file descriptor or a fifo.

const readsMakefile = (invocation: Invocation) =>
  /^g?make$/.test(invocation.program) && / -f ?(?:-|\/dev\/stdin) /.test(` ${argTexts(invocation).join(" ")} `);

const runsListedCommands = (invocation: Invocation) =>
  invocation.program === "parallel" && readOptions(argTexts(invocation), { short: "jaISnNLd" }).operands.length === 0;

const sourcesInput = (invocation: Invocation) =>
  /^(?:source|\.)$/.test(invocation.program) && /^\/dev\/(?:stdin|fd\/)/.test(invocation.args[0]?.text ?? "");

const runsStream = (invocation: Invocation) =>
  readsCommandsFromInput(invocation) ||
  (isInterpreter(invocation.program) && runsInput(invocation)) ||
  readsMakefile(invocation) ||
  runsListedCommands(invocation) ||
  sourcesInput(invocation);

/** A text of the line is judged elsewhere, as commands or as code; what another program prints cannot be. */
const isPipedIn = (stages: readonly Stage[]) =>
  stages.some((stage, index) => {
    if (index === 0) return false;
    const readers = stage.filter(runsStream);
    if (readers.length === 0) return false;
    const before = stages.slice(0, index).findLast((one) => !one.every(passesOn)) ?? [];
    const isText = before.length > 0 && before.every((source) => printedBy(source).length > 0);
    const isJudged = (program: string) => isShell(program) || (isInterpreter(program) && before === stages[index - 1]);
    return !isText || readers.some(({ program }) => !isJudged(program));
  });

const fifosOf = oncePerScene(
  (scene) => new Set(scene.named("mkfifo").flatMap((one) => optionsOf(one, { short: "m" }).operands)),
);

const OWN_DESCRIPTOR = /^[012-]$/;

function readsUnseenCode(invocation: Invocation, scene: Scene): boolean {
  const { program } = invocation;
  if (runsListedCommands(invocation)) return true;
  const isCode = isShell(program) || isInterpreter(program) || /^(?:source|\.|g?make)$/.test(program);
  if (!isCode) return false;
  const opened = [...invocation.args, ...invocation.redirects].flatMap(({ substitutions }) =>
    substitutions.filter(({ form }) => form === "<("),
  );
  // A makefile that is printed on the line is not read as commands.
  const isRead = (one: Substitution) =>
    !program.endsWith("make") && one.invocations.every((inner) => printedBy(inner).length > 0);
  const unseen = opened.filter((one) => !areSettings([one]) && !isRead(one));
  if (unseen.length > 0) return true;
  if (sourcesInput(invocation) || invocation.args.some(({ text }) => /^\/dev\/fd\/[0-9]+$/.test(text))) return true;
  if (!runsStream(invocation)) return false;
  const fifos = fifosOf(scene);
  return invocation.redirects.some(
    ({ operator, target, marked, substitutions }) =>
      (operator === "<&" && !OWN_DESCRIPTOR.test(target)) ||
      (operator === "<" && ((marked !== undefined && substitutions.length === 0) || fifos.has(target))),
  );
}

/** `> >(sh)`, `tee >(bash)`: what is written there is run. */
const feedsInterpreter = (invocation: Invocation) =>
  [...invocation.args, ...invocation.redirects].some(({ substitutions }) =>
    substitutions.some(({ form, invocations }) => form === ">(" && invocations.some(runsStream)),
  );

// Variables, settings and builtins with which a harmless program loads code.

const ALWAYS_CODE =
  /^(?:LD_PRELOAD|LD_AUDIT|DYLD_INSERT_LIBRARIES|BASH_ENV|ENV|BASH_FUNC_.*|PROMPT_COMMAND|PS4|SHELLOPTS|BASHOPTS|PYTHONSTARTUP|PYTHONHOME|PYTHONBREAKPOINT|PERL5OPT|PERL5DB|LUA_INIT.*|R_PROFILE(?:_USER)?|R_ENVIRON(?:_USER)?|VIMINIT|EXINIT|GVIMINIT|ZDOTDIR|INPUTRC|GIT_CONFIG_(?:COUNT|KEY_[0-9]+|VALUE_[0-9]+|PARAMETERS)|GIT_EXEC_PATH|GIT_TEMPLATE_DIR|MAKEFILES|GCONV_PATH|OPENSSL_(?:CONF|ENGINES|MODULES)|GTK_MODULES|DOTNET_STARTUP_HOOKS|CORECLR_PROFILER(?:_PATH)?|COR_PROFILER(?:_PATH)?|PHPRC|PHP_INI_SCAN_DIR|NODE_REPL_EXTERNAL_MODULE|npm_config_(?:script_shell|node_options|userconfig|globalconfig|prefix)|NPM_CONFIG_(?:SCRIPT_SHELL|USERCONFIG|GLOBALCONFIG)|PIP_CONFIG_FILE|SSLKEYLOGFILE|RUSTC(?:_WORKSPACE)?_WRAPPER|CARGO_BUILD_RUSTC_WRAPPER|GOTOOLDIR|KUBECTL_EXTERNAL_DIFF)$/;

/** Harmless with everyday values, code with these. */
const CODE_VALUES: readonly (readonly [name: RegExp, value: RegExp])[] = [
  [
    /^NODE_OPTIONS$/,
    /(?:^|\s)(?:-r|--require|--import|--loader|--experimental-loader|--eval|-e|--inspect(?:-brk)?=0\.0\.0\.0)(?:[\s=]|$)/,
  ],
  [/^RUBYOPT$/, /(?:^|\s)-[reIC]/],
  [
    /^(?:_JAVA_OPTIONS|JAVA_TOOL_OPTIONS|JDK_JAVA_OPTIONS|MAVEN_OPTS|GRADLE_OPTS|JAVA_OPTS)$/,
    /-javaagent|-agentpath|-agentlib|-Xbootclasspath|-XX:On|-XX:Flags/,
  ],
  [/^(?:MAKEFLAGS|MFLAGS|GNUMAKEFLAGS)$/, /--eval|-f|--file/],
  [/^GOFLAGS$/, /-toolexec|-exec|-overlay/],
  [
    /^(?:LD_LIBRARY_PATH|DYLD_LIBRARY_PATH|PYTHONPATH|NODE_PATH|PERL5LIB|RUBYLIB|CLASSPATH|LUA_C?PATH|GEM_PATH|GUILE_LOAD_PATH)$/,
    /(?:^|:)(?:\/tmp|\/var\/tmp|\/dev\/shm)(?:\/|:|$)/,
  ],
  [/^GIT_CONFIG(?:_GLOBAL|_SYSTEM)?$/, /^(?!\/dev\/null$|$)/],
  [/^(?:RUSTFLAGS|CARGO_ENCODED_RUSTFLAGS)$/, /linker=/],
];

const COMMAND_VARIABLE =
  /^(?:GIT_(?:SSH|SSH_COMMAND|PAGER|EDITOR|SEQUENCE_EDITOR|EXTERNAL_DIFF|ASKPASS|PROXY_COMMAND)|SSH_ASKPASS|SUDO_ASKPASS|(?:SUDO_|SYSTEMD_|FC)?EDITOR|FCEDIT|VISUAL|(?:MAN|SYSTEMD_)?PAGER|LESSOPEN|LESSCLOSE|BROWSER|RSYNC_RSH)$/;

/** Pagers, editors, ssh: what such a setting names in everyday life. */
const EVERYDAY =
  /^(?:|cat|less|more|most|bat|batcat|delta|diff-so-fancy|difft|vim?|nvim|nano|emacs|emacsclient|code|code-insiders|cursor|subl|micro|hx|helix|kak|ed|true|false|:|echo|ssh|firefox|chrome|chromium|google-chrome|safari|open|xdg-open|wslview|meld|kdiff3|opendiff|lesspipe|lesspipe\.sh|git-lfs|gpg2?|notepad|mate|pico|joe|none|www-browser|store|cache|osxkeychain|manager|manager-core|libsecret|wincred|gh|glab)$/;

const namesEveryday = (command: string) => {
  const [program = "", ...rest] = command
    .trim()
    .replace(/^[!|]+-?\s*/, "")
    .split(/\s+/);
  const base = program.replace(/^["']|["']$/g, "");
  const isSystem = !base.includes("/") || /^(?:\/usr)?(?:\/local)?\/bin\/[\w.-]+$/.test(base);
  return (
    isSystem &&
    EVERYDAY.test(base.slice(base.lastIndexOf("/") + 1)) &&
    !rest.some((word) => /^(?:-c|-S|--cmd|--eval|-oProxyCommand.*|ProxyCommand.*)$/i.test(word))
  );
};

/** Folders of tools that a package manager or a build fills, which is what one puts them in front for. */
const TOOL_FOLDER =
  /(?:^|\/)(?:node_modules\/\.bin|\.?v?env[\w.-]*\/(?:bin|scripts)|vendor\/bin|target\/(?:debug|release)|\.local\/bin|\.bin|\.tools?|build\/bin|dist\/bin|gopath\/bin|go\/bin|\.cargo\/bin)$/i;
/** Of the folder one is in, or where everybody writes. */
const OPEN_FOLDER =
  /^(?:$|[^/$~`]|\$\{?(?:OLD)?PWD\b|~[+-]|\$\(pwd\)|`pwd`|\/tmp(?:\/|$)|\/var\/tmp(?:\/|$)|\/dev\/shm(?:\/|$))/;

/** Whether programs are looked for in an open folder before the system's own are. */
function shadowsPrograms(value: string): boolean {
  const folders = value.replace(/^["']|["']$/g, "").split(":");
  const system = folders.findIndex((folder) => /^\$\{?PATH\b|^(?:\/usr)?\/bin\/?$/.test(folder));
  const front = folders
    .slice(0, system < 0 ? folders.length : system)
    .map((folder) => folder.replace(/(?<!\/)\/+$/, ""));
  return front.some((folder) => OPEN_FOLDER.test(folder) && !TOOL_FOLDER.test(folder));
}

function loadsCode(name: string, value: string): boolean {
  if (name === "PATH") return shadowsPrograms(value);
  if (ALWAYS_CODE.test(name)) return value !== "" || name === "ENV";
  if (COMMAND_VARIABLE.test(name)) return !namesEveryday(value);
  return CODE_VALUES.some(([names, values]) => names.test(name) && values.test(value));
}

function setsLoader(invocation: Invocation): boolean {
  const { program, assignments, args, via } = invocation;
  const given = assignments.some(({ name, value }) => loadsCode(name, value));
  const isSetter = /^(?:export|declare|typeset|readonly|local|env|cross-env|dotenv)$/.test(program);
  const words = [...(isSetter ? argTexts(invocation) : []), ...via.flatMap((wrapper) => wrapper.args)];
  const exported = words.some((text) => {
    const equals = text.indexOf("=");
    return equals > 0 && loadsCode(text.slice(0, equals).replace(/%%$/, ""), text.slice(equals + 1));
  });
  const read = /^(?:read|printf)$/.test(program) && args.some(({ text }) => ALWAYS_CODE.test(text) && text !== "ENV");
  return given || exported || read || [invocation.path, ...words].some((text) => text.startsWith("BASH_FUNC_"));
}

const CODE_SETTING =
  /^(?:core\.(?:hookspath|attributesfile|fsmonitor|sshcommand|gitproxy|askpass|pager|editor|alternaterefscommand)|pager\..*|sequence\.editor|diff\.external|diff\..*\.(?:command|textconv)|(?:diff|merge)tool\..*\.cmd|merge\..*\.driver|filter\..*\.(?:clean|smudge|process)|credential\.(?:.*\.)?helper|gpg\.(?:.*\.)?program|remote\..*\.(?:uploadpack|receivepack|vcs|proxy)|interactive\.difffilter|browser\..*\.cmd|uploadpack\.packobjectshook|init\.templatedir|include\.path|includeif\..*\.path|sendemail\..*cmd|trailer\..*\.c(?:omman|m)d|url\..*\.(?:push)?insteadof|protocol\..*\.allow|http\.sslverify|submodule\..*\.update)$/i;

const HARMLESS_SETTING =
  /^(?:true|false|1|0|off|on|no|yes|auto|always|\/dev\/null|checkout|rebase|merge|none|never|user|git-lfs (?:clean|smudge|filter-process).*)?$/i;

function isCodeSetting(key: string, value: string): boolean {
  if (/^alias\./i.test(key)) return value.startsWith("!") && !/^!\s*git\b[\w\s.=-]*$/.test(value);
  if (/^http\.sslverify$/i.test(key)) return /^(?:false|0|off|no)$/i.test(value);
  return CODE_SETTING.test(key) && !HARMLESS_SETTING.test(value) && !namesEveryday(value);
}

/** `git -c key=value`, and `git config key value` where it writes. */
function setsGitCode(invocation: Invocation): boolean {
  if (invocation.program !== "git") return false;
  const args = argTexts(invocation);
  const inline = args.some((arg, index) => {
    const equals = arg.indexOf("=");
    return args[index - 1] === "-c" && equals > 0 && isCodeSetting(arg.slice(0, equals), arg.slice(equals + 1));
  });
  if (inline || args.some((arg) => arg.startsWith("--config-env="))) return true;
  const command = gitCommand(invocation);
  if (command?.verb === "clone")
    return command.args.some(
      (arg, index) =>
        /^(?:-c|--config|--template)$/.test(command.args[index - 1] ?? "") &&
        (command.args[index - 1] === "--template" || isCodeSetting(...splitAt(arg))),
    );
  if (command?.verb !== "config") return false;
  const options = readOptions(command.args, { short: "f", long: ["file", "blob", "type", "default", "value"] });
  if (options.longs.some((name) => /^(?:get|list|unset|remove|show)/.test(name)) || hasLetter(options, "l"))
    return false;
  if (options.longs.includes("edit") || hasLetter(options, "e")) return true;
  const words = /^(?:set|add)$/.test(options.operands[0] ?? "") ? options.operands.slice(1) : options.operands;
  const [key = "", value] = words;
  return value !== undefined && isCodeSetting(key, value);
}

function splitAt(text: string): [string, string] {
  const equals = text.indexOf("=");
  return equals < 0 ? [text, ""] : [text.slice(0, equals), text.slice(equals + 1)];
}

const INDEX_TAKERS =
  /^(?:\[\[?|test|let|printf|read|declare|typeset|local|export|readonly|unset|mapfile|readarray|wait|eval)$/;

function hidesCodeInBuiltin(invocation: Invocation): boolean {
  const { program } = invocation;
  const options = optionsOf(invocation);
  // The shell computes what stands in an index, quoted or not.
  if (INDEX_TAKERS.test(program) && invocation.args.some(({ text }) => /\w\[(?:(?!\w\[)[^\]])*(?:\$\(|`)/.test(text)))
    return true;
  if (program === "mapfile" || program === "readarray") return hasLetter(options, "C");
  if (program === "hash") return hasLetter(options, "p");
  if (program === "complete" || program === "compgen") return hasLetter(options, "C");
  if (program === "fc") return hasLetter(options, "s", "e") || (!hasLetter(options, "l") && invocation.args.length > 0);
  if (program === "bind") return hasLetter(options, "x");
  if (program === "enable") return hasLetter(options, "f");
  return program === "command_not_found_handle";
}

/** Names that later lines use and mean the program by. */
const COMMON = new Set(
  "ls cd cat git npm npx node pnpm yarn python python3 pip sudo rm cp mv echo printf grep rg sed awk ssh docker make curl wget find test true pwd head tail cargo go tsc hermes kubectl env which command exit source eval export set trap command_not_found_handle".split(
    " ",
  ),
);
const TAKES_ANYTHING = /^(?:tee|dd|eval|source|\.|sh|bash|zsh|dash|xargs|env|exec|python[0-9.]*|perl|ruby|node)$/;

function replacesProgram(scene: Scene): boolean {
  if (scene.functions.some((name) => COMMON.has(name))) return true;
  return scene.named("alias").some((invocation) =>
    argTexts(invocation).some((text) => {
      const [name, value] = splitAt(text);
      const words = value.trim().split(/\s+/);
      const [program = ""] = words;
      return (COMMON.has(name) && value !== "" && program !== name) || TAKES_ANYTHING.test(program);
    }),
  );
}

export const unseen: RuleGroup = {
  reason: "runs or writes something that the line alone does not show",
  rules: [
    { key: "command name not on the line", matches: (scene) => scene.invocations.some(runsUnseenName) },
    { key: "write to a file not named on the line", matches: (scene) => scene.invocations.some(writesUnseenFile) },
    {
      key: "pipe unseen input to an interpreter",
      matches: (scene) =>
        scene.pipelines.some(isPipedIn) ||
        scene.invocations.some((invocation) => readsUnseenCode(invocation, scene) || feedsInterpreter(invocation)),
    },
    { key: "variable that loads code", matches: (scene) => scene.invocations.some(setsLoader) },
    { key: "git setting that runs a program", matches: (scene) => scene.invocations.some(setsGitCode) },
    { key: "shell builtin that runs hidden code", matches: (scene) => scene.invocations.some(hidesCodeInBuiltin) },
    { key: "function or alias that hides a program", matches: replacesProgram },
  ],
};
