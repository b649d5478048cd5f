// An agent with a shell could lift its own limits with the program's own commands. Only its user may.
import { argTexts, hasLetter, hasLong, type Invocation, type Options, readOptions } from "../analysis/invocation.ts";
import { OWN_GUARDS_KEY } from "../decision.ts";
import { optionsOf, pathOf, programRule, type Rule, type RuleGroup, type Scene } from "../scene.ts";
import { isHermesFile } from "./places.ts";

/** Verbs that let something through that a check had stopped, or take a check away. What only shows is free. */
const VERBS: Readonly<Record<string, RegExp>> = {
  prompt: /^(?:un)?trust$/,
  trust: /^(?!list$)/,
  approvals: /^(?!(?:test|list|show|status)$)/,
  safety: /^(?!(?:check|list|show|status)$)/,
  pairing: /^(?!(?:list|show|status)$)/,
  hooks: /^(?!(?:list|show|status|test|doctor)$)/,
  memory: /^(?:approve|reject|trust)$/,
  skills: /^(?:approve|reject|trust)$/,
  plugins: /^(?:install|add|enable|trust|update)$/,
  mcp: /^(?:add|install|enable|login|trust)$/,
};

/** Settings that say what runs, where, and who is asked. */
const SETTINGS = new RegExp(
  `^(?:${[
    "approvals|command_allowlist|security|hooks|plugins|mcp_servers|delegation|cron",
    "terminal|skills|memory\\.write_approval|gateway|quick_commands",
  ].join("|")})(?:[.[]|$)`,
);
/** Variables of the same kind, which the same command sets. */
const VARIABLES = /^(?:HERMES_|TERMINAL_|SUDO_PASSWORD$|GATEWAY_|API_SERVER_|[A-Z_]+_ALLOW(?:ED|_ALL)_)/;

function changesSettings([verb = "", key = ""]: readonly string[]): boolean {
  // An editor is a program of the agent's choice, and can be one that needs no hands.
  if (verb === "edit") return true;
  if (verb !== "set" && verb !== "unset") return false;
  return SETTINGS.test(key.toLowerCase()) || VARIABLES.test(key) || key.includes("$");
}

/** Another home has other settings, which anybody may have written. */
const OWN_SWITCHES = /^HERMES_(?:YOLO_MODE|ACCEPT_HOOKS|REDACT_SECRETS|HOME|KANBAN_(?:TASK|RUN_ID|DELEGATED))$/;
/** They hold the worker of a card to it; without them it would be taken for a person. */
const OWN_CARD = /^HERMES_KANBAN_(?:TASK|RUN_ID|DELEGATED)$/;
/** Options of `env` that take variables away. */
const TAKES_AWAY = /^-(?:$|[a-z]*[iu])|^--(?:i|u)/;

function liftsLimits(invocation: Invocation): boolean {
  // Exported, a switch stays for every later command of the shell.
  if (/^(?:export|declare|typeset)$/.test(invocation.program))
    return invocation.args.some(({ text }) => OWN_SWITCHES.test(text.split("=", 1)[0] ?? ""));
  if (invocation.program === "unset") return invocation.args.some(({ text }) => OWN_CARD.test(text));
  const options = hermesOptions(invocation);
  if (!options) return false;
  const [noun = "", ...rest] = options.operands;
  const isBare = invocation.via.some(
    ({ program, args }) => program === "env" && args.some((one) => TAKES_AWAY.test(one)),
  );
  if (noun === "kanban" && isBare) return true;
  if (hasLong(options, "yolo") || hasLong(options, "accept-hooks")) return true;
  if (invocation.assignments.some(({ name }) => OWN_SWITCHES.test(name))) return true;
  if (noun === "config") return changesSettings(rest);
  const verb = Object.hasOwn(VERBS, noun) ? VERBS[noun] : undefined;
  return verb !== undefined && rest[0] !== undefined && verb.test(rest[0]);
}

const REMOVERS = new Set(["rm", "unlink", "shred", "truncate", "mv"]);
const OWN_HOME = /^~\/\.hermes(?:\/profiles(?:\/[^/]+)?)?$/;

/**
 * Files that hold trust, questions and answers; a database shell could answer a question that waits for the user.
 * A link is a second name for one of them, under which no later check would know it.
 */
function touchesOwnFiles(invocation: Invocation, scene: Scene): boolean {
  const { program } = invocation;
  const isDatabase = program === "sqlite3" || program === "sqlite";
  const options = optionsOf(invocation);
  const links = program === "ln" || program === "link" || (program === "cp" && linksInstead(options));
  if (!isDatabase && !links && !REMOVERS.has(program)) return false;
  if (isDatabase && (options.clusters.includes("readonly") || hasLong(options, "readonly"))) return false;
  const paths = options.operands.map((path) => pathOf(path, invocation, scene));
  return paths.some((path) => isHermesFile(path) || (!isDatabase && OWN_HOME.test(path)));
}

