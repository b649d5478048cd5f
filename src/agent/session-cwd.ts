// The folder a conversation works in: the configured one, else where the program was started.
import { stat } from "node:fs/promises";
import type { OpenHome } from "../home/open.ts";
import { expandPath } from "../safety/paths.ts";

export interface SessionCwd {
  readonly cwd: string;
  /** Nobody chose it: it is where the program happened to be started. */
  readonly isFallback: boolean;
  readonly warning: string | null;
}

export async function sessionCwd(home: OpenHome, launch: string): Promise<SessionCwd> {
  const { cwd: configured, backend } = home.config().terminal;
  const started = { cwd: launch, isFallback: true, warning: null };
  // On another machine it names a folder there.
  if (["", "."].includes(configured.trim()) || backend === "ssh") return started;
  const path = expandPath(configured.trim(), launch, home.environment().HOME ?? home.osHome);
  const facts = await stat(path).catch(() => null); // told below
  if (facts?.isDirectory()) return { cwd: path, isFallback: false, warning: null };
  return { ...started, warning: `terminal.cwd is ${configured}, but there is no such folder; working in ${launch}.` };
}
