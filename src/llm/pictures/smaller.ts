// A smaller copy of a picture, as a JPEG: what is see-through becomes white. PNG and JPEG are understood, and nothing that would unpack
// to more than memory allows.
import { decode, encode } from "jpeg-js";
import { PNG } from "pngjs";
import { type ImageLimit, imageSize } from "./fit.ts";

interface Pixels {
  readonly width: number;
  readonly height: number;
  /** Red, green, blue, opacity. */
  readonly data: Uint8Array;
}

const MAX_PIXELS = 64_000_000;
const QUALITY = 85;
/** Base64 adds a third, and some servers count that. */
const SPARE = 0.85;
const STEP = 0.7;
const LEAST_SIDE = 200;

/** Null when the bytes are no picture that can be read here. */
export function smallerPicture(bytes: Buffer, limit: ImageLimit): Buffer | null {
  const size = imageSize(bytes);
  if (size === null || size.width * size.height > MAX_PIXELS) return null;
  const picture = unpack(bytes);
  if (picture === null) return null;
  const { exifBuffer } = picture;
  for (let side = Math.min(limit.side, Math.max(size.width, size.height)); side >= LEAST_SIDE; side *= STEP) {
    // The way up of a photograph is written in its Exif block.
    const packed = encode({ ...scaled(picture, side), ...(exifBuffer ? { exifBuffer } : {}) }, QUALITY).data;
    if (packed.length <= limit.bytes * SPARE) return packed;
  }
  return null;
}

/** The picture's pixels, at most `side` of them long and wide; null when the bytes are no picture that can be read here. */
export function scaledPixels(bytes: Buffer, side: number): Pixels | null {
  const size = imageSize(bytes);
  const picture = size === null || size.width * size.height > MAX_PIXELS ? null : unpack(bytes);
  return picture && scaled(picture, side);
}

export function asPng({ width, height, data }: Pixels): Buffer {
  const png = new PNG({ width, height });
  png.data = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return PNG.sync.write(png);
}

function unpack(bytes: Buffer): (Pixels & { readonly exifBuffer?: Uint8Array }) | null {
  if (bytes.readUInt16BE(0) === 0xffd8)
    return decode(bytes, { useTArray: true, maxResolutionInMP: MAX_PIXELS / 1e6, maxMemoryUsageInMB: 1024 });
  return bytes.subarray(1, 4).toString("latin1") === "PNG" ? PNG.sync.read(bytes) : null;
}

/** Each new pixel is the mean of those it covers, on white. Never larger than the picture was. */
function scaled({ width, height, data }: Pixels, side: number): Pixels {
  const factor = Math.min(1, side / Math.max(width, height));
  const columns = Math.max(1, Math.round(width * factor));
  const rows = Math.max(1, Math.round(height * factor));
  const result = new Uint8Array(columns * rows * 4);
  const bound = (index: number, parts: number, whole: number) => Math.floor((index * whole) / parts);
  for (let row = 0; row < rows; row++) {
    const top = bound(row, rows, height);
    const bottom = Math.max(top + 1, bound(row + 1, rows, height));
    for (let column = 0; column < columns; column++) {
      const left = bound(column, columns, width);
      const right = Math.max(left + 1, bound(column + 1, columns, width));
      let [red, green, blue] = [0, 0, 0];
      for (let y = top; y < bottom; y++) {
        for (let at = (y * width + left) * 4, end = (y * width + right) * 4; at < end; at += 4) {
          const opacity = (data[at + 3] ?? 255) / 255;
          const white = 255 * (1 - opacity);
          red += (data[at] ?? 0) * opacity + white;
          green += (data[at + 1] ?? 0) * opacity + white;
          blue += (data[at + 2] ?? 0) * opacity + white;
        }
      }
      const covered = (bottom - top) * (right - left);
      result.set([red / covered, green / covered, blue / covered, 255], (row * columns + column) * 4);
    }
  }
  return { width: columns, height: rows, data: result };
}
