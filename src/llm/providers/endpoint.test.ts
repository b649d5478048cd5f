import assert from "node:assert/strict";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { askEndpoint, findServers } from "./endpoint.ts";

type Handler = (request: IncomingMessage) => { status?: number; body?: unknown } | "hang";

async function serve(t: TestContext, handle: Handler): Promise<string> {
  const server = createServer((request, response) => {
    const answer = handle(request);
    if (answer === "hang") return;
    response.writeHead(answer.status ?? 200, { "content-type": "application/json" });
    response.end(JSON.stringify(answer.body ?? {}));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.closeAllConnections());
  t.after(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}

const LIST = { data: [{ id: "small" }, { id: "large" }] };
const at = (baseUrl: string, apiKey = "key-1234", provider = "custom") =>
  ({ baseUrl, apiKey, provider, apiMode: "chat_completions" }) as const;
const withKey = ({ headers }: IncomingMessage) => headers.authorization === "Bearer key-1234";

test("a server that wants the key says whether it is the right one", async (t) => {
  const url = await serve(t, (request) => (withKey(request) ? { body: LIST } : { status: 401 }));
  const good = await askEndpoint(at(url), { fetch });
  assert.deepEqual(good.type === "answers" && [good.models.map(({ id }) => id), good.keyChecked], [
    ["small", "large"],
    true,
  ]);
  assert.deepEqual(await askEndpoint(at(url, "another"), { fetch }), { type: "refused", status: 401 });
});

test("a list that anybody gets says nothing about the key", async (t) => {
  const url = await serve(t, () => ({ body: LIST }));
  const answer = await askEndpoint(at(url), { fetch });
  assert.equal(answer.type === "answers" && answer.keyChecked, false);
});

test("a key that is called wrong with 400 is refused too, another 400 is not about the key", async (t) => {
  const message = "API key not valid. Please pass a valid API key.";
  const google = await serve(t, () => ({ status: 400, body: [{ error: { message } }] }));
  assert.equal((await askEndpoint(at(google), { fetch })).type, "refused");
  const other = await serve(t, () => ({ status: 400, body: { error: { message: "no such page" } } }));
  assert.deepEqual(await askEndpoint(at(other), { fetch }), { type: "no_list", status: 400 });
});

test("Anthropic's protocol gets its key in its own header, below /v1", async (t) => {
  const seen: string[] = [];
  const url = await serve(t, ({ url: path, headers }) => {
    seen.push(`${path} ${headers["x-api-key"] ?? "-"} ${headers.authorization ?? "-"}`);
    return headers["x-api-key"] === "sk-ant-api03-x" ? { body: LIST } : { status: 401 };
  });
  const endpoint = {
    ...at(url.replace("/v1", ""), "sk-ant-api03-x", "anthropic"),
    apiMode: "anthropic_messages",
  } as const;
  assert.equal((await askEndpoint(endpoint, { fetch })).type, "answers");
  assert.deepEqual(seen.sort(), ["/v1/models?limit=1000 - -", "/v1/models?limit=1000 sk-ant-api03-x -"]);
});

test("windows and prices are the server's, else the published ones; what cannot talk is left out", async (t) => {
  const url = await serve(t, () => ({
    body: {
      data: [
        { id: "a", context_length: 5000, pricing: { prompt: "0.000003", completion: "0.000015" } },
        { id: "text-embedding-3-small" },
        { id: "openai/gpt-4o" },
      ],
    },
  }));
  const answer = await askEndpoint(at(url, "", "openrouter"), { fetch });
  assert.ok(answer.type === "answers");
  const [first, second, ...others] = answer.models;
  assert.deepEqual(others, []);
  // On this machine nothing costs anything; the window is said all the same.
  assert.deepEqual(first, { id: "a", contextLength: 5000, price: { input: 0, output: 0 } });
  assert.equal(second?.contextLength, 128_000);
});

test("the newest models come first where the server says when they were made", async (t) => {
  const url = await serve(t, () => ({
    body: {
      data: [
        { id: "old", created: 1 },
        { id: "new", created: 2 },
      ],
    },
  }));
  const answer = await askEndpoint(at(url, ""), { fetch });
  assert.deepEqual(answer.type === "answers" && answer.models.map(({ id }) => id), ["new", "old"]);
});

test("a server that is not there, and one that hangs, are told in a sentence", async (t) => {
  const url = await serve(t, () => "hang");
  const hanging = await askEndpoint(at(url), { fetch, limitMs: 50 });
  assert.deepEqual(hanging, { type: "unreachable", sentence: `${new URL(url).origin} did not answer within 0.05 s.` });
  const none = await askEndpoint(at("http://127.0.0.1:9/v1"), { fetch });
  // Port 9 is refused by our own fetch before it is tried, an unused port by the system.
  assert.ok(none.type === "unreachable" && !/ECONNREFUSED/.test(none.sentence), JSON.stringify(none));
});

test("servers on this machine are found by their ports, all at once", async (t) => {
  const one = await serve(t, () => ({ body: LIST }));
  const other = await serve(t, () => ({ body: { hello: "I am something else" } }));
  const found = await findServers({ ollama: one, vllm: other, llamacpp: "http://127.0.0.1:1/v1" }, { fetch });
  assert.deepEqual(
    found.map(({ provider, models }) => [provider, models.length]),
    [["ollama", 2]],
  );
});

test("who is interrupted stops waiting", async (t) => {
  const url = await serve(t, () => "hang");
  await assert.rejects(askEndpoint(at(url), { fetch, signal: AbortSignal.abort(new Error("left")) }), /left/);
});
