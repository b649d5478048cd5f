import assert from "node:assert/strict";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { ModelServer } from "../../../test/support/model-server/server.ts";
import { aRequest, aTarget, collect } from "../../../test/support/model-target.ts";
import { systemClock } from "../../kit/clock.ts";
import { createWire } from "./create.ts";
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
