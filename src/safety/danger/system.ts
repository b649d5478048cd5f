import {
  argTexts,
  hasLetter,
  hasLong,
  type Invocation,
  type Options,
  readOptions,
  type Stage,
} from "../analysis/invocation.ts";
import { isShell, SUDO_OPTIONS } from "../analysis/shells.ts";
import {
  oncePerScene,
  optionsOf,
  pathOf,
  programRule,
  type Rule,
  type RuleGroup,
  type Scene,
  writtenFiles,
} from "../scene.ts";

const STOPS = /^(?:stop|restart|try-restart|disable|mask)$/;
const KILL_SIGNAL = /^(?:9|KILL|SIGKILL)$/i;

function stopsService(invocation: Invocation): boolean {
  const { operands } = optionsOf(invocation, {
    short: "tpHMnos",
    long: ["type", "property", "host", "machine", "signal"],
  });
  if (invocation.program === "systemctl") return STOPS.test(operands[0] ?? "");
  return /^(?:stop|restart)$/.test(operands[1] ?? "");
}

function killsByForce(invocation: Invocation): boolean {
  const options = optionsOf(invocation, {
    short: "gGPstuUF",
    long: ["signal", "pgroup", "group", "parent", "session", "terminal", "euid", "uid", "pidfile"],
  });
  if (options.clusters.some((cluster) => KILL_SIGNAL.test(cluster))) return true;
  return (
    argTexts(invocation).includes("-SIGKILL") ||
    options.values.some(({ name, value }) => name === "signal" && KILL_SIGNAL.test(value))
  );
}

const flagSignal = (invocation: Invocation) => argTexts(invocation).some((arg) => /^-(?:9|KILL|SIGKILL)$/i.test(arg));

function namedSignal(invocation: Invocation): boolean {
  const { values } = optionsOf(invocation, { short: "suoyZ", long: ["signal", "user", "older-than", "younger-than"] });
  return values.some(({ name, value }) => (name === "s" || name === "signal") && KILL_SIGNAL.test(value));
}

export const system: RuleGroup = {
  reason: "changes or stops parts of the running system",
  rules: [
    {
      key: "overwrite system config",
      matches: (scene) =>
        scene.invocations.some((invocation) =>
          writtenFiles(invocation).some((file) => /^\/etc(?:\/|$)/.test(pathOf(file, invocation, scene))),
        ),
    },
    programRule("stop/restart system service", ["systemctl", "service", "rc-service"], stopsService),
    programRule(
      "kill all processes",
      ["kill", "killall5"],
      (invocation) =>
        invocation.program === "killall5" || argTexts(invocation).some((arg, index) => arg === "-1" && index > 0),
    ),
    programRule("force kill processes", ["pkill"], killsByForce),
    programRule("force kill processes (killall -KILL)", ["killall"], flagSignal),
    programRule("force kill processes (killall -s KILL)", ["killall"], namedSignal),
    programRule("kill processes by regex (killall -r)", ["killall"], (invocation) => {
      const options = optionsOf(invocation, { short: "suoyZ" });
      return hasLetter(options, "r") || hasLong(options, "regexp", 3);
    }),
    { key: "fork bomb", matches: (scene) => scene.forkBomb },
  ],
};

const PRIVILEGED = "SAsli";
const PRIVILEGED_LONGS = ["stdin", "askpass", "shell", "list", "login"];

/** The options of every sudo on the line, those of the commands behind it left out. */
function sudoOptions(scene: Scene): readonly Options[] {
  return scene.invocations.flatMap(ownArgs).map((args) => readOptions(args, { ...SUDO_OPTIONS, stopAtOperand: true }));
}

function ownArgs(invocation: Invocation): readonly (readonly string[])[] {
  const wrapped = invocation.via.filter(({ program }) => program === "sudo").map(({ args }) => args);
  return invocation.program === "sudo" ? [...wrapped, argTexts(invocation)] : wrapped;
}

const isPrivileged = (cluster: string) => [...cluster].some((letter) => PRIVILEGED.includes(letter));

/** `sudo -S`: a password is fed in on standard input. */
export const readsPasswordFromInput = (scene: Scene): boolean =>
  sudoOptions(scene).some(
    ({ letters, longs }) => letters.includes("S") || longs.some((name) => name.length > 1 && "stdin".startsWith(name)),
  );

