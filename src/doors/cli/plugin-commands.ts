// `hermes WORD ...` where WORD is a command that a plugin brings.
import { isSafeMode } from "../../home/safe-mode.ts";
import type { CliContext } from "./context.ts";

/** The exit code; null when no plugin that is on has a command of this name. */
export async function runPluginCommand(
  name: string,
  args: readonly string[],
  { home, io, clock, cwd }: Pick<CliContext, "home" | "io" | "clock" | "cwd">,
): Promise<number | null> {
  if (isSafeMode(home) || (home.config().plugins.enabled ?? []).length === 0) return null;
  const { sharedPlugins } = await import("../../plugins/shared.ts");
  const { loadTools } = await import("../../tools/toolset/discover.ts");
  await loadTools(home.log);
  const { host } = sharedPlugins({ home, clock, cwd });
  await host.refresh();
  for (const line of host.takeLines()) io.err(`⚠ ${line}\n`);
  const command = host.cliCommands().find((one) => one.name === name);
  if (!command) return null;
  const code = await command.run(args, { out: io.out, err: io.err });
  return typeof code === "number" ? code : 0;
}
