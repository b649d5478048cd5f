// Which folders the user trusts. Nothing that an unknown folder brings along runs or loads by itself; its rules are read and scanned.
import { readFileSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve, sep } from "node:path";
import { UserError } from "../kit/errors.ts";
import { isWithin, writeFileAtomic } from "../kit/files.ts";
import { isRecord, parseJson } from "../kit/json.ts";
import { lazy } from "../kit/lazy.ts";
import { linkedWorktree } from "./git-pointer.ts";
import { FileStamp, realPathNow } from "./looks.ts";
import type { HomePaths } from "./paths.ts";

/** What was decided about a folder and everything below it. */
interface FolderEntry {
  readonly path: string;
  /** ISO 8601. */
  readonly at: string;
  /** Where it was decided: `start`, `command`. */
  readonly by: string;
  /** Asked once, and not trusted. */
  readonly lookOnly: boolean;
}

export interface FolderStanding {
  /** The git root of the folder, else the folder; its real path. */
  readonly folder: string;
  /** `never`: too wide to be trusted as a whole, so nobody is asked. */
  readonly standing: "trusted" | "look only" | "unknown" | "never";
  /** The folder whose decision counts here: itself, one above it, the main tree of a worktree; null without one. */
  readonly decidedAt: string | null;
}

/** Reads are cheap and always fresh: another process may have decided meanwhile. */
export class FolderTrust {
  readonly #paths: HomePaths;
  readonly #osHome: string;
  readonly #stamp: FileStamp;
  #read: { readonly of: string; readonly entries: readonly FolderEntry[] } | null = null;
  readonly #mentioned = new Set<string>();

  constructor(paths: HomePaths, osHome: string) {
    this.#paths = paths;
    this.#osHome = osHome;
    this.#stamp = new FileStamp(this.file);
  }

  get file(): string {
    return this.#paths.at("trusted_folders.json");
  }

  /** Sorted by path. A file that cannot be read trusts nobody. */
  list(): readonly FolderEntry[] {
    const of = this.#stamp.fresh();
    if (this.#read?.of !== of) this.#read = { of, entries: this.#readList() };
    return this.#read.entries;
  }

  #readList(): readonly FolderEntry[] {
    const read = parseJson(textOf(this.file));
    if (!isRecord(read)) return [];
    return Object.entries(read)
      .flatMap(([path, entry]) => (isRecord(entry) && path.startsWith(sep) ? [entryOf(path, entry)] : []))
      .sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  standing(cwd: string): FolderStanding {
    const folder = rootOf(realPath(cwd));
    return this.#known(folder) ?? { folder, standing: this.#isTooWide(folder) ? "never" : "unknown", decidedAt: null };
  }

  /** Asked for each file that is read: what stands in no list is not looked at further. */
  isTrusted(cwd: string): boolean {
    return this.#known(rootOf(realPath(cwd)))?.standing === "trusted";
  }

  /** Whether it is the first time that this process says something of the folder: a server would say it with each call. */
  mentions(folder: string): boolean {
    const isFirst = !this.#mentioned.has(folder);
    this.#mentioned.add(folder);
    return isFirst;
  }

  #known(folder: string): FolderStanding | null {
    const workspace = realPath(this.#paths.at("workspace"));
    if (isWithin(folder, workspace) || this.#isOfCard(folder)) return { folder, standing: "trusted", decidedAt: null };
    const decided = this.#decided(folder) ?? this.#decided(mainTreeOf(folder));
    if (!decided) return null;
    return { folder, standing: decided.lookOnly ? "look only" : "trusted", decidedAt: decided.path };
  }

  /** A folder that was made for the work on one card of a board. */
  #isOfCard(folder: string): boolean {
    const boards = realPath(join(this.#paths.root, "kanban"));
    return isWithin(folder, boards) && /^(?:boards\/[^/]+\/)?workspaces\/[^/]/.test(folder.slice(boards.length + 1));
  }

  /** Throws a `UserError` for folders that hold everything. */
  async decide(path: string, entry: Pick<FolderEntry, "by" | "lookOnly"> & { readonly at: Date }): Promise<string> {
    const folder = realPath(path);
    if (this.#isTooWide(folder))
      throw new UserError(`${folder} is too broad to be trusted as a whole. Trust a project inside it.`);
    const kept = { at: entry.at.toISOString(), by: entry.by, ...(entry.lookOnly && { look_only: true }) };
    await this.#write([
      ...this.list()
        .filter((one) => one.path !== folder)
        .map(rowOf),
      [folder, kept],
    ]);
    return folder;
  }

  /** The folder that is forgotten; null when nothing was decided about it. */
  async remove(path: string): Promise<string | null> {
    const entries = this.list();
    const gone = entries.find((one) => one.path === resolve(path) || one.path === realPath(path));
    if (!gone) return null;
    await this.#write(entries.filter((one) => one !== gone).map(rowOf));
    return gone.path;
  }

  /** The nearest decision counts. */
  #decided(folder: string | null): FolderEntry | undefined {
    if (folder === null) return undefined;
    return this.list()
      .filter(({ path }) => isWithin(folder, path))
      .reduce<FolderEntry | undefined>(
        (best, one) => (best && best.path.length > one.path.length ? best : one),
        undefined,
      );
  }

  #isTooWide(folder: string): boolean {
    if (isWithin(realPath(this.#osHome), folder) || isWithin(realPath(this.#paths.dir), folder)) return true;
    return temporaryFolders().some((temp) => isWithin(temp, folder));
  }

  async #write(rows: readonly (readonly [string, object])[]): Promise<void> {
    await writeFileAtomic(this.file, `${JSON.stringify(Object.fromEntries(rows), null, 2)}\n`, { mode: 0o600 });
  }
}

/** They stay where they are as long as the machine runs. */
const temporaryFolders = lazy(() => [tmpdir(), "/tmp", "/var/tmp", "/private/tmp", "/dev/shm"].map(realPath));

const entryOf = (path: string, { at, by, look_only }: Readonly<Record<string, unknown>>): FolderEntry => ({
  path,
  at: String(at ?? ""),
  by: String(by ?? ""),
  lookOnly: look_only === true,
});

const rowOf = ({ path, at, by, lookOnly }: FolderEntry) =>
  [path, { at, by, ...(lookOnly && { look_only: true }) }] as const;

function rootOf(folder: string): string {
  for (let at = folder; ; at = dirname(at)) {
    if (statSync(join(at, ".git"), { throwIfNoEntry: false })) return at;
    if (dirname(at) === at) return folder;
  }
}

function mainTreeOf(folder: string): string | null {
  const worktree = linkedWorktree(folder);
  return worktree && realPath(dirname(worktree.shared));
}

function textOf(path: string): string {
  try {
    return statSync(path).size < 1024 * 1024 ? readFileSync(path, "utf8") : "";
  } catch {
    return ""; // missing, a folder or unreadable: nothing is decided there
  }
}

/** What is not there yet is taken as it is written. */
const realPath = (path: string) => realPathNow(path) ?? resolve(path);
