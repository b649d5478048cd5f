// Separates pastes from keys in what the terminal sends. Every piece is looked at once, so that 10 MB cost no more than their length.

const OPEN = "\u001b[200~";
const CLOSE = "\u001b[201~";
const GIVE_UP_MS = 2000;

export interface PasteReaderOptions {
  onKeys(data: string): void;
  onPaste(text: string): void;
  /** Newlines in one read from which on unannounced text counts as a paste; 0 = never. */
  unannouncedLines(): number;
}

export class PasteReader {
  readonly #options: PasteReaderOptions;
  #pieces: string[] | null = null;
  /** The end of what was read, in case the closing mark is split over two reads. */
  #end = "";
  #timer: NodeJS.Timeout | undefined;

  constructor(options: PasteReaderOptions) {
    this.#options = options;
  }

  feed(data: string): void {
    if (this.#pieces !== null) return this.#collect(data);
    const open = data.indexOf(OPEN);
    if (open === -1) return this.#unmarked(data);
    if (open > 0) this.#options.onKeys(data.slice(0, open));
    this.#pieces = [];
    this.#end = "";
    this.#collect(data.slice(open + OPEN.length));
  }

  /** Stops waiting for a closing mark; what came of an open paste is delivered. */
  finish(): void {
    clearTimeout(this.#timer);
    const pieces = this.#pieces;
    this.#pieces = null;
    if (pieces && pieces.length > 0) this.#options.onPaste(pieces.join(""));
  }

  #collect(data: string): void {
    clearTimeout(this.#timer);
    const pieces = this.#pieces ?? [];
    const seam = this.#end + data;
    const close = seam.indexOf(CLOSE);
    if (close === -1) {
      pieces.push(data);
      this.#end = seam.slice(-(CLOSE.length - 1));
      this.#timer = setTimeout(() => this.finish(), GIVE_UP_MS);
      return;
    }
    const whole = pieces.join("") + data;
    const rest = seam.slice(close + CLOSE.length);
    this.#pieces = null;
    this.#options.onPaste(whole.slice(0, whole.length - rest.length - CLOSE.length));
    if (rest !== "") this.feed(rest);
  }

  #unmarked(data: string): void {
    const limit = this.#options.unannouncedLines();
    if (limit > 0 && !data.includes("\u001b")) {
      const breaks = data.match(/\r\n|\r|\n/g)?.length ?? 0;
      // Held-down Enter is many newlines and nothing else.
      if (breaks >= limit && data.replace(/[\r\n]/g, "").length > breaks) return this.#options.onPaste(data);
    }
    this.#options.onKeys(data);
  }
}
