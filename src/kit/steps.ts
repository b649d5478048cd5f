/** One step at a time for each key: what is asked for while another step runs begins when that one has ended, however it ended. */
export class KeyedSteps {
  readonly #last = new Map<string, Promise<unknown>>();

  run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const step = before.then(work, work);
    const settled = step.catch(() => undefined); // whoever asked for it is told
    this.#last.set(key, settled);
    void settled.then(() => {
      if (this.#last.get(key) === settled) this.#last.delete(key);
    });
    return step;
  }

  /** Everything that was asked for so far has ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#last.values());
  }
}
