import type { Invocation, Stage } from "../analysis/invocation.ts";
import { hasLetter, hasLong } from "../analysis/options.ts";
import { isShell } from "../analysis/shells.ts";
import { optionsOf, type Scene } from "../scene.ts";

const NETCATS = new Set(["nc", "ncat", "netcat", "nc.traditional", "nc.openbsd"]);
const isNetwork = ({ program, args }: Invocation) =>
  NETCATS.has(program) ||
  program === "telnet" ||
  program === "socat" ||
  (program === "openssl" && args[0]?.text === "s_client");

/** A shell whose input or output is a connection. */
export function isReverseShell(scene: Scene): boolean {
  return scene.invocations.some(connects) || scene.pipelines.some(pipesShellToNetwork);
}

function connects(invocation: Invocation): boolean {
  const { program } = invocation;
  if (invocation.redirects.some(({ target }) => /^\/dev\/(?:tcp|udp)\//.test(target))) return true;
  if (NETCATS.has(program)) {
    const options = optionsOf(invocation, { short: "cegGiIopPqsTvVwWxX" });
    return hasLetter(options, "e", "c") || hasLong(options, "exec", 1) || hasLong(options, "sh-exec", 2);
  }
  return program === "socat" && invocation.args.some(({ text }) => /(?:^|,)(?:exec|system):/i.test(text));
}

function pipesShellToNetwork(stages: readonly Stage[]): boolean {
  const shells = stages.some((stage) => stage.some(({ program }) => isShell(program)));
  return shells && stages.some((stage) => stage.some(isNetwork));
}
