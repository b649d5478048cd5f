// Putting away what commands in a sandbox left where it would run outside. They may still be running while we do: every folder on the way
// is held open and none is followed through a link, so that nothing outside of the project is ever touched.

import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, lstat, open, readdir, readlink, rename, symlink } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { ownKindNow } from "../home/looks.ts";
import { codeOf } from "../kit/errors.ts";
import { isWithin } from "../kit/files.ts";

const ASIDE = ".from-sandbox";
/** Of Linux: a handle on the folder itself, which needs no right to list it. */
const O_PATH = 0o10000000;

/** A folder that stays the same one, whatever its path leads to in the meantime. */
export class HeldFolder {
  readonly #handle: FileHandle;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /** Does `work` in a folder in or below `root`, which no command can exchange; null where the way there leads through a link. */
  static async within<T>(root: string, path: string, work: (folder: HeldFolder) => Promise<T>): Promise<T | null> {
    if (!isWithin(path, root)) return null;
    const flags = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;
    let handle: FileHandle | null = null;
    try {
      handle = await open(root, flags);
      for (const name of relative(root, path).split("/").filter(Boolean)) {
        const next: FileHandle = await open(`/proc/self/fd/${handle.fd}/${name}`, flags);
        await handle.close();
        handle = next;
      }
      return await work(new HeldFolder(handle));
    } catch (error) {
      if (["ENOENT", "ENOTDIR", "ELOOP", "EACCES", "EPERM", "EROFS"].includes(codeOf(error) ?? "")) return null;
      throw error;
    } finally {
      await handle?.close();
    }
  }

  at(name: string): string {
    return `/proc/self/fd/${this.#handle.fd}/${name}`;
  }

  /** A regular file of at most `limit` bytes, read without following a link or waiting for a pipe; null when it is none. */
  async read(name: string, limit: number): Promise<string | null> {
    const file = await open(
      this.at(name),
      constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY,
    ).catch(() => null);
    if (!file) return null;
    try {
      const facts = await file.stat();
      return facts.isFile() && facts.size <= limit ? await file.readFile("utf8") : null;
    } finally {
      await file.close();
    }
  }

  async setAside(name: string): Promise<void> {
    const from = this.at(name);
    const gone = (error: unknown) => {
      if (codeOf(error) !== "ENOENT") throw error;
    };
    // Over an older file it goes by itself; a folder is not replaced.
    await rename(from, this.at(`${name}${ASIDE}`)).catch((error: unknown) =>
      codeOf(error) === "ENOENT"
        ? undefined
        : rename(from, this.at(`${name}${ASIDE}-${randomBytes(4).toString("hex")}`)).catch(gone),
    );
  }

  /** What was there is set aside, and this is there instead. */
  async replace(name: string, text: string): Promise<void> {
    const temporary = `.${name}.${randomBytes(4).toString("hex")}`;
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
    const file = await open(this.at(temporary), flags, 0o644);
    try {
      await file.writeFile(text);
    } finally {
      await file.close();
    }
    await this.setAside(name);
    await rename(this.at(temporary), this.at(name));
  }
}

/** A place that commands must leave as it is, though no mount can hold it. */
export interface KeptPlace {
  readonly path: string;
  /** The folder of the project, or of the repository, that it lies in. */
  readonly root: string;
  /** A link that is there; null: nothing is. */
  readonly link: string | null;
  /** Only what is at this path in it counts, when it is a folder. */
  readonly inside?: string;
}

/** The places over the life of one sandbox. */
export class KeptFree {
  #places: readonly KeptPlace[];
  /** One at a time: what one puts back, another would take for new. */
  #clearing: Promise<readonly string[]> = Promise.resolve([]);

  constructor(places: readonly KeptPlace[]) {
    this.#places = places;
  }

  has(path: string): boolean {
    return this.#places.some(({ path: kept, inside }) =>
      isWithin(path, kept) ? inside === undefined || path === kept || isWithin(path, join(kept, inside)) : false,
    );
  }

  /** Folders in which something would appear. */
  get folders(): readonly string[] {
    return [...new Set(this.#places.map(({ path }) => dirname(path)))];
  }

  get names(): ReadonlySet<string> {
    return new Set(this.#places.map(({ path }) => basename(path)));
  }

  /** Sets aside what appeared and puts links back; resolves to the paths. What changed after `before`, if given, stays. */
  clear(only: { readonly before?: bigint } = {}): Promise<readonly string[]> {
    const work = () => this.#clearNow(only);
    this.#clearing = this.#clearing.then(work, work);
    return this.#clearing;
  }

  async #clearNow({ before }: { readonly before?: bigint }): Promise<readonly string[]> {
    const changed = await this.#changed();
    const times = await Promise.all(
      changed.map(({ path }) => (before === undefined ? null : lstat(path, { bigint: true }).catch(() => null))),
    );
    const found = changed.filter((_, index) => (times[index]?.ctimeNs ?? 0n) <= (before ?? 0n));
    return Promise.all(
      found.map(async ({ path, root, link, inside }) => {
        const isFolder = inside !== undefined && ownKindNow(path) === "directory";
        const names = isFolder ? await readdir(path).catch(() => []) : [];
        // A folder with other things in it loses only what counts.
        const at = isFolder && names.some((name) => name !== inside) ? join(path, inside) : path;
        await HeldFolder.within(root, dirname(at), async (folder) => {
          await folder.setAside(basename(at));
          if (link !== null) await symlink(link, folder.at(basename(at)));
        }).catch(() => null); // changed under our hands: the next look finds it again
        return at;
      }),
    );
  }

  /** What is there now was put there from outside, with a yes: it stays. */
  async accept(): Promise<void> {
    const found = await this.#changed();
    this.#places = this.#places.filter((place) => !found.includes(place));
  }

  async #changed(): Promise<KeptPlace[]> {
    const changed = await Promise.all(
      this.#places.map(async ({ path, link, inside }) => {
        const kind = ownKindNow(path);
        if (link !== null) return (kind === "link" ? await readlink(path).catch(() => null) : null) !== link;
        if (kind === null) return false;
        return inside === undefined || kind !== "directory" || ownKindNow(join(path, inside)) !== null;
      }),
    );
    return this.#places.filter((_, index) => changed[index]);
  }
}
