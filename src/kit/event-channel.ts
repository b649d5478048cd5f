/**
 * A queue between one writer and one reader.
 *
 * - `push` never waits: unread events are buffered and block nothing. `join` may melt a new event into the newest unread one.
 * - The reader gets everything pushed before `close`, then the end. Leaving a loop early takes nothing away from the next one.
 */
export class EventChannel<T> implements AsyncIterable<T> {
  readonly #join: (unread: T, next: T) => T | undefined;
  #unread: T[] = [];
  #closed = false;
  #wake: () => void = () => undefined;

  constructor(options: { readonly join?: (unread: T, next: T) => T | undefined } = {}) {
    this.#join = options.join ?? (() => undefined);
  }

  push(event: T): void {
    if (this.#closed) return;
    const newest = this.#unread.at(-1);
    const joined = newest === undefined ? undefined : this.#join(newest, event);
    if (joined === undefined) this.#unread.push(event);
    else this.#unread[this.#unread.length - 1] = joined;
    this.#wake();
  }

  close(): void {
    this.#closed = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for (;;) {
      const event = this.#unread.shift();
      if (event !== undefined) {
        yield event;
        continue;
      }
      if (this.#closed) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
