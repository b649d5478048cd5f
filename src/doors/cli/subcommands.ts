// Every sub-command by name. Only the module of the one that was typed is loaded.
import type { Command } from "commander";
import type { CliContext } from "./context.ts";

export interface SubcommandModule {
  define(command: Command, ctx: CliContext): void;
}

export interface Subcommand {
  readonly name: string;
  readonly summary: string;
  /** It tells what is wrong with the settings itself. */
  readonly tellsWarnings?: true;
  load(): Promise<SubcommandModule>;
}

export const SUBCOMMANDS: readonly Subcommand[] = [
  {
    name: "approvals",
    summary: "questions that wait for your yes; try a command against the policy",
    load: async () => ({ define: (await import("./safety.ts")).defineApprovals }),
  },
  { name: "auth", summary: "several keys of one provider: add, list, remove, wake", load: () => import("./auth.ts") },
  {
    name: "batch",
    summary: "run many prompts and keep what the agent did as trajectories",
    load: () => import("./batch.ts"),
  },
  { name: "bundles", summary: "several skills under one command", load: () => import("./skills-bundles.ts") },
  {
    name: "checkpoints",
    summary: "copies of your files before the agent changed them: how many, how large, remove them",
    load: () => import("./checkpoints.ts"),
  },
  { name: "config", summary: "show and change settings", tellsWarnings: true, load: () => import("./config.ts") },
  {
    name: "doctor",
    summary: "find out what is wrong and how to mend it",
    tellsWarnings: true,
    load: () => import("./doctor.ts"),
  },
  { name: "hooks", summary: "programs of yours that run at events of the agent", load: () => import("./hooks.ts") },
  { name: "mcp", summary: "servers that give the agent more tools", load: () => import("./mcp.ts") },
  { name: "memory", summary: "what the agent remembers: look, change, take back", load: () => import("./memory.ts") },
  {
    name: "model",
    summary: "choose provider and model",
    load: async () => ({ define: (await import("./setup.ts")).defineModel }),
  },
  {
    name: "plugins",
    summary: "what others wrote for the agent: install, switch on and off",
    load: () => import("./plugins.ts"),
  },
  {
    name: "profile",
    summary: "several agents side by side, each with its own home",
    load: () => import("./profile.ts"),
  },
  {
    name: "prompt",
    summary: "what the model is told, from which files, and what its cache cost",
    load: () => import("./prompt.ts"),
  },
  {
    name: "prompt-size",
    summary: "how large prompt and tools are (same as prompt size)",
    load: async () => ({ define: (await import("./prompt.ts")).defineSize }),
  },
  {
    name: "safety",
    summary: "what the command policy says about a command; runs nothing",
    load: () => import("./safety.ts"),
  },
  {
    name: "sessions",
    summary: "list, read, search, export and clean past conversations",
    load: () => import("./sessions.ts"),
  },
  { name: "setup", summary: "connect a model, step by step", load: () => import("./setup.ts") },
  { name: "skills", summary: "what the agent knows how to do", load: () => import("./skills.ts") },
  { name: "status", summary: "profile, model, keys and sessions at a glance", load: () => import("./status.ts") },
  { name: "tools", summary: "which tools the agent may use", load: () => import("./tools.ts") },
  { name: "usage", summary: "tokens and money spent", load: () => import("./usage.ts") },
  { name: "version", summary: "version, runtime and install path", load: () => import("./version.ts") },
];
