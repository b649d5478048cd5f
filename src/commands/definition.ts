// One slash command. A single ordered list of these feeds dispatch, help, completion and platform menus on every surface.
import type { CommandContext } from "./context.ts";

export const CATEGORIES = ["Session", "Configuration", "Tools & Skills", "Info", "Exit"] as const;
export type Category = (typeof CATEGORIES)[number];

export interface CommandDefinition {
  /** Canonical, lower-case, without the slash. */
  readonly name: string;
  readonly description: string;
  readonly category: Category;
  readonly aliases?: readonly string[];
  /** e.g. `[name]`; plain words joined by `|` become subcommands for completion. */
  readonly argsHint?: string;
  readonly subcommands?: readonly string[];
  readonly availability?: "everywhere" | "cli" | "gateway";
  /** Dotted config key that, when truthy, opens a cli-only command to gateways. */
  readonly gatewayConfigGate?: string;
  readonly destructive?: boolean;
  readonly permission?: "user" | "admin";
  /** What happens when a turn is running. Default `reject`. */
  readonly busyPolicy?: "dispatch" | "reject" | "interrupt_then_dispatch";
  /**
   * The question before a destructive command, and what has to be refused as it was typed. False = the command does not run.
   * Comes before a running turn is interrupted: who says no loses nothing.
   */
  mayRun?(args: string, ctx: CommandContext): Promise<boolean>;
  run(args: string, ctx: CommandContext): Promise<void>;
}
