// `hermes doctor`: finds what is wrong and says how to fix it.

import { access, constants, stat } from "node:fs/promises";
import { delimiter, join } from "node:path";
import type { Command } from "commander";
import { chooseTarget } from "../../agent/open-model.ts";
import { isSafeMode, VERSION } from "../../home/paths.ts";
import { messageOf, UserError } from "../../kit/errors.ts";
import { plural } from "../../kit/formats.ts";
import { openAuth } from "../../llm/keys/pool.ts";
import { isLocalEndpoint } from "../../llm/providers/hosts.ts";
import { ProviderError } from "../../llm/providers/settings.ts";
import type { Target } from "../../llm/wire.ts";
import type { ServerStatus } from "../../mcp/contract.ts";
import { McpHub } from "../../mcp/hub.ts";
import { parseServers } from "../../mcp/settings.ts";
import { hubPorts } from "../../mcp/shared.ts";
import { namesOf } from "../../plugins/find.ts";
import { inspectPlugins, missingPlugins } from "../../plugins/inspect.ts";
import { backendProblem, hasSandboxSetting, inspectPlace, RUNS_HERE } from "../../sandbox/open.ts";
import { StoreError } from "../../sessions/store.ts";
import { type CliContext, ExitError } from "./context.ts";
import { findHookTrouble } from "./hooks.ts";

const MARKS = { ok: "✓", warn: "⚠", error: "✗" } as const;

const SECTIONS: readonly { readonly title: string; run(ctx: CliContext): Promise<readonly Finding[]> }[] = [
  { title: "Environment", run: checkEnvironment },
  { title: "Home", run: checkHome },
  { title: "Configuration", run: checkConfiguration },
  { title: "Model", run: checkProvider },
  { title: "Database", run: checkStore },
  { title: "Programs", run: checkPrograms },
  { title: "Sandbox", run: checkSandbox },
  { title: "MCP servers", run: checkServers },
  { title: "Plugins and hooks", run: checkPlugins },
];

export function define(command: Command, ctx: CliContext): void {
  command
    .description("Look at configuration, provider and database, and say what to do. Exit 1 if something is broken.")
    .option("--json", "as JSON")
    .action(async (options: { json?: boolean }) => {
      const reports = await Promise.all(
        SECTIONS.map(async ({ title, run }) => ({ title, findings: await examine(title, () => run(ctx)) })),
      );
      const broken = reports.flatMap((report) => report.findings).filter((finding) => finding.level === "error").length;
      if (options.json) ctx.io.out(`${JSON.stringify({ ok: broken === 0, sections: reports })}\n`);
      else {
        const shown = reports.map(({ title, findings }) => section(title, findings)).join("\n\n");
        ctx.io.out(`${shown}\n${broken > 0 ? "\n" : ""}`);
      }
      if (broken > 0) throw new ExitError(1, options.json ? "" : `${plural(broken, "problem")} found.`);
    });
}

/** A check that throws becomes a finding. */
async function examine(title: string, run: () => Promise<readonly Finding[]>): Promise<readonly Finding[]> {
  try {
    return await run();
  } catch (error) {
    return [{ level: "error", text: `${title} could not be examined: ${messageOf(error)}` }];
  }
}

function section(title: string, findings: readonly Finding[]): string {
  const lines = findings.map(({ level, text, fix }) => `  ${MARKS[level]} ${text}${fix ? `\n      → ${fix}` : ""}`);
  return [title, ...lines].join("\n");
}

/** One thing the doctor saw. `fix` says what to type or change. */
interface Finding {
  readonly level: "ok" | "warn" | "error";
  readonly text: string;
  readonly fix?: string;
}

async function checkEnvironment(_ctx: CliContext): Promise<readonly Finding[]> {
  const sqlite = process.versions.sqlite;
  return [
    { level: "ok", text: `Hermes ${VERSION}, Node ${process.versions.node} on ${process.platform} ${process.arch}` },
    sqlite
      ? { level: "ok", text: `SQLite ${sqlite}` }
      : { level: "error", text: "this Node has no SQLite", fix: "use an official build of Node 24 or newer" },
  ];
}

