// An agent with a shell could lift its own limits with the program's own commands. Only its user may.
import type { Invocation } from "../analysis/invocation.ts";
import { hasLong } from "../analysis/options.ts";
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

function liftsLimits(invocation: Invocation): boolean {
  const options = hermesOptions(invocation);
  if (!options) return false;
  const [noun = "", ...rest] = options.operands;
  if (hasLong(options, "yolo") || hasLong(options, "accept-hooks")) return true;
  if (invocation.assignments.some(({ name }) => /^HERMES_(?:YOLO_MODE|ACCEPT_HOOKS|REDACT_SECRETS)$/.test(name)))
    return true;
  if (noun === "config") return changesSettings(rest);
  const verb = Object.hasOwn(VERBS, noun) ? VERBS[noun] : undefined;
  return verb !== undefined && rest[0] !== undefined && verb.test(rest[0]);
}

const REMOVERS = new Set(["rm", "unlink", "shred", "truncate", "mv"]);

/** Files that hold trust, questions and answers; a database shell could answer a question that waits for the user. */
function touchesOwnFiles(invocation: Invocation, scene: Scene): boolean {
  const { program } = invocation;
  const isDatabase = program === "sqlite3" || program === "sqlite";
  if (!isDatabase && !REMOVERS.has(program)) return false;
  const options = optionsOf(invocation);
  if (isDatabase && (options.clusters.includes("readonly") || hasLong(options, "readonly"))) return false;
  return options.operands.some((path) => isHermesFile(pathOf(path, invocation, scene)));
}

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
