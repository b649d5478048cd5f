// A server whose answer is a megabyte on the wire and a gigabyte once it is unpacked.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { gzipSync } from "node:zlib";

/** Packed on their own and sent one behind the other they are one stream. */
const PIECE = 16 * 1024 * 1024;
const PIECES = 64;

export async function bombServer(t: TestContext, contentType: string, begins = ""): Promise<string> {
  const first = gzipSync(begins);
  const piece = gzipSync(Buffer.alloc(PIECE));
  const server = createServer((_request, response) => {
    response.writeHead(200, { "content-type": contentType, "content-encoding": "gzip" });
    response.write(first);
    for (let n = 0; n < PIECES; n++) response.write(piece);
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // it listens on a port
}

/** How much memory is taken at most while the work is done, beyond what was taken before. */
export async function peakOf(work: () => Promise<unknown>): Promise<number> {
  const before = process.memoryUsage.rss();
  let peak = before;
  const look = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage.rss());
  }, 5);
  try {
    await work();
  } finally {
    clearInterval(look);
  }
  return peak - before;
}
