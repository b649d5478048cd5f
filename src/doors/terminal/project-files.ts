// The files of the folder, for completion: remembered for a few seconds, ignored ones left out.

const FRESH_MS = 5000;
const MOST = 5000;

export class ProjectFiles {
  readonly #folder: string;
  readonly #now: () => number;
  #known: { readonly at: number; readonly files: Promise<readonly string[]> } | null = null;

  constructor(folder: string, now: () => number) {
    this.#folder = folder;
    this.#now = now;
  }

  list(): Promise<readonly string[]> {
    if (!this.#known || this.#now() - this.#known.at > FRESH_MS) {
      this.#known = { at: this.#now(), files: listFiles(this.#folder) };
    }
    return this.#known.files;
  }
}

async function listFiles(folder: string): Promise<readonly string[]> {
  try {
    const { findRipgrep, ripgrepEngine } = await import("../../tools/files/ripgrep.ts");
    const ripgrep = await findRipgrep();
    const engine = ripgrep ? ripgrepEngine(ripgrep) : (await import("../../tools/file-search-walker.ts")).walkerEngine;
    return (await engine.listFiles(folder, AbortSignal.timeout(FRESH_MS))).slice(0, MOST);
  } catch {
    return []; // no list, no suggestions: typing goes on
  }
}
