// A stream to a client that is not as a client should be, over a real connection; the clock alone is ours.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { test } from "node:test";
import { EventStream } from "./sse.ts";

async function opened() {
  const answering = Promise.withResolvers<ServerResponse>();
  const server = createServer((_, outgoing) => answering.resolve(outgoing));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.on("error", () => undefined); // the server hangs up
  socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  const outgoing = await answering.promise;
  const stream = new EventStream(outgoing, 3600);
  stream.begin();
  return {
    ...{ socket, outgoing, stream },
    close() {
      socket.destroy();
      server.closeAllConnections();
      server.close();
    },
  };
}

test("a client that reads nothing for a minute is let go, and whoever writes goes on", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const one = await opened();
  t.after(one.close);
  one.socket.pause();
  let isWritten = false;
  const piece = { text: "x".repeat(1_000_000) };
  const writing = (async () => {
    for (let at = 0; at < 20; at++) await one.stream.data(piece);
    isWritten = true;
  })();
  // The connection takes some of it, and then nothing more.
  for (let [taken, since] = [-1, 0]; performance.now() - since < 300; await new Promise(setImmediate)) {
    const now = one.outgoing.socket?.writableLength ?? 0;
    if (now !== taken) [taken, since] = [now, performance.now()];
  }
  t.mock.timers.tick(59_000);
  await new Promise(setImmediate);
  assert.deepEqual([one.outgoing.destroyed, isWritten], [false, false]);
  // A connection that took one more piece meanwhile has its minute from then on.
  for (let minutes = 0; minutes < 20 && !one.outgoing.destroyed; minutes++) {
    t.mock.timers.tick(61_000);
    await new Promise(setImmediate);
  }
  assert.equal(one.outgoing.destroyed, true);
  await writing;
  await one.stream.comment("to nobody");
  one.stream.end();
});
