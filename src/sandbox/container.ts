// Commands in a long-lived container of docker or podman. It outlives the program and is used again by the next one.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { UserError } from "../kit/errors.ts";
import { isWithin } from "../kit/files.ts";
import type { Channel, ChannelFailure, Launch, LaunchOptions } from "./backend.ts";
import { childEnvironment, findProgram, privateTempDir } from "./child-env.ts";
import {
  type ContainerFacts,
  containerCwd,
  containerError,
  containerName,
  credentialFiles,
  forwardedNames,
  isIsolated,
  noContainerProgram,
  runArguments,
  settingsOf,
} from "./container-arguments.ts";
import type { Environment } from "./environment.ts";
import type { EnvironmentOptions, TerminalConfig } from "./open.ts";
import { RemoteBackend } from "./remote-backend.ts";
import { ScriptRunner } from "./scripts.ts";
import { ShellEnvironment } from "./shell-environment.ts";
import { quote } from "./shell-script.ts";

/** Fetching an image may take its time. */
const RUN_MS = 15 * 60_000;
const CALL_MS = 60_000;
const DRAIN_MS = 300;
const MAX_RECOVERIES = 2;

export async function openContainerEnvironment(
  terminal: TerminalConfig,
  options: EnvironmentOptions,
): Promise<Environment> {
  const { environment } = options;
  const binary = await findContainerProgram(environment);
  const facts = await gatherFacts(terminal, options);
  const forwarded = forwardedNames(terminal, environment);
  const given = Object.fromEntries(forwarded.map((name) => [name, environment[name] ?? ""]));
  const env = { ...childEnvironment(environment), ...given };
  const container = new Container({ binary, env, facts, forwarded, handedOn: options.handedOn });
  if (terminal.docker_orphan_reaper) await container.removeOrphans();
  const found = await container.open();
  const backend = new RemoteBackend({
    channel: container,
    scripts: container.scripts,
    facts: {
      kind: "docker",
      isolated: isIsolated(terminal),
      home: found.home,
      tempDir: "/tmp",
      stateDir: container.stateDir,
      bash: found.bash,
      forced: terminal.docker_forward_env,
    },
    generation: () => container.generation,
    watch: (ended) => container.watch(ended),
    release: () => container.release(),
  });
  return new ShellEnvironment(backend, { ...options, cwd: containerCwd(terminal) });
}

async function findContainerProgram(environment: Readonly<Record<string, string>>): Promise<string> {
  const { PATH = "", HERMES_DOCKER_BINARY: wanted } = environment;
  if (wanted) {
    const found = await findProgram(wanted, PATH);
    if (found) return found;
    throw new UserError(`HERMES_DOCKER_BINARY is ${wanted}, but there is no such program. Correct or unset it.`);
  }
  const found = (await findProgram("docker", PATH)) ?? (await findProgram("podman", PATH));
  if (found) return found;
  throw noContainerProgram();
}

async function gatherFacts(terminal: TerminalConfig, options: EnvironmentOptions): Promise<ContainerFacts> {
  const { hermesHome, profile = "default", task = "default" } = options;
  const folder = join(
    terminal.sandbox_dir || join(hermesHome.dir, "sandboxes"),
    "docker",
    task.replace(/[^\w.-]+/g, "_"),
  );
  const persistent = terminal.container_persistent
    ? { home: join(folder, "home"), workspace: join(folder, "workspace") }
    : null;
  for (const path of Object.values(persistent ?? {})) await mkdir(path, { recursive: true, mode: 0o700 });
  const wanted = ["skills", "cache", ...credentialFiles(terminal)];
  const shown = await Promise.all(wanted.map((path) => insideHome(hermesHome.dir, path)));
  return {
    terminal,
    hermesDir: hermesHome.dir,
    profile,
    task,
    cwd: options.cwd,
    shown: [...new Set(shown.filter((path) => path !== null))],
    persistent,
    user: { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 },
  };
}

/** The path if something is there; a link may not lead out of the home. */
async function insideHome(home: string, path: string): Promise<string | null> {
  const real = await realpath(join(home, path)).catch(() => null);
  if (real === null) return null;
  const root = await realpath(home);
  if (real !== root && isWithin(real, root)) return path;
  throw new UserError(`${path} in the Hermes home is a link that points outside it; it is not shown to containers.`);
}

interface ContainerParts {
  readonly binary: string;
  readonly env: Readonly<Record<string, string>>;
  readonly facts: ContainerFacts;
  readonly forwarded: readonly string[];
  readonly handedOn?: EnvironmentOptions["handedOn"];
}

