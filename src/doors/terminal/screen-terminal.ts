// The process's terminal, with pastes taken out of the key stream before anything scans it piece by piece.
import { ProcessTerminal } from "@earendil-works/pi-tui";
import { PasteReader } from "./paste-reader.ts";

const LEAST_COLUMNS = 12;

type DataListener = (data: string) => void;

export class ScreenTerminal extends ProcessTerminal {
  readonly #unannouncedLines: () => number;
  #reader: PasteReader | null = null;
  #listener: DataListener | null = null;

  constructor(options: { unannouncedLines(): number }) {
    super();
    this.#unannouncedLines = options.unannouncedLines;
  }

  /** Below this nothing can be laid out: a wide character alone would be too long for its line. */
  override get columns(): number {
    return Math.max(LEAST_COLUMNS, super.columns);
  }

  override start(onInput: (data: string) => void, onResize: () => void): void {
    const before = new Set(process.stdin.listeners("data"));
    super.start(onInput, onResize);
    // What the base class has just registered reads keys; it gets everything but pastes.
    const readers = process.stdin.listeners("data").filter((listener) => !before.has(listener)) as DataListener[]; // stdin has an encoding
    for (const reader of readers) process.stdin.off("data", reader);
    const reader = new PasteReader({
      onKeys: (data) => {
        for (const read of readers) read(data);
      },
      onPaste: (text) => onInput(`\u001b[200~${text}\u001b[201~`),
      unannouncedLines: this.#unannouncedLines,
    });
    this.#reader = reader;
    this.#listener = (data) => reader.feed(data);
    process.stdin.on("data", this.#listener);
  }

  override stop(): void {
    if (this.#listener) process.stdin.off("data", this.#listener);
    this.#listener = null;
    this.#reader?.finish();
    this.#reader = null;
    super.stop();
  }
}
