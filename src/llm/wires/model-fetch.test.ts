import assert from "node:assert/strict";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { ModelServer } from "../../../test/support/model-server/server.ts";
import { aRequest, aTarget, collect } from "../../../test/support/model-target.ts";
import { systemClock } from "../../kit/clock.ts";
import { createWire } from "./drive.ts";
import { createModelFetch } from "./model-fetch.ts";

test("a server that takes the connection and never shakes hands is a connect timeout", async () => {
  const sockets: Socket[] = [];
  const mute = createServer((socket) => sockets.push(socket));
  await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve));
  const wire = createWire("chat_completions", { fetch: createModelFetch({ connectMs: 50 }), clock: systemClock });
  const baseUrl = `https://127.0.0.1:${(mute.address() as AddressInfo).port}`;
  const last = (await collect(wire, aRequest(aTarget("chat_completions", { baseUrl })))).at(-1);
  assert.equal(last?.type === "failed" && last.error.code, "ETIMEDOUT");
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => mute.close(resolve));
});

test("answers come through it as through any fetch", async () => {
  const model = await ModelServer.start();
  try {
    const wire = createWire("chat_completions", { fetch: createModelFetch(), clock: systemClock });
    const last = (await collect(wire, aRequest(aTarget("chat_completions", { baseUrl: model.url })))).at(-1);
    assert.equal(last?.type === "done" && last.message.content, "ok");
  } finally {
    await model.close();
  }
});

test("an answer that was compressed unasked is read all the same; one that breaks off is a broken connection", async () => {
  const answer = JSON.stringify({
    choices: [{ message: { role: "assistant", content: "small" }, finish_reason: "stop" }],
  });
  const packers = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync, zstd: zstdCompressSync };
  for (const [encoding, pack] of Object.entries(packers)) {
    for (const whole of [true, false]) {
      const packed = pack(answer);
      const server = createHttpServer((_, response) => {
        response.writeHead(200, {
          "content-type": "application/json",
          "content-encoding": encoding,
          "content-length": packed.byteLength,
        });
        if (whole) response.end(packed);
        else response.write(packed.subarray(0, 20), () => response.destroy());
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const wire = createWire("chat_completions", { fetch: createModelFetch(), clock: systemClock });
      const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
      const last = (await collect(wire, aRequest(aTarget("chat_completions", { baseUrl })))).at(-1);
      if (whole) assert.equal(last?.type === "done" && last.message.content, "small", encoding);
      else assert.match(last?.type === "failed" ? last.error.message : "", /closed the connection/, encoding);
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  }
});
