// What keeps shell hooks from running, one line each.
import { access, constants } from "node:fs/promises";
import { openShellHooks } from "../../plugins/shared.ts";
import type { ShellHook } from "../../plugins/shell-hooks/settings.ts";
import type { ShellHooks } from "../../plugins/shell-hooks/shell-hooks.ts";
import type { CliContext } from "./context.ts";
import { standingText } from "./hook-standing.ts";

export function hooksOf(ctx: CliContext): ShellHooks {
  return openShellHooks(
    ctx,
    () => undefined,
    () => false,
  );
}

export async function findHookTrouble(ctx: CliContext): Promise<{ hooks: number; trouble: readonly string[] }> {
  const hooks = hooksOf(ctx);
  const { hooks: configured, problems } = hooks.configured();
  const trouble = [...problems];
  for (const hook of configured) {
    const standing = await hooks.standing(hook, ctx.cwd);
    const found = [
      standing.type === "allowed" ? null : standingText(standing),
      await programTrouble(hook, standing.facts.files[0], ctx),
    ];
    trouble.push(...found.flatMap((what) => (what === null ? [] : [`${hook.event}: ${hook.command}: ${what}`])));
  }
  const known = new Set(configured.map(({ event, command }) => `${event}\n${command}`));
  for (const { event, command } of await hooks.consents.all())
    if (!known.has(`${event}\n${command}`))
      trouble.push(
        `${event}: ${command}: allowed once, but no longer configured; hermes hooks revoke "${command}" forgets it`,
      );
  return { hooks: configured.length, trouble };
}

/** `script` is the first file of the user's that the command names. */
async function programTrouble(
  hook: ShellHook,
  script: string | undefined,
  { home }: CliContext,
): Promise<string | null> {
  const [program = ""] = hook.argv;
  if (!program.includes("/")) return null;
  if (script === undefined)
    return (await can(program.replace(/^~(?=\/)/, home.osHome), constants.F_OK)) ? null : `${program} is not there`;
  if (!script.endsWith(program.replace(/^~/, "")) || (await can(script, constants.X_OK))) return null;
  return `${home.display(script)} may not be executed; chmod +x mends it`;
}

async function can(path: string, mode: number): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false, // that is the answer
  );
}
