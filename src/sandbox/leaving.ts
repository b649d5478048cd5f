// A sandbox that some commands may leave. The mark that the decision put on a command says which; nothing else does.
import { type ClearedCommand, clearedText } from "../safety/decision.ts";
import type { SandboxedEnvironment } from "./bubblewrap.ts";
import type { BackgroundChild, Confinement, Environment, ExecuteOptions, ExecuteResult } from "./environment.ts";

/**
 * - A command that was cleared for outside runs on this machine as it is, in the same directory; every other one in the sandbox.
 * - Outside has a shell state of its own: what a command exported inside is not known there.
 * - The outside is opened with the first command that may go there.
 */
export class LeavableSandbox implements Environment {
  readonly kind: string;
  readonly isolated: boolean;
  readonly tempDir: string;
  readonly home: string;
  readonly confinement: Confinement;
  readonly files: NonNullable<Environment["files"]>;
  readonly #inside: Environment;
  readonly #open: () => Promise<Environment>;
  #outside: Promise<Environment> | null = null;

  constructor(inside: SandboxedEnvironment, open: () => Promise<Environment>) {
    this.kind = inside.kind;
    this.isolated = inside.isolated;
    this.tempDir = inside.tempDir;
    this.home = inside.home;
    this.confinement = inside.confinement;
    this.files = inside.files;
    this.#inside = inside;
    this.#open = open;
  }

  get cwd(): string {
    return this.#inside.cwd;
  }

  setCwd(path: string): void {
    this.#inside.setCwd(path);
  }

  async execute(command: ClearedCommand, options: ExecuteOptions): Promise<ExecuteResult> {
    if (!mayLeave(command)) return this.#inside.execute(command, options);
    const outside = await this.#outsideHere();
    this.confinement.changingOutside?.();
    try {
      const result = await outside.execute(command, options);
      if (!options.keepCwd && !options.stateless) this.setCwd(outside.cwd);
      return result;
    } finally {
      await this.confinement.changedOutside();
    }
  }

  async spawn(command: ClearedCommand, options: { cwd?: string; pty?: boolean }): Promise<BackgroundChild> {
    if (!mayLeave(command)) return this.#inside.spawn(command, options);
    const outside = await this.#outsideHere();
    this.confinement.changingOutside?.();
    try {
      const child = await outside.spawn(command, options);
      void child.exited.then(() => this.confinement.changedOutside());
      return child;
    } catch (error) {
      await this.confinement.changedOutside();
      throw error;
    }
  }

  async cleanup(): Promise<void> {
    const outside = await this.#outside?.catch(() => null); // it never opened
    await Promise.all([this.#inside.cleanup(), outside?.cleanup()]);
  }

  async #outsideHere(): Promise<Environment> {
    const opening = this.#outside ?? this.#open();
    this.#outside = opening;
    opening.catch(() => {
      if (this.#outside === opening) this.#outside = null;
    });
    const outside = await opening;
    outside.setCwd(this.cwd);
    return outside;
  }
}

/** Refuses what was never decided about, before its mark is believed. */
function mayLeave(command: ClearedCommand): boolean {
  clearedText(command);
  return command.outside === true;
}
