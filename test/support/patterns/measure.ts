// How often an expression goes back on a text. Counted by the engine, so the answer is the same on every machine.
import { countable, type Pattern } from "./pump.ts";

// Only in a process with --allow-natives-syntax.
const limited = new Function("source", "flags", "most", "return %NewRegExpWithBacktrackLimit(source, flags, most)") as (
  source: string,
  flags: string,
  most: number,
) => RegExp;

/**
 * A match where there is none is added to it, so that only an expression that was stopped finds nothing at all. And the limit itself:
 * an expression that the engine has seen before keeps the limit it had.
 */
function limitedTo(most: number, { source, flags }: Pattern): RegExp {
  const empty = flags.includes("y") ? "" : "(?![^])";
  return limited(`(?:${source})|${empty}|(?!)${most}`, flags.replace("g", "") + "g", most);
}

const MATCHES = 20;
/** Nobody waits for more. */
export const HOPELESS = 2 ** 28;

/** One expression, and how often it goes back on a text. */
export class Measure {
  readonly #pattern: Pattern;
  readonly #limited = new Map<number, RegExp>();

  constructor(pattern: Pattern) {
    this.#pattern = countable(pattern);
  }

  /** Whether each of its first matches is found, or known to be missing, within so many steps back. */
  staysWithin(most: number, text: string): boolean {
    const expression = this.#limited.get(most) ?? limitedTo(most, this.#pattern);
    this.#limited.set(most, expression);
    expression.lastIndex = 0;
    for (let n = 0; n < MATCHES && expression.lastIndex < text.length; n++) {
      const start = expression.lastIndex;
      if (expression.exec(text) === null) return false;
      if (expression.lastIndex === start) expression.lastIndex++;
    }
    return true;
  }

  /** Steps back, up to the next power of two. */
  steps(text: string): number {
    let most = 256;
    while (most < HOPELESS && !this.staysWithin(most, text)) most *= 2;
    return most;
  }
}
