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

function findList(text: string): { before: string; items: readonly string[]; after: string } | null {
  for (let open = text.indexOf("{"); open >= 0; open = text.indexOf("{", open + 1)) {
    const items: string[] = [];
    let depth = 0;
    let from = open + 1;
    for (let at = open; at < text.length; at++) {
      const char = text[at];
      if (char === "{") depth++;
      else if (char === "," && depth === 1) {
        items.push(text.slice(from, at));
        from = at + 1;
      } else if (char === "}" && --depth === 0) {
        if (items.length === 0) break;
        return { before: text.slice(0, open), items: [...items, text.slice(from, at)], after: text.slice(at + 1) };
      }
    }
  }
  return null;
}
