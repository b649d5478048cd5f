// Ratcliff–Obershelp: how much of two sequences is covered by common blocks, longest first.
// Hand-written: packages for string similarity measure something else (edits, bigrams); the thresholds of the fuzzy strategies are ratios of this.

type Sequence = string | readonly unknown[];

/** A run of `size` equal elements; positions count code points (strings) or elements (arrays). */
interface Block {
  readonly left: number;
  readonly right: number;
  readonly size: number;
}

/** 2·M/T over code points (strings) or elements compared by identity (arrays); 1 for two empty sequences. */
export function similarity(a: Sequence, b: Sequence): number {
  return similarityTo(b)(a, 0);
}

/** The ratio against one fixed sequence, or 0 as soon as it is certain to stay below `floor`: for scans over many candidates. */
export function similarityTo(b: Sequence): (a: Sequence, floor: number) => number {
  const index = indexOf(b);
  return (a, floor) => {
    if (a === b) return 1;
    // Code points are between half of and all of the UTF-16 units.
    if (floor > 0 && typeof a === "string" && atMost(a.length, (a.length + 1) >> 1, index.length) < floor) return 0;
    const left = index.translate(a);
    const total = left.length + index.length;
    if (total === 0) return 1;
    if (floor > 0 && (2 * sharedAtMost(left, index)) / total < floor) return 0;
    const matched = findBlocks(left, index, { needed: neededFor(floor, total) });
    return (2 * matched) / total;
  };
}

/** Whether the ratio against one fixed sequence reaches `floor`; cheaper than the ratio itself. */
export function reachesSimilarity(b: Sequence, floor: number): (a: Sequence) => boolean {
  const index = indexOf(b);
  return (a) => {
    if (a === b) return true;
    if (typeof a === "string" && atMost(a.length, (a.length + 1) >> 1, index.length) < floor) return false;
    const left = index.translate(a);
    const needed = neededFor(floor, left.length + index.length);
    if (sharedAtMost(left, index) < needed) return false;
    return findBlocks(left, index, { needed, enough: needed }) >= needed;
  };
}

/** The common blocks in order. */
export function matchingBlocks(a: Sequence, b: Sequence): Block[] {
  const index = indexOf(b);
  const blocks: Block[] = [];
  findBlocks(index.translate(a), index, { onBlock: (left, right, size) => blocks.push({ left, right, size }) });
  return blocks.sort((one, other) => one.left - other.left);
}

/** One sequence prepared for comparison: its elements numbered, and where each number stands. */
interface Index {
  readonly length: number;
  /** Ascending positions of each number. */
  readonly positions: readonly (readonly number[])[];
  /** Another sequence in the same numbers; -1 for what does not occur here. The next call may write over what it gave. */
  translate(sequence: Sequence): Int32Array;
  readonly numbers: Int32Array;
  /** How often each number occurs. */
  readonly counts: readonly number[];
  /** Scratch space of `sharedAtMost`, kept because a scan calls it for every candidate. */
  readonly left: number[];
}

function indexOf(sequence: Sequence): Index {
  const numbers = new Map<unknown, number>();
  const positions: number[][] = [];
  const own = encode(sequence, new Int32Array(sequence.length), (element) => {
    let number = numbers.get(element);
    if (number === undefined) {
      number = positions.push([]) - 1;
      numbers.set(element, number);
    }
    return number;
  });
  for (const [position, number] of own.entries()) positions[number]?.push(position);
  const known = (element: unknown) => numbers.get(element) ?? -1;
  let scratch = new Int32Array(256);
  // Nearly every character of nearly every line is ASCII: a table spares the map.
  const ascii = typeof sequence === "string" ? Array.from({ length: 128 }, (_, code) => known(code)) : undefined;
  return {
    length: own.length,
    positions,
    numbers: own,
    counts: positions.map((places) => places.length),
    left: positions.map(() => 0),
    translate(other) {
      if (other.length > scratch.length) scratch = new Int32Array(other.length * 2);
      return encode(other, scratch, known, ascii);
    },
  };
}

/** Into `numbers`, which is long enough; gives the part that was filled. */
function encode(
  sequence: Sequence,
  numbers: Int32Array,
  numberOf: (element: unknown) => number,
  ascii?: readonly number[],
): Int32Array {
  let length = 0;
  if (typeof sequence !== "string") {
    for (const element of sequence) numbers[length++] = numberOf(element);
    return numbers.subarray(0, length);
  }
  for (let at = 0; at < sequence.length; at++) {
    const unit = sequence.charCodeAt(at);
    if (unit < 128 && ascii) {
      numbers[length++] = ascii[unit] ?? -1;
      continue;
    }
    const point = sequence.codePointAt(at) ?? 0;
    if (point > 0xffff) at++;
    numbers[length++] = numberOf(point);
  }
  return numbers.subarray(0, length);
}

/** The best ratio that lengths alone allow, when one length is only known to lie between two bounds. */
function atMost(longest: number, shortest: number, other: number): number {
  const length = Math.min(Math.max(other, shortest), longest);
  return length + other === 0 ? 1 : (2 * Math.min(length, other)) / (length + other);
}

