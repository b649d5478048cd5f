import { INFO_COMMANDS } from "./info.ts";
import { CommandRegistry } from "./registry.ts";
import { SESSION_COMMANDS } from "./session.ts";
import { SETTINGS_COMMANDS } from "./settings.ts";

/** A fresh registry with the built-in commands. Plugins and skills add to a door's own copy. */
export const builtinCommands = () => new CommandRegistry([...SESSION_COMMANDS, ...SETTINGS_COMMANDS, ...INFO_COMMANDS]);
