// `/bin/r?` is a command too: the shell finds the file. Only programs that a rule knows matter.
import { matchGlob } from "../glob.ts";

const WATCHED =
  "rm dd mkfs shutdown reboot halt poweroff init telinit systemctl kill sudo sh bash chmod chown curl wget find xargs git docker tee cp mv sed".split(
    " ",
  );

export function matchWatchedProgram(path: string): string | null {
  const base = path.slice(path.lastIndexOf("/") + 1);
  if (base === "[" || base === "[[" || !/[*?]|\[[^\]]+\]/.test(base)) return null;
  return WATCHED.find((program) => matchGlob(base.toLowerCase(), program)) ?? null;
}
