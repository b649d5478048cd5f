import { defaultConfig } from "../../../src/home/config/schema.ts";
import type { TerminalConfig } from "../../../src/sandbox/open.ts";

/** The settings of a new home with some of `terminal` changed. */
export function terminalConfig(changes: Partial<TerminalConfig>): { readonly terminal: TerminalConfig } {
  return { terminal: { ...defaultConfig().terminal, ...changes } };
}
