// What the doctor looks at outside the home: the model's server, programs, the sandbox, MCP servers.

import { access, constants, realpath } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { chooseTarget } from "../../agent/open-model.ts";
import { hermesCommand, installRoot, isSafeMode } from "../../home/paths.ts";
import { messageOf } from "../../kit/errors.ts";
import { plural } from "../../kit/formats.ts";
import { askEndpoint } from "../../llm/providers/endpoint.ts";
import { isLocalEndpoint } from "../../llm/providers/hosts.ts";
import { mapping, ProviderError, text as textOf } from "../../llm/providers/settings.ts";
import { placeOf, type Target } from "../../llm/wire.ts";
import type { ServerStatus } from "../../mcp/contract.ts";
import { McpHub } from "../../mcp/hub.ts";
import { parseServers } from "../../mcp/settings.ts";
import { hubPorts } from "../../mcp/shared.ts";
import { backendProblem, hasSandboxSetting, inspectPlace, RUNS_HERE } from "../../sandbox/open.ts";
import type { CliContext } from "../cli-context.ts";
import type { Finding } from "./config-check.ts";

/** A server that takes longer is called slow, not broken. */
const REACH_MS = 10_000;

export async function checkProvider(ctx: CliContext): Promise<readonly Finding[]> {
  try {
    const { target, demo, loneKey } = await chooseTarget(ctx.home, {});
    if (loneKey !== undefined) {
      const text = `${loneKey} is set but no model is selected; using the built-in demo model`;
      return [{ level: "warn", text, fix: hermesCommand("model") }];
    }
    if (demo) {
      const text = "no provider configured; using the built-in demo model";
      return [{ level: "warn", text, fix: `connect a real one: ${hermesCommand("setup")}` }];
    }
    const window = `window ${target.contextLength} tokens${target.windowAssumed ? " (assumed; set model.context_length)" : ""}`;
    const chosen: Finding = {
      level: "ok",
      text: `${target.model} at ${placeOf(target)} (${target.apiMode}), ${window}`,
    };
    const [own, others] = await Promise.all([reach(target, "error"), checkFallbacks(ctx)]);
    return [chosen, ...own, ...others];
  } catch (error) {
    if (error instanceof ProviderError) return [{ level: "error", text: error.message }];
    throw error;
  }
}

/** Models that step in; each is asked beside the others. */
async function checkFallbacks({ home }: CliContext): Promise<readonly Finding[]> {
  const config = home.config();
  const wanted = [config.fallback_providers, config.fallback_model].flat().map(mapping);
  const found = await Promise.all(
    wanted.map(async (entry): Promise<readonly Finding[]> => {
      const [provider, model, baseUrl] = [textOf(entry.provider), textOf(entry.model), textOf(entry.base_url)];
      if (!provider || !model) return []; // the check of the settings tells
      const name = `fallback ${model} at ${provider}`;
      try {
        const { target } = await chooseTarget(home, { provider, model, baseUrl }, { offline: true });
        const trouble = (await reach(target, "warn")).filter(({ level }) => level !== "ok");
        if (trouble.length === 0) return [{ level: "ok", text: `${name} answers` }];
        return trouble.map((finding) => ({ ...finding, text: `${name}: ${finding.text}` }));
      } catch (error) {
        return [{ level: "warn", text: `${name} cannot be used: ${messageOf(error)}` }];
      }
    }),
  );
  return found.flat();
}

