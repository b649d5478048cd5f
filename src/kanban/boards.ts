// Where boards lie, which one is meant, and what is written about each: shared by all profiles of a root.
import { mkdir, readdir, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Logger } from "../home/log.ts";
import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import { isDirectory, writeFileAtomic } from "../kit/files.ts";
import { asRecord, asText, type Json, parseJson } from "../kit/json.ts";
import { BoardError, listCards } from "./cards.ts";
import { BoardFile } from "./schema.ts";

const DEFAULT_BOARD = "default";
const SLUG = /^[a-z0-9][a-z0-9\-_]{0,63}$/;

/** One board: its folders and files. */
export interface BoardPlace {
  readonly slug: string;
  readonly folder: string;
  readonly database: string;
  readonly workspaces: string;
  readonly attachments: string;
  readonly logs: string;
}

/** `board.json`. Fields that only others know are kept beside these. */
export interface BoardFacts {
  readonly slug: string;
  readonly name: string;
  readonly description: string;
  readonly icon: string;
  readonly color: string;
  readonly created_at: number | null;
  readonly archived: boolean;
  readonly default_workdir: string | null;
}

type BoardHome = Pick<OpenHome, "paths" | "env"> & { readonly log: Logger };

export class Boards {
  readonly #home: BoardHome;
  readonly #clock: Clock;

  constructor(home: BoardHome, clock: Clock) {
    this.#home = home;
    this.#clock = clock;
  }

  /** Above the profiles: a board is theirs together. */
  get root(): string {
    return this.#home.env("HERMES_KANBAN_HOME")?.trim() || this.#home.paths.root;
  }

  get #folder(): string {
    return join(this.root, "kanban");
  }

  place(slug: string): BoardPlace {
    const isDefault = slug === DEFAULT_BOARD;
    const folder = isDefault ? this.#folder : join(this.#folder, "boards", slug);
    // A worker is told where the board of its card lies.
    const isPinned = (this.#home.env("HERMES_KANBAN_BOARD")?.trim() || DEFAULT_BOARD) === slug;
    const pinned = isPinned ? this.#home.env("HERMES_KANBAN_DB")?.trim() : undefined;
    return {
      slug,
      folder,
      database: pinned || join(isDefault ? this.root : folder, "kanban.db"),
      workspaces: this.#home.env("HERMES_KANBAN_WORKSPACES_ROOT")?.trim() || join(folder, "workspaces"),
      attachments: join(folder, "attachments"),
      logs: join(folder, "logs"),
    };
  }

  /** The board that is meant where none is named. One that is gone, or no name at all, is passed over. */
  async active(): Promise<string> {
    for (const given of [this.#home.env("HERMES_KANBAN_BOARD"), await readText(join(this.#folder, "current"))]) {
      const slug = given?.trim() ?? "";
      if (slug !== "" && (await this.exists(slug))) return slug;
    }
    return DEFAULT_BOARD;
  }

  async exists(slug: string): Promise<boolean> {
    return slug === DEFAULT_BOARD || (SLUG.test(slug) && isDirectory(join(this.#folder, "boards", slug)));
  }

  /** Rejects for a board that is not there. */
  async require(slug: string): Promise<BoardPlace> {
    if (!(await this.exists(slug)))
      throw new BoardError(`there is no board "${slug}". "hermes kanban boards list" shows them.`);
    return this.place(slug);
  }

  async open(slug: string): Promise<BoardFile> {
    const { database } = await this.require(slug);
    return BoardFile.open(database, { clock: this.#clock, log: this.#home.log.child("kanban") });
  }

  /** The default board first, then by name. */
  async list(): Promise<readonly string[]> {
    const found = await readdir(join(this.#folder, "boards"), { withFileTypes: true }).catch(() => []); // none yet
    const slugs = found.filter((one) => one.isDirectory() && SLUG.test(one.name)).map(({ name }) => name);
    return [DEFAULT_BOARD, ...slugs.filter((slug) => slug !== DEFAULT_BOARD).sort()];
  }

  async facts(slug: string): Promise<BoardFacts> {
    const json = await this.#read(slug);
    return {
      slug,
      name: asText(json.name) || titleOf(slug),
      ...{ description: asText(json.description), icon: asText(json.icon), color: asText(json.color) },
      created_at: typeof json.created_at === "number" ? json.created_at : null,
      archived: json.archived === true,
      default_workdir: asText(json.default_workdir) || null,
    };
  }

  async create(slug: string, facts: Partial<BoardFacts>): Promise<void> {
    if (!SLUG.test(slug))
      throw new BoardError(
        `"${slug}" cannot be the name of a board: small letters, digits, - and _, at most 64, beginning with a letter or digit.`,
      );
    if (await this.exists(slug)) throw new BoardError(`there is a board "${slug}" already.`);
    const { folder } = this.place(slug);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await this.change(slug, { created_at: Math.floor(this.#clock.now() / 1000), archived: false, ...facts });
    (await this.open(slug)).close();
  }

  async change(slug: string, facts: Partial<BoardFacts>): Promise<void> {
    const { folder } = await this.require(slug);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const whole = { slug, name: titleOf(slug), ...(await this.#read(slug)), ...facts };
    await writeFileAtomic(join(folder, "board.json"), `${JSON.stringify(whole, null, 2)}\n`, { mode: 0o600 });
  }

  async switchTo(slug: string): Promise<void> {
    await this.require(slug);
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    await writeFileAtomic(join(this.#folder, "current"), `${slug}\n`, { mode: 0o600 });
  }

  /** Its folder is kept beside the others, unless it is to go for good. Resolves to where it lies now. */
  async remove(slug: string, { forGood }: { readonly forGood: boolean }): Promise<string | null> {
    if (slug === DEFAULT_BOARD) throw new BoardError("the default board cannot be removed; archive its cards instead.");
    const { folder } = await this.require(slug);
    const busy = await this.#running(slug);
    if (busy.length > 0)
      throw new BoardError(
        `cards of "${slug}" are being worked on: ${busy.join(", ")}. Archive or reclaim them first.`,
      );
    if (forGood) {
      await rm(folder, { recursive: true, force: true });
      return null;
    }
    const kept = join(dirname(folder), "_archived", `${slug}-${Math.floor(this.#clock.now() / 1000)}`);
    await mkdir(dirname(kept), { recursive: true, mode: 0o700 });
    await rename(folder, kept);
    return kept;
  }

  async #running(slug: string): Promise<readonly string[]> {
    const board = await this.open(slug).catch(() => null); // damaged: nobody could work on it
    if (board === null) return [];
    try {
      return listCards(board.db, { status: "running" }).map(({ id }) => id);
    } finally {
      board.close();
    }
  }

  async #read(slug: string): Promise<Json> {
    const text = await readText(join(this.place(slug).folder, "board.json"));
    return text === null ? {} : asRecord(parseJson(text));
  }
}

const titleOf = (slug: string) =>
  slug
    .split(/[-_]+/)
    .filter((word) => word !== "")
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join(" ");

const readText = (path: string): Promise<string | null> => readFile(path, "utf8").catch(() => null); // as if it said nothing
