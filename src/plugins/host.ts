// The plugins of one home, in this process: which are on, what they gave, and how all of it is taken back.
import { ChangedCodeError } from "../home/code-pins.ts";
import { ActivePlugin, type ActivePorts, type OfferedCommand } from "./active-plugin.ts";
import type { PluginCliCommand } from "./contract.ts";
import { type FoundPlugin, findPlugins, namesOf, type PluginRoots } from "./find.ts";
import { HookBus } from "./hooks.ts";
import { type Outline, OutlineStore, type PluginSettings, type Standing, stampOf, standingOf } from "./outlines.ts";

interface HostOptions extends Omit<ActivePorts, "hooks" | "limitMs" | "entries" | "notify" | "onLoaded" | "onFailed"> {
  readonly roots: PluginRoots;
  readonly outlineFile: string;
  settings(): PluginSettings & { readonly entries: Readonly<Record<string, unknown>> };
  /** How long plugins may take to register, and a hook to answer. */
  readonly limits?: { readonly registerMs: number; readonly hookMs: number };
}

interface PluginStatus {
  readonly plugin: FoundPlugin;
  readonly standing: Standing;
  /** Its code has run in this process. */
  readonly loaded: boolean;
  /** Why it is not in use though it is on, or what of it was refused. */
  readonly problems: readonly string[];
  readonly outline: Outline | null;
}

const LIMITS = { registerMs: 10_000, hookMs: 10_000 };

export class PluginHost {
  readonly hooks: HookBus;
  readonly #options: HostOptions;
  readonly #outlines: OutlineStore;
  readonly #active = new Map<string, ActivePlugin>();
  readonly #failed = new Map<string, { readonly stamp: string; readonly problem: string }>();
  #found: readonly FoundPlugin[] = [];
  #lines: string[] = [];
  #refreshing: Promise<void> = Promise.resolve();

  constructor(options: HostOptions) {
    this.#options = options;
    this.#outlines = new OutlineStore(options.outlineFile);
    const { clock, log } = options;
    const { hookMs } = options.limits ?? LIMITS;
    this.hooks = new HookBus({ clock, log, limitMs: hookMs, report: (line) => void this.#lines.push(line) });
  }

  /** What the user should know, once. */
  takeLines(): readonly string[] {
    return this.#lines.splice(0);
  }

  /** For others who have something to say in the name of hooks. */
  report(line: string): void {
    this.#lines.push(line);
  }

  /** Takes over what changed on disk and in the settings. Between conversations; never rejects. */
  refresh(): Promise<void> {
    this.#refreshing = this.#refreshing.then(() => this.#refresh());
    return this.#refreshing;
  }

  statuses(): readonly PluginStatus[] {
    const settings = this.#options.settings();
    return this.#found.map((plugin) => {
      const active = this.#active.get(plugin.key);
      const failed = this.#failed.get(plugin.key);
      return {
        plugin,
        standing: standingOf(plugin, settings),
        loaded: active?.loaded === true,
        problems: [...(failed ? [failed.problem] : []), ...(active?.problems ?? [])],
        outline: active?.outline ?? null,
      };
    });
  }

