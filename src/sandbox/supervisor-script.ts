// Scripts for places that only a channel leads to. The channel ends when the command does, whatever it leaves running; and what it
// started can be ended from outside, because its process id comes with the start mark.
import type { ShellRun } from "./place.ts";
import { quote } from "./quote.ts";

export interface Supervision {
  readonly run: ShellRun;
  readonly shell: string;
  readonly hasBash: boolean;
  readonly mark: string;
  readonly stateDir: string;
  readonly id: string;
}

/**
 * Runs the command in a process group of its own, with a named pipe for its output: some servers give commands a socket, which cannot
 * be opened by path (`> /dev/stderr`). A grandchild that keeps the pipe gets 0.3 seconds after the command's end.
 */
export function supervisorScript({ run, shell, hasBash, mark, stateDir, id }: Supervision): string {
  const pipe = quote(`${stateDir}/out-${id}`);
  const command = shellCommand(run, shell, mark);
  // Job control gives the group; other shells than bash want a terminal for it.
  const [before, prefix, afterwards] = hasBash ? ["set -m", "", "set +m"] : ["", "$g ", ""];
  return `mkfifo -m 600 ${pipe} || exit 125
exec 2>/dev/null 3<&0
g=$(command -v setsid)
cat <${pipe} &
c=$!
${before}
${prefix}${command} <&3 >${pipe} 2>&1 3<&- &
p=$!
${afterwards}
wait $p
s=$?
rm -f ${pipe}
(sleep 0.3; kill $c) </dev/null >/dev/null &
k=$!
wait $c
kill $k
exit $s`;
}

/** The command itself, on a terminal that ends with it. */
export function terminalScript({ run, shell, mark }: Pick<Supervision, "run" | "shell" | "mark">): string {
  return `exec ${shellCommand(run, shell, mark)}`;
}

function shellCommand({ login, script }: ShellRun, shell: string, mark: string): string {
  const marked = `printf '%s %s\\n' ${mark} $$\n${script}`;
  return [shell, ...(login ? ["-l"] : []), "-c", marked].map(quote).join(" ");
}

/** SIGTERM, some time, SIGKILL: to the group of a process, and to all its descendants if the whole tree is meant. */
export function endScript(pid: number, scope: "group" | "tree", graceMs: number): string {
  return `p=${pid} family=
${scope === "tree" ? FAMILY : ""}
tell() { kill -s $1 -- -$p $p; for q in $family; do kill -s $1 $q; done; }
lives() { kill -s 0 -- -$p && return; for q in $family; do kill -s 0 $q && return; done; return 1; }
exec 2>/dev/null
tell TERM
i=0
while [ $i -lt ${Math.ceil(graceMs / 100)} ] && lives; do sleep 0.1; i=$((i+1)); done
tell KILL
true`;
}

// Linux without ps, or ps of whatever system it is.
const FAMILY = `table=$(
  if [ -r /proc/self/stat ]; then
    for s in /proc/[0-9]*/stat; do
      read -r line <$s || continue
      n=\${s#/proc/}
      set -- \${line##*) }
      echo "\${n%/stat} $2"
    done
  else
    ps -A -o pid= -o ppid=
  fi 2>/dev/null
)
level=$p
while [ -n "$level" ]; do
  next=
  set -- $table
  while [ $# -gt 1 ]; do
    case " $level " in *" $2 "*) next="$next $1" ;; esac
    shift 2
  done
  family="$family$next"
  level=\${next# }
done`;
