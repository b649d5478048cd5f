import { PassThrough, pipeline, type Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";

/** The body as the server meant it. One packing at most: packed twice, a few bytes become a mountain. */
export function decompressed(body: Readable, encoding: string | undefined): Readable {
  const unpack = unpackerFor((encoding ?? "").trim().toLowerCase());
  if (!unpack) return body;
  // Errors reach whoever reads the last stream.
  return pipeline(body, unpack, new PassThrough(), () => undefined);
}

function unpackerFor(encoding: string) {
  switch (encoding) {
    case "":
    case "identity":
      return null;
    case "gzip":
    case "x-gzip":
      return createGunzip();
    case "deflate":
      return createInflate();
    case "br":
      return createBrotliDecompress();
    default:
      throw Object.assign(new Error(`unknown content encoding ${encoding}`), { code: "Z_DATA_ERROR" });
  }
}
