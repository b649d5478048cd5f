// Ratcliff–Obershelp: how much of two sequences is covered by common blocks, longest first.

/** 2·M/T over code points (strings) or elements compared by identity (arrays); 1 for two empty sequences. */
export function similarity(a: string | readonly unknown[], b: string | readonly unknown[]): number {
  return similarityAbove(a, b, 0);
}

/** The same ratio, or 0 as soon as it is certain not to exceed `floor`: for scans over many candidates. */
export function similarityAbove(a: string | readonly unknown[], b: string | readonly unknown[], floor: number): number {
  if (a === b) return 1;
  const left = typeof a === "string" ? codePoints(a) : a;
  const right = typeof b === "string" ? codePoints(b) : b;
  const total = left.length + right.length;
  if (total === 0) return 1;
  if ((2 * Math.min(left.length, right.length)) / total < floor) return 0;
  const positions = positionsOf(right);
  if (floor > 0 && (2 * sharedAtMost(left, positions)) / total < floor) return 0;
  return (2 * countMatched(left, right.length, positions)) / total;
}

type Positions = ReadonlyMap<unknown, readonly number[]>;

function codePoints(text: string): number[] {
  const points: number[] = [];
  for (let index = 0; index < text.length; index++) {
    const point = text.codePointAt(index) ?? 0;
    points.push(point);
    if (point > 0xffff) index++;
  }
  return points;
}

function positionsOf(items: readonly unknown[]): Positions {
  const positions = new Map<unknown, number[]>();
  for (let index = 0; index < items.length; index++) {
    const known = positions.get(items[index]);
    if (known) known.push(index);
    else positions.set(items[index], [index]);
  }
  return positions;
}

/** Size of the common multiset: no block structure can match more. */
function sharedAtMost(left: readonly unknown[], positions: Positions): number {
  const used = new Map<unknown, number>();
  let shared = 0;
  for (const item of left) {
    const available = positions.get(item)?.length ?? 0;
    const taken = used.get(item) ?? 0;
    if (taken >= available) continue;
    used.set(item, taken + 1);
    shared++;
  }
  return shared;
}

function countMatched(left: readonly unknown[], rightLength: number, positions: Positions): number {
  // runs[j] = length of the common run ending at j, valid only while stamps[j] names the row that wrote it.
  const runs = new Int32Array(rightLength + 1);
  const stamps = new Float64Array(rightLength + 1).fill(-1);
  let stamp = 0;
  let matched = 0;
  const pending: [number, number, number, number][] = [[0, left.length, 0, rightLength]];
  for (let range = pending.pop(); range !== undefined; range = pending.pop()) {
    const [leftStart, leftEnd, rightStart, rightEnd] = range;
    let size = 0;
    let bestLeft = leftStart;
    let bestRight = rightStart;
    stamp++;
    for (let i = leftStart; i < leftEnd; i++) {
      stamp++;
      const candidates = positions.get(left[i]);
      if (!candidates) continue;
      // Backwards, so that the run ending at j - 1 is still the one of the row before.
      for (let c = firstAtLeast(candidates, rightEnd) - 1; c >= 0; c--) {
        const j = candidates[c] as number; // c is inside the array
        if (j < rightStart) break;
        const run = j > rightStart && stamps[j - 1] === stamp - 1 ? (runs[j - 1] ?? 0) + 1 : 1;
        runs[j] = run;
        stamps[j] = stamp;
        const start = i - run + 1;
        if (run > size || (run === size && start === bestLeft && j - run + 1 < bestRight)) {
          size = run;
          bestLeft = start;
          bestRight = j - run + 1;
        }
      }
    }
    if (size === 0) continue;
    matched += size;
    if (bestLeft > leftStart && bestRight > rightStart) pending.push([leftStart, bestLeft, rightStart, bestRight]);
    if (bestLeft + size < leftEnd && bestRight + size < rightEnd)
      pending.push([bestLeft + size, leftEnd, bestRight + size, rightEnd]);
  }
  return matched;
}

/** First index whose value is at least `bound`; the values ascend. */
function firstAtLeast(values: readonly number[], bound: number): number {
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
