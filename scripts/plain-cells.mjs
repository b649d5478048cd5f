// Characters that a terminal shows in one cell, whatever stands beside them: Latin, general punctuation, arrows, lines, blocks, shapes and dots, and
// the signs of our own screen. No mark, nothing invisible and no picture is among them. scripts/build.mjs puts the text of this function into
// the build, so it uses nothing from outside.
export function isPlainCell(code) {
  return (
    (code > 0x1f && code < 0x7f) ||
    (code > 0xa0 && code < 0x300 && code !== 0xad) ||
    (code >= 0x2010 && code <= 0x2027) ||
    (code >= 0x2030 && code <= 0x205e) ||
    (code >= 0x2190 && code <= 0x21ff) ||
    (code >= 0x2500 && code <= 0x25fc) ||
    (code >= 0x2800 && code <= 0x28ff) ||
    [0x23f9, 0x2695, 0x26a0, 0x270e, 0x2713, 0x2717, 0x276f].includes(code)
  );
}
