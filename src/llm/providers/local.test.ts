import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { detectLocalServer, type LocalServer, probeListedModel, probeLocalModel } from "./local.ts";
import { resolveRuntimeProvider } from "./resolve.ts";
import { targetFor } from "./target.ts";

type Pages = Readonly<Record<string, unknown>>;

/** A server on loopback with these JSON pages; returns its base URL ending in /v1. */
async function serve(t: TestContext, pages: Pages): Promise<string> {
  const server = createServer((request, response) => {
    const page = pages[request.url ?? ""];
    response.writeHead(page === undefined ? 404 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(page ?? {}));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}

const ollama = (show: object): Pages => ({ "/api/tags": { models: [] }, "/api/show": show });

// server, its pages, the window it reports for model `m`
const servers: readonly [LocalServer | null, Pages, number | null][] = [
  [
    "lmstudio",
    {
      "/api/v1/models": {
        models: [{ key: "m", loaded_instances: [{ config: { context_length: 9000 } }], max_context_length: 99_000 }],
      },
    },
    9000,
  ],
  ["ollama", ollama({ parameters: "stop x\nnum_ctx 16384", model_info: { "llama.context_length": 131_072 } }), 16_384],
  ["ollama", ollama({ model_info: { "llama.context_length": 131_072 } }), 131_072],
  ["llamacpp", { "/props": { default_generation_settings: { n_ctx: 4096 } } }, 4096],
  ["vllm", { "/version": { version: "0.9" }, "/v1/models": { data: [{ id: "m", max_model_len: 32_768 }] } }, 32_768],
  [null, { "/v1/models": { data: [{ id: "m", context_length: 5000 }] } }, 5000],
  [null, {}, null],
];
for (const [server, pages, tokens] of servers) {
  test(`a server with ${Object.keys(pages).join(", ") || "nothing"} is ${server ?? "unknown"} with a window of ${tokens}`, async (t) => {
    const baseUrl = await serve(t, pages);
    assert.equal((await detectLocalServer(baseUrl, { fetch })).server, server);
    const probed = await probeLocalModel({ baseUrl, apiKey: "no-key-required" }, "m", { fetch });
    assert.equal(probed?.contextLength ?? null, tokens);
  });
}

test("a wrong port is reported with the exact question that failed, once", async () => {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const root = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await new Promise((done) => server.close(done));
  const detection = await detectLocalServer(`${root}/v1`, { fetch });
  assert.deepEqual(detection, { server: null, attempts: [`GET ${root}/api/v1/models: ECONNREFUSED`] });
});

test("a server that does not answer is given up after the limit", async () => {
  const silent: typeof fetch = (_, init) =>
    new Promise((_resolve, reject) => init?.signal?.addEventListener("abort", () => reject(init.signal?.reason)));
  // AbortSignal.timeout does not keep the process alive by itself.
  const alive = setTimeout(() => undefined, 10_000);
  const { attempts } = await detectLocalServer("http://127.0.0.1:9/v1", { fetch: silent, limitMs: 5 });
  clearTimeout(alive);
  assert.equal(attempts.length, 5);
  assert.match(attempts[0] ?? "", /no response within/);
});

test("an endpoint of the internet is not probed", async () => {
  const forbidden: typeof fetch = () => assert.fail("nothing may be asked");
  const runtime = { baseUrl: "https://api.example.com/v1", apiKey: "x" };
  assert.equal(await probeLocalModel(runtime, "m", { fetch: forbidden }), null);
});

test("Ollama is told the window it reported, capped by model.ollama_num_ctx", async (t) => {
  const baseUrl = await serve(t, ollama({ model_info: { "llama.context_length": 131_072 } }));
  const target = async (settings: object) => {
    const config = { model: { provider: "ollama", default: "m", base_url: baseUrl, ...settings } };
    const runtime = resolveRuntimeProvider({ config, env: {} });
    return targetFor(runtime, { config, probe: (from, model) => probeLocalModel(from, model, { fetch }) });
  };
  const whole = await target({});
  assert.deepEqual([whole.contextLength, whole.extraBody], [131_072, { options: { num_ctx: 131_072 } }]);
  const capped = await target({ ollama_num_ctx: 8192 });
  assert.deepEqual([capped.contextLength, capped.extraBody], [8192, { options: { num_ctx: 8192 } }]);
  const stated = await target({ context_length: 20_000 });
  assert.deepEqual([stated.contextLength, stated.extraBody], [20_000, { options: { num_ctx: 20_000 } }]);
});

test("a server that lists windows is believed; one that does not, or is not there, says nothing", async (t) => {
  const baseUrl = await serve(t, { "/v1/models": { data: [{ id: "m", max_model_len: 24_000 }, { id: "n" }] } });
  const probe = (model: string, at = baseUrl) => probeListedModel({ baseUrl: at, apiKey: "k" }, model, { fetch });
  assert.deepEqual(await probe("m"), { contextLength: 24_000 });
  assert.equal(await probe("n"), null);
  assert.equal(await probe("other"), null);
  assert.equal(await probe("m", `${baseUrl}/nowhere`), null);
});
