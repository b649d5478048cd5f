// What a script printed, as the model reads it: the beginning, and the end when there was more.
import { leaveBrokenLine } from "../safe-cut.ts";
import { withoutMiddle } from "../terminal/output.ts";

/** The keeper keeps more than is shown, so that the cut can be moved off a secret. */
const SPARE_CHARS = 25_000;

export class Printed {
  readonly #limit: number;
  head = "";
  tail = "";
  cut = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** What the keeper keeps: two fifths as they come, the rest when the script has ended. */
  get keptChars(): number {
    return this.#limit + SPARE_CHARS;
  }

  /** `whole`: the keeper said all it had to say. */
  show(clean: (text: string) => string, { whole }: { readonly whole: boolean }): string {
    const { head, tail, cut } = this;
    const isLost = !whole && tail === "" && head.length >= Math.floor((this.keptChars * 2) / 5);
    if (isLost) return clean(head.slice(0, leaveBrokenLine(head, head.length, -1)));
    return withoutMiddle({ output: head + tail, omittedChars: cut, headChars: head.length }, this.#limit, clean);
  }
}
