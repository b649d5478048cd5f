// How the gateway is kept running: as a service of systemd or launchd, or as a process that outlives the command which started it.
// Nothing here is needed: `hermes gateway run` is the whole gateway.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, rm } from "node:fs/promises";
import { userInfo } from "node:os";
import { dirname, join } from "node:path";
import type { OpenHome } from "../../home/open.ts";
import { commandLine, startProgram } from "../../home/start-program.ts";
import { codeOf, UserError } from "../../kit/errors.ts";
import { exists, writeFileAtomic } from "../../kit/files.ts";
import { DETACHED } from "./ending.ts";

export interface ServiceState {
  readonly manager: "systemd" | "launchd" | null;
  readonly installed: boolean;
  readonly active: boolean;
}

/** Where services live; tests have places of their own. */
interface ServicePlaces {
  readonly platform: NodeJS.Platform;
  /** Units of the machine. */
  readonly systemUnits: string;
  /** There while systemd is the init of this machine. */
  readonly booted: string;
}

const PLACES: ServicePlaces = {
  platform: process.platform,
  systemUnits: "/etc/systemd/system",
  booted: "/run/systemd/system",
};

interface Scope {
  /** For the whole machine instead of this user. */
  readonly system?: boolean | undefined;
}

/** `hermes-gateway`, with the profile behind it; homes in unusual places are told apart by their path. */
export function serviceName({ paths, osHome }: Pick<OpenHome, "paths" | "osHome">): string {
  const isUsual = paths.profile !== "custom" && paths.root === join(osHome, ".hermes");
  const place = isUsual ? [] : [createHash("sha256").update(paths.dir).digest("hex").slice(0, 8)];
  const profile = paths.profile === "default" || paths.profile === "custom" ? [] : [paths.profile];
  return ["hermes-gateway", ...profile, ...place].join("-");
}

const launchdLabel = (home: OpenHome) => serviceName(home).replace("hermes-gateway", "ai.hermes.gateway");

async function managerHere({ platform, booted }: ServicePlaces): Promise<ServiceState["manager"]> {
  if (platform === "darwin") return "launchd";
  return platform === "linux" && (await exists(booted)) ? "systemd" : null;
}

function serviceFile(home: OpenHome, { system }: Scope, { platform, systemUnits }: ServicePlaces): string {
  if (platform === "darwin") return join(home.osHome, "Library", "LaunchAgents", `${launchdLabel(home)}.plist`);
  const config = home.env("XDG_CONFIG_HOME") || join(home.osHome, ".config");
  return join(system ? systemUnits : join(config, "systemd", "user"), `${serviceName(home)}.service`);
}

/** The installed service, of the user before that of the machine. */
async function installedScope(home: OpenHome, places: ServicePlaces): Promise<Scope | null> {
  for (const scope of [{ system: false }, { system: true }])
    if (await exists(serviceFile(home, scope, places))) return scope;
  return null;
}

export async function serviceState(home: OpenHome, places = PLACES): Promise<ServiceState> {
  const manager = await managerHere(places);
  const scope = await installedScope(home, places);
  const installed = scope !== null;
  if (manager === null || !installed) return { manager, installed, active: false };
  if (manager === "launchd") {
    const { code, text } = await run(home, "launchctl", ["print", launchdTarget(home)]);
    return { manager, installed, active: code === 0 && /\bstate = running\b/.test(text) };
  }
  const { code } = await systemctl(home, scope, ["is-active", "--quiet", unit(home)]);
  return { manager, installed, active: code === 0 };
}

interface InstalledService {
  readonly path: string;
  /** Starts with the machine or the login from now on. Otherwise: why not. */
  readonly enabled: boolean;
  readonly problem?: string;
}

/** Writes the service and enables it where its manager is there. Throws a `UserError` where no service can be written. */
export async function installService(home: OpenHome, scope: Scope, places = PLACES): Promise<InstalledService> {
  const manager = await managerHere(places);
  if (places.platform !== "linux" && manager === null)
    throw new UserError("No service manager is known for this system. Start the gateway with: hermes gateway start");
  if (scope.system && manager === "launchd")
    throw new UserError("--system is for systemd; on macOS install the service without it.");
  const path = serviceFile(home, scope, places);
  await writeService(path, manager === "launchd" ? plistText(home) : unitText(home, scope));
  if (manager === null) return { path, enabled: false, problem: "systemd is not running on this machine" };
  const steps =
    manager === "launchd"
      ? [() => run(home, "launchctl", ["enable", launchdTarget(home)])]
      : [["daemon-reload"], ["enable", unit(home)]].map((args) => () => systemctl(home, scope, args));
  for (const step of steps) {
    const { code, text } = await step();
    if (code !== 0) return { path, enabled: false, problem: firstLine(text) };
  }
  return { path, enabled: true };
}

async function writeService(path: string, text: string): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true });
    await writeFileAtomic(path, text, { mode: 0o644 });
  } catch (error) {
    const cause = error instanceof Error ? (error.cause ?? error) : error;
    if (!["EACCES", "EPERM", "EROFS"].includes(codeOf(cause) ?? "")) throw error;
    throw new UserError(`Cannot write ${path}: permission denied. Run the command as root, or leave --system out.`);
  }
}