async function reach(target: Target, level: "warn" | "error"): Promise<readonly Finding[]> {
  const answer = await askEndpoint(target, { fetch, limitMs: REACH_MS });
  const { baseUrl, model } = target;
  switch (answer.type) {
    case "refused":
      return [
        {
          level,
          text: `${baseUrl} does not accept the key (HTTP ${answer.status})`,
          fix: `enter a valid key: ${hermesCommand("setup model")}`,
        },
      ];
    case "unreachable":
      return [
        {
          level,
          text: `${baseUrl} cannot be reached: ${answer.sentence}`,
          fix: `${isLocalEndpoint(baseUrl) ? "start the server" : "check the network"}, or fix its URL: ${hermesCommand("setup model")}`,
        },
      ];
    case "no_list":
      return [{ level: "ok", text: `${baseUrl} answers` }];
    case "answers": {
      const accepted = answer.keyChecked ? " and accepts the key" : "";
      const listed = answer.models.length === 0 || answer.models.some(({ id }) => id === model);
      const unlisted: Finding = {
        level: "warn",
        text: `${baseUrl} does not list the model ${model}`,
        fix: hermesCommand("model"),
      };
      return [{ level: "ok", text: `${baseUrl} answers${accepted}` }, ...(listed ? [] : [unlisted])];
    }
  }
}

// Programs.

interface Program {
  readonly name: string;
  readonly use: string;
  /** Without it something that is set up does not work. */
  needed(ctx: CliContext): "error" | "warn" | null;
}

const PROGRAMS: readonly Program[] = [
  { name: "bash", use: "runs the agent's commands", needed: () => "error" },
  { name: "git", use: "worktrees, checkpoints, diffs", needed: () => "warn" },
  {
    name: "docker",
    use: "for terminal.backend docker",
    needed: (ctx) => (backendOf(ctx) === "docker" ? "error" : null),
  },
  { name: "ssh", use: "for terminal.backend ssh", needed: (ctx) => (backendOf(ctx) === "ssh" ? "error" : null) },
];

const backendOf = ({ home }: CliContext) => home.config().terminal.backend;

export async function checkPrograms(ctx: CliContext): Promise<readonly Finding[]> {
  const { home } = ctx;
  const path = home.environment().PATH ?? "";
  const folders = path.split(delimiter).filter((folder) => folder !== "");
  const usual = PROGRAMS.map(async ({ name, use, needed }): Promise<Finding> => {
    const place = await findIn(folders, name);
    if (place) return { level: "ok", text: `${name}: ${place}` };
    const level = needed(ctx);
    if (level === null) return { level: "ok", text: `${name}: not installed (${use})` };
    return {
      level,
      text: `${name} is not on the PATH (${use})`,
      fix: `install ${name} with your system's package manager`,
    };
  });
  return Promise.all([checkCommand(folders, ctx), ...usual, checkRipgrep(), checkBrowser(path, ctx)]);
}

/** The command itself: is it there, and is it this one? */
async function checkCommand(folders: readonly string[], { home }: CliContext): Promise<Finding> {
  const place = await findIn(folders, "hermes");
  const inClone = `In a clone it is "npm start --"; to install it: npm run build && npm install -g .`;
  if (place === null) {
    if (hermesCommand() !== "hermes")
      return { level: "ok", text: `hermes: not installed; in this clone it is "npm start --"` };
    return { level: "warn", text: "hermes is not on the PATH", fix: inClone };
  }
  const real = await realpath(place).catch(() => place);
  const own = await realpath(join(installRoot(), "bin", "hermes.mjs")).catch(() => "");
  if (real === own) return { level: "ok", text: `hermes: ${home.display(place)}` };
  const text = `${home.display(place)} is a different installation from this one (${home.display(installRoot())})`;
  return { level: "warn", text, fix: "remove the one you do not use, or change their order on the PATH" };
}

async function checkRipgrep(): Promise<Finding> {
  const { findRipgrep } = await import("../../tools/files/ripgrep.ts");
  const place = await findRipgrep();
  if (place) return { level: "ok", text: `ripgrep: ${place}` };
  return {
    level: "warn",
    text: "ripgrep is not installed; file search is slower",
    fix: "install ripgrep with your system's package manager",
  };
}

