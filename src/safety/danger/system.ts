import { argTexts, type Invocation } from "../analysis/invocation.ts";
import { hasLetter, hasLong } from "../analysis/options.ts";
import { optionsOf, pathOf, programRule, type RuleGroup, writtenFiles } from "../scene.ts";

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
