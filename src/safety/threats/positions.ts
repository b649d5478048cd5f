// Patterns match normalised text; people look at the file. Normalising moves what stands behind a character that it takes apart.

/** Where in `text` the character stands that is at `index` of its NFKC form. Exact up to letters that join over a cut. */
export function originalIndex(text: string, index: number): number {
  if (ASCII.test(text.slice(0, index + 1))) return index;
  let original = 0;
  let normal = 0;
  for (const [piece] of text.matchAll(PIECE)) {
    const length = piece.normalize("NFKC").length;
    if (normal + length > index) return original + withinPiece(piece, index - normal);
    normal += length;
    original += piece.length;
  }
  return text.length;
}

const ASCII = /^[\x00-\x7f]*$/;
// Nothing ASCII ever joins what stands before it, so a piece may end there.
const PIECE = /[\x00-\x7f]+[^\x00-\x7f]{0,64}\p{M}*|[^\x00-\x7f]{1,64}\p{M}*/gu;

function withinPiece(piece: string, index: number): number {
  const plain = /^[\x00-\x7f]*/.exec(piece)?.[0].length ?? 0;
  if (index < plain - 1) return index;
  let original = Math.max(0, plain - 1);
  let normal = original;
  for (const char of piece.slice(original)) {
    normal += char.normalize("NFKC").length;
    if (normal > index) return original;
    original += char.length;
  }
  return original;
}
