// What stickers show, in words. A model is asked once about each; the answer is kept in a file of the home, as the original keeps it.
import { readFile } from "node:fs/promises";
import type { Logger } from "../../home/log.ts";
import type { HomePaths } from "../../home/paths.ts";
import type { Clock } from "../../kit/clock.ts";
import { truncateCodePoints } from "../../kit/code-points.ts";
import { codeOf, messageOf } from "../../kit/errors.ts";
import { writeFileAtomic } from "../../kit/files.ts";
import { asRecord, parseJson } from "../../kit/json.ts";
import { disarm } from "../../prompt/fence.ts";

const FILE = "sticker_cache.json";
const MOST_KEPT = 1000;
const LONGEST = 300;
const QUESTION =
  "This is a sticker from a chat. Say in one or two short sentences what it shows: who or what, doing what, in which mood.";

interface Known {
  readonly description: string;
  /** Unix seconds. */
  readonly cached_at: number;
}

/** Asks a model about a picture. */
type Ask = (question: string) => Promise<string>;

/**
 * The stickers of a home; only its gateway writes them.
 *
 * - Nobody is asked about a sticker that is known, and only once about one that comes twice at the same time.
 * - A failure is not kept: the next message with that sticker asks again.
 */
export class Stickers {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #log: Logger;
  #known: Promise<Map<string, Known>> | null = null;
  readonly #asked = new Map<string, Promise<string | null>>();
  #written: Promise<void> = Promise.resolve();

  constructor(
    { paths }: { readonly paths: Pick<HomePaths, "at"> },
    { clock, log }: { readonly clock: Clock; readonly log: Logger },
  ) {
    this.#path = paths.at(FILE);
    this.#clock = clock;
    this.#log = log;
  }

  /** Its words are kept: nobody needs its picture. */
  async isKnown(id: string): Promise<boolean> {
    this.#known ??= this.#read();
    return (await this.#known).has(id);
  }

  /** One line without brackets; null: nobody can say. `ask` is null where there is no picture. Never rejects. */
  async describe(id: string, ask: Ask | null): Promise<string | null> {
    this.#known ??= this.#read();
    const known = (await this.#known).get(id);
    if (known) return plainLine(known.description);
    const running = this.#asked.get(id);
    if (running || ask === null) return running ?? null;
    const asked = this.#learn(id, ask).finally(() => this.#asked.delete(id));
    this.#asked.set(id, asked);
    return asked;
  }

  async #learn(id: string, ask: Ask): Promise<string | null> {
    try {
      const description = plainLine(await ask(QUESTION));
      if (description === "") throw new Error("the model said nothing");
      await this.#keep(id, { description, cached_at: this.#clock.now() / 1000 });
      return description;
    } catch (error) {
      this.#log.warn(`a sticker was not described: ${messageOf(error)}`);
      return null;
    }
  }

  async #keep(id: string, one: Known): Promise<void> {
    const known = (await this.#known) ?? new Map<string, Known>();
    known.set(id, one);
    forgetOldest(known);
    this.#written = this.#written.then(async () => {
      try {
        const text = `${JSON.stringify(Object.fromEntries(known), null, 2)}\n`;
        await writeFileAtomic(this.#path, text, { mode: 0o600 });
      } catch (error) {
        this.#log.warn(`${FILE} was not written: ${messageOf(error)}`);
      }
    });
    await this.#written;
  }

  /** A file that cannot be read knows nothing. */
  async #read(): Promise<Map<string, Known>> {
    const known = new Map<string, Known>();
    try {
      for (const [id, value] of Object.entries(asRecord(parseJson(await readFile(this.#path, "utf8"))))) {
        const { description, ...rest } = asRecord(value);
        if (typeof description !== "string" || plainLine(description) === "") continue;
        const at = rest.cached_at;
        known.set(id, { ...rest, description, cached_at: typeof at === "number" ? at : 0 });
      }
    } catch (error) {
      if (codeOf(error) !== "ENOENT") this.#log.warn(`${FILE} is not read: ${messageOf(error)}`);
    }
    forgetOldest(known);
    return known;
  }
}

function forgetOldest(known: Map<string, Known>): void {
  for (const id of known.keys()) {
    if (known.size <= MOST_KEPT) return;
    known.delete(id);
  }
}

/** Somebody drew it, so its words may be anybody's: they stay one line inside the brackets around them. */
const plainLine = (text: string): string =>
  truncateCodePoints(disarm(text.replace(/[[\]［］【】\p{C}\p{Z}]+/gu, " ").trim()), LONGEST, "…");
