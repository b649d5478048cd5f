// Texts of any characters there are, for laws.
import fc from "fast-check";

const LAST = 0x10ffff;
const [FIRST_HALF, HALVES] = [0xd800, 0x800];

/** The package has this as its unit "binary", with a table of all million of them: 0.6 s and 100 MB in each process that asks for one text. */
const character = fc.nat(LAST - HALVES).map(
  (at) => String.fromCodePoint(at < FIRST_HALF ? at : at + HALVES),
  (value) => {
    const [first = "", ...more] = typeof value === "string" ? value : [];
    if (first === "" || more.length > 0) throw new Error("this is no character");
    const point = first.codePointAt(0) ?? 0;
    return point < FIRST_HALF ? point : point - HALVES;
  },
);

export const unicodeText = (constraints: { readonly minLength?: number; readonly maxLength?: number } = {}) =>
  fc.string({ ...constraints, unit: character });
