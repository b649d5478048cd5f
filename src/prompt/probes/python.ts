// Is Python on this machine set up the way commands will assume? Most machines are, and then not a word is said.
import { basename, dirname, join } from "node:path";
import type { Clock } from "../../kit/clock.ts";
import { sha256 } from "../fingerprint.ts";
import { look, type ReadableFiles, type RunProgram, readBytes, realPath } from "../ports.ts";

const CHILD_MS = 3_000;
const WAIT_MS = 2_000;

/** What a program said; null when it is missing; or how it failed. */
type Answer = string | null | { readonly broken: string };

export interface PythonFacts {
  /** Version of `python3`. */
  readonly python3: Answer;
  readonly python: Answer;
  /** `python3 -m pip` works. */
  readonly pipModule: boolean;
  /** The version `pip` installs for, `3.11`. */
  readonly pip: Answer;
  /** PEP 668; never in a virtual environment. */
  readonly externallyManaged: boolean;
  readonly uv: boolean;
}

export interface ProbeOptions {
  readonly run: RunProgram;
  readonly files: ReadableFiles;
  readonly clock: Clock;
  /** `PATH`, and what stands between its parts. */
  readonly path: string;
  readonly delimiter: ":" | ";";
  /** A directory nobody else can write to: Python imports modules from where it is started. */
  readonly safeDirectory: string;
}

export interface PythonProbe {
  /** The line for the prompt, or null. The first call waits at most two seconds; later ones take what is there. */
  line(): Promise<string | null>;
}

/** Starts at once, in the background. Never rejects; a probe that fails or is late says nothing. */
export function startPythonProbe(options: ProbeOptions): PythonProbe {
  let line: string | null = null;
  const finished = gatherFacts(options).then(
    (facts) => {
      line = describePython(facts);
    },
    () => undefined, // without the probe the agent finds out by itself
  );
  let waited: Promise<void> | null = null;
  return {
    async line() {
      waited ??= waitFor(finished, options.clock);
      await waited;
      return line;
    },
  };
}

async function waitFor(finished: Promise<void>, clock: Clock): Promise<void> {
  const stop = new AbortController();
  const late = clock.sleep(WAIT_MS, stop.signal).catch(() => undefined); // aborted: the answer was there first
  await Promise.race([finished, late]);
  stop.abort();
}

export function describePython(facts: PythonFacts): string | null {
  const { python3, python, pipModule, pip, externallyManaged, uv } = facts;
  const works = typeof python3 === "string";
  const pipFits = works && typeof pip === "string" && isPrefix(pip, python3);
  if (works && pipModule && pipFits && !externallyManaged) return null;
  const items = [
    works && !pipModule ? `python3=${python3} (no pip module)` : itemOf("python3", python3),
    // Where it is python3 under another name, nothing is left to say.
    python === python3
      ? ""
      : python === null
        ? works
          ? "python=missing (use python3)"
          : ""
        : itemOf("python", python),
    typeof pip !== "string"
      ? itemOf("pip", pip)
      : works && !pipFits
        ? `pip→python${pip} (mismatch)`
        : pipModule
          ? ""
          : `pip→python${pip}`,
    externallyManaged ? "PEP 668=yes (use a venv, uv or pipx, or pip --break-system-packages)" : "",
    uv ? "uv=installed" : "",
  ];
  return `Python toolchain: ${items.filter((item) => item !== "").join(", ")}.`;
}

function itemOf(name: string, answer: Answer): string {
  if (answer === null) return `${name}=missing`;
  return typeof answer === "string" ? `${name}=${answer}` : `${name}=broken (${answer.broken})`;
}

const isPrefix = (short: string, whole: string) => whole === short || whole.startsWith(`${short}.`);

// `find_spec` instead of `-m pip --version`: the same answer without half a second of importing pip.
const ABOUT_PYTHON3 = `import sys, os, sysconfig
from importlib.util import find_spec
print("%d.%d.%d" % sys.version_info[:3])
print(int(find_spec("pip") is not None and find_spec("pip.__main__") is not None))
venv = sys.prefix != sys.base_prefix
print(int(not venv and os.path.exists(os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED"))))
print(int(os.path.exists(os.path.join(os.path.dirname(sys.executable), "pip"))))`;
const ABOUT_PYTHON = 'import sys; print("%d.%d.%d" % sys.version_info[:3])';

async function gatherFacts(options: ProbeOptions): Promise<PythonFacts> {
  const [python3, python, pip, uv] = await Promise.all(
    ["python3", "python", "pip", "uv"].map((name) => findProgram(name, options)),
  );
  const about = python3 ? ask(python3.path, ["-c", ABOUT_PYTHON3], options) : null;
  const [said, plain, pipVersion] = await Promise.all([
    about,
    // Usually a link to python3: then one run answers for both.
    python && python.real !== python3?.real ? ask(python.path, ["-c", ABOUT_PYTHON], options) : null,
    pip ? pipTarget(pip, python3 ?? null, about, options) : null,
  ]);
  const [, hasPip, managed] = typeof said === "string" ? said.split("\n") : [];
  const version = firstLine(said);
  const same = python !== null && python?.real === python3?.real;
  return {
    python3: version,
    python: same ? version : firstLine(plain),
    pipModule: hasPip === "1",
    pip: pipVersion,
    externallyManaged: managed === "1",
    uv: Boolean(uv),
  };
}

