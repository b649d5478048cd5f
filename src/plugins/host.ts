// The plugins of one home, in this process: which are on, what they gave, and how all of it is taken back.
import { pathToFileURL } from "node:url";
import type { Logger } from "../home/log.ts";
import type { Clock } from "../kit/clock.ts";
import { OutOfTime, within } from "../kit/within.ts";
import { entryOf, type PluginSettings, type Standing, standingOf } from "./choice.ts";
import type { Factory, PluginCall, PluginCliCommand, PluginCommand, PluginTool, ProviderKind } from "./contract.ts";
import { type FoundPlugin, findPlugins, namesOf, type PluginPlaces } from "./find.ts";
import { HookBus, type Payload } from "./hooks.ts";
import { type Outline, OutlineStore, outlineOf, stampOf, type ToolOutline } from "./outlines.ts";
import { collectRegistrations, type RegisterPorts, type Registrations } from "./registrations.ts";
import { runAs } from "./stray-errors.ts";

/** A tool as it is offered: its code is loaded by the first call. */
export interface OfferedTool extends ToolOutline {
  readonly toolset: string;
  available?(): Promise<boolean>;
  handler(args: Readonly<Record<string, unknown>>, call: PluginCall): Promise<unknown>;
}

/**
 * Where registrations go. Each returns how to take it back. A refusal is thrown in words; the plugin goes on without that one thing.
 */
export interface PluginSinks {
  tool(
    tool: OfferedTool,
    by: { readonly plugin: string; readonly bundled: boolean; readonly mayOverride: boolean },
  ): Undo;
  memoryProvider(name: string, create: Factory): Undo;
  contextEngine(name: string, create: Factory): Undo;
  provider(kind: ProviderKind, name: string, load: () => Promise<unknown>): Undo;
}
export type Undo = () => void;

export interface HostOptions extends Omit<RegisterPorts, "settings" | "log"> {
  readonly places: PluginPlaces;
  readonly outlineFile: string;
  readonly clock: Clock;
  readonly log: Logger;
  settings(): PluginSettings & { readonly entries: Readonly<Record<string, unknown>> };
  readonly sinks: PluginSinks;
  /** How long plugins may take to register, and a hook to answer. */
  readonly limits?: { readonly registerMs: number; readonly hookMs: number };
}

export interface PluginStatus {
  readonly plugin: FoundPlugin;
  readonly standing: Standing;
  /** Its code has run in this process. */
  readonly loaded: boolean;
  /** Why it is not in use though it is on, or what of it was refused. */
  readonly problems: readonly string[];
  readonly outline: Outline | null;
}

interface Active {
  readonly plugin: FoundPlugin;
  readonly stamp: string;
  outline: Outline;
  code: Promise<Registrations> | null;
  loaded: boolean;
  readonly undo: Undo[];
  readonly problems: string[];
  /** Tools that have not yet said whether they are available. */
  readonly silent: Set<string>;
}

const LIMITS = { registerMs: 10_000, hookMs: 10_000 };

