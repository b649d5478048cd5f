// The scripts that give each fresh shell the state the last one left, and hand on its own.
import { SECRET_NAMES } from "./child-env.ts";

/** Variables that belong to one call or one shell and never travel in a snapshot, also when a command exports all there is (`set -a`). */
const NOT_CARRIED = "HERMES_SESSION_ID PWD SHLVL _ __hermes_code __hermes_done";

interface SnapshotInit {
  readonly snapshot: string;
  readonly sources: readonly string[];
  /** Directories that come first; empty: PATH stays as the start files leave it. */
  readonly path: string;
  /** Names that may stay although they are on the secret list. */
  readonly forced: readonly string[];
  /** Names beside the secret list that may not stay. */
  readonly withheld: readonly string[];
}

/** Run once by a login shell: writes what its start files set up. */
export function initScript({ snapshot, sources, path, forced, withheld }: SnapshotInit): string {
  // What the user's start files export counts like what we were started with: the product's secrets stay out.
  const secrets = [...SECRET_NAMES, ...withheld.filter((name) => /^[A-Za-z_]\w*$/.test(name))].join("|");
  const kept = forced.length > 0 ? `${forced.join("|")}) ;; ` : "";
  return `exec </dev/null >/dev/null 2>&1
${saveFunction(snapshot)}
__hermes_end() {
  set +eu
  local IFS=: d n
${path === "" ? "" : mergePath(path)}
  IFS=$'\\n'
  for n in $(compgen -e); do case $n in ${kept}${secrets}) unset "$n" ;; esac; done
  __hermes_save
  [ -r ${quote(snapshot)} ] && exit 0
  exit 1
}
trap __hermes_end EXIT
${sources.map((file) => `[ -r ${quote(file)} ] && . ${quote(file)}`).join("\n")}
true`;
}

// The directories we were started with come first, as in the user's own shell; start files may add to them.
const mergePath = (path: string) => `  local merged=${quote(path)}
  for d in $PATH; do case ":$merged:" in *":$d:"*) ;; *) merged="$merged:$d" ;; esac; done
  export PATH=$merged`;

interface CommandScript {
  readonly command: string;
  /** The command stands in this file instead; for commands too long for an argument. */
  readonly commandFile?: string | undefined;
  readonly cwd: string;
  readonly sessionId?: string | undefined;
  /** Frames the directory the shell ended up in; nothing between two of them: it could not go to `cwd`. */
  readonly marker: string;
  readonly snapshot: string | null;
  /** Write the state back and say where the shell ended up. `as`: into this file, which whoever runs the script puts in its place. */
  readonly carry: { readonly save: boolean; readonly as?: string | undefined } | null;
  /** Where the marker goes, if somebody looks at what is printed. */
  readonly endFile?: string | undefined;
}

export function commandScript({
  command,
  commandFile,
  cwd,
  sessionId,
  marker,
  snapshot,
  carry,
  endFile,
}: CommandScript): string {
  const run = runCommand({ command, commandFile });
  const into = endFile === undefined ? "" : ` >${quote(endFile)}`;
  const lines = ["exec 2>&1", goTo(cwd, marker, { builtin: "builtin ", into })];
  if (snapshot) lines.push(`[ -r ${quote(snapshot)} ] && . ${quote(snapshot)} >/dev/null 2>&1`);
  lines.push(...exportSession(sessionId));
  if (!carry) return [...lines, run].join("\n");
  return [
    ...lines,
    carry.save && snapshot ? saveFunction(snapshot, carry.as) : "__hermes_save() { :; }",
    // A shell that is ended after its child reports the child's death ("Terminated") when it waits for the next one: in here.
    `__hermes_end() {
  [ -n "\${__hermes_done-}" ] && return
  __hermes_done=1
  set +aeu +o posix
  { __hermes_save; } 2>/dev/null
  builtin printf '\\n%s%s%s\\n' ${marker} "$PWD" ${marker}${into}
}`,
    // Also reached through \`exit\` inside the command.
    "trap __hermes_end EXIT",
    run,
    "__hermes_code=$?",
    "__hermes_end",
    "exit $__hermes_code",
  ].join("\n");
}

const goTo = (cwd: string, marker: string, { builtin = "", into = "" } = {}) =>
  `${builtin}cd -- ${quote(cwd)} 2>/dev/null || { printf '\\n%s%s\\n' ${marker} ${marker}${into}; exit 126; }`;

const exportSession = (id: string | undefined) => (id ? [`export HERMES_SESSION_ID=${quote(id)}`] : []);

