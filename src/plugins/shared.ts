// The plugins of a home, shared by its conversations in this process.

import { AsyncLocalStorage } from "node:async_hooks";
import { basename, dirname, join } from "node:path";
import { CodePins } from "../home/code-pins.ts";
import type { OpenHome } from "../home/open.ts";
import { bundledPlugins, installRoot, isSafeMode } from "../home/paths.ts";
import type { Clock } from "../kit/clock.ts";
import type { ProviderFactory } from "../memory/providers/contract.ts";
import { registerMemoryProvider } from "../memory/providers/find.ts";
import { childEnvironment } from "../sandbox/child-env.ts";
import { registerProvider } from "../tools/toolset/availability.ts";
import type { ToolContext } from "../tools/toolset/context.ts";
import { type ForeignToolSpec, registry, type ToolOutput } from "../tools/toolset/registry.ts";
import type { OfferedTool, PluginSinks } from "./active-plugin.ts";
import { type EngineFactory, registerContextEngine } from "./context-engines.ts";
import type { ConversationPort } from "./contract.ts";
import type { PluginRoots } from "./find.ts";
import { PluginHost } from "./host.ts";
import { ShellHooks } from "./shell-hooks/shell-hooks.ts";

export interface SharedPlugins {
  readonly host: PluginHost;
  readonly shellHooks: ShellHooks;
  /** The hooks of the settings as they are now, in place of those before. */
  listen(): void;
  /** Conversations that are open, the newest last: code that runs outside of all of them speaks to that one. */
  readonly open: ConversationPort[];
  /** `--accept-hooks` of one of them. */
  acceptHooks: boolean;
}

const shared = new WeakMap<OpenHome, SharedPlugins>();

export interface PluginHome {
  readonly home: OpenHome;
  readonly clock: Clock;
  readonly cwd: string;
}

/** The tools of the plugins that are on, as a conversation would get them. */
export async function registerPluginTools(where: PluginHome): Promise<void> {
  if (isSafeMode(where.home) || (where.home.config().plugins.enabled ?? []).length === 0) return;
  await sharedPlugins(where).host.refresh();
}

/** One per home and process. Plugins of a project are those of the folder the first conversation was opened in. */
export function sharedPlugins(request: PluginHome): SharedPlugins {
  const known = shared.get(request.home);
  if (known) return known;
  const { home, clock } = request;
  const open: ConversationPort[] = [];
  const log = home.log.child("plugins");
  const pins = new CodePins(home.paths);
  const host = new PluginHost({
    roots: pluginRoots(request),
    outlineFile: home.paths.at("cache", "plugin_outlines.json"),
    clock,
    log,
    hermesHome: home.paths.dir,
    profileName: home.paths.profile,
    settings: () => home.config().plugins,
    env: (name) => home.env(name),
    verify: async ({ source, folder, key }) =>
      source === "bundled" ? undefined : pins.verify(folder, `hermes plugins enable ${key}`),
    conversation: () => current.getStore() ?? open.at(-1) ?? null,
    sinks: pluginSinks,
  });
  const shellHooks = openShellHooks(
    request,
    (line) => host.report(line),
    () => made.acceptHooks,
  );
  let unlisten: (() => void) | null = null;
  const made: SharedPlugins = {
    host,
    shellHooks,
    open,
    acceptHooks: false,
    listen() {
      unlisten?.();
      unlisten = shellHooks.listen(host.hooks);
    },
  };
  shared.set(home, made);
  pluginHosts.set(home, host);
  return made;
}

export function pluginRoots({ home, cwd }: PluginHome): PluginRoots {
  const root = installRoot();
  const around = basename(dirname(root)) === "node_modules" ? [dirname(root)] : [];
  return {
    bundled: bundledPlugins(),
    home: home.paths.at("plugins"),
    project:
      home.config().plugins.project_enabled && home.folders.isTrusted(cwd) ? join(cwd, ".hermes", "plugins") : null,
    packages: [...around, home.paths.at("node_modules")],
  };
}

export function openShellHooks(
  { home, clock }: PluginHome,
  report: (line: string) => void,
  accepted: () => boolean,
): ShellHooks {
  return new ShellHooks({
    clock,
    log: home.log.child("hooks"),
    osHome: home.osHome,
    isTrusted: (folder) => home.folders.isTrusted(folder),
    consentFile: home.paths.at("shell-hooks-allowlist.json"),
    settings: () => home.config().hooks,
    autoAccept: () => accepted() || home.config().hooks_auto_accept,
    environment: () => childEnvironment(home.environment(), { HERMES_HOME: home.paths.dir }),
    async judge(command) {
      const { classifyCommand } = await import("../safety/verdict.ts");
      const { verdict, category, reason } = classifyCommand(command, {
        home: home.paths.dir,
        osHome: home.osHome,
        sudoPasswordSet: home.env("SUDO_PASSWORD") !== undefined,
        denyGlobs: home.config().approvals.deny,
      });
      return { verdict, reason: `${category}: ${reason}` };
    },
    report,
  });
}

// Where registrations of plugins go: the registries of the other rooms.

const STANDARD_SECONDS = 300;

const pluginSinks: PluginSinks = {
  tool(tool, by) {
    const before = registry.get(tool.name);
    const taken = registry.register(specOf(tool), { by, override: tool.override });
    if (!taken) {
      throw new Error(
        `the name belongs to a tool of the toolset "${before?.toolset}"; override: true and plugins.entries.${by.plugin}.allow_tool_override would let it take its place`,
      );
    }
    return () => {
      if (registry.get(tool.name)?.toolset !== tool.toolset) return;
      registry.deregister(tool.name);
      // What it had taken the place of comes back.
      if (before && before.toolset !== tool.toolset) registry.register(before.spec as ForeignToolSpec); // either kind goes in as it came out
    };
  },
  memoryProvider: (name, create) => registerMemoryProvider(name, create as ProviderFactory), // what it makes is checked when it is made
  contextEngine: (name, create) => registerContextEngine(name, create as EngineFactory), // checked when it is made
  provider: registerProvider,
};

function specOf(tool: OfferedTool): ForeignToolSpec {
  const { name, toolset, description, emoji, requiresEnv, maxResultChars, deferred, available } = tool;
  return {
    name,
    toolset,
    description,
    parameters: tool.parameters ?? { type: "object", properties: {} },
    timeoutMs: () => (tool.timeout ?? STANDARD_SECONDS) * 1000,
    emoji,
    requiresEnv,
    maxResultChars,
    deferred,
    available: available && (() => available()),
    // The dispatcher holds what comes back to the contract of results.
    handler: async (args, ctx) => (await run(tool, args, ctx)) as ToolOutput,
  };
}

function run(tool: OfferedTool, args: Readonly<Record<string, unknown>>, ctx: ToolContext): Promise<unknown> {
  const call = {
    sessionId: ctx.sessionId,
    taskId: ctx.taskId,
    callId: ctx.callId,
    platform: ctx.platform,
    cwd: ctx.environment.cwd,
    signal: ctx.signal,
    log: ctx.log,
    env: (name: string) => ctx.env?.(name),
    progress: (text?: string) => ctx.progress(text),
  };
  const conversation = ctx.conversation as ConversationPort | undefined; // put there by the conversation of the call
  return conversation ? current.run(conversation, () => tool.handler(args, call)) : tool.handler(args, call);
}

// The plugins that run for a home, for commands that only list: nothing is loaded or started.

export const pluginHosts = new WeakMap<OpenHome, PluginHost>();

/** The conversation that the running code of a plugin belongs to. */
export const current = new AsyncLocalStorage<ConversationPort>();
