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
