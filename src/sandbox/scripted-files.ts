// Files as the commands of a backend see them, by scripts. Data goes through stdin and stdout, so no byte of it is ever read as a command.
import { posix } from "node:path";
import { newMark } from "./backend.ts";
import { type DirectoryEntry, type EnvironmentFiles, MAX_TEXT_BYTES, type RipgrepRun } from "./environment.ts";
import type { ScriptResult, ScriptRunner } from "./scripts.ts";
import { quote } from "./shell-script.ts";

export function scriptedFiles(scripts: ScriptRunner): EnvironmentFiles {
  const run = async (path: string, script: string, stdin?: string): Promise<string> => {
    const result = await scripts.run(`LC_ALL=C; export LC_ALL\np=${quote(path)}\n${script}`, { stdin });
    if (result.code !== 0) throw fileError(path, result);
    return result.output.toString("utf8");
  };
  async function* chunks(path: string, signal?: AbortSignal): AsyncIterable<Buffer> {
    const script = `LC_ALL=C; export LC_ALL\np=${quote(path)}\n${REGULAR}\nexec cat -- "$p"`;
    yield* scripts.stream(script, { signal, failed: (result) => fileError(path, result) });
  }
  async function follow(path: string): Promise<readonly string[]> {
    const hops = (await run(path, FOLLOW)).split("\0").slice(0, -1);
    return hops.map((hop) => posix.normalize(hop));
  }
  return {
    ...scriptedTree(scripts),
    async facts(path) {
      const [type, size, seconds, time, ...rest] = (await run(path, FACTS)).trim().split("|");
      if (type === "none") return null;
      return {
        type: type === "directory" || type === "file" ? type : "other",
        size: Number(size),
        mtimeMs: timeOf(seconds ?? "", time ?? ""),
        version: [time, size, ...rest].join(":"),
      };
    },
    follow,
    resolve: async (path) => (await follow(path)).at(-1) ?? path,
    chunks,
    async read(path) {
      const parts: Buffer[] = [];
      for await (const chunk of chunks(path)) parts.push(chunk);
      return Buffer.concat(parts);
    },
    async write(path, data) {
      const name = `.${posix.basename(path)}.${process.pid}.${serial++}.tmp`;
      await run(path, `t=${quote(name)} n=${Buffer.byteLength(data)}\n${WRITE}`, data);
    },
    makeDirectory: async (path) => (await run(path, '[ -d "$p" ] && exit 0\nmkdir -p -- "$p" && echo made')) !== "",
    list: async (path) => (await run(path, LIST)).split("\0").slice(0, -1),
    async remove(path) {
      await run(path, '[ -d "$p" ] && [ ! -L "$p" ] && { echo "Is a directory" >&2; exit 1; }\nrm -- "$p"');
    },
    async move(from, to) {
      const script = `q=${quote(to)}\n[ -d "$q" ] && [ ! -d "$p" ] && { echo "Is a directory" >&2; exit 1; }\nmv -f -- "$p" "$q"`;
      await run(from, script);
    },
  };
}

let serial = 0;

// GNU and busybox understand -c, the BSDs and macOS -f.
const FACTS = `[ -e "$p" ] || {
  # Not there, or not to be seen: ls knows which.
  e=$(ls -dL -- "$p" 2>&1 >/dev/null)
  case $e in *"No such file"*) echo none; exit 0 ;; *) echo "$e" >&2; exit 1 ;; esac
}
t=other; [ -f "$p" ] && t=file; [ -d "$p" ] && t=directory
stat -L -c "$t|%s|%Y|%y|%i" -- "$p" 2>/dev/null || stat -L -f "$t|%z|%m|%Fm|%i" -- "$p"`;

// Directories are real before a name in them is looked at, so each link is met by itself.
const FOLLOW = `directory() {
  d=$1 rest=
  while [ ! -e "$d" ] && [ ! -L "$d" ]; do
    case $d in /) break ;; esac
    rest="/\${d##*/}$rest"; d=\${d%/*}; d=\${d:-/}
  done
  d=$(readlink -f -- "$d") || { echo "Too many levels of symbolic links" >&2; exit 1; }
  d=\${d%/}$rest
}
printf '%s\\0' "$p"
n=0
while [ "$p" != / ]; do
  parent=\${p%/*}
  directory "\${parent:-/}"
  real="$d/\${p##*/}"
  [ "$real" = "$p" ] || printf '%s\\0' "$real"
  [ -L "$real" ] || exit 0
  n=$((n + 1)); [ "$n" -le 40 ] || { echo "Too many levels of symbolic links" >&2; exit 1; }
  t=$(readlink -- "$real"; echo .); t=\${t%?.}
  case $t in /*) p=$t ;; *) p="$d/$t" ;; esac
  while :; do case $p in ?*/) p=\${p%/} ;; *) break ;; esac; done
  printf '%s\\0' "$p"
done`;

