// Started by the test as a process of its own: it loads every module, and it switches the engine to counting.
import { sampleOf } from "../sample.ts";
import { collectPatterns, type Found } from "./collect.ts";
import { HOPELESS, Measure } from "./measure.ts";
import { pairs, pump } from "./pump.ts";

const SMALL = 2048;
const LARGE = 4 * SMALL;
const WORST = 64 * 1024;
/** So many steps back for each letter are cheap at any length. */
const CHEAP = 8;
/** Linear is 1; a power of two is lost to rounding on either side. */
const GROWTH = 2;

interface Finding {
  readonly file: string;
  readonly expression: string;
  readonly text: string;
  readonly steps: readonly number[];
}

const { found, built } = await collectPatterns();
const findings = sampleOf(found, 20, "expressions").flatMap((pattern) => findingIn(pattern) ?? []);
console.log(JSON.stringify({ expressions: found.length, findings, built }));
process.exit(0); // modules may have opened something

function findingIn(pattern: Found): Finding | null {
  const measure = new Measure(pattern);
  const texts = (length: number) => [...pump(pattern, length), ...pairs(pattern, length)];
  let large: string[] | undefined;
  let worst = { index: 0, steps: 0 };
  const report = (index: number, steps: readonly number[]): Finding => ({
    file: pattern.file,
    expression: `/${pattern.source}/${pattern.flags}`,
    text: texts(24)[index] ?? "",
    steps,
  });
  for (const [index, text] of texts(SMALL).entries()) {
    if (measure.staysWithin(CHEAP * text.length, text)) continue;
    large ??= texts(LARGE);
    const [few, many] = [measure.steps(text), measure.steps(large[index] ?? "")];
    if (many >= HOPELESS || many / few > (GROWTH * LARGE) / SMALL) return report(index, [few, many]);
    if (many > worst.steps) worst = { index, steps: many };
  }
  const text = texts(WORST)[worst.index] ?? "";
  const most = Math.max(CHEAP * text.length, (GROWTH * worst.steps * WORST) / LARGE);
  return measure.staysWithin(most, text) ? null : report(worst.index, [worst.steps, most]);
}
