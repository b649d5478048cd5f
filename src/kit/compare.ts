/** Order by code point, the same on every machine; JavaScript's own order differs beyond the basic plane. */
export function compareCodePoints(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index++) {
    const [x, y] = [a.charCodeAt(index), b.charCodeAt(index)];
    if (x === y) continue;
    // A surrogate stands for a code point above every other unit.
    const [high, other] = [isSurrogate(x), isSurrogate(y)];
    return high === other ? x - y : high ? 1 : -1;
  }
  return a.length - b.length;
}

const isSurrogate = (unit: number) => unit >= 0xd800 && unit <= 0xdfff;
