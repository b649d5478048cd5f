// Files as the commands of a place see them, by scripts. Data goes through stdin and stdout, so no byte of it is ever read as a command.
import { posix } from "node:path";
import type { EnvironmentFiles } from "./environment.ts";
import type { ErrandResult, Errands } from "./errands.ts";
import { placeTree, timeOf } from "./place-tree.ts";
import { quote } from "./quote.ts";

export function placeFiles(errands: Errands): EnvironmentFiles {
  const run = async (path: string, script: string, stdin?: string): Promise<string> => {
    const result = await errands.run(`LC_ALL=C; export LC_ALL\np=${quote(path)}\n${script}`, { stdin });
    if (result.code !== 0) throw fileError(path, result);
    return result.output.toString("utf8");
  };
  async function* chunks(path: string, signal?: AbortSignal): AsyncIterable<Buffer> {
    const script = `LC_ALL=C; export LC_ALL\np=${quote(path)}\n${REGULAR}\nexec cat -- "$p"`;
    yield* errands.stream(script, { signal, failed: (result) => fileError(path, result) });
  }
  async function follow(path: string): Promise<readonly string[]> {
    const hops = (await run(path, FOLLOW)).split("\0").slice(0, -1);
    return hops.map((hop) => posix.normalize(hop));
  }
  return {
    ...placeTree(errands),
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

function fileError(path: string, { errors, code }: Omit<ErrandResult, "output">): Error {
  const known = CODES.find(([pattern]) => pattern.test(errors))?.[1];
  const reason = errors.trim() || (code < 0 ? `ended by signal ${-code}` : `exit code ${code}`);
  return Object.assign(new Error(`${path}: ${reason}`), known ? { code: known } : {});
}
