// Variables that commands see because a skill declares them. Whatever else .env holds stays out of commands, unless the user lists it.
import { refusedEnvName } from "../home/environment.ts";
import type { OpenHome } from "../home/open.ts";
import { isSecretName } from "../sandbox/child-env.ts";
import type { Skill } from "./catalogue.ts";
import { isAgentWritten } from "./provenance.ts";
import type { SkillsContext } from "./roots.ts";

/** How this machine and this session are set up: commands have their own, and elsewhere it would be wrong. */
const OF_THE_MACHINE =
  /^(?:HOME|USER|LOGNAME|HOSTNAME|PWD|OLDPWD|SHLVL|IFS|ENV|BASH_.*|TMP|TEMP|TMPDIR|TERM|XDG_.*|SSH_.*|GPG_.*|DBUS_.*|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|TMUX|DOCKER_.*|HERMES_.*|_HERMES_.*)$/i;

/**
 * Those of one conversation and the agents it starts.
 *
 * - A variable counts from the moment a skill that declares it is opened, for every command and script that begins later.
 * - No skill hands on the keys that Hermes knows by name or that a `key_env` names, nor does one that the agent wrote or changed hand on
 *   anything: what the model writes is no consent of the user's.
 */
export class SkillVariables {
  readonly #home: Pick<OpenHome, "env" | "environment" | "withheld" | "config">;
  readonly #names = new Set<string>();

  constructor(home: Pick<OpenHome, "env" | "environment" | "withheld" | "config">) {
    this.#home = home;
  }

  get names(): readonly string[] {
    return [...this.#names];
  }

  /** As commands get them. What the user's own shell had comes before .env, as in every command. */
  values(): Readonly<Record<string, string>> {
    if (this.#names.size === 0) return {};
    const seen = this.#home.environment();
    const values = this.names.map((name) => [name, seen[name] ?? this.#home.env(name)]);
    return Object.fromEntries(values.filter(([, value]) => value !== undefined));
  }

  /** Hands on what an opened skill declares. Resolves to a line about what does not reach commands; null when everything does. */
  async open(skill: Skill, declared: readonly string[], context: SkillsContext): Promise<string | null> {
    const wanted = declared.filter((name) => this.#home.env(name) && !isGivenAnyway(name) && !this.#isListed(name));
    if (wanted.length === 0) return null;
    const blocked = wanted.filter(isSecretName);
    const free = wanted.filter((name) => !isSecretName(name));
    const withheld = this.#home.withheld();
    const keys = free.filter((name) => withheld.includes(name));
    const others = free.filter((name) => !withheld.includes(name));
    const agentWritten = others.length > 0 && (await isAgentWritten(skill, context));
    if (!agentWritten) for (const name of others) this.#names.add(name);
    const unseen = agentWritten ? others.filter((name) => !this.#reachesCommands(name)) : [];
    return noteOf({ blocked: blocked.filter((name) => !this.#isForced(name)), keys, unseen });
  }

  #isListed(name: string): boolean {
    return this.#home.config().terminal.env_passthrough.includes(name) && !isSecretName(name);
  }

  #isForced(name: string): boolean {
    const { backend, docker_forward_env } = this.#home.config().terminal;
    if (backend === "docker" && docker_forward_env.includes(name)) return true;
    return this.#home.env(`_HERMES_FORCE_${name}`) !== undefined;
  }

  /** Without anybody's doing: the user's shell had it, and commands run on this machine. */
  #reachesCommands(name: string): boolean {
    const { backend } = this.#home.config().terminal;
    return this.#names.has(name) || (backend !== "docker" && backend !== "ssh" && name in this.#home.environment());
  }
}

const isGivenAnyway = (name: string) => refusedEnvName(name) !== null || OF_THE_MACHINE.test(name);

function noteOf(names: Readonly<Record<"blocked" | "keys" | "unseen", readonly string[]>>): string | null {
  const { blocked, keys, unseen } = names;
  const parts = [
    ...(unseen.length > 0
      ? [`${unseen.join(", ")}: the agent wrote or changed this skill, so the user must list it in ${LIST} first`]
      : []),
    ...(keys.length > 0 ? [`${keys.join(", ")}: a key_env names it, so the user must list it in ${LIST} first`] : []),
    ...(blocked.length > 0 ? [`${blocked.join(", ")}: a key that no skill can hand on`] : []),
  ];
  return parts.length > 0 ? `Not seen by commands: ${parts.join("; ")}.` : null;
}

const LIST = "terminal.env_passthrough";
