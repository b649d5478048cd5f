// What servers said they have, kept between runs: for those that connect late, and for whoever only wants to look.
import { createHash } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { writeFileAtomic } from "../kit/atomic-file.ts";
import type { Listing } from "./server-tools.ts";
import type { ServerSettings } from "./settings.ts";

interface Entry {
  /** Of the place: another command or address is another server. */
  readonly place: string;
  readonly listing: Listing;
}

export class ListingCache {
  readonly #path: string;
  #entries: Record<string, Entry> = {};
  #writing: Promise<void> = Promise.resolve();

  private constructor(path: string) {
    this.#path = path;
  }

  static async open(path: string): Promise<ListingCache> {
    const cache = new ListingCache(path);
    cache.#entries = await cache.#read();
    return cache;
  }

  get({ name, place }: ServerSettings): Listing | null {
    const entry = Object.hasOwn(this.#entries, name) ? this.#entries[name] : undefined;
    return entry?.place === placeKey(place) ? entry.listing : null;
  }

  /** Another process may have written meanwhile: its servers are kept. A cache that cannot be written is no loss. */
  put({ name, place }: ServerSettings, listing: Listing): void {
    const entry = { place: placeKey(place), listing };
    if (JSON.stringify(this.#entries[name]) === JSON.stringify(entry)) return;
    this.#entries[name] = entry;
    this.#writing = this.#writing.then(async () => {
      try {
        const merged = { ...(await this.#read()), [name]: entry };
        await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 });
        await writeFileAtomic(this.#path, `${JSON.stringify(merged)}\n`, { mode: 0o600 });
      } catch {
        // read again from the server next time
      }
    });
  }

  flush(): Promise<void> {
    return this.#writing;
  }

  async #read(): Promise<Record<string, Entry>> {
    try {
      const value: unknown = JSON.parse(await readFile(this.#path, "utf8"));
      if (typeof value !== "object" || value === null) return {};
      return Object.fromEntries(Object.entries(value).filter(([, entry]) => isEntry(entry)));
    } catch {
      return {}; // no cache yet, or not ours
    }
  }
}

function isEntry(value: unknown): value is Entry {
  if (typeof value !== "object" || value === null || !("place" in value) || !("listing" in value)) return false;
  const { listing } = value;
  return typeof listing === "object" && listing !== null && "tools" in listing && Array.isArray(listing.tools);
}

/** A hash: the place may hold secrets in arguments and headers. */
function placeKey(place: ServerSettings["place"]): string {
  const plain = place.type === "stdio" ? [place.command, place.args] : [place.type, String(place.url)];
  return createHash("sha256").update(JSON.stringify(plain)).digest("hex").slice(0, 16);
}