function firstLine(answer: Answer): Answer {
  return typeof answer === "string" ? answer.split("\n")[0] || null : answer;
}

interface Program {
  readonly path: string;
  readonly real: string;
}

async function findProgram(name: string, { path, delimiter, files }: ProbeOptions): Promise<Program | null> {
  const names = delimiter === ";" ? [`${name}.exe`, `${name}.bat`] : [name];
  const places = path
    .split(delimiter)
    .filter((part) => part !== "")
    .flatMap((part) => names.map((file) => join(part, file)));
  const looks = await Promise.all(places.map((place) => look(files, place)));
  const found = places.find((_, index) => looks[index]?.type === "file");
  return found === undefined ? null : { path: found, real: (await realPath(files, found)) ?? found };
}

/**
 * Its first line names the interpreter, and that one's name its version. A version manager puts scripts of its own in front of both: then
 * it is the pip next to the real python3. Only where neither says is pip itself started, which is slow.
 */
async function pipTarget(
  pip: Program,
  python3: Program | null,
  about: Promise<Answer> | null,
  options: ProbeOptions,
): Promise<Answer> {
  const script = await readBytes(options.files, pip.real, 64 * 1024);
  const [head = ""] =
    script.type === "bytes" ? new TextDecoder().decode(script.bytes.subarray(0, 256)).split("\n") : [];
  const interpreter = /^#!(\/\S+)\s*$/.exec(head)?.[1];
  const real = interpreter === undefined ? null : await realPath(options.files, interpreter);
  const named = /^python(\d+\.\d+)$/.exec(basename(real ?? ""))?.[1];
  if (named !== undefined) return named;
  if (python3 && dirname(python3.path) === dirname(pip.path)) {
    const said = await about;
    const [version = "", , , hasOwnPip] = typeof said === "string" ? said.split("\n") : [];
    if (hasOwnPip === "1") return version.split(".").slice(0, 2).join(".");
  }
  const said = await ask(pip.path, ["--version"], options);
  if (typeof said !== "string") return said;
  return /\(python (\d+\.\d+)/.exec(said)?.[1] ?? null;
}

async function ask(program: string, args: readonly string[], options: ProbeOptions): Promise<Answer> {
  const result = await options.run(program, args, { cwd: options.safeDirectory, timeoutMs: CHILD_MS });
  const { exitCode, signal, timedOut } = result;
  if (exitCode === 0) return result.stdout.replaceAll("\r", "");
  if (timedOut) return { broken: `no answer in ${CHILD_MS / 1000} s` };
  if (signal) return { broken: signal };
  // 127: a version manager's script that leads nowhere.
  return exitCode === null || exitCode === 127 ? null : { broken: `exit code ${exitCode}` };
}

// What the probe found is remembered as long as the same programs stand in the same places: starting Python four times takes longer
// than everything else before the first request.

/** A small text that outlives the process. Both may fail: then the probe simply runs. */
interface ProbeMemory {
  read(): Promise<string>;
  write(text: string): Promise<void>;
}

/** Raised when the same programs get another line. */
const FORMAT = 2;
const PROGRAMS = ["python3", "python", "pip", "uv"];
/** A probe that took this long was cut off; what it says is not worth keeping. */
const CUT_OFF_MS = 1_900;

export function rememberedPythonProbe(options: ProbeOptions, memory: ProbeMemory): PythonProbe {
  let line: Promise<string | null> | null = null;
  return {
    line() {
      line ??= recall(options, memory);
      return line;
    },
  };
}

async function recall(options: ProbeOptions, memory: ProbeMemory): Promise<string | null> {
  const key = await programsKey(options);
  const known = await memory
    .read()
    .then(JSON.parse)
    .catch(() => null); // nothing remembered, or nothing readable
  if (known?.key === key && (known.line === null || typeof known.line === "string")) return known.line;
  const begin = options.clock.now();
  const line = await startPythonProbe(options).line();
  // What is broken may work the next time.
  const isSure = options.clock.now() - begin < CUT_OFF_MS && !line?.includes("=broken (");
  if (isSure) {
    await memory.write(JSON.stringify({ key, line })).catch(() => undefined); // found out again next time
  }
  return line;
}

async function programsKey({ path, delimiter, files }: ProbeOptions): Promise<string> {
  const folders = path.split(delimiter);
  const found = await Promise.all(
    PROGRAMS.flatMap((program) => folders.map((folder) => look(files, join(folder, program)))),
  );
  return sha256(JSON.stringify([FORMAT, path, found.map((facts) => facts?.version)]));
}
