// Commands the program runs on its own account: fixed words, no part of which comes from a model or a file.
import { type ClearedCommand, clearCommand } from "./decision.ts";

/** Whether sudo works without a password just now. Changes nothing. */
export const SUDO_PROBE: ClearedCommand = clearCommand("sudo -n true");