/** A pipe or a device would be waited for. */
const REGULAR = `[ -d "$p" ] && { echo "Is a directory" >&2; exit 1; }
[ -e "$p" ] || { cat -- "$p" >/dev/null; exit 1; }
[ -f "$p" ] || { echo "Not a regular file" >&2; exit 1; }`;

// The number of bytes is compared before the old file goes: a connection that breaks looks like the end of the data.
const WRITE = `[ -L "$p" ] && p=$(readlink -f -- "$p")
d=\${p%/*}; t="\${d}/$t"
[ -d "$p" ] && { echo "Is a directory" >&2; exit 1; }
trap 'rm -f -- "$t"' EXIT
if [ -e "$p" ]; then cp -p -- "$p" "$t" || exit 1; fi
cat >"$t" || exit 1
[ "$(wc -c <"$t")" -eq "$n" ] || { echo "the data did not arrive whole" >&2; exit 1; }
mv -f -- "$t" "$p" 2>/dev/null || cat <"$t" >"$p"`;

const LIST = `[ -e "$p" ] && [ ! -d "$p" ] && { echo "Not a directory" >&2; exit 1; }
cd -- "$p" || exit 1
for f in * .[!.]* ..?*; do
  if [ -e "$f" ] || [ -L "$f" ]; then printf '%s\\0' "$f"; fi
done`;

