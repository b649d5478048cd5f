// What servers said they have, kept between runs: for those that connect late, and for whoever only wants to look.
import { createHash } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { writeFileAtomic } from "../kit/files.ts";
import type { Listing } from "./server-tools.ts";
import type { ServerSettings } from "./settings.ts";

interface Entry {
  /** Of the place: another command or address is another server. */
  readonly place: string;
  /** Null: it was never connected. */
  readonly listing: Listing | null;
  /** How the last try to connect failed; absent when it did not. */
  readonly failed?: FailedTry;
}

export interface FailedTry {
  readonly reason: string;
  /** Milliseconds since the epoch: the first of several tries with the same end. */
  readonly at: number;
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

  get(settings: ServerSettings): Listing | null {
    return this.#entry(settings)?.listing ?? null;
  }

  /** How the last try to connect failed; null when it did not. */
  failed(settings: ServerSettings): FailedTry | null {
    return this.#entry(settings)?.failed ?? null;
  }

  /** It is connected, and this is what it has. */
  put(settings: ServerSettings, listing: Listing): void {
    this.#keep(settings, { place: placeKey(settings.place), listing });
  }

  /** It could not be connected; what it had before stays known. */
  putFailure(settings: ServerSettings, failed: FailedTry): void {
    const before = this.#entry(settings);
    if (before?.failed?.reason === failed.reason) return;
    this.#keep(settings, { place: placeKey(settings.place), listing: before?.listing ?? null, failed });
  }

  #entry({ name, place }: ServerSettings): Entry | null {
    const entry = Object.hasOwn(this.#entries, name) ? this.#entries[name] : undefined;
    return entry?.place === placeKey(place) ? entry : null;
  }

  /** Another process may have written meanwhile: its servers are kept. A cache that cannot be written is no loss. */
  #keep({ name }: ServerSettings, entry: Entry): void {
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
  if (listing === null) return "failed" in value;
  return typeof listing === "object" && "tools" in listing && Array.isArray(listing.tools);
}

/** A hash: the place may hold secrets in arguments and headers. */
function placeKey(place: ServerSettings["place"]): string {
  const plain = place.type === "stdio" ? [place.command, place.args] : [place.type, String(place.url)];
  return createHash("sha256").update(JSON.stringify(plain)).digest("hex").slice(0, 16);
}
