// `hermes gateway`: runs the gateway, and looks after one that runs elsewhere.
import { open, stat } from "node:fs/promises";
import { type Command, Option } from "commander";
import { said } from "../../home/language/words.ts";
import { type HomePaths, homePaths, inProfile, profileCommand } from "../../home/paths.ts";
import { listProfileNames } from "../../home/profile-manage.ts";
import { profileDir } from "../../home/profiles.ts";
import { messageOf } from "../../kit/errors.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { onReaderLeft } from "../stop-signals.ts";
import { masked } from "./answer.ts";
import { listenForEnd, outliveStrayErrors } from "./ending.ts";
import {
  askForRestart,
  endGateway,
  type GatewayProcess,
  isGoneWithin,
  runningGatewayOf,
  takeInstance,
} from "./instance.ts";
import {
  consoleLog,
  installService,
  serviceName,
  serviceState,
  startDetached,
  startService,
  uninstallService,
} from "./services.ts";
import { readStatus, StateFile, savedState } from "./state-file.ts";
import { statusPage } from "./status-page.ts";

interface Flags {
  readonly json?: true;
  readonly all?: true;
  readonly system?: true;
}

interface RunFlags {
  readonly replace?: true;
  /** A process that has to be gone first: the gateway that starts itself again. */
  readonly after?: string;
}

export function define(command: Command, ctx: CliContext): void {
  const json = (child: Command) => child.option("--json", "machine-readable");
  const all = (child: Command) => child.option("--all", "the gateways of all profiles");
  const system = (child: Command) =>
    child.option("--system", "for the whole machine, not only for you (systemd, as root)");
  command.description("talk to the agent in chats: Telegram, Discord, Slack, e-mail and more");
  command
    .command("run")
    .description("run the gateway in this terminal until Ctrl+C")
    .option("--replace", "stop a running gateway of this profile first")
    .addOption(new Option("--after <PID>").hideHelp())
    .action((flags: RunFlags) => run(flags, ctx));
  command
    .command("start")
    .description("start the gateway in the background, or its service if one is installed")
    .action(() => start(ctx));
  all(command.command("stop"))
    .description("stop the gateway; running turns may finish first")
    .action((flags: Flags) => stop(flags, ctx));
  all(command.command("restart"))
    .description("restart the gateway; running turns may finish first")
    .action((flags: Flags) => restart(flags, ctx));
  json(command.command("status", { isDefault: true }))
    .description("show platforms, queues and problems; exit code 0 running, 1 not")
    .action((flags: Flags) => status(flags, ctx));
  json(command.command("list"))
    .description("list the gateways of all profiles")
    .action((flags: Flags) => list(flags, ctx));
  system(command.command("install"))
    .description("install a service that starts the gateway with your login (systemd or launchd)")
    .action((flags: Flags) => install(flags, ctx));
  system(command.command("uninstall"))
    .description("stop and remove the service")
    .action((flags: Flags) => uninstall(flags, ctx));
  command
    .command("setup")
    .description("connect a chat platform: keys, packages, next steps")
    .argument("[platform]", "telegram, discord, slack, ...")
    .action(async (platform: string | undefined) => (await import("./setup.ts")).setUpPlatform(platform, ctx));
}

/** How long a program that has ended may take to close what it opened. */
const LINGER_MS = 10_000;

async function run({ replace, after }: RunFlags, ctx: CliContext): Promise<void> {
  const { home, io, clock, cwd } = ctx;
  if (home.unwritable !== null) throw new ExitError(1, home.unwritable);
  if (after !== undefined) await isGoneWithin({ pid: Number(after), startTime: null }, 60_000, clock);
  const log = home.log.child("gateway");
  const hasTerminal = io.stdinIsTerminal && io.stdoutIsTerminal;
  const listener = listenForEnd({ home, clock, hasTerminal });
  let isRead = true;
  const stopReading = onReaderLeft(() => {
    isRead = false;
  });
  listener.stop.addEventListener("abort", () => {
    if (listener.ending?.isHangUp) isRead = false; // a line into a closed terminal is an error of its own
  });
  const out = (line: string) => {
    log.info(line);
    if (isRead) io.out(`${masked(line, home.redact)}\n`);
  };
  const stopCatching = outliveStrayErrors(log, (line) => out(`[Gateway] warning: ${line}`));
  try {
    const instance = await takeInstance(home, { replace, clock });
    const state = await StateFile.open(home, { clock, log });
    let code = 1;
    try {
      const { runGateway } = await import("./gateway.ts");
      code = await runGateway({
        ...{ home, clock, cwd, store: await ctx.store(), stop: listener.stop },
        out(line) {
          const said = inProfile(home.paths, line);
          log.info(said);
          if (isRead) io.out(`${masked(said, home.redact)}\n`);
        },
        restart: (why) => listener.restart(why),
        state: (change) => state.update(change),
        endedClean: () => instance.markCleanShutdown(),
      });
    } catch (error) {
      state.update({ gateway_state: "stopped", exit_reason: messageOf(error) });
      throw error;
    } finally {
      await state.flush();
      await instance.release();
    }
    if (listener.ending?.relaunch) await startDetached(home, ["gateway", "run", "--after", String(process.pid)], cwd);
    setTimeout(() => process.exit(code), LINGER_MS).unref();
    if (code !== 0) throw new ExitError(code);
  } finally {
    stopCatching();
    listener.close();
    stopReading();
  }
}

