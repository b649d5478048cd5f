import { inspectPlugins, missingPlugins } from "../../../plugins/inspect.ts";
import type { CliContext } from "../context.ts";
import { findHookTrouble } from "../hook-trouble.ts";
import type { Finding } from "./finding.ts";

/** As they stand on disk and in the settings: no code of a plugin and no hook runs for it. */
export async function checkPlugins(ctx: CliContext): Promise<readonly Finding[]> {
  const rows = await inspectPlugins(ctx);
  const found: Finding[] = [];
  for (const { plugin, state, note, missingEnv } of rows) {
    if (state === "failed")
      found.push({
        level: "warn",
        text: `${plugin.key} ${note}`,
        fix: `hermes plugins enable ${plugin.key} tries it again`,
      });
    if (state === "on" && missingEnv.length > 0)
      found.push({
        level: "warn",
        text: `${plugin.key} needs ${missingEnv.join(", ")}`,
        fix: `put it into ${ctx.home.display(ctx.home.paths.envFile)}`,
      });
  }
  for (const name of missingPlugins(rows, ctx.home.config()))
    found.push({
      level: "warn",
      text: `plugins.enabled names "${name}", which is not installed`,
      fix: `hermes plugins install it, or take it out of plugins.enabled`,
    });
  const on = rows.filter(({ state }) => state === "on").length;
  const { hooks, trouble } = await findHookTrouble(ctx);
  return [
    { level: "ok", text: `${on} of ${rows.length} plugins on, ${hooks} shell hooks` },
    ...found,
    ...trouble.map((text): Finding => ({ level: "warn", text })),
  ];
}
