import { argTexts, type Invocation } from "../analysis/invocation.ts";
import { hasLetter, hasLong, type Options, readOptions } from "../analysis/options.ts";
import { programRule, type RuleGroup } from "../scene.ts";

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