export class PluginHost {
  readonly hooks: HookBus;
  readonly #options: HostOptions;
  readonly #outlines: OutlineStore;
  readonly #active = new Map<string, Active>();
  readonly #failed = new Map<string, { readonly stamp: string; readonly problem: string }>();
  /** Plugins whose background failures were told. */
  readonly #strayed = new Set<string>();
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
  commands(): readonly (Pick<PluginCommand, "name" | "description" | "argsHint" | "run"> & {
    readonly plugin: string;
  })[] {
    return [...this.#active.values()].flatMap((active) =>
      active.outline.commands.map(({ name, description, argsHint }) => ({
        plugin: active.plugin.key,
        name,
        description,
        ...(argsHint === undefined ? {} : { argsHint }),
        run: async (args: string, surface) => {
          const command = (await this.#code(active)).commands.find((one) => one.name === name);
          if (!command) throw new Error(`plugin "${active.plugin.key}" no longer has /${name}`);
          return this.#as(active.plugin, () => command.run(args, surface));
        },
      })),
    );
  }

  cliCommands(): readonly PluginCliCommand[] {
    return [...this.#active.values()].flatMap((active) =>
      active.outline.cliCommands.map(({ name, description }) => ({
        name,
        description,
        run: async (args, io) => {
          const command = (await this.#code(active)).cliCommands.find((one) => one.name === name);
          if (!command) throw new Error(`plugin "${active.plugin.key}" no longer has hermes ${name}`);
          return this.#as(active.plugin, () => command.run(args, io));
        },
      })),
    );
  }

  /** Platforms for the gateway. */
  async platforms(): Promise<readonly { readonly name: string; readonly platform: unknown }[]> {
    const wanted = [...this.#active.values()].filter(({ outline }) => outline.platforms.length > 0);
    return (await Promise.all(wanted.map((active) => this.#code(active)))).flatMap(({ platforms }) => platforms);
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
    const { log, places } = this.#options;
    try {
      this.#found = await findPlugins(places);
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

  /** With an outline nothing of its code runs; without one it runs now, because nobody knows what it offers. */
  async #start(plugin: FoundPlugin, stamp: string): Promise<void> {
    const known = await this.#outlines.get(plugin.folder, stamp);
    const active: Active = {
      ...{ plugin, stamp, code: null, loaded: false, undo: [], problems: [], silent: new Set() },
      outline: known ?? EMPTY,
    };
    this.#failed.delete(plugin.key);
    this.#active.set(plugin.key, active);
    try {
      if (!known) await this.#code(active);
      if (this.#active.get(plugin.key) === active) this.#offer(active);
    } catch (error) {
      this.#options.log.debug(`plugin "${plugin.key}" is not in use`, error); // told and taken back where it failed
    }
  }

  #stamp(plugin: FoundPlugin): Promise<string> {
    const { settings, env } = this.#options;
    return stampOf(plugin, { entries: settings().entries, env });
  }

  #stop(key: string): void {
    const active = this.#active.get(key);
    this.#active.delete(key);
    for (const undo of active?.undo.splice(0).reverse() ?? []) undo();
  }

  /** The plugin's code, run once. When it fails, everything of the plugin is taken back. */
  #code(active: Active): Promise<Registrations> {
    active.code ??= this.#load(active);
    return active.code;
  }

  async #load(active: Active): Promise<Registrations> {
    const { plugin, stamp } = active;
    const { log } = this.#options;
    try {
      const taken = await this.#within(
        this.#as(plugin, () => this.#run(plugin, stamp)),
        "register",
      );
      active.loaded = true;
      active.outline = outlineOf(taken, stamp);
      await this.#writeDown(plugin, active.outline);
      return taken;
    } catch (error) {
      const problem = `could not be loaded: ${error instanceof Error ? error.message : error}`;
      log.warn(`plugin "${plugin.key}" ${problem}`, error);
      this.#lines.push(`Plugin "${plugin.key}" ${problem}. It is left out; "hermes plugins list" shows it.`);
      this.#failed.set(plugin.key, { stamp, problem });
      await this.#writeDown(plugin, { stamp, problem });
      if (this.#active.get(plugin.key) === active) this.#stop(plugin.key);
      throw error;
    }
  }

  async #writeDown(plugin: FoundPlugin, known: Parameters<OutlineStore["set"]>[1]): Promise<void> {
    try {
      await this.#outlines.set(plugin.folder, known);
    } catch (error) {
      this.#options.log.warn(`what is known of plugin "${plugin.key}" could not be written down`, error);
    }
  }

  async #run(plugin: FoundPlugin, stamp: string): Promise<Registrations> {
    if (plugin.entry === null) throw new Error(plugin.problem ?? "it has no code");
    const { settings, log, ...ports } = this.#options;
    // The stamp in the address: a plugin that changed is another module.
    const module: { readonly default?: unknown } = await import(`${pathToFileURL(plugin.entry).href}?${stamp}`);
    if (typeof module.default !== "function") throw new Error("its code has no default export register(ctx)");
    const register = module.default as (ctx: unknown) => unknown; // whatever it takes, it gets the context
    const entry = entryOf(settings().entries, plugin);
    const own = { ...ports, settings: entry, log: log.child(plugin.manifest.name.replaceAll(/[^\w-]/g, "_")) };
    return collectRegistrations(register, plugin, own);
  }

  /** Its code, and what that leaves running behind its back. */
  #as<T>({ key }: FoundPlugin, code: () => T): T {
    const stray = (error: unknown) => {
      const why = error instanceof Error ? error.message : error;
      this.#options.log.warn(`plugin "${key}" failed beside everything else and is ignored: ${why}`, error);
      if (this.#strayed.has(key)) return;
      this.#strayed.add(key);
      this.#lines.push(
        `Plugin "${key}" failed in the background: ${why}. Nothing was stopped; details are in the log.`,
      );
    };
    return runAs({ stray }, code);
  }

  async #within<T>(work: Promise<T>, what: string): Promise<T> {
    const { clock, limits = LIMITS } = this.#options;
    try {
      return await within(() => work, limits.registerMs, clock);
    } catch (error) {
      throw error instanceof OutOfTime ? new Error(`it did not ${what} within ${limits.registerMs / 1000} s`) : error;
    }
  }

