// What the doctor looks at of the agent's abilities: tools, skills, memory provider, plugins and hooks. No code of a plugin runs for it.

import { hermesCommand } from "../../home/paths.ts";
import { plural } from "../../kit/formats.ts";
import { readHealth } from "../../memory/providers/attached.ts";
import { namesOf } from "../../plugins/find.ts";
import { inspectPlugins, missingPlugins } from "../../plugins/inspect.ts";
import { skillsContext } from "../../skills/open.ts";
import { diagnoseSkills } from "../../skills/resolve.ts";
import { AvailabilityCache, availableTools } from "../../tools/toolset/availability.ts";
import { loadTools } from "../../tools/toolset/discover.ts";
import { registry } from "../../tools/toolset/registry.ts";
import { chooseToolsets, portsOn } from "../../tools/toolset/toolsets.ts";
import type { CliContext } from "../cli-context.ts";
import type { Finding } from "./config-check.ts";
import { findHookTrouble } from "./hooks.ts";

/** The tools that come with the program; those of plugins and servers are told with them. */
export async function checkTools({ home, clock }: CliContext): Promise<readonly Finding[]> {
  await loadTools(home.log);
  const question = { platform: "cli", config: home.config(), env: (name: string) => home.env(name) };
  const { tools, unknown } = chooseToolsets(question, registry);
  const source = {
    registry,
    availability: new AvailabilityCache(clock),
    facts: { ...question, ports: portsOn(question.platform) },
    log: home.log,
  };
  const own = tools.filter((name) => registry.has(name));
  const ready = new Set((await availableTools(own, source)).map(({ name }) => name));
  const missing = own.filter((name) => !ready.has(name));
  // They are offered, and some work without; who wonders why one does not finds the name of its key here.
  const keyless = [...ready].flatMap((name) => {
    const keys = registry.get(name)?.traits.requiresEnv ?? [];
    return keys.length > 0 && keys.every((key) => !home.env(key)) ? [`${name} (${keys.join(" or ")})`] : [];
  });
  return [
    { level: "ok", text: `${ready.size} of ${plural(own.length, "tool")} can be used` },
    ...(keyless.length > 0 ? [{ level: "ok" as const, text: `without their own key: ${keyless.join(", ")}` }] : []),
    ...missing.map((name) => missingTool(name, home.env)),
    ...unknown.map(
      (name): Finding => ({ level: "warn", text: `there is no toolset "${name}"`, fix: hermesCommand("tools list") }),
    ),
  ];
}

/** A warning only where something is missing that a key would bring; the rest is simply not here. */
function missingTool(name: string, env: (name: string) => string | undefined): Finding {
  const keys = (registry.get(name)?.traits.requiresEnv ?? []).filter((key) => !env(key));
  if (keys.length === 0) return { level: "ok", text: `${name}: not available in the terminal` };
  const which = keys.length > 1 ? `one of ${keys.join(", ")}` : keys.join();
  return { level: "warn", text: `${name} needs ${which}`, fix: hermesCommand(`config set ${keys[0]}`) };
}

export async function checkSkills(ctx: CliContext): Promise<readonly Finding[]> {
  const { count, problems } = await diagnoseSkills(skillsContext(ctx));
  return [
    { level: "ok", text: plural(count, "skill") },
    ...problems.map((text): Finding => ({ level: "warn", text, fix: hermesCommand("skills doctor") })),
  ];
}

/** What was seen of it in conversations; asking it would run its code. */
export async function checkMemoryProvider({ home }: CliContext): Promise<readonly Finding[]> {
  const name = home.config().memory.provider.trim();
  if (name === "") return [{ level: "ok", text: "built-in memory only" }];
  const health = await readHealth(home.paths);
  const own = health?.provider === name ? health : null;
  if (!own) return [{ level: "ok", text: `${name}; ${hermesCommand("memory status")} asks it` }];
  const counts = `${plural(own.timeouts, "recall")} too slow, ${plural(own.errors, "failure")}; the last: ${own.last}`;
  return [{ level: "warn", text: `${name}: ${counts}`, fix: hermesCommand("memory status") }];
}

/** As they stand on disk and in the settings: no code of a plugin and no hook runs for it. */
export async function checkPlugins(ctx: CliContext): Promise<readonly Finding[]> {
  const rows = await inspectPlugins(ctx);
  const found: Finding[] = [];
  const wanted = new Set((ctx.home.config().plugins.enabled ?? []).map(String));
  for (const { plugin, state, note, missingEnv } of rows) {
    if (state === "unusable" && namesOf(plugin).some((name) => wanted.has(name)))
      found.push({ level: "warn", text: `${plugin.key} failed to load: ${note}` });
    if (state === "failed")
      found.push({
        level: "warn",
        text: `${plugin.key} ${note}`,
        fix: `${hermesCommand(`plugins enable ${plugin.key}`)} retries`,
      });
    if (state === "on" && missingEnv.length > 0)
      found.push({
        level: "warn",
        text: `${plugin.key} needs ${missingEnv.join(", ")}`,
        fix: `add it to ${ctx.home.display(ctx.home.paths.envFile)}`,
      });
  }
  for (const name of missingPlugins(rows, ctx.home.config()))
    found.push({
      level: "warn",
      text: `plugins.enabled names "${name}", which is not installed`,
      fix: `install it with ${hermesCommand("plugins install")}, or remove it from plugins.enabled`,
    });
  const on = rows.filter(({ state }) => state === "on").length;
  const { hooks, trouble } = await findHookTrouble(ctx);
  return [
    { level: "ok", text: `${on} of ${plural(rows.length, "plugin")} on, ${plural(hooks, "shell hook")}` },
    ...found,
    ...trouble.map((text): Finding => ({ level: "warn", text })),
  ];
}