const linksInstead = (options: Options) =>
  hasLetter(options, "l", "s") || hasLong(options, "link") || hasLong(options, "symbolic-link", 2);

export const ownGuards: RuleGroup = {
  reason: "would change what Hermes itself may do, which only its user decides",
  rules: [
    {
      key: OWN_GUARDS_KEY,
      matches: (scene) =>
        scene.invocations.some((invocation) => liftsLimits(invocation) || touchesOwnFiles(invocation, scene)),
    },
  ],
};

const isGateway = (invocation: Invocation, verb: RegExp) => {
  const [noun, given = ""] = hermesWords(invocation);
  return noun === "gateway" && verb.test(given);
};

function detaches(invocation: Invocation, scene: Scene): boolean {
  if (invocation.background || invocation.via.some(({ program }) => program === "nohup" || program === "setsid"))
    return true;
  return scene.invocations.some(({ program }) => program === "disown");
}

const FINDERS = new Set(["pgrep", "pidof"]);

/** `kill $(pgrep x)`: the pattern may well match this very process. */
function killExpansionRule(key: string, form: "$(" | "`"): Rule {
  return programRule(key, ["kill"], ({ args }) =>
    args.some(({ substitutions }) =>
      substitutions.some((one) => one.form === form && one.invocations.some(({ program }) => FINDERS.has(program))),
    ),
  );
}

const pipesPidsToKill = (scene: Scene) =>
  scene.pipelines.some((stages) => {
    const from = stages.findIndex((stage) => stage.some(({ program }) => FINDERS.has(program)));
    return from >= 0 && stages.slice(from + 1).some((stage) => stage.some(({ program }) => program === "kill"));
  });

const expansion = killExpansionRule("kill process via pgrep/pidof expansion (self-termination)", "$(");

export const ownProcess: RuleGroup = {
  reason: "stops Hermes itself and the agents that run in it",
  rules: [
    programRule("stop/restart hermes gateway (kills running agents)", ["hermes"], (invocation) =>
      isGateway(invocation, /^(?:stop|restart)$/),
    ),
    programRule(
      "hermes update (restarts gateway, kills running agents)",
      ["hermes"],
      (invocation) => hermesWords(invocation)[0] === "update",
    ),
    programRule(
      "start gateway outside systemd (use 'systemctl --user restart hermes-gateway')",
      ["hermes"],
      (invocation, scene) => isGateway(invocation, /^run$/) && detaches(invocation, scene),
    ),
    programRule("kill hermes/gateway process (self-termination)", ["pkill", "killall"], (invocation) =>
      invocation.args.some(({ text }) => /hermes|gateway/i.test(text)),
    ),
    { key: expansion.key, matches: (scene) => expansion.matches(scene) || pipesPidsToKill(scene) },
    killExpansionRule("kill process via backtick pgrep/pidof expansion (self-termination)", "`"),
    programRule("stop/restart hermes launchd service (kills running agents)", ["launchctl"], (invocation) => {
      const [verb = "", ...rest] = optionsOf(invocation).operands;
      const stops = /^(?:stop|kickstart|unload|bootout|kill|disable|remove)$/.test(verb);
      return stops && rest.some((text) => /hermes/i.test(text));
    }),
  ],
};

const RUNNERS = new Set(["node", "bun", "deno", "npx", "bunx", "pnpx"]);
const SCRIPT_RUNNERS = new Set(["npm", "pnpm", "yarn"]);
const OWN_PROGRAM = /(?:^|\/)(?:hermes(?:\.mjs|-agent)?(?:@[\w.-]+)?|dist\/main\.js|src\/main\.ts)$/;

/** In a clone `npm start -- …` is `hermes …`; in another project these words mean nothing, and nobody writes them. */
function startedAsScript(args: readonly string[]): Options | null {
  const [first, ...rest] = args.filter((arg) => !/^-[a-z]$|^--(?:silent|prefix=\S*)$/.test(arg));
  const words = first === "run" || first === "run-script" ? rest : [first, ...rest];
  if (words[0] !== "start") return null;
  return read(words.slice(1).filter((arg) => arg !== undefined && arg !== "--") as string[]); // the first is there
}

/** The arguments of Hermes itself, however it is started; null when this is another program. */
function hermesOptions(invocation: Invocation): Options | null {
  const args = argTexts(invocation);
  if (/^hermes(?:\.mjs)?$/.test(invocation.program)) return read(args);
  if (SCRIPT_RUNNERS.has(invocation.program)) return startedAsScript(args);
  if (!RUNNERS.has(invocation.program)) return null;
  const at = args.findIndex((arg) => OWN_PROGRAM.test(arg));
  return at < 0 ? null : read(args.slice(at + 1));
}

/** The words of a hermes command line without its options. */
export function hermesWords(invocation: Invocation): readonly string[] {
  return hermesOptions(invocation)?.operands ?? [];
}

const read = (args: readonly string[]) =>
  readOptions(args, {
    short: "pmtsrzq",
    long: ["profile", "model", "provider", "toolsets", "skills", "resume", "source"],
  });
