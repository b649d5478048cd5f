// What /rollback needs, for the project a conversation stands in.
import { isAbsolute, normalize, relative, resolve, sep } from "node:path";
import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import { UserError } from "../kit/errors.ts";
import { hasTraversalComponent } from "../safety/paths.ts";
import type { Environment } from "../sandbox/environment.ts";
import { diffSince, type SinceThen } from "./diff.ts";
import { openCheckpoints } from "./open.ts";
import { keepsCheckpoints } from "./port.ts";
import { projectRootOf } from "./project-root.ts";
import type { Checkpoint } from "./records.ts";
import { type RestoreReport, restore } from "./restore.ts";
import type { CheckpointStore } from "./store.ts";

/** A checkpoint that is not there, or a file that is none of the project's. */
export class RollbackError extends UserError {
  override name = "RollbackError";
}

export class Rollback {
  readonly root: string;
  /** Whether this conversation takes checkpoints. */
  readonly on: boolean;
  readonly #store: CheckpointStore;
  readonly #sessionId: string;

  constructor(
    store: CheckpointStore,
    { root, sessionId, on }: { readonly root: string; readonly sessionId: string; readonly on: boolean },
  ) {
    this.#store = store;
    this.root = root;
    this.on = on;
    this.#sessionId = sessionId;
  }

  list(): Promise<readonly Checkpoint[]> {
    return this.#store.list(this.root);
  }

  /** By its number in the list or by its id. */
  async find(name: string): Promise<Checkpoint> {
    const all = await this.list();
    if (all.length === 0) throw new RollbackError(`There are no checkpoints of ${this.root}.`);
    const byNumber = /^\d{1,3}$/.test(name) ? all[Number(name) - 1] : undefined;
    if (byNumber) return byNumber;
    if (!/^[0-9a-f]{4,64}$/i.test(name))
      throw new RollbackError(
        `"${name}" is no checkpoint; take a number from 1 to ${all.length} or the first 4 or more characters of an id.`,
      );
    const found = all.filter(({ id }) => id.startsWith(name.toLowerCase()));
    if (found.length === 1 && found[0]) return found[0];
    throw new RollbackError(
      found.length === 0
        ? `No checkpoint of ${this.root} is called ${name}.`
        : `More than one checkpoint begins with ${name}.`,
    );
  }

  diff(checkpoint: Checkpoint, file?: string): Promise<SinceThen> {
    return diffSince(this.#store, this.root, checkpoint, { file: this.#inside(file) });
  }

  restore(checkpoint: Checkpoint, wish: { file?: string | undefined; removeNew?: boolean }): Promise<RestoreReport> {
    const file = this.#inside(wish.file);
    return restore(this.#store, this.root, checkpoint, { ...wish, file, sessionId: this.#sessionId });
  }

  #inside(file: string | undefined): string | undefined {
    if (file === undefined) return undefined;
    if (isAbsolute(file) || hasTraversalComponent(file))
      throw new RollbackError(`${file} must be a path below ${this.root}, without a leading slash and without "..".`);
    const path = relative(this.root, resolve(this.root, normalize(file)))
      .split(sep)
      .join("/");
    return path === "" ? undefined : path;
  }
}

export interface RollbackPlace {
  readonly home: OpenHome;
  readonly clock: Clock;
  readonly environment: Environment;
  readonly sessionId: string;
  readonly on: boolean;
}

/** Throws `RollbackError` where there can be no checkpoints. */
export async function openRollback({ home, clock, environment, sessionId, on }: RollbackPlace): Promise<Rollback> {
  if (!keepsCheckpoints(environment))
    throw new RollbackError(
      `Checkpoints are copies of files on this machine; commands and file tools of this conversation work elsewhere (${environment.kind}). Use git there.`,
    );
  const root = await projectRootOf(environment.cwd, { osHome: home.osHome, cwd: environment.cwd });
  if (root === null)
    throw new RollbackError(
      `No checkpoints are made of ${home.display(environment.cwd)}: it is too wide to be copied. Start Hermes in a project folder.`,
    );
  return new Rollback(openCheckpoints(home, clock), { root, sessionId, on });
}
