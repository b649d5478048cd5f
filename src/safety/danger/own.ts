// An agent with a shell could lift its own limits with the program's own commands. Only its user may.
import type { Invocation } from "../analysis/invocation.ts";
import { hasLetter, hasLong, type Options } from "../analysis/options.ts";
import { optionsOf, pathOf, type RuleGroup, type Scene } from "../scene.ts";
import { isHermesFile } from "../sensitive-targets.ts";
import { hermesOptions } from "./hermes-command.ts";

export const OWN_GUARDS_KEY = "change the agent's own guards";

/** Verbs that let something through that a check had stopped, or take a check away. What only shows is free. */
const VERBS: Readonly<Record<string, RegExp>> = {
  prompt: /^(?:un)?trust$/,
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

const OWN_SWITCHES = /^HERMES_(?:YOLO_MODE|ACCEPT_HOOKS|REDACT_SECRETS)$/;

function liftsLimits(invocation: Invocation): boolean {
  // Exported, a switch stays for every later command of the shell.
  if (/^(?:export|declare|typeset)$/.test(invocation.program))
    return invocation.args.some(({ text }) => OWN_SWITCHES.test(text.split("=", 1)[0] ?? ""));
  const options = hermesOptions(invocation);
  if (!options) return false;
  const [noun = "", ...rest] = options.operands;
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
