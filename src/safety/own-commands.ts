// Commands the program runs on its own account: fixed words, no part of which comes from a model or a file.
import { type ClearedCommand, clearCommand } from "./decision.ts";

/** Whether sudo works without a password just now. Changes nothing. */
export const SUDO_PROBE: ClearedCommand = clearCommand("sudo -n true");

/** What a container or another machine is: one `key=value` line per fact, with nothing but a POSIX shell. Changes nothing. */
export const BACKEND_PROBE: ClearedCommand = clearCommand(
  `printf 'os=%s\\nkernel=%s\\nhome=%s\\ncwd=%s\\nuser=%s\\n' "$(uname -s 2>/dev/null)" "$(uname -r 2>/dev/null)" "$HOME" "$(pwd)" "$(id -un 2>/dev/null || whoami 2>/dev/null)"`,
);