async function checkBrowser(path: string, { home }: CliContext): Promise<Finding> {
  const { findChromium, isElsewhere } = await import("../../tools/browser/launch.ts");
  const { browser } = home.config();
  if (isElsewhere(browser)) return { level: "ok", text: "browser: remote" };
  const place = await findChromium({ engine: browser.engine, path });
  if (place) return { level: "ok", text: `browser: ${place}` };
  const named = !["", "auto"].includes(browser.engine.trim());
  if (!named) return { level: "ok", text: "browser: not installed (for the browser tools: Chromium or Chrome)" };
  return {
    level: "warn",
    text: `browser.engine is ${browser.engine}, which is not installed`,
    fix: hermesCommand("config set browser.engine auto"),
  };
}

async function findIn(folders: readonly string[], name: string): Promise<string | null> {
  for (const folder of folders) {
    const path = join(folder, name);
    try {
      await access(path, constants.X_OK);
      return path;
    } catch {
      // not here; the next folder may have it
    }
  }
  return null;
}

// The sandbox.

export async function checkSandbox({ home }: CliContext): Promise<readonly Finding[]> {
  const { terminal } = home.config();
  const unusable = backendProblem(home);
  if (unusable !== null) {
    if (home.unreadGuards().includes(unusable))
      return [{ level: "warn", text: "not checked: its settings cannot be read (see Configuration)" }];
    return [{ level: "error", text: unusable, fix: hermesCommand("config set terminal.backend local") }];
  }
  const { line, mode, problem, unattended } = await inspectPlace(terminal, home.environment());
  if (!RUNS_HERE.has(terminal.backend)) return [{ level: "ok", text: `commands run elsewhere: ${line}` }];
  if (problem && mode === "on") {
    const without = `or disable it: ${hermesCommand("config set terminal.sandbox off")}`;
    return [{ level: "error", text: line, fix: `${problem.fix}, ${without}` }];
  }
  if (problem) return [{ level: "warn", text: line, fix: problem.fix }];
  if (mode !== "off") return [{ level: "ok", text: `${line}; schedules: network ${unattended}` }];
  if (hasSandboxSetting(home)) return [{ level: "ok", text: `${line}, as you chose` }];
  const fix = hermesCommand("config set terminal.sandbox auto");
  return [{ level: "warn", text: "local, no sandbox: commands run with your full permissions", fix }];
}

// MCP servers.

/** Connects to every server that is on, side by side, as a conversation would. */
export async function checkServers(ctx: CliContext): Promise<readonly Finding[]> {
  const { home, clock, cwd } = ctx;
  const { servers, problems } = parseServers(home.config().mcp_servers);
  const wrong = problems.map((text): Finding => ({ level: "warn", text }));
  const off = servers
    .filter(({ enabled }) => !enabled)
    .map(({ name }): Finding => ({ level: "ok", text: `${name}: off` }));
  const on = servers.filter(({ enabled }) => enabled);
  if (isSafeMode(home)) return [{ level: "ok", text: "HERMES_SAFE_MODE is set: disabled" }];
  if (on.length === 0) return [...wrong, ...off, ...(wrong.length + off.length > 0 ? [] : [NONE])];
  const hub = await McpHub.open(hubPorts({ home, clock, cwd, platform: "cli" }), () => undefined);
  try {
    hub.start(on.map((settings) => ({ ...settings, lazy: false })));
    await hub.settled(REACH_MS);
    return [...wrong, ...hub.statuses().flatMap(serverFindings), ...off];
  } finally {
    await hub.close();
  }
}

const NONE: Finding = { level: "ok", text: "none configured" };

function serverFindings({ name, state, reason, tools, warnings }: ServerStatus): Finding[] {
  const looks = warnings.map((text): Finding => ({ level: "warn", text }));
  if (state === "connected") return [{ level: "ok", text: `${name}: ${plural(tools, "tool")}` }, ...looks];
  if (state === "connecting" || state === "waiting") {
    const text = `${name}: no response within ${REACH_MS / 1000} s`;
    return [{ level: "warn", text, fix: hermesCommand(`mcp test ${name}`) }];
  }
  // A warning, not an error: conversations work without it.
  return [{ level: "warn", text: reason ?? `${name}: ${state}` }];
}