async function checkHome(ctx: CliContext): Promise<readonly Finding[]> {
  const { paths } = ctx.home;
  const findings: Finding[] = [{ level: "ok", text: `${paths.dir} (profile ${paths.profile})` }];
  try {
    await access(paths.dir, constants.W_OK);
  } catch {
    findings.push({
      level: "error",
      text: `${paths.dir} cannot be written; nothing said will be kept`,
      fix: `make it yours: chown -R "$USER" ${paths.dir}, or choose another with HERMES_HOME`,
    });
  }
  if (await isLoose(paths.envFile)) {
    findings.push({
      level: "warn",
      text: `${paths.envFile} can be read by others, and it holds your keys`,
      fix: `chmod 600 ${paths.envFile}`,
    });
  }
  const broken = await openAuth(ctx.home).then(
    () => null,
    (error: unknown) => error,
  );
  if (broken instanceof UserError) findings.push({ level: "error", text: broken.message });
  return findings;
}

async function checkConfiguration(ctx: CliContext): Promise<readonly Finding[]> {
  const { home } = ctx;
  if (home.warnings.length === 0) return [{ level: "ok", text: `${home.paths.configFile} is fine` }];
  const unread = home.unreadGuards();
  return home.warnings.map((text): Finding => {
    // Something that holds the agent back cannot be read, so nothing starts.
    if (unread.some((problem) => text.endsWith(problem)))
      return { level: "error", text, fix: "no conversation starts until it is fixed: hermes config edit" };
    return { level: home.configBroken ? "error" : "warn", text };
  });
}

async function isLoose(path: string): Promise<boolean> {
  try {
    return process.platform !== "win32" && ((await stat(path)).mode & 0o077) !== 0;
  } catch {
    return false; // there is no such file, so there is nothing to read
  }
}

export async function checkProvider(ctx: CliContext): Promise<readonly Finding[]> {
  try {
    const { target, demo, loneKey } = await chooseTarget(ctx.home, {});
    if (loneKey !== undefined) {
      const text = `${loneKey} is set, but no model is chosen; the built-in demo model answers`;
      return [{ level: "warn", text, fix: "hermes model" }];
    }
    if (demo) {
      return [
        {
          level: "warn",
          text: "no provider is configured; the built-in demo model answers",
          fix: '"hermes setup" connects a real one',
        },
      ];
    }
    const chosen: Finding = {
      level: "ok",
      text: `${target.model} at ${target.provider} (${target.apiMode}), window ${target.contextLength} tokens${target.windowAssumed ? " (assumed; say it with model.context_length)" : ""}`,
    };
    return [chosen, await reach(target)];
  } catch (error) {
    if (error instanceof ProviderError) return [{ level: "error", text: error.message }];
    throw error;
  }
}

/** Any answer means the server is up; only 401 and 403 are about the key. */
async function reach(target: Target): Promise<Finding> {
  const url = `${target.baseUrl.replace(/\/$/, "")}${target.apiMode === "anthropic_messages" ? "/v1/models" : "/models"}`;
  try {
    const response = await fetch(url, {
      headers:
        target.apiMode === "anthropic_messages"
          ? { "x-api-key": target.apiKey, "anthropic-version": "2023-06-01" }
          : { authorization: `Bearer ${target.apiKey}` },
      signal: AbortSignal.timeout(REACH_MS),
    });
    await response.body?.cancel();
    if (response.status === 401 || response.status === 403) {
      return {
        level: "error",
        text: `${target.baseUrl} refuses the key (HTTP ${response.status})`,
        fix: "set the right key with hermes config set; docs/reference/providers.md lists the names",
      };
    }
    return { level: "ok", text: `${target.baseUrl} answers` };
  } catch (error) {
    const reason =
      error instanceof Error ? ((error.cause as NodeJS.ErrnoException)?.code ?? error.message) : String(error);
    return {
      level: "error",
      text: `${target.baseUrl} cannot be reached (${reason})`,
      fix: isLocalEndpoint(target.baseUrl)
        ? "start the server, or correct model.base_url"
        : "check the network, or correct model.base_url",
    };
  }
}

/** A server that takes longer is called slow, not broken. */
const REACH_MS = 10_000;

/** Connects to every server that is on, side by side, as a conversation would. */
async function checkServers(ctx: CliContext): Promise<readonly Finding[]> {
  const { home, clock, cwd } = ctx;
  const { servers, problems } = parseServers(home.config().mcp_servers);
  const wrong = problems.map((text): Finding => ({ level: "warn", text }));
  const off = servers
    .filter(({ enabled }) => !enabled)
    .map(({ name }): Finding => ({ level: "ok", text: `${name}: off` }));
  const on = servers.filter(({ enabled }) => enabled);
  if (isSafeMode(home)) return [{ level: "ok", text: "HERMES_SAFE_MODE is set: none is used" }];
  if (on.length === 0) return [...wrong, ...off, ...(wrong.length + off.length > 0 ? [] : [NONE])];
  const hub = await McpHub.open(hubPorts({ home, clock, cwd, platform: "cli" }), () => undefined);
  try {
    hub.start(on.map((settings) => ({ ...settings, lazy: false })));
    await hub.settled(REACH_MS);
    return [...wrong, ...hub.statuses().flatMap(findings), ...off];
  } finally {
    await hub.close();
  }
}

