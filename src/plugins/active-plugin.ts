// One plugin that is on: offered by its outline, its code run by the first use, all of it taken back together.

import { AsyncLocalStorage } from "node:async_hooks";
import { pathToFileURL } from "node:url";
import type { Logger } from "../home/log.ts";
import { type Clock, OutOfTime, within } from "../kit/clock.ts";
import { messageOf } from "../kit/errors.ts";
import type { Factory, PluginCall, PluginCliCommand, PluginCommand, PluginTool, ProviderKind } from "./contract.ts";
import type { FoundPlugin } from "./find.ts";
import type { HookBus, Payload } from "./hooks.ts";
import { entryOf, type Outline, outlineOf, type ToolOutline } from "./outlines.ts";
import { collectRegistrations, type RegisterPorts, type Registrations } from "./registrations.ts";

/** A tool as it is offered: its code is loaded by the first call. */
export interface OfferedTool extends ToolOutline {
  readonly toolset: string;
  available?(): Promise<boolean>;
  handler(args: Readonly<Record<string, unknown>>, call: PluginCall): Promise<unknown>;
}

export interface OfferedCommand extends Pick<PluginCommand, "name" | "description" | "argsHint" | "run"> {
  readonly plugin: string;
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
type Undo = () => void;

export interface ActivePorts extends Omit<RegisterPorts, "settings" | "log"> {
  readonly clock: Clock;
  readonly log: Logger;
  readonly sinks: PluginSinks;
  readonly hooks: HookBus;
  /** How long it may take to register, to make something, or to say whether a tool is available. */
  readonly limitMs: number;
  /** `plugins.entries`. */
  entries(): Readonly<Record<string, unknown>>;
  /** A line for the user. */
  notify(line: string): void;
  /** Asked before its code runs; rejects when it may not. Absent: it may. */
  verify?(plugin: FoundPlugin): Promise<void>;
  /** Its code has run; `outline` says what it registered. */
  onLoaded(plugin: ActivePlugin): Promise<void>;
  /** Its code cannot be used. */
  onFailed(plugin: ActivePlugin, problem: string, error: unknown): Promise<void>;
}

export class ActivePlugin {
  readonly plugin: FoundPlugin;
  readonly stamp: string;
  /** What of it was refused. */
  readonly problems: string[] = [];
  readonly #ports: ActivePorts;
  readonly #undo: Undo[] = [];
  /** Tools that have not yet said whether they are available. */
  readonly #silent = new Set<string>();
  #outline: Outline;
  #code: Promise<Registrations> | null = null;
  #loaded = false;
  #strayed = false;

  constructor(plugin: FoundPlugin, stamp: string, known: Outline | null, ports: ActivePorts) {
    this.plugin = plugin;
    this.stamp = stamp;
    this.#outline = known ?? EMPTY;
    this.#ports = ports;
  }

  get outline(): Outline {
    return this.#outline;
  }

  /** Its code has run in this process. */
  get loaded(): boolean {
    return this.#loaded;
  }

  /** Its code, run once. */
  code(): Promise<Registrations> {
    this.#code ??= this.#load();
    return this.#code;
  }