/** `sudo bash`, `sudo su -`: the same as `sudo -s`. */
const opensRootShell = ({ program, args, via }: Invocation) =>
  via.some((wrapper) => wrapper.program === "sudo") &&
  (isShell(program)
    ? args.length === 0
    : program === "su" && args.every(({ text }) => /^(?:-|-l|--login|root)$/.test(text)));

export const sudo: RuleGroup = {
  reason: "asks sudo for more than to run one command",
  rules: [
    {
      key: "sudo with privilege flag (stdin/askpass/shell/list)",
      matches: (scene) =>
        sudoOptions(scene).some(
          ({ clusters, longs }) =>
            clusters.some((cluster) => cluster.length === 1 && isPrivileged(cluster)) ||
            longs.some((given) => given.length > 1 && PRIVILEGED_LONGS.some((name) => name.startsWith(given))),
        ) || scene.invocations.some(opensRootShell),
    },
    {
      key: "sudo with combined-flag privilege escalation",
      matches: (scene) =>
        sudoOptions(scene).some(({ clusters }) =>
          clusters.some((cluster) => cluster.length > 1 && isPrivileged(cluster)),
        ),
    },
  ],
};

const CMD_DELETE = /(?:^|[&|("]\s*)(?:del|erase|rd|rmdir|format)(?:\.exe)?(?=[\s/"]|$)/i;
const POWERSHELL_DELETE =
  /(?:^|[\s;|&{("'])(?:remove-item|ri|rm|rmdir|rd|del|erase|clear-content|clear-disk|format-volume)(?=[\s;)}"']|$)/i;

function cmdText(invocation: Invocation): string | null {
  const args = argTexts(invocation);
  const at = args.findIndex((arg) => /^\/{1,2}[ck]$/i.test(arg));
  return at < 0 ? null : args.slice(at + 1).join(" ");
}

function hasEncodedCommand(invocation: Invocation): boolean {
  return argTexts(invocation).some((arg) => {
    const name = /^[-/]([a-z]+)$/i.exec(arg)?.[1]?.toLowerCase();
    return name !== undefined && (name === "ec" || "encodedcommand".startsWith(name));
  });
}

export const windows: RuleGroup = {
  reason: "removes files or runs hidden code through a Windows shell",
  rules: [
    programRule("Windows cmd destructive delete", ["cmd"], (invocation) => CMD_DELETE.test(cmdText(invocation) ?? "")),
    {
      key: "Windows PowerShell destructive delete",
      matches: (scene) =>
        scene.invocations.some((invocation) =>
          invocation.program === "pwsh" || invocation.program === "powershell"
            ? POWERSHELL_DELETE.test(argTexts(invocation).join(" "))
            : /^(?:remove-item|format-volume|clear-disk)$/.test(invocation.program),
        ),
    },
    programRule("PowerShell encoded command execution", ["pwsh", "powershell"], hasEncodedCommand),
  ],
};

const DOCKER = ["docker"];
const PODMAN = ["podman"];
const BOTH = ["docker", "podman"];

/** The options in front of the verb, which belong to the client itself. */
function clientOptions(invocation: Invocation): Options {
  return readOptions(argTexts(invocation), {
    short: invocation.program === "docker" ? "Hcl" : "c",
    long: [
      "host",
      "context",
      "config",
      "log-level",
      "tlscacert",
      "tlscert",
      "tlskey",
      "url",
      "connection",
      "identity",
      "root",
      "runroot",
    ],
    stopAtOperand: true,
  });
}

const LIFECYCLE = /^(?:restart|stop|kill)$/;

function composeVerb(invocation: Invocation): string {
  const { operands } = clientOptions(invocation);
  const rest = invocation.program.endsWith("-compose") ? argTexts(invocation) : operands.slice(1);
  if (!invocation.program.endsWith("-compose") && operands[0] !== "compose") return "";
  return (
    readOptions(rest, {
      short: "fp",
      long: ["file", "project-name", "project-directory", "profile", "env-file", "ansi", "progress", "parallel"],
      stopAtOperand: true,
    }).operands[0] ?? ""
  );
}

function lifecycleVerb(invocation: Invocation): string {
  const [first = "", second = ""] = clientOptions(invocation).operands;
  return first === "container" ? second : first;
}

const DAEMON_VARIABLES = /^(?:DOCKER_HOST|CONTAINER_HOST|DOCKER_CONTEXT)$/;

function redirectsDaemon({ program, assignments, args }: Invocation): boolean {
  if (assignments.some(({ name }) => DAEMON_VARIABLES.test(name))) return true;
  return (
    /^(?:export|declare|typeset)$/.test(program) &&
    args.some(({ text }) => /^(?:DOCKER_HOST|CONTAINER_HOST|DOCKER_CONTEXT)=/.test(text))
  );
}

export const containers: RuleGroup = {
  reason: "talks to another container daemon or stops containers",
  rules: [
    programRule("docker with remote daemon redirect (-H/--host)", DOCKER, (invocation) => {
      const options = clientOptions(invocation);
      return hasLetter(options, "H") || hasLong(options, "host");
    }),
    programRule("docker with daemon redirect (--context: alternate daemon)", DOCKER, (invocation) => {
      const options = clientOptions(invocation);
      return hasLetter(options, "c") || hasLong(options, "context");
    }),
    programRule("docker context use (switches default daemon for future commands)", DOCKER, (invocation) => {
      const [noun, verb] = clientOptions(invocation).operands;
      return noun === "context" && verb === "use";
    }),
    programRule("podman with remote daemon redirect (--url/--connection/--identity)", PODMAN, (invocation) => {
      const options = clientOptions(invocation);
      return hasLetter(options, "c") || ["url", "connection", "identity"].some((name) => hasLong(options, name));
    }),
    programRule("podman remote mode (-r/--remote: remote daemon)", PODMAN, (invocation) => {
      const options = clientOptions(invocation);
      return hasLetter(options, "r") || hasLong(options, "remote");
    }),
    {
      key: "docker/podman daemon redirect via environment (DOCKER_HOST/CONTAINER_HOST)",
      matches: (scene) => scene.invocations.some(redirectsDaemon),
    },
    programRule(
      "docker compose restart/stop/kill/down (container lifecycle)",
      [...BOTH, "docker-compose", "podman-compose"],
      (invocation) => /^(?:restart|stop|kill|down)$/.test(composeVerb(invocation)),
    ),
    programRule("docker restart/stop/kill (container lifecycle)", BOTH, (invocation) =>
      LIFECYCLE.test(lifecycleVerb(invocation)),
    ),
  ],
};

/** They show or store text; SQL in their arguments does nothing. */
const READERS = new Set("grep egrep fgrep rg ag ack git gh man less head tail wc test [ [[ hermes".split(" "));
const PRINTERS = new Set(["echo", "printf", "cat"]);

const DROP = /\bDROP\s+(?:TABLE|DATABASE|SCHEMA)\b/i;
const DELETE = /\bDELETE\s+FROM\s+[\w"'`[.]/i;
const TRUNCATE = /\bTRUNCATE\s+(?:TABLE\s+)?["'`[]?\w/i;
const TRUNCATE_OF_PROSE = /\bTRUNCATE\s+TABLE\s+["'`[]?\w/i;

/** Texts that may reach a database: arguments and heredocs of whatever is not known to only show them. */
const texts = oncePerScene((scene) =>
  scene.pipelines.flatMap((stages) =>
    stages.flatMap((stage, index) =>
      stage.filter((invocation) => reaches(invocation, stages[index + 1])).flatMap(textsOf),
    ),
  ),
);

function reaches({ program }: Invocation, next: Stage | undefined): boolean {
  if (READERS.has(program)) return false;
  if (!PRINTERS.has(program)) return true;
  return next?.some((consumer) => !READERS.has(consumer.program)) ?? false;
}

function textsOf(invocation: Invocation): readonly string[] {
  if (
    invocation.program === "truncate" &&
    invocation.args.some(({ text }) => /^(?:-[a-z]*[sr]|--(?:size|reference))/.test(text))
  ) {
    return [];
  }
  const line = [invocation.path, ...invocation.args.map(({ text }) => text)].join(" ");
  const inputs = invocation.redirects.flatMap(({ operator, heredoc, target }) => {
    if (heredoc) return [heredoc.body];
    return operator === "<<<" ? [target] : [];
  });
  return [line, ...inputs];
}

const sqlRule = (key: string, test: (text: string) => boolean): Rule => ({
  key,
  matches: (scene) => texts(scene).some(test),
});

const deletesEverything = (text: string) =>
  text.split("\n").some((line) => DELETE.test(line) && !/\bWHERE\b/i.test(line));

/** Lower-case "truncate x" is everyday prose unless a table is named or it is the whole command. */
const truncates = (text: string) =>
  TRUNCATE_OF_PROSE.test(text) ||
  /\bTRUNCATE\s+["'`[]?\w/.test(text) ||
  (/^truncate\s/i.test(text) && TRUNCATE.test(text));

export const sql: RuleGroup = {
  reason: "removes data from a database",
  rules: [
    sqlRule("SQL DROP", (text) => DROP.test(text)),
    sqlRule("SQL DELETE without WHERE", deletesEverything),
    sqlRule("SQL TRUNCATE", truncates),
  ],
};

function gitRule(key: string, verb: string, test: (options: Options) => boolean): Rule {
  return {
    key,
    matches: (scene) =>
      scene.invocations.some((invocation) => {
        const command = gitCommand(invocation);
        if (command?.verb !== verb) return false;
        return test(
          readOptions(command.args, {
            short: VALUED[verb] ?? "",
            long: ["repo", "receive-pack", "push-option", "exclude", "pathspec-from-file"],
          }),
        );
      }),
  };
}

const VALUED: Readonly<Record<string, string>> = { push: "o", clean: "e", branch: "u" };

const longDelete = (options: Options) => options.longs.findIndex((name) => isAbbreviation(name, "delete", 3));
const longForce = (options: Options) => options.longs.findIndex((name) => isAbbreviation(name, "force", 4));
const isAbbreviation = (given: string, name: string, least: number) => given.length >= least && name.startsWith(given);

export const git: RuleGroup = {
  reason: "rewrites history or removes work that git does not keep",
  rules: [
    gitRule("git reset --hard (destroys uncommitted changes)", "reset", (options) => hasLong(options, "hard", 1)),
    gitRule("git force push (rewrites remote history)", "push", (options) => {
      const long = options.longs.some((name) => /^(?:forc|force)(?:$|-)/.test(name) || name === "mirror");
      return long || options.operands.slice(1).some((refspec) => refspec.startsWith("+"));
    }),
    gitRule("git force push short flag (rewrites remote history)", "push", (options) => hasLetter(options, "f")),
    gitRule("git clean with force (deletes untracked files)", "clean", (options) => {
      const forced = hasLetter(options, "f") || hasLong(options, "force", 1);
      return forced && !hasLetter(options, "n") && !hasLong(options, "dry-run", 1);
    }),
    gitRule("git branch force delete", "branch", (options) => {
      if (hasLetter(options, "D")) return true;
      const deletes = hasLetter(options, "d") || longDelete(options) >= 0;
      const forces = hasLetter(options, "f") || longForce(options) >= 0;
      const bothLong = longDelete(options) >= 0 && longForce(options) >= 0;
      return deletes && forces && !bothLong;
    }),
    gitRule("git branch force delete (long flags)", "branch", (options) => {
      const [deletes, forces] = [longDelete(options), longForce(options)];
      return deletes >= 0 && forces > deletes;
    }),
    gitRule("git branch force delete (long flags, force-first)", "branch", (options) => {
      const [deletes, forces] = [longDelete(options), longForce(options)];
      return forces >= 0 && deletes > forces;
    }),
  ],
};

/** The verb of a git command and what follows it, options of git itself skipped. */
export function gitCommand(invocation: Invocation): { readonly verb: string; readonly args: readonly string[] } | null {
  if (invocation.program !== "git") return null;
  const options = readOptions(argTexts(invocation), {
    short: "Cc",
    long: ["git-dir", "work-tree", "namespace", "super-prefix", "config-env"],
    stopAtOperand: true,
  });
  return { verb: options.operands[0] ?? "", args: options.operands.slice(1) };
}