class Container implements Channel {
  readonly stateDir = `/tmp/.hermes-shell-${randomBytes(6).toString("hex")}`;
  /** Counts how often what was in /tmp was lost. */
  generation = 0;
  readonly scripts = new ScriptRunner(this, { persistent: true });
  readonly #parts: ContainerParts;
  readonly #name: string;
  #starting: Promise<void> | null = null;
  /** A container that is being stopped still says that it runs. */
  #stopping: Promise<unknown> = Promise.resolve();
  #busy = 0;
  #closed = false;
  #idle: NodeJS.Timeout | null = null;

  constructor(parts: ContainerParts) {
    this.#parts = parts;
    this.#name = containerName(parts.facts);
  }

  async open(): Promise<{ home: string; bash: string }> {
    await this.#ensureRunning();
    const { output, code, errors } = await this.scripts.run(
      `mkdir -m 700 -p ${quote(this.stateDir)} && printf '%s\\n' "$HOME" "$(command -v bash)"`,
    );
    if (code !== 0) throw this.#error(errors);
    const [home = "", bash = ""] = output.toString("utf8").split("\n");
    return { home: home || "/root", bash };
  }

  async launch(script: string, { shell, stdin, terminal = false }: LaunchOptions): Promise<Launch> {
    const { binary, env, forwarded, handedOn } = this.#parts;
    const more = handedOn?.() ?? {};
    await this.#starting;
    this.#waitForIdle();
    return {
      program: binary,
      // Names without values: the program takes them from its own environment, and no process list shows them.
      args: [
        "exec",
        ...(stdin || terminal ? ["-i"] : []),
        ...(terminal ? ["-t"] : []),
        ...[...new Set([...forwarded, ...Object.keys(more)])].flatMap((name) => ["-e", name]),
        this.#name,
        ...[shell, "-c", script],
      ],
      env: { ...more, ...env },
    };
  }

  used(): void {
    this.#waitForIdle();
  }

  /** While something runs in it, it is not idle. */
  watch(ended: Promise<unknown>): void {
    this.#busy++;
    void ended.finally(() => {
      this.#busy--;
      this.#waitForIdle();
    });
  }

  /** A container that was stopped or removed is started again, once or twice. */
  async recover({ errors, code: ended }: ChannelFailure, attempt: number): Promise<void> {
    if (attempt >= MAX_RECOVERIES) throw this.#error(errors.trim() || `exec ended with code ${ended}`);
    const done = Promise.withResolvers<void>();
    this.watch(done.promise);
    try {
      await this.#stopping;
      await this.#ensureRunning();
      const { code } = await this.#call(["exec", this.#name, "mkdir", "-m", "700", "-p", this.stateDir]);
      if (code !== 0) throw this.#error(errors);
      this.scripts.drop();
      this.generation++;
    } finally {
      done.resolve();
    }
  }

  /** Stops it when no other program uses it; what does not last is removed with it. */
  async release(): Promise<void> {
    const { terminal } = this.#parts.facts;
    this.#closed = true;
    clearTimeout(this.#idle ?? undefined);
    const minutes = Math.max(1, Math.ceil(terminal.lifetime_seconds / 60));
    // A program that was killed leaves its folder; every command touches it, so an old one counts for nothing.
    const { output } = await this.scripts
      .run(`rm -rf ${quote(this.stateDir)}
cd /tmp && for d in .hermes-shell-*; do [ -d "$d" ] || continue; find "$d" -prune -mmin -${minutes} 2>/dev/null || echo "$d"; done`)
      .catch(() => ({ output: Buffer.alloc(0) })); // it is gone already
    if (output.length > 0) return;
    await this.#call(terminal.container_persistent ? ["stop", "-t", "1", this.#name] : ["rm", "-f", this.#name]);
  }

  /** Containers of this profile that ended long ago. */
  async removeOrphans(): Promise<void> {
    const { profile, terminal } = this.#parts.facts;
    const filters = ["label=hermes-agent=1", `label=hermes-profile=${profile}`, "status=exited"];
    const { output } = await this.#call(["ps", "-aq", ...filters.flatMap((filter) => ["--filter", filter])]);
    const ids = output.split(/\s+/).filter(Boolean);
    if (ids.length === 0) return;
    const format = "{{.Id}} {{.Name}} {{json .State.FinishedAt}}";
    const inspected = await this.#call(["inspect", "--format", format, ...ids]);
    const oldest = Date.now() - 2 * terminal.lifetime_seconds * 1000;
    for (const line of inspected.output.split("\n")) {
      const [id, name = "", finished = ""] = line.split(" ");
      const time = Date.parse(finished.replaceAll('"', ""));
      if (id && name.replace(/^\//, "") !== this.#name && time < oldest) await this.#call(["rm", id]);
    }
  }

  /** A container that was idle for its lifetime is stopped; the next command starts it again. */
  #waitForIdle(): void {
    clearTimeout(this.#idle ?? undefined);
    const { lifetime_seconds: seconds } = this.#parts.facts.terminal;
    if (this.#closed || seconds <= 0) return;
    this.#idle = setTimeout(() => {
      if (this.#busy > 0) return;
      this.#stopping = this.#call(["stop", "-t", "1", this.#name]).finally(() => this.scripts.drop());
    }, seconds * 1000).unref();
  }

  #ensureRunning(): Promise<void> {
    this.#starting ??= this.#start().finally(() => {
      this.#starting = null;
    });
    return this.#starting;
  }

