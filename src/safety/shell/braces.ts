const LIMIT = 64;

/** `a{b,c}d` -> `abd acd`, nested too, bounded. A text without a list comes back alone. */
export function expandBraces(text: string): readonly string[] {
  let done: string[] = [];
  const queue = [text];
  while (queue.length > 0 && done.length + queue.length <= LIMIT) {
    const next = queue.shift() ?? "";
    const list = findList(next);
    if (!list) done.push(next);
    else queue.unshift(...list.items.map((item) => list.before + item + list.after));
  }
  done = done.concat(queue);
  return done;
}

/** The first pair of braces with a comma of its own; one pass, however many braces there are. */
function findList(text: string): { before: string; items: readonly string[]; after: string } | null {
  const open: { at: number; commas: number[] }[] = [];
  let best: { at: number; commas: readonly number[]; end: number } | null = null;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === "{") open.push({ at, commas: [] });
    else if (char === ",") open.at(-1)?.commas.push(at);
    else if (char === "}") {
      const pair = open.pop();
      if (pair && pair.commas.length > 0 && (!best || pair.at < best.at)) best = { ...pair, end: at };
    }
  }
  if (!best) return null;
  const cuts = [best.at, ...best.commas, best.end];
  const items = cuts.slice(1).map((cut, index) => text.slice((cuts[index] ?? 0) + 1, cut));
  return { before: text.slice(0, best.at), items, after: text.slice(best.end + 1) };
}
