/**
 * Shell-style match of a whole text: `*` any run (slashes too), `?` one character, `[abc]`, `[!abc]`. Quadratic at worst, so a
 * hostile pattern costs no more than a long one.
 */
export function matchGlob(pattern: string, text: string): boolean {
  const pieces = readPieces(pattern);
  let piece = 0;
  let at = 0;
  let starPiece = -1;
  let starAt = 0;
  while (at < text.length) {
    const current = pieces[piece];
    if (current === "*") {
      starPiece = piece++;
      starAt = at;
    } else if (current !== undefined && matchesOne(current, text[at] ?? "")) {
      piece++;
      at++;
    } else if (starPiece >= 0) {
      piece = starPiece + 1;
      at = ++starAt;
    } else return false;
  }
  while (pieces[piece] === "*") piece++;
  return piece === pieces.length;
}

type Piece = "*" | "?" | { readonly literal: string } | { readonly set: string; readonly negated: boolean };

function readPieces(pattern: string): readonly Piece[] {
  return (pattern.match(/\*+|\?|\[[!^]?\]?[^\]]*\]|[\s\S]/g) ?? []).map((part): Piece => {
    if (part.startsWith("*")) return "*";
    if (part === "?") return "?";
    if (part.length === 1) return { literal: part };
    const negated = /^\[[!^]/.test(part);
    return { set: part.slice(negated ? 2 : 1, -1), negated };
  });
}

function matchesOne(piece: Piece, char: string): boolean {
  if (piece === "?") return true;
  if (piece === "*") return false;
  return "literal" in piece ? piece.literal === char : inSet(piece.set, char) !== piece.negated;
}

function inSet(set: string, char: string): boolean {
  for (let at = 0; at < set.length; at++) {
    const from = set[at] ?? "";
    const to = set[at + 2];
    if (set[at + 1] === "-" && to !== undefined) {
      if (from <= char && char <= to) return true;
      at += 2;
    } else if (from === char) return true;
  }
  return false;
}