// Gateways that run elsewhere.

const LOOK_AGAIN_MS = 200;
/** Longer than every platform may take to connect. */
const READY_MS = 60_000;
/** A service manager waits 5 seconds before it starts a program again. */
const AGAIN_MS = process.platform === "win32" ? 0 : 12_000;

async function start(ctx: CliContext): Promise<void> {
  const { home } = ctx;
  const running = await runningGatewayOf(home);
  if (running !== null) throw new ExitError(1, `The gateway is already running (process ${running.pid}).`);
  if (home.unwritable !== null) throw new ExitError(1, home.unwritable);
  const console = consoleLog(home);
  const { size } = await stat(console).catch(() => ({ size: 0 }));
  const isService = await startService(home);
  const started: GatewayProcess | null = isService
    ? null
    : { pid: await startDetached(home, ["gateway", "run"], ctx.cwd), startTime: null };
  await untilReady(ctx, started, async () => (isService ? "" : linesFrom(console, size)));
}

/** Says what came of a start: ready, failed with what it wrote, or still at it. */
async function untilReady(
  ctx: CliContext,
  started: GatewayProcess | null,
  written: () => Promise<string>,
): Promise<void> {
  const { home, io, clock } = ctx;
  const log = home.display(`${home.paths.logsDir}/gateway.log`);
  const deadline = clock.now() + READY_MS;
  for (;;) {
    const { pid, state, platforms } = await savedState(home);
    if (pid !== null && (state === "running" || state === "degraded")) {
      const names = platforms.length > 0 ? platforms.join(", ") : "no platform connected yet";
      return io.out(`✓ The gateway is running (process ${pid}): ${names}\n  Log: ${log}\n`);
    }
    const isGone = started !== null && (await isGoneWithin(started, 0, clock));
    if (isGone) throw new ExitError(1, `The gateway did not start.\n${(await written()).trimEnd()}`);
    if (clock.now() > deadline)
      return io.out(`The gateway is still starting. See: ${profileCommand(home.paths, "gateway status")}, ${log}\n`);
    await clock.sleep(LOOK_AGAIN_MS);
  }
}

/** What a file got since it had this size. */
async function linesFrom(path: string, size: number): Promise<string> {
  const file = await open(path, "r");
  try {
    const { size: now } = await file.stat();
    const start = now < size ? 0 : size;
    const { buffer, bytesRead } = await file.read({
      buffer: Buffer.alloc(8192),
      position: Math.max(start, now - 8192),
    });
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await file.close();
  }
}

async function stop({ all }: Flags, ctx: CliContext): Promise<void> {
  const { home, io, clock } = ctx;
  const seconds = home.config().agent.restart_drain_timeout;
  const running = (await gateways(ctx, all === true)).filter(({ process: found }) => found !== null);
  if (running.length === 0) return io.out(all ? "No gateway is running.\n" : "The gateway is not running.\n");
  await Promise.all(
    running.map(async ({ paths, process: target }) => {
      if (target === null) return;
      const name = `gateway of ${paths.profile} (process ${target.pid})`;
      io.err(`Stopping the ${name}; running turns get up to ${seconds} s.\n`);
      const how = await endGateway({ paths }, target, { note: "stop", waitMs: (seconds + 20) * 1000, clock });
      io.out(how === "ended" ? `✓ Stopped the ${name}\n` : `✓ Killed the ${name}: it did not end in time\n`);
    }),
  );
}

