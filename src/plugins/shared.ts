// The plugins of a home, shared by its conversations in this process.
import { basename, dirname, join } from "node:path";
import type { OpenHome } from "../home/open.ts";
import { bundledPlugins, installRoot } from "../home/product.ts";
import type { Clock } from "../kit/clock.ts";
import { childEnvironment } from "../sandbox/child-env.ts";
import type { ConversationPort } from "./contract.ts";
import type { PluginPlaces } from "./find.ts";
import { PluginHost } from "./host.ts";
import { current, pluginHosts } from "./hosts.ts";
import { ShellHooks } from "./shell-hooks/shell-hooks.ts";
import { pluginSinks } from "./sinks.ts";

export interface SharedPlugins {
  readonly host: PluginHost;
  readonly shellHooks: ShellHooks;
  /** The hooks of the settings as they are now, in place of those before. */
  listen(): void;
  /** Conversations that are open, the newest last: code that runs beside all of them speaks to that one. */
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

/** One per home and process. Plugins of a project are those of the folder the first conversation was opened in. */
export function sharedPlugins(wish: PluginHome): SharedPlugins {
  const known = shared.get(wish.home);
  if (known) return known;
  const { home, clock } = wish;
  const open: ConversationPort[] = [];
  const log = home.log.child("plugins");
  const host = new PluginHost({
    places: pluginPlaces(wish),
    outlineFile: home.paths.at("cache", "plugin_outlines.json"),
    clock,
    log,
    hermesHome: home.paths.dir,
    profileName: home.paths.profile,
    settings: () => home.config().plugins,
    env: (name) => home.env(name),
    conversation: () => current.getStore() ?? open.at(-1) ?? null,
    sinks: pluginSinks,
  });
  const shellHooks = openShellHooks(
    wish,
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

export function pluginPlaces({ home, cwd }: PluginHome): PluginPlaces {
  const root = installRoot();
  const around = basename(dirname(root)) === "node_modules" ? [dirname(root)] : [];
  return {
    bundled: bundledPlugins(),
    home: home.paths.at("plugins"),
    project: home.config().plugins.project_enabled ? join(cwd, ".hermes", "plugins") : null,
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