  async #start(): Promise<void> {
    const args = runArguments(this.#parts.facts);
    for (let attempt = 0; ; attempt++) {
      const present = await this.#inspect();
      if (present && present.settings === settingsOf(args)) {
        if (present.status === "running") return;
        const { code, errors } = await this.#call([present.status === "paused" ? "unpause" : "start", this.#name]);
        if (code === 0) return;
        if (attempt > 0) throw this.#error(errors);
        await this.#call(["rm", "-f", this.#name]);
        continue;
      }
      if (present) await this.#call(["rm", "-f", this.#name]);
      const errors = await this.#run(args);
      if (errors === null) return;
      // Another program was quicker; its container is ours too.
      if (attempt > 2 || !/already in use/i.test(errors)) throw this.#error(errors);
    }
  }

  /** Null, or what went wrong. A limit of the disk is tried first; where it cannot be had, the container runs without one. */
  async #run(args: readonly string[]): Promise<string | null> {
    const { container_disk: disk } = this.#parts.facts.terminal;
    const envFile = await this.#writeEnvFile();
    const complete = (limits: readonly string[]) => [
      "run",
      ...limits,
      ...(envFile ? ["--env-file", envFile] : []),
      ...args.slice(1),
    ];
    try {
      const limited = disk > 0 ? await this.#call(complete(["--storage-opt", `size=${disk}m`]), RUN_MS) : null;
      if (limited?.code === 0) return null;
      if (limited && !/storage|quota|pquota|size/i.test(limited.errors)) return limited.errors;
      if (limited) await this.#call(["rm", "-f", this.#name]);
      const { code, errors } = await this.#call(complete([]), RUN_MS);
      if (code === 0) return null;
      // A container that could not be started is left behind under its name.
      if (!/already in use/i.test(errors)) await this.#call(["rm", "-f", this.#name]);
      return errors;
    } finally {
      if (envFile) await rm(join(envFile, ".."), { recursive: true, force: true });
    }
  }

  /** Values go through a file: an argument could be read by everybody on this machine. */
  async #writeEnvFile(): Promise<string | null> {
    const entries = Object.entries(this.#parts.facts.terminal.docker_env);
    if (entries.length === 0) return null;
    const folder = await mkdtemp(join(await privateTempDir(this.#parts.env.TMPDIR ?? "/tmp"), "env-"));
    const file = join(folder, "env");
    const lines = entries.map(([name, value]) => `${name}=${String(value).replaceAll("\n", " ")}\n`);
    await writeFile(file, lines.join(""), { mode: 0o600 });
    return file;
  }

  async #inspect(): Promise<{ status: string; settings: string } | null> {
    const format = '{{.State.Status}} {{index .Config.Labels "hermes-settings"}}';
    const { code, output, errors } = await this.#call([
      "inspect",
      "--type",
      "container",
      "--format",
      format,
      this.#name,
    ]);
    if (code !== 0 && !/no such (container|object)/i.test(errors)) throw this.#error(errors);
    if (code !== 0) return null;
    const [status = "", settings = ""] = output.trim().split(" ");
    return { status, settings };
  }

  #call(args: readonly string[], timeoutMs = CALL_MS): Promise<{ code: number; output: string; errors: string }> {
    const { binary, env } = this.#parts;
    return new Promise((resolve) => {
      const child = spawn(binary, args, { env, cwd: "/", stdio: ["ignore", "pipe", "pipe"], timeout: timeoutMs });
      let [output, errors] = ["", ""];
      child.stdout.on("data", (data) => {
        output += data;
      });
      child.stderr.on("data", (data) => {
        errors += data;
      });
      child.on("error", (error) => resolve({ code: 127, output, errors: error.message }));
      child.on("close", (code) => resolve({ code: code ?? 124, output, errors }));
      // The process that watches a container may keep our pipes.
      child.on("exit", (code) => setTimeout(() => resolve({ code: code ?? 124, output, errors }), DRAIN_MS).unref());
    });
  }

  #error(errors: string): UserError {
    const { binary, facts } = this.#parts;
    return containerError(basename(binary), facts.terminal.docker_image, errors);
  }
}
