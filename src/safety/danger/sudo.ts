import { argTexts, type Invocation } from "../analysis/invocation.ts";
import { type Options, readOptions } from "../analysis/options.ts";
import { SUDO_OPTIONS } from "../analysis/wrappers.ts";
import type { RuleGroup, Scene } from "../scene.ts";

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
        ),
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
