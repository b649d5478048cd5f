// A gigabyte of zeros, packed into one megabyte, from each kind of server that is read.
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../src/kit/clock.ts";
import { classifyApiError } from "../../src/llm/errors/classify.ts";
import { listEndpointModels } from "../../src/llm/providers/local.ts";
import { createWire } from "../../src/llm/wires/drive.ts";
import { createModelFetch } from "../../src/llm/wires/model-fetch.ts";
import { serverFetch } from "../../src/mcp/http-fetch.ts";
import { webFetch } from "../../src/safety/url-fetch.ts";
import { bombServer, peakOf } from "../support/bomb-server.ts";
import { aRequest, aTarget, collect } from "../support/model-target.ts";
import { oneOf } from "../support/sample.ts";

const MOST = 400 * 1024 * 1024;

const MODEL_ANSWERS = [
  ["as one value", "application/json", '{"choices": "'],
  ["as one event", "text/event-stream", "data: "],
  ["as lines that mean nothing", "text/event-stream", ""],
] as const;

for (const [how, type, begins] of oneOf(MODEL_ANSWERS, "answers of a gigabyte")) {
  test(`a model's answer of a gigabyte ${how} is given up, and not asked for again`, async (t) => {
    const baseUrl = `${await bombServer(t, type, begins)}/v1`;
    const wire = createWire("chat_completions", { fetch: createModelFetch(), clock: systemClock });
    const peak = await peakOf(async () => {
      const last = (await collect(wire, aRequest(aTarget("chat_completions", { baseUrl })))).at(-1);
      assert.equal(last?.type, "failed");
      if (last?.type !== "failed") return;
      assert.match(last.error.message, /longer than \d+ MB/);
      assert.equal(classifyApiError(last.error).retryable, false, last.error.message);
    });
    assert.ok(peak < MOST, `${Math.round(peak / 1024 / 1024)} MB`);
  });
}

test("an MCP server's answer of a gigabyte is given up", async (t) => {
  for (const [type, begins] of [
    ["application/json", "{"],
    ["text/event-stream", "data: 1\n\ndata: "],
  ] as const) {
    const url = await bombServer(t, type, begins);
    const endpoint = {
      type: "http",
      url: new URL(url),
      headers: {},
      verify: true,
      clientCert: null,
      clientKey: null,
      oauth: null,
    } as const;
    const fetch = await serverFetch(endpoint, { server: "far", cwd: "/", osHome: "/" });
    const peak = await peakOf(async () => assert.rejects((await fetch(url)).text(), /longer than 64 MB/));
    assert.ok(peak < MOST, `${Math.round(peak / 1024 / 1024)} MB`);
  }
});

test("a page and a list of models of a gigabyte are given up", async (t) => {
  const url = await bombServer(t, "text/html");
  const check = async (address: string) => ({ url: new URL(address), addresses: ["127.0.0.1"], isPrivate: true });
  await assert.rejects(webFetch(url, { signal: t.signal, check }), /longer than 5 MB/);
  const peak = await peakOf(async () => {
    const list = await listEndpointModels(url, { fetch, limitMs: 60_000 });
    assert.match(JSON.stringify(list), /ANSWER_TOO_LONG/);
  });
  assert.ok(peak < MOST, `${Math.round(peak / 1024 / 1024)} MB`);
});
