// Every platform that this home may use: those of the program, and those of plugins that are enabled.
import type { Logger } from "../../home/log.ts";
import type { OpenHome } from "../../home/open.ts";
import { isSafeMode } from "../../home/paths.ts";
import type { Clock } from "../../kit/clock.ts";
import type { ChatMessage, PlatformEntry } from "./contract.ts";
import type { Dispatch } from "./inbound.ts";
import { builtinPlatforms } from "./registry.ts";
import { asTable } from "./settings.ts";

interface PlatformHome {
  readonly home: OpenHome;
  readonly clock: Clock;
  readonly cwd: string;
}

/** A name that is taken keeps its meaning. `report`: what people should know of plugins that are left out. */
export async function allPlatforms(
  where: PlatformHome,
  log: Logger,
  report?: (line: string) => void,
): Promise<readonly PlatformEntry[]> {
  const own = await builtinPlatforms();
  const names = new Set(own.map(({ name }) => name));
  return [...own, ...(await pluginPlatforms(where, log, report)).filter(({ name }) => !names.has(name))];
}

/** What plugins say to a message before anybody looks at who wrote it; the first that says something counts. */
export async function beforeDispatch(where: PlatformHome, message: ChatMessage): Promise<Dispatch> {
  const { home } = where;
  if (isSafeMode(home) || (home.config().plugins.enabled ?? []).length === 0) return { action: "pass" };
  const { sharedPlugins } = await import("../../plugins/shared.ts");
  const { source, text, updateId } = message;
  const answers = await sharedPlugins(where).host.hooks.emit("pre_gateway_dispatch", {
    source,
    text,
    update_id: updateId,
  });
  for (const answer of answers) {
    const { action, text: other } = asTable(answer);
    if (action === "skip" || action === "allow") return { action };
    if (action === "rewrite" && typeof other === "string") return { action, text: other };
  }
  return { action: "pass" };
}

/** One that is no platform is named in the log. */
async function pluginPlatforms(
  { home, clock, cwd }: PlatformHome,
  log: Logger,
  report: (line: string) => void = () => undefined,
): Promise<readonly PlatformEntry[]> {
  if (isSafeMode(home) || (home.config().plugins.enabled ?? []).length === 0) return [];
  const { sharedPlugins } = await import("../../plugins/shared.ts");
  const { host } = sharedPlugins({ home, clock, cwd });
  await host.refresh();
  const offered = await host.platforms();
  for (const line of host.takeLines()) report(line);
  return offered.flatMap(({ name, platform }) => {
    const entry = platform as PlatformEntry; // looked at in the next line
    const parts = [entry?.identity, entry?.open, entry?.parseTarget].every((part) => typeof part === "function");
    if (parts && entry.name === name && entry.maxLength > 0) {
      // Whatever they are called: no command of the agent gets them.
      home.withhold((entry.variables ?? []).filter(({ secret }) => secret).map((variable) => variable.name));
      return [guarded(entry, log)];
    }
    const problem = `the platform ${name} of a plugin is incomplete: it needs identity, open, parseTarget, maxLength, its name`;
    log.warn(problem);
    report(problem);
    return [];
  });
}

/** What a plugin left out has its default, and what its small functions throw is logged: the other platforms go on. */
function guarded(entry: PlatformEntry, log: Logger): PlatformEntry {
  const calls: Readonly<Record<string, (args: readonly unknown[]) => unknown>> = {
    ...{ identity: () => null, parseTarget: () => null, format: ([text]: readonly unknown[]) => text },
    ...{
      batchSeconds: () => 0,
      followUpSeconds: () => 0,
      check: () => "its check of the settings failed; see the log",
    },
    commandWord: ([name]) => `/${name}`,
  };
  const { label, lengthUnit, options, variables } = entry;
  const plain: Partial<PlatformEntry> = {
    label: typeof label === "string" && label !== "" ? label : entry.name,
    lengthUnit: ["utf16", "codepoint", "bytes"].includes(lengthUnit) ? lengthUnit : "utf16",
    options: Array.isArray(options) ? options : [],
    variables: Array.isArray(variables) ? variables : [],
  };
  return new Proxy(entry, {
    get(target, key) {
      if (Object.hasOwn(plain, key)) return plain[key as keyof PlatformEntry];
      const value: unknown = Reflect.get(target, key);
      const instead = typeof key === "string" && Object.hasOwn(calls, key) ? calls[key] : undefined;
      if (typeof value !== "function" || !instead) return value;
      return (...args: readonly unknown[]) => {
        try {
          return value.apply(target, args);
        } catch (error) {
          log.error(`${entry.name}: ${String(key)} of the plugin failed`, error);
          return instead(args);
        }
      };
    },
  });
}