/** Prints the directory itself, or its nearest ancestor that a command can go to. */
export function nearestDirectoryScript(wanted: string): string {
  return `d=${quote(wanted)}
until cd -- "$d" 2>/dev/null; do
  case $d in */*) d=\${d%/*} ;; *) d= ;; esac
  [ -n "$d" ] || { cd /; d=/; break; }
done
printf %s "$d"`;
}

const runCommand = ({ command, commandFile }: Pick<CommandScript, "command" | "commandFile">) => {
  if (!commandFile) return `eval ${quote(command)}`;
  const file = quote(commandFile);
  return `__hermes_command=$(command cat -- ${file}); command rm -f -- ${file}; eval "$__hermes_command"`;
};

/** For backends without bash: nothing is carried but the directory. */
export function posixScript({
  cwd,
  sessionId,
  marker,
  printCwd,
  ...command
}: Omit<CommandScript, "snapshot" | "carry"> & { printCwd: boolean }): string {
  const lines = ["exec 2>&1", goTo(cwd, marker), ...exportSession(sessionId), runCommand(command)];
  if (!printCwd) return lines.join("\n");
  return [...lines, "__hermes_code=$?", `printf '\\n%s%s%s\\n' ${marker} "$PWD" ${marker}`, "exit $__hermes_code"].join(
    "\n",
  );
}

/**
 * Nothing here starts a program or another shell where it can be helped: each costs as much as most commands do. So what is set in here is
 * local, and a trap of the command that comes later finds everything as the command left it. Only a file that a shell puts in its place itself
 * is written in a shell of its own.
 */
function saveFunction(snapshot: string, as?: string): string {
  const temporary = as === undefined ? `${quote(snapshot)}.$$` : quote(as);
  const [begin, end] =
    as === undefined
      ? ["(\n    umask 077", `&& command mv -f -- ${temporary} ${quote(snapshot)}\n  )`]
      : ["{", `|| command rm -f -- ${temporary}\n  }`];
  return `__hermes_save() {
  ${begin}
    local IFS=$' \\t\\n' ${NOT_CARRIED} __hermes_n __hermes_names=() 2>/dev/null
    builtin unset ${NOT_CARRIED} 2>/dev/null
    builtin compgen -A function >|${temporary}
    while builtin read -r __hermes_n; do
      case $__hermes_n in
        __hermes_*) ;;
        __*) __hermes_names+=("$__hermes_n") ;;
        _*) ;;
        *) __hermes_names+=("$__hermes_n") ;;
      esac
    done <${temporary}
    {
      builtin export -p
      [[ \${#__hermes_names[@]} -gt 0 ]] && builtin declare -f "\${__hermes_names[@]}"
      builtin alias -p
      builtin echo 'shopt -s expand_aliases'
      builtin echo 'set +e'
      builtin echo 'set +u'
    } >|${temporary} ${end} 2>/dev/null
}`;
}

/** Takes the line that names the directory out of a text. */
export function takeMarker(text: string, marker: string): { start: number; end: number; cwd: string } | null {
  const start = text.lastIndexOf(`\n${marker}`, text.lastIndexOf(`${marker}\n`) - marker.length);
  if (start < 0) return null;
  const from = start + 1 + marker.length;
  const end = text.indexOf(`${marker}\n`, from);
  return end < 0 ? null : { start, end: end + marker.length + 1, cwd: text.slice(from, end) };
}

/** The same for a stream of output, however it is cut into pieces. */
export class MarkerFilter {
  readonly #start: string;
  readonly #marker: string;
  #held = "";

  constructor(marker: string) {
    this.#marker = marker;
    this.#start = `\n${marker}`;
  }

  push(text: string): string {
    const all = this.#held + text;
    this.#held = "";
    const start = all.indexOf(this.#start);
    if (start < 0) {
      const keep = overlap(all, this.#start);
      this.#held = all.slice(all.length - keep);
      return all.slice(0, all.length - keep);
    }
    const from = start + this.#start.length;
    const end = all.indexOf(`${this.#marker}\n`, from);
    if (end < 0) {
      this.#held = all.slice(start);
      return all.slice(0, start);
    }
    return all.slice(0, start) + all.slice(end + this.#marker.length + 1);
  }

  /** What was held back and turned out to be output after all. */
  end(): string {
    const rest = this.#held;
    this.#held = "";
    return rest;
  }
}

/** Length of the longest end of `text` that is a beginning of `wanted`. */
function overlap(text: string, wanted: string): number {
  const newline = text.lastIndexOf("\n", text.length - 1);
  if (newline < 0) return 0;
  const end = text.slice(newline);
  return end.length < wanted.length && wanted.startsWith(end) ? end.length : 0;
}

/** A word that a POSIX shell reads back as exactly this text. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
