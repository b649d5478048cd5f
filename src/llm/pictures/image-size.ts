// How large a picture is, read from its first bytes.

export interface ImageLimit {
  readonly bytes: number;
  /** Pixels of the longer side. */
  readonly side: number;
}

const MB = 1024 * 1024;
/** What servers commonly take; and what the strictest take of many pictures at once. */
export const COMMON_LIMIT: ImageLimit = { bytes: 4 * MB, side: 8000 };
export const STRICT_LIMIT: ImageLimit = { bytes: MB, side: 2000 };
/** Base64 characters that are decoded to find the size; a JPEG may carry a preview and colour tables in front. */
const HEAD = 256 * 1024;

/** Only pictures that travel inside the request have a size here. */
export function isLargeImage(url: string, limit: ImageLimit): boolean {
  const comma = url.indexOf(",");
  if (!url.startsWith("data:") || comma < 0) return false;
  const base64 = url.slice(comma + 1);
  if ((base64.length * 3) / 4 > limit.bytes) return true;
  const size = imageSize(Buffer.from(base64.slice(0, HEAD), "base64"));
  return size !== null && Math.max(size.width, size.height) > limit.side;
}

interface Size {
  readonly width: number;
  readonly height: number;
}

/** Null when the bytes are no PNG, GIF, WebP or JPEG, or too few to tell. */
export function imageSize(bytes: Buffer): Size | null {
  if (bytes.length >= 24 && bytes.subarray(1, 4).toString("latin1") === "PNG")
    return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
  if (bytes.length >= 10 && bytes.subarray(0, 3).toString("latin1") === "GIF")
    return { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
  if (bytes.length >= 30 && bytes.subarray(8, 12).toString("latin1") === "WEBP") return webpSize(bytes);
  return bytes.length >= 4 && bytes.readUInt16BE(0) === 0xffd8 ? jpegSize(bytes) : null;
}

function webpSize(bytes: Buffer): Size | null {
  const kind = bytes.subarray(12, 16).toString("latin1");
  if (kind === "VP8X") return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
  if (kind === "VP8 ") return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
  if (kind !== "VP8L") return null;
  const packed = bytes.readUInt32LE(21);
  return { width: (packed & 0x3fff) + 1, height: ((packed >> 14) & 0x3fff) + 1 };
}

function jpegSize(bytes: Buffer): Size | null {
  for (let at = 2; at + 9 < bytes.length; at += 2 + bytes.readUInt16BE(at + 2)) {
    const marker = bytes.readUInt16BE(at);
    const isFrame = marker >= 0xffc0 && marker <= 0xffcf && ![0xffc4, 0xffc8, 0xffcc].includes(marker);
    if (isFrame) return { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) };
    if (marker < 0xffc0) return null;
  }
  return null;
}