/** Size of the common multiset: no block structure can match more. */
function sharedAtMost(numbers: Int32Array, { counts, left }: Index): number {
  for (let number = 0; number < counts.length; number++) left[number] = counts[number] ?? 0;
  let shared = 0;
  for (const number of numbers) {
    const remaining = number < 0 ? 0 : (left[number] ?? 0);
    if (remaining === 0) continue;
    left[number] = remaining - 1;
    shared++;
  }
  return shared;
}

/** The smallest M with 2·M/T ≥ floor; the subtraction undoes rounding upwards. */
function neededFor(floor: number, total: number): number {
  return Math.ceil((floor * total) / 2 - 1e-9);
}

interface Search {
  /** 0 is answered once it is certain that this cannot be reached. */
  readonly needed?: number;
  /** The search stops once this is reached. */
  readonly enough?: number;
  readonly onBlock?: (left: number, right: number, size: number) => void;
}

/** Reports the blocks, longest first within each stretch, and counts what they cover. */
function findBlocks(left: Int32Array, index: Index, { needed = 0, enough = Infinity, onBlock }: Search): number {
  const { positions, numbers: right } = index;
  const pending = [0, left.length, 0, right.length];
  let possible = Math.min(left.length, right.length);
  let matched = 0;
  while (pending.length > 0) {
    const rightEnd = pending.pop() ?? 0;
    const rightStart = pending.pop() ?? 0;
    const leftEnd = pending.pop() ?? 0;
    const leftStart = pending.pop() ?? 0;
    let size = 0;
    let bestLeft = leftStart;
    let bestRight = rightStart;
    // Earliest on ties: only a longer run wins. A run that could not become longer than the best is not followed.
    for (let i = leftStart; i + size < leftEnd; i++) {
      const number = left[i] as number; // i is inside the array
      if (number < 0) continue;
      const candidates = positions[number] ?? [];
      for (let c = firstAtLeast(candidates, rightStart); c < candidates.length; c++) {
        const j = candidates[c] as number; // c is inside the array
        if (j + size >= rightEnd) break;
        if (size > 0 && left[i + size] !== right[j + size]) continue;
        // Inside a run that began earlier: already followed from there.
        if (i > leftStart && j > rightStart && left[i - 1] === right[j - 1]) continue;
        let run = 1;
        while (i + run < leftEnd && j + run < rightEnd && left[i + run] === right[j + run]) run++;
        if (run <= size) continue;
        size = run;
        bestLeft = i;
        bestRight = j;
      }
    }
    possible -= Math.min(leftEnd - leftStart, rightEnd - rightStart);
    if (size > 0) {
      matched += size;
      onBlock?.(bestLeft, bestRight, size);
      possible += size;
      if (bestLeft > leftStart && bestRight > rightStart) {
        pending.push(leftStart, bestLeft, rightStart, bestRight);
        possible += Math.min(bestLeft - leftStart, bestRight - rightStart);
      }
      if (bestLeft + size < leftEnd && bestRight + size < rightEnd) {
        pending.push(bestLeft + size, leftEnd, bestRight + size, rightEnd);
        possible += Math.min(leftEnd - bestLeft - size, rightEnd - bestRight - size);
      }
    }
    if (possible < needed) return 0;
    if (matched >= enough) return matched;
  }
  return matched;
}

/** First index whose value is at least `bound`; the values ascend. */
function firstAtLeast(values: readonly number[], bound: number): number {
  if ((values[0] ?? 0) >= bound) return 0;
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((values[middle] as number) < bound)
      low = middle + 1; // middle is inside the array
    else high = middle;
  }
  return low;
}

/** The candidates closest to a mistyped word, best first; none when nothing is near. */
export function didYouMean(word: string, candidates: Iterable<string>, limit = 3): string[] {
  const wanted = word.toLowerCase();
  const scored: { candidate: string; distance: number }[] = [];
  for (const candidate of new Set(candidates)) {
    const distance = distanceTo(wanted, candidate.toLowerCase());
    if (distance !== null) scored.push({ candidate, distance });
  }
  scored.sort((a, b) => a.distance - b.distance || (a.candidate < b.candidate ? -1 : 1));
  return scored.slice(0, limit).map(({ candidate }) => candidate);
}

function distanceTo(wanted: string, candidate: string): number | null {
  // The right last part below a wrong or missing section is as good as one typing error.
  const tail = candidate.slice(candidate.lastIndexOf(".") + 1);
  if (candidate.includes(".") && tail === wanted.slice(wanted.lastIndexOf(".") + 1)) return 1;
  const allowed = Math.max(1, Math.floor(Math.max(wanted.length, candidate.length) / 4));
  if (Math.abs(wanted.length - candidate.length) > allowed) return null;
  const distance = editDistance(wanted, candidate);
  return distance <= allowed ? distance : null;
}

/** Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment). */
export function editDistance(a: string, b: string): number {
  const from = [...a];
  const to = [...b];
  let before: number[] = [];
  let previous = to.map((_, index) => index).concat(to.length);
  for (let i = 1; i <= from.length; i++) {
    const current = [i];
    for (let j = 1; j <= to.length; j++) {
      const substitution = cell(previous, j - 1) + (from[i - 1] === to[j - 1] ? 0 : 1);
      let best = Math.min(cell(previous, j) + 1, cell(current, j - 1) + 1, substitution);
      const swapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      if (swapped) best = Math.min(best, cell(before, j - 2) + 1);
      current.push(best);
    }
    before = previous;
    previous = current;
  }
  return cell(previous, to.length);
}

function cell(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY;
}