const NONE: Finding = { level: "ok", text: "none configured" };

function findings({ name, state, reason, tools, warnings }: ServerStatus): Finding[] {
  const looks = warnings.map((text): Finding => ({ level: "warn", text }));
  if (state === "connected") return [{ level: "ok", text: `${name}: ${plural(tools, "tool")}` }, ...looks];
  if (state === "connecting" || state === "waiting")
    return [{ level: "warn", text: `${name}: no answer within ${REACH_MS / 1000} s`, fix: `hermes mcp test ${name}` }];
  // A warning, not an error: conversations work without it.
  return [{ level: "warn", text: reason ?? `${name}: ${state}` }];
}

/** As they stand on disk and in the settings: no code of a plugin and no hook runs for it. */
async function checkPlugins(ctx: CliContext): Promise<readonly Finding[]> {
  const rows = await inspectPlugins(ctx);
  const found: Finding[] = [];
  const wanted = new Set((ctx.home.config().plugins.enabled ?? []).map(String));
  for (const { plugin, state, note, missingEnv } of rows) {
    if (state === "unusable" && namesOf(plugin).some((name) => wanted.has(name)))
      found.push({ level: "warn", text: `${plugin.key} does not load: ${note}` });
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
    { level: "ok", text: `${on} of ${plural(rows.length, "plugin")} on, ${plural(hooks, "shell hook")}` },
    ...found,
    ...trouble.map((text): Finding => ({ level: "warn", text })),
  ];
}

const PROGRAMS: readonly { readonly name: string; readonly use: string; readonly needed: boolean }[] = [
  { name: "bash", use: "runs the agent's commands", needed: true },
  { name: "git", use: "worktrees, checkpoints, diffs", needed: false },
];

async function checkPrograms(ctx: CliContext): Promise<readonly Finding[]> {
  const folders = (ctx.home.environment().PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  return Promise.all(
    PROGRAMS.map(async ({ name, use, needed }): Promise<Finding> => {
      const place = await findIn(folders, name);
      if (place) return { level: "ok", text: `${name}: ${place}` };
      return {
        level: needed ? "error" : "warn",
        text: `${name} is not on the PATH (${use})`,
        fix: `install ${name} with your system's package manager`,
      };
    }),
  );
}

const USE_SANDBOX = "hermes config set terminal.sandbox auto";

async function checkSandbox({ home }: CliContext): Promise<readonly Finding[]> {
  const { terminal } = home.config();
  const unusable = backendProblem(home);
  if (unusable !== null) {
    if (home.unreadGuards().includes(unusable))
      return [{ level: "warn", text: "not examined: its settings cannot be read (see Configuration)" }];
    return [{ level: "error", text: unusable, fix: "hermes config set terminal.backend local" }];
  }
  const { line, mode, problem, unattended } = await inspectPlace(terminal, home.environment());
  if (!RUNS_HERE.has(terminal.backend)) return [{ level: "ok", text: `commands run in another place: ${line}` }];
  if (problem && mode === "on")
    return [
      { level: "error", text: line, fix: `${problem.fix}, or run without one: hermes config set terminal.sandbox off` },
    ];
  if (problem) return [{ level: "warn", text: line, fix: problem.fix }];
  if (mode !== "off") return [{ level: "ok", text: `${line}; schedules: network ${unattended}` }];
  if (hasSandboxSetting(home)) return [{ level: "ok", text: `${line}, as you chose` }];
  return [{ level: "warn", text: "local, no sandbox: commands run with all your rights", fix: USE_SANDBOX }];
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

export async function checkStore(ctx: CliContext): Promise<readonly Finding[]> {
  try {
    const store = await ctx.store();
    const [health, stats] = await Promise.all([store.health(), store.stats()]);
    const facts: Finding = {
      level: "ok",
      text: `${plural(stats.sessions, "session")}, ${plural(stats.messages, "message")}, ${(stats.sizeBytes / 1e6).toFixed(1)} MB`,
    };
    return [facts, ...health.map(({ ok, text, fix }): Finding => ({ level: ok ? "ok" : "error", text, fix }))];
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    const fix =
      error.code === "busy"
        ? "wait until the other hermes process is done, or end it"
        : '"hermes sessions repair --check-only" examines the file; nothing is deleted';
    return [{ level: "error", text: error.message, fix }];
  }
}