  /** Whether a tool can be offered now. One that says nothing is not, and is not asked again before it has answered. */
  async #probe(active: Active, tool: string, ask: () => Promise<boolean>): Promise<boolean> {
    if (active.silent.has(tool)) return false;
    const work = this.#as(active.plugin, ask);
    try {
      return await this.#within(work, `say whether ${tool} is available`);
    } catch (error) {
      active.silent.add(tool);
      const back = () => void active.silent.delete(tool);
      work.then(back, back);
      this.#options.log.warn(`plugin "${active.plugin.key}": ${error instanceof Error ? error.message : error}`, error);
      return false;
    }
  }

  /** What is known from the outline: all of it is offered, none of it loaded. */
  #offer(active: Active): void {
    const { outline, plugin } = active;
    const { sinks, settings } = this.#options;
    const by = {
      plugin: plugin.key,
      bundled: plugin.source === "bundled",
      mayOverride: entryOf(settings().entries, plugin).allow_tool_override === true,
    };
    for (const tool of outline.tools)
      this.#take(active, `tool ${tool.name}`, () => sinks.tool(this.#offered(active, tool), by));
    for (const event of outline.hooks) {
      const owner = `plugin "${plugin.key}"`;
      const call = (payload: Payload) => this.#as(plugin, () => this.#callHooks(active, event, payload));
      active.undo.push(this.hooks.add(event, { owner, call }));
    }
    for (const list of ["memories", "engines"] as const) {
      const what = list === "memories" ? "memory provider" : "context engine";
      for (const name of outline[list]) {
        const create: Factory = async (place) => {
          const made = (await this.#code(active))[list].find((one) => one.name === name);
          if (!made) throw new Error(`plugin "${plugin.key}" no longer has the ${what} ${name}`);
          const making = this.#as(plugin, async () => made.create(place));
          return this.#within(making, `make the ${what} ${name}`);
        };
        this.#take(active, `${what} ${name}`, () =>
          list === "memories" ? sinks.memoryProvider(name, create) : sinks.contextEngine(name, create),
        );
      }
    }
    for (const { kind, name } of outline.providers) {
      const load = async () =>
        (await this.#code(active)).providers.find((one) => one.name === name && one.kind === kind);
      this.#take(active, `${kind} provider ${name}`, () =>
        // Written by us from what was registered under one of the kinds.
        sinks.provider(kind as ProviderKind, name, async () => (await load())?.provider),
      );
    }
  }

  #take(active: Active, what: string, hand: () => Undo): void {
    try {
      active.undo.push(hand());
    } catch (error) {
      const problem = `${what} was refused: ${error instanceof Error ? error.message : error}`;
      active.problems.push(problem);
      this.#options.log.warn(`plugin "${active.plugin.key}": ${problem}`);
      this.#lines.push(`Plugin "${active.plugin.key}": ${problem}`);
    }
  }

  #offered(active: Active, outline: ToolOutline): OfferedTool {
    const real = async (): Promise<PluginTool> => {
      const tool = (await this.#code(active)).tools.find((one) => one.name === outline.name);
      if (!tool) throw new Error(`plugin "${active.plugin.key}" no longer has the tool ${outline.name}`);
      return tool;
    };
    const given = new Set(active.plugin.manifest.requiresEnv);
    return {
      ...outline,
      toolset: outline.toolset ?? active.plugin.manifest.name,
      ...(outline.asks
        ? { available: () => this.#probe(active, outline.name, async () => (await real()).available?.() ?? true) }
        : {}),
      handler: (args, call) =>
        this.#as(active.plugin, async () =>
          (await real()).handler(args, { ...call, env: (name) => (given.has(name) ? call.env(name) : undefined) }),
        ),
    };
  }

  /** All of the plugin's own listeners run, whatever one of them does; the first answer counts. */
  async #callHooks(active: Active, event: string, payload: Payload): Promise<unknown> {
    const { hooks } = await this.#code(active);
    let answer: unknown;
    let failure: { readonly error: unknown } | null = null;
    for (const { call } of hooks.filter((hook) => hook.event === event)) {
      try {
        const given = await call(structuredClone(payload));
        answer ??= given;
      } catch (error) {
        failure ??= { error };
      }
    }
    if (failure && answer === undefined) throw failure.error;
    if (failure) this.#options.log.warn(`plugin "${active.plugin.key}": a listener of ${event} failed`, failure.error);
    return answer;
  }
}

const EMPTY: Outline = {
  ...{ stamp: "", tools: [], hooks: [], commands: [], cliCommands: [], memories: [], engines: [] },
  ...{ providers: [], platforms: [], skills: [] },
};