  commands(): readonly OfferedCommand[] {
    const { key } = this.plugin;
    return this.#outline.commands.map(({ name, description, argsHint }) => ({
      plugin: key,
      name,
      description,
      argsHint,
      run: async (args: string, surface) => {
        const command = (await this.code()).commands.find((one) => one.name === name);
        if (!command) throw new Error(`plugin "${key}" no longer has /${name}`);
        return this.#as(() => command.run(args, surface));
      },
    }));
  }

  cliCommands(): readonly PluginCliCommand[] {
    return this.#outline.cliCommands.map(({ name, description }) => ({
      name,
      description,
      run: async (args, io) => {
        const command = (await this.code()).cliCommands.find((one) => one.name === name);
        if (!command) throw new Error(`plugin "${this.plugin.key}" no longer has hermes ${name}`);
        return this.#as(() => command.run(args, io));
      },
    }));
  }

  /** What is known from the outline: all of it is offered, none of it loaded. */
  offer(): void {
    const { sinks, hooks, entries } = this.#ports;
    const { key, source } = this.plugin;
    const { tools, hooks: events, memories, engines, providers } = this.#outline;
    const mayOverride = entryOf(entries(), this.plugin).allow_tool_override === true;
    const by = { plugin: key, bundled: source === "bundled", mayOverride };
    for (const tool of tools) this.#take(`tool ${tool.name}`, () => sinks.tool(this.#offered(tool), by));
    for (const event of events) {
      const call = (payload: Payload) => this.#as(() => this.#callHooks(event, payload));
      this.#undo.push(hooks.add(event, { owner: `plugin "${key}"`, call }));
    }
    for (const name of memories) {
      const what = `memory provider ${name}`;
      this.#take(what, () => sinks.memoryProvider(name, this.#maker("memories", name, what)));
    }
    for (const name of engines) {
      const what = `context engine ${name}`;
      this.#take(what, () => sinks.contextEngine(name, this.#maker("engines", name, what)));
    }
    for (const { kind, name } of providers) {
      const load = async () => (await this.code()).providers.find((one) => one.name === name && one.kind === kind);
      this.#take(`${kind} provider ${name}`, () =>
        // Written by us from what was registered under one of the kinds.
        sinks.provider(kind as ProviderKind, name, async () => (await load())?.provider),
      );
    }
  }

  /** Takes everything back. */
  stop(): void {
    for (const undo of this.#undo.splice(0).reverse()) undo();
  }

  async #load(): Promise<Registrations> {
    const { onLoaded, onFailed } = this.#ports;
    try {
      const taken = await this.#within(
        this.#as(() => this.#run()),
        "register",
      );
      this.#loaded = true;
      this.#outline = outlineOf(taken, this.stamp);
      await onLoaded(this);
      return taken;
    } catch (error) {
      await onFailed(this, `could not be loaded: ${messageOf(error)}`, error);
      throw error;
    }
  }

  async #run(): Promise<Registrations> {
    const { entry, problem, manifest } = this.plugin;
    if (entry === null) throw new Error(problem ?? "it has no code");
    await this.#ports.verify?.(this.plugin);
    // The stamp in the address: a plugin that changed is another module.
    const module: { readonly default?: unknown } = await import(`${pathToFileURL(entry).href}?${this.stamp}`);
    if (typeof module.default !== "function") throw new Error("its code has no default export register(ctx)");
    const register = module.default as (ctx: unknown) => unknown; // whatever it takes, it gets the context
    const { entries, log, ...ports } = this.#ports;
    const settings = entryOf(entries(), this.plugin);
    const own = { ...ports, settings, log: log.child(manifest.name.replaceAll(/[^\w-]/g, "_")) };
    return collectRegistrations(register, this.plugin, own);
  }

  /** Its code, and what that leaves running behind its back. */
  #as<T>(code: () => T): T {
    const { log, notify } = this.#ports;
    const { key } = this.plugin;
    const stray = (error: unknown) => {
      const why = messageOf(error);
      log.warn(`plugin "${key}" failed and is ignored: ${why}`, error);
      if (!this.#strayed)
        notify(`Plugin "${key}" failed in the background: ${why}. Hermes keeps running; see the log for details.`);
      this.#strayed = true;
    };
    return runAs({ stray }, code);
  }

  async #within<T>(work: Promise<T>, what: string): Promise<T> {
    const { clock, limitMs } = this.#ports;
    try {
      return await within(() => work, limitMs, clock);
    } catch (error) {
      throw error instanceof OutOfTime ? new Error(`it did not ${what} within ${limitMs / 1000} s`) : error;
    }
  }

  #take(what: string, hand: () => Undo): void {
    try {
      this.#undo.push(hand());
    } catch (error) {
      const problem = `${what} was refused: ${messageOf(error)}`;
      this.problems.push(problem);
      this.#ports.log.warn(`plugin "${this.plugin.key}": ${problem}`);
      this.#ports.notify(`Plugin "${this.plugin.key}": ${problem}`);
    }
  }

  #maker(list: "memories" | "engines", name: string, what: string): Factory {
    return async (context) => {
      const made = (await this.code())[list].find((one) => one.name === name);
      if (!made) throw new Error(`plugin "${this.plugin.key}" no longer has the ${what}`);
      const making = this.#as(async () => made.create(context));
      return this.#within(making, `make the ${what}`);
    };
  }

  #offered(outline: ToolOutline): OfferedTool {
    const { key, manifest } = this.plugin;
    const real = async (): Promise<PluginTool> => {
      const tool = (await this.code()).tools.find((one) => one.name === outline.name);
      if (!tool) throw new Error(`plugin "${key}" no longer has the tool ${outline.name}`);
      return tool;
    };
    const given = new Set(manifest.requiresEnv);
    const available = () => this.#probe(outline.name, async () => (await real()).available?.() ?? true);
    return {
      ...outline,
      toolset: outline.toolset ?? manifest.name,
      available: outline.asks ? available : undefined,
      handler: (args, call) =>
        this.#as(async () =>
          (await real()).handler(args, { ...call, env: (name) => (given.has(name) ? call.env(name) : undefined) }),
        ),
    };
  }

  /** Whether a tool can be offered now. One that says nothing is not, and is not asked again before it has answered. */
  async #probe(tool: string, ask: () => Promise<boolean>): Promise<boolean> {
    if (this.#silent.has(tool)) return false;
    const work = this.#as(ask);
    try {
      return await this.#within(work, `say whether ${tool} is available`);
    } catch (error) {
      this.#silent.add(tool);
      const back = () => void this.#silent.delete(tool);
      work.then(back, back);
      this.#ports.log.warn(`plugin "${this.plugin.key}": ${messageOf(error)}`, error);
      return false;
    }
  }

  /** All of the plugin's own listeners run, whatever one of them does; the first answer counts. */
  async #callHooks(event: string, payload: Payload): Promise<unknown> {
    const { hooks } = await this.code();
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
    if (failure) this.#ports.log.warn(`plugin "${this.plugin.key}": a listener of ${event} failed`, failure.error);
    return answer;
  }
}

const EMPTY: Outline = {
  stamp: "",
  tools: [],
  hooks: [],
  commands: [],
  cliCommands: [],
  memories: [],
  engines: [],
  providers: [],
  platforms: [],
  skills: [],
};

// Failures that nobody waits for: of a timer, an emitter or a promise that a plugin let go of. They would end the process.

interface Owner {
  /** Something of it failed outside any call. */
  stray(error: unknown): void;
}

const running = new AsyncLocalStorage<Owner>();

/** Runs code of a plugin. A failure of what it started and forgot is reported to its owner and ends nothing. */
export function runAs<T>(owner: Owner, code: () => T): T {
  if (!process.hasUncaughtExceptionCaptureCallback()) process.setUncaughtExceptionCaptureCallback(onStray);
  return running.run(owner, code);
}

function onStray(error: unknown): void {
  const owner = running.getStore();
  if (owner) return owner.stray(error);
  // Of our own making: it goes the way it would have gone without us.
  process.setUncaughtExceptionCaptureCallback(null);
  process.nextTick(() => {
    throw error;
  });
}