const CODES: readonly (readonly [RegExp, string])[] = [
  [/No such file or directory|Directory nonexistent|can't cd|cannot (access|stat)/i, "ENOENT"],
  [/Permission denied/i, "EACCES"],
  [/Read-only file system/i, "EROFS"],
  [/Is a directory/i, "EISDIR"],
  [/Not a directory/i, "ENOTDIR"],
  [/No space left|Disk quota/i, "ENOSPC"],
  [/Too many levels of symbolic links/i, "ELOOP"],
  [/File name too long/i, "ENAMETOOLONG"],
  [/Operation not permitted/i, "EPERM"],
  [/Not a regular file/i, "ENXIO"],
  [/busy/i, "EBUSY"],
];

function fileError(path: string, { errors, code }: Omit<ScriptResult, "output">): Error {
  const known = CODES.find(([pattern]) => pattern.test(errors))?.[1];
  const reason = errors.trim() || (code < 0 ? `ended by signal ${-code}` : `exit code ${code}`);
  return Object.assign(new Error(`${path}: ${reason}`), known ? { code: known } : {});
}

// Many files of a backend in few trips: what a search needs. Each trip starts a program here and a shell there, which costs far more than
// the work of one file.

/** A script is an argument on its way, sometimes encoded or quoted again: well below what one may have. */
const MAX_WORDS_BYTES = 32_000;

export function scriptedTree(
  scripts: ScriptRunner,
): Pick<EnvironmentFiles, "entries" | "changeTimes" | "readTexts"> & Required<Pick<EnvironmentFiles, "ripgrep">> {
  return {
    async entries(directories, signal) {
      const found = new Map<string, readonly DirectoryEntry[]>();
      for (const batch of batches(directories)) {
        const { output } = await scripts.run(withPaths(batch, LIST_EACH), { signal });
        // One record per directory, fields ended by NUL: its number, then "f", "d" or "o" and the name of each entry, then nothing.
        const fields = output.toString("utf8").split("\0");
        for (let at = 0; at < fields.length - 1; at++) {
          const directory = batch[Number(fields[at]) - 1];
          const entries: DirectoryEntry[] = [];
          while (fields[++at] !== "" && at < fields.length) {
            const [field = ""] = fields.slice(at, at + 1);
            entries.push({ name: field.slice(1), type: KINDS[field[0] ?? ""] ?? "other" });
          }
          if (directory !== undefined) found.set(directory, entries);
        }
      }
      return found;
    },
    async changeTimes(paths, signal) {
      const times = new Map<string, number>();
      for (const batch of batches(paths)) {
        const { output } = await scripts.run(withPaths(batch, TIME_EACH), { signal });
        for (const line of output.toString("utf8").split("\n")) {
          const [number = "", seconds = "", time = ""] = line.split("|");
          const path = batch[Number(number) - 1];
          if (path !== undefined && seconds !== "") times.set(path, timeOf(seconds, time));
        }
      }
      return times;
    },
    async *readTexts(paths, signal) {
      for (const batch of batches(paths)) {
        // Random bytes separate one file from the next.
        const mark = newMark();
        const chunks = scripts.stream(withPaths(batch, `m=${mark}\n${READ_EACH}`), { signal, failed: unreadable });
        for await (const { number, data } of splitAtMarks(chunks, Buffer.from(mark))) {
          const path = batch[number - 1];
          if (path !== undefined) yield { path, data };
        }
      }
    },
    async ripgrep({ program, args, cwd, signal, onBytes }: RipgrepRun) {
      const words = args.map(quote).join(" ");
      const script = `cd -- ${quote(cwd)} || exit 2
r=${quote(program ?? "")}
[ -n "$r" ] && [ -x "$r" ] || r=$(command -v rg) || exit 127
exec "$r" ${words}`;
      let ended = { code: 0, errors: "" };
      const failed = (result: Omit<ScriptResult, "output">) => {
        ended = result;
        return new RipgrepEnded();
      };
      try {
        for await (const bytes of scripts.stream(script, { signal, failed })) onBytes(bytes);
      } catch (error) {
        if (!(error instanceof RipgrepEnded)) throw error;
      }
      return ended;
    },
  };
}

/** Carries an exit code out of the stream; what it means is for the caller. */
class RipgrepEnded extends Error {}

const KINDS: Readonly<Record<string, DirectoryEntry["type"]>> = { f: "file", d: "directory" };

/** Whole seconds and, where the system has it, the time with its fraction. */
function timeOf(seconds: string, time: string): number {
  return Number(seconds) * 1000 + Number(/\.(\d{1,3})/.exec(time)?.[1]?.padEnd(3, "0") ?? 0);
}

const unreadable = ({ code, errors }: Omit<ScriptResult, "output">) => new Error(errors.trim() || `exit code ${code}`);

const withPaths = (paths: readonly string[], script: string) =>
  `LC_ALL=C; export LC_ALL\nset -- ${paths.map(quote).join(" ")}\n${script}`;

function* batches(paths: readonly string[]): Generator<readonly string[]> {
  let batch: string[] = [];
  let bytes = 0;
  for (const path of paths) {
    const more = Buffer.byteLength(quote(path)) + 1;
    if (batch.length > 0 && bytes + more > MAX_WORDS_BYTES) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(path);
    bytes += more;
  }
  if (batch.length > 0) yield batch;
}

const LIST_EACH = `n=0
for p in "$@"; do
  n=$((n + 1))
  cd -- "$p" 2>/dev/null || continue
  printf '%s\\0' "$n"
  for f in * .[!.]* ..?*; do
    if [ -L "$f" ]; then printf 'o%s\\0' "$f"
    elif [ -f "$f" ]; then printf 'f%s\\0' "$f"
    elif [ -d "$f" ]; then printf 'd%s\\0' "$f"
    elif [ -e "$f" ]; then printf 'o%s\\0' "$f"; fi
  done
  printf '\\0'
done
exit 0`;

// One stat for all when none is missing. Names are not printed back: they may hold anything.
const TIME_EACH = `of() { stat -L -c '%Y|%y' -- "$@" 2>/dev/null || stat -L -f '%m|%Fm' -- "$@" 2>/dev/null; }
n=0
if all=$(of "$@"); then
  printf '%s\\n' "$all" | while read -r t; do n=$((n + 1)); printf '%s|%s\\n' "$n" "$t"; done
  exit 0
fi
for p in "$@"; do
  n=$((n + 1))
  t=$(of "$p") && printf '%s|%s\\n' "$n" "$t"
done
exit 0`;

const READ_EACH = `n=0
for p in "$@"; do
  n=$((n + 1))
  [ -f "$p" ] && [ -r "$p" ] || continue
  printf '%s %s\\n' "$m" "$n"
  head -c ${MAX_TEXT_BYTES} -- "$p" 2>/dev/null
done
printf '%s 0\\n' "$m"
exit 0`;

async function* splitAtMarks(
  chunks: AsyncIterable<Buffer>,
  mark: Buffer,
): AsyncGenerator<{ readonly number: number; readonly data: Buffer }> {
  let kept: Buffer[] = [];
  let current: number | null = null;
  let binary = false;
  const keep = (piece: Buffer) => {
    binary ||= piece.includes(0);
    if (!binary) kept.push(piece);
  };
  let tail: Buffer = Buffer.alloc(0);
  for await (const chunk of chunks) {
    let text = Buffer.concat([tail, chunk]);
    for (;;) {
      const at = text.indexOf(mark);
      const end = at < 0 ? -1 : text.indexOf(0x0a, at);
      if (end < 0) {
        // The mark, or the number behind it, may be cut in two.
        const safe = at < 0 ? Math.max(0, text.length - mark.length) : at;
        keep(text.subarray(0, safe));
        tail = text.subarray(safe);
        break;
      }
      keep(text.subarray(0, at));
      if (current !== null && !binary) yield { number: current, data: Buffer.concat(kept) };
      kept = [];
      binary = false;
      current = Number(text.toString("latin1", at + mark.length, end));
      text = text.subarray(end + 1);
    }
  }
}