async function restart({ all }: Flags, ctx: CliContext): Promise<void> {
  const { home, io, clock } = ctx;
  const running = (await gateways(ctx, all === true)).filter(({ process: found }) => found !== null);
  if (running.length === 0 && !all) return start(ctx);
  if (running.length === 0) return io.out("No gateway is running.\n");
  const seconds = home.config().agent.restart_drain_timeout;
  await Promise.all(
    running.map(async ({ paths, process: target }) => {
      if (target === null) return;
      io.err(
        `Restarting the gateway of ${paths.profile} (process ${target.pid}); running turns get up to ${seconds} s.\n`,
      );
      // Without signals it is stopped; this command starts it again.
      if (process.platform === "win32")
        await endGateway({ paths }, target, { note: "stop", waitMs: (seconds + 20) * 1000, clock });
      else askForRestart(target);
      if (!(await isGoneWithin(target, (seconds + 20) * 1000, clock)))
        throw new ExitError(1, `The gateway of ${paths.profile} (process ${target.pid}) does not end.`);
    }),
  );
  if (all) return io.out("✓ Restarted\n");
  // A service manager, or the process that ended, has started it; where neither did, this command does.
  const deadline = clock.now() + AGAIN_MS;
  while ((await runningGatewayOf(home)) === null) {
    if (clock.now() > deadline) return start(ctx);
    await clock.sleep(LOOK_AGAIN_MS);
  }
  await untilReady(ctx, await runningGatewayOf(home), async () => `See ${home.display(consoleLog(home))}`);
}

async function status({ json }: Flags, ctx: CliContext): Promise<void> {
  const found = await readStatus(ctx.home, await ctx.store(), ctx.clock);
  const page = () => statusPage(found, ctx.clock.now(), ctx.io.stdoutIsTerminal ? said : undefined);
  ctx.io.out(json ? `${JSON.stringify(found, null, 2)}\n` : inProfile(ctx.home.paths, page()));
  if (!found.running) throw new ExitError(1);
}

interface KnownGateway {
  readonly paths: HomePaths;
  readonly process: GatewayProcess | null;
}

/** Of this profile, or of all profiles next to it. */
async function gateways({ home }: CliContext, all: boolean): Promise<readonly KnownGateway[]> {
  const { paths } = home;
  const others = all ? await listProfileNames(paths.root) : [];
  const homes = others.map((name) => homePaths(profileDir(paths.root, name), paths.root, name));
  const known = homes.some(({ dir }) => dir === paths.dir) ? homes : [...homes, paths];
  return Promise.all(known.map(async (one) => ({ paths: one, process: await runningGatewayOf({ paths: one }) })));
}

async function list({ json }: Flags, ctx: CliContext): Promise<void> {
  const { home, io } = ctx;
  const rows = await Promise.all(
    (await gateways(ctx, true)).map(async ({ paths }) => {
      const { pid, state } = await savedState({ paths });
      return { profile: paths.profile, home: paths.dir, pid, state };
    }),
  );
  if (json) return io.out(`${JSON.stringify({ gateways: rows }, null, 2)}\n`);
  const width = Math.max(...rows.map(({ profile }) => profile.length));
  for (const { profile, pid, state, home: dir } of rows)
    io.out(`${profile.padEnd(width)}  ${pid === null ? state : `${state} (process ${pid})`}  ${home.display(dir)}\n`);
}

// Services.

async function install({ system }: Flags, ctx: CliContext): Promise<void> {
  const { home, io } = ctx;
  const { path, enabled, problem } = await installService(home, { system });
  io.out(`✓ Wrote ${home.display(path)}\n`);
  if (!enabled) {
    io.err(`⚠ It is not enabled: ${problem}. Without a service: ${profileCommand(home.paths, "gateway start")}\n`);
    return;
  }
  io.out(`✓ Enabled ${serviceName(home)}\nStart it now: ${profileCommand(home.paths, "gateway start")}\n`);
  const { manager } = await serviceState(home);
  if (manager === "systemd" && !system) io.out("To keep it running while you are logged out: loginctl enable-linger\n");
}

async function uninstall({ system }: Flags, ctx: CliContext): Promise<void> {
  const { home, io } = ctx;
  const path = await uninstallService(home, { system });
  io.out(path === null ? "No service is installed.\n" : `✓ Removed ${home.display(path)}\n`);
}