  /** Slash commands of the plugins that are on. */
  commands(): readonly OfferedCommand[] {
    return [...this.#active.values()].flatMap((active) => active.commands());
  }

  cliCommands(): readonly PluginCliCommand[] {
    return [...this.#active.values()].flatMap((active) => active.cliCommands());
  }

  /** Platforms for the gateway. */
  async platforms(): Promise<readonly { readonly name: string; readonly platform: unknown }[]> {
    const wanted = [...this.#active.values()].filter(({ outline }) => outline.platforms.length > 0);
    return (await Promise.all(wanted.map((active) => active.code()))).flatMap(({ platforms }) => platforms);
  }

  /** Folders of skills that were registered, by the plugin's name. */
  skills(): ReadonlyMap<string, readonly string[]> {
    const wanted = [...this.#active.values()].filter(({ outline }) => outline.skills.length > 0);
    return new Map(wanted.map(({ plugin, outline }) => [plugin.manifest.name, outline.skills]));
  }

  /** Runs the plugin that offers the memory or engine a setting names, on or not: naming it is the user's leave. */
  async useSingle(kind: "memory" | "engine", name: string): Promise<void> {
    const declares = ({ manifest }: FoundPlugin) => {
      const declared = kind === "memory" ? manifest.providesMemory : manifest.providesEngines;
      return declared.includes(name) || (manifest.kind === "exclusive" && manifest.name === name);
    };
    const plugin = this.#found.find((one) => one.category === null && one.problem === null && declares(one));
    if (!plugin || this.#active.has(plugin.key)) return;
    if (standingOf(plugin, this.#options.settings()).type === "off") {
      const { disabled } = this.#options.settings();
      if (namesOf(plugin).some((one) => disabled.includes(one))) return;
    }
    await this.#start(plugin, await this.#stamp(plugin));
  }

  /** Takes everything back. */
  close(): void {
    for (const key of [...this.#active.keys()]) this.#stop(key);
  }

  async #refresh(): Promise<void> {
    const { log, roots } = this.#options;
    try {
      this.#found = await findPlugins(roots);
    } catch (error) {
      log.warn("the plugins could not be looked for", error);
      return;
    }
    const settings = this.#options.settings();
    const wanted = this.#found.filter((plugin) => standingOf(plugin, settings).type === "on");
    const stamps = await Promise.all(wanted.map((plugin) => this.#stamp(plugin)));
    for (const [key, active] of this.#active) {
      const at = wanted.findIndex((plugin) => plugin.key === key);
      if (at < 0 || stamps[at] !== active.stamp || wanted[at]?.folder !== active.plugin.folder) this.#stop(key);
    }
    for (const [index, plugin] of wanted.entries()) {
      const stamp = stamps[index] as string; // one per wanted plugin
      if (this.#active.has(plugin.key) || this.#failed.get(plugin.key)?.stamp === stamp) continue;
      await this.#start(plugin, stamp);
    }
  }

  /** With an outline nothing of its code runs; without one it runs now, because what it offers is unknown. */
  async #start(plugin: FoundPlugin, stamp: string): Promise<void> {
    const known = await this.#outlines.get(plugin.folder, stamp);
    const active = new ActivePlugin(plugin, stamp, known, this.#ports());
    this.#failed.delete(plugin.key);
    this.#active.set(plugin.key, active);
    try {
      if (!known) await active.code();
      if (this.#active.get(plugin.key) === active) active.offer();
    } catch (error) {
      this.#options.log.debug(`plugin "${plugin.key}" is not in use`, error); // reported and undone where it failed
    }
  }

  #ports(): ActivePorts {
    const { limits = LIMITS, settings } = this.#options;
    return {
      ...this.#options,
      hooks: this.hooks,
      limitMs: limits.registerMs,
      entries: () => settings().entries,
      notify: (line) => this.report(line),
      onLoaded: ({ plugin, outline }) => this.#writeDown(plugin, outline),
      onFailed: (active, problem, error) => this.#leaveOut(active, problem, error),
    };
  }

  async #leaveOut(active: ActivePlugin, problem: string, error: unknown): Promise<void> {
    const { plugin, stamp } = active;
    this.#options.log.warn(`plugin "${plugin.key}" ${problem}`, error);
    this.report(`Plugin "${plugin.key}" ${problem}. It is skipped; "hermes plugins list" shows it.`);
    // The user's yes changes no file of it, so it is tried again.
    if (!(error instanceof ChangedCodeError)) this.#failed.set(plugin.key, { stamp, problem });
    await this.#writeDown(plugin, { stamp, problem });
    if (this.#active.get(plugin.key) === active) this.#stop(plugin.key);
  }

  #stamp(plugin: FoundPlugin): Promise<string> {
    const { settings, env } = this.#options;
    return stampOf(plugin, { entries: settings().entries, env });
  }

  #stop(key: string): void {
    const active = this.#active.get(key);
    this.#active.delete(key);
    active?.stop();
  }

  async #writeDown(plugin: FoundPlugin, known: Parameters<OutlineStore["set"]>[1]): Promise<void> {
    try {
      await this.#outlines.set(plugin.folder, known);
    } catch (error) {
      this.#options.log.warn(`what is known of plugin "${plugin.key}" could not be written down`, error);
    }
  }
}