/** Stops, disables and removes it; null when there was none. */
export async function uninstallService(home: OpenHome, scope: Scope, places = PLACES): Promise<string | null> {
  const path = serviceFile(home, scope, places);
  if (!(await exists(path))) return null;
  const manager = await managerHere(places);
  if (manager === "launchd") await run(home, "launchctl", ["bootout", launchdTarget(home)]);
  if (manager === "systemd") await systemctl(home, scope, ["disable", "--now", unit(home)]);
  await rm(path);
  if (manager === "systemd") await systemctl(home, scope, ["daemon-reload"]);
  return path;
}

/** Starts the installed service; false when there is none, or its manager is not. Throws a `UserError` with what it said. */
export async function startService(home: OpenHome, places = PLACES): Promise<boolean> {
  const manager = await managerHere(places);
  const scope = await installedScope(home, places);
  if (manager === null || scope === null) return false;
  if (manager === "launchd") {
    // One that is loaded already is not an error: it is started then.
    await run(home, "launchctl", ["bootstrap", launchdDomain(), serviceFile(home, scope, places)]);
    return succeeded(await run(home, "launchctl", ["kickstart", launchdTarget(home)]));
  }
  return succeeded(await systemctl(home, scope, ["start", unit(home)]));
}

function succeeded({ code, text }: { readonly code: number; readonly text: string }): true {
  if (code !== 0) throw new UserError(`The service did not start: ${firstLine(text)}`);
  return true;
}

const unit = (home: OpenHome) => `${serviceName(home)}.service`;
const launchdDomain = () => `gui/${userInfo().uid}`;
const launchdTarget = (home: OpenHome) => `${launchdDomain()}/${launchdLabel(home)}`;
const firstLine = (text: string) => text.trim().split("\n")[0] || "no reason was given";

const systemctl = (home: OpenHome, { system }: Scope, args: readonly string[]) =>
  run(home, "systemctl", [...(system ? [] : ["--user"]), ...args]);

function run(home: OpenHome, program: string, args: readonly string[]): Promise<{ code: number; text: string }> {
  return new Promise((done) => {
    const child = spawn(program, args, { env: home.environment(), stdio: ["ignore", "pipe", "pipe"], timeout: 30_000 });
    let text = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
    child.on("error", (error) => done({ code: 127, text: error.message }));
    child.on("close", (code) => done({ code: code ?? 1, text }));
  });
}

// What is written for them.

/** A turn may take this long to end, and what follows it a little more. */
const stopSeconds = (home: OpenHome) => home.config().agent.restart_drain_timeout + 30;

function unitText(home: OpenHome, { system }: Scope): string {
  // Only in commands a dollar begins a variable.
  const words = (args: readonly string[]) =>
    commandLine(home, args)
      .map((word) => unitWord(word).replaceAll("$", "$$$$"))
      .join(" ");
  const variables = { HERMES_HOME: home.paths.dir, PATH: home.env("PATH") ?? "" };
  return `[Unit]
Description=Hermes gateway (profile ${home.paths.profile})
After=network-online.target
Wants=network-online.target
StartLimitIntervalSec=300
StartLimitBurst=10

[Service]
Type=simple
ExecStart=${words(["gateway", "run", "--replace"])}
ExecStop=${words(["gateway", "stop"])}
ExecReload=/bin/kill -USR2 $MAINPID
${system ? `User=${userInfo().username}\n` : ""}WorkingDirectory=${home.osHome.replaceAll("%", "%%")}
${Object.entries(variables)
  .map(([name, value]) => `Environment=${unitWord(`${name}=${value}`)}`)
  .join("\n")}
Restart=on-failure
RestartSec=5
RestartForceExitStatus=75
KillMode=mixed
TimeoutStopSec=${stopSeconds(home)}

[Install]
WantedBy=${system ? "multi-user.target" : "default.target"}
`;
}

/** A percent sign means something in a unit, also between quotes. */
function unitWord(word: string): string {
  return `"${word.replace(/[\\"]/g, "\\$&").replaceAll("%", "%%").replaceAll("\n", "\\n")}"`;
}

function plistText(home: OpenHome): string {
  const log = consoleLog(home);
  const text = (value: string) => `<string>${xml(value)}</string>`;
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>${text(launchdLabel(home))}
  <key>ProgramArguments</key>
  <array>
${commandLine(home, ["gateway", "run", "--replace"])
  .map((word) => `    ${text(word)}`)
  .join("\n")}
  </array>
  <key>EnvironmentVariables</key>
  <dict>
    <key>HERMES_HOME</key>${text(home.paths.dir)}
    <key>PATH</key>${text(home.env("PATH") ?? "")}
  </dict>
  <key>WorkingDirectory</key>${text(home.osHome)}
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <key>ThrottleInterval</key><integer>5</integer>
  <key>ExitTimeOut</key><integer>${stopSeconds(home)}</integer>
  <key>StandardOutPath</key>${text(log)}
  <key>StandardErrorPath</key>${text(log)}
</dict>
</plist>
`;
}

const xml = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

// Without a manager: a process of its own.

/** What a gateway that nobody watches writes to its console. */
export const consoleLog = ({ paths }: Pick<OpenHome, "paths">) => join(paths.logsDir, "gateway-console.log");

/** Starts hermes with these arguments, in this home, on its own feet; resolves to its process id. */
export const startDetached = (home: OpenHome, args: readonly string[], cwd: string): Promise<number> =>
  startProgram(home, args, { cwd, log: consoleLog(home), variables: { [DETACHED]: "1" } });
