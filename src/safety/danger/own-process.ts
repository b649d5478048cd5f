import type { Invocation } from "../analysis/invocation.ts";
import { optionsOf, programRule, type Rule, type RuleGroup, type Scene } from "../scene.ts";
import { hermesWords } from "./hermes-command.ts";

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
