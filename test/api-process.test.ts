// The API server as its user starts it: alone, and with the gateway.
import assert from "node:assert/strict";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { after, before, describe, test } from "node:test";
import { gatewayHome, ModelServer, startGateway, until } from "./support/gateway-rig.ts";
import { runHermes, startHermes } from "./support/run-hermes.ts";
import { modelConfig, type TempHome, tempHome } from "./support/temp-home.ts";

const KEY = "a-key-for-this-test";
const LISTENS = /^\[API Server\] listening on (http:\/\/127\.0\.0\.1:\d+)$/m;

let model: ModelServer;
before(async () => {
  model = await ModelServer.start();
});
after(() => model.close());

const post = (url: string, body: unknown) =>
  fetch(url, { method: "POST", headers: { authorization: `Bearer ${KEY}` }, body: JSON.stringify(body) });

async function alone(home: TempHome) {
  const child = startHermes(["api", "--port", "0"], { home, timeoutMs: 60_000 });
  let printed = "";
  child.stdout?.on("data", (text: string) => {
    printed += text;
  });
  await until("it listens", () => LISTENS.test(printed));
  const url = LISTENS.exec(printed)?.[1] ?? "";
  return { url, child, printed: () => printed };
}

test("hermes api answers, is killed in the middle of a run, and tells of it after the next start", async () => {
  await using home = await tempHome({ "config.yaml": modelConfig(model), ".env": `API_SERVER_KEY=${KEY}\n` });
  model.clear().otherwise({ fault: "stall", after: 4, answer: { text: "half of an answer" } });
  const first = await alone(home);
  const started = await post(`${first.url}/v1/runs`, { input: "work" });
  assert.equal(started.status, 202);
  const { run_id: id } = (await started.json()) as { run_id: string };
  const read = async (url: string) =>
    (await fetch(`${url}/v1/runs/${id}`, { headers: { authorization: `Bearer ${KEY}` } })).json() as Promise<
      Record<string, unknown>
    >;
  await until("text has come", async () => (await read(first.url)).last_event === "message.delta");
  const streams = await Promise.all([
    post(`${first.url}/v1/chat/completions`, { stream: true, messages: [{ role: "user", content: "a chat" }] }),
    post(`${first.url}/v1/responses`, { stream: true, input: "a response" }),
  ]);
  const [chat, response] = streams.map((one) => one.body?.pipeThrough(new TextDecoderStream()).getReader());
  const created = String((await response?.read())?.value);
  const responseId = /resp_[0-9a-f]+/.exec(created)?.[0];
  await until("all three ask the model", () => model.requests.length === 3);
  first.child.kill("SIGKILL");
  await first.child.result;
  await assert.rejects(async () => {
    for (const reader of [chat, response]) while (!(await reader?.read())?.done);
  }, "both streams break off, and none ends as if it were done");

  model.clear();
  const second = await alone(home);
  const { status, error } = await read(second.url);
  assert.deepEqual({ status, error }, { status: "failed", error: "interrupted by a restart" });
  const events = await fetch(`${second.url}/v1/runs/${id}/events`, { headers: { authorization: `Bearer ${KEY}` } });
  const text = await events.text();
  assert.match(text, /^id: 1\ndata: \{"event":"message\.delta".*half/);
  assert.match(text, /"event":"run\.failed".*interrupted by a restart"\}\n\n: stream closed\n\n$/);
  const cut = await fetch(`${second.url}/v1/responses/${responseId}`, { headers: { authorization: `Bearer ${KEY}` } });
  const { status: responseStatus, error: responseError } = (await cut.json()) as Record<string, unknown>;
  assert.deepEqual(
    [responseStatus, responseError],
    ["failed", { message: "interrupted by a restart", type: "server_error", code: "server_error" }],
  );
  const next = await post(`${second.url}/v1/responses`, { input: "and now?", previous_response_id: responseId });
  assert.equal(next.status, 200, "the answer that was cut off can be followed");
  const said = (model.last.body.messages as { content: string }[]).map(({ content }) => content);
  assert.match(said.slice(1).join("|"), /a response.*and now\?/s);
  const sessions = await fetch(`${second.url}/api/sessions`, { headers: { authorization: `Bearer ${KEY}` } });
  assert.match(await sessions.text(), /"preview":"a chat"/, "what was said is in the store");
  assert.equal(
    (await post(`${second.url}/v1/chat/completions`, { messages: [{ role: "user", content: "x" }] })).status,
    200,
  );
  second.child.kill("SIGINT");
  const { code, stdout } = await second.child.result;
  assert.equal(code, 0);
  assert.match(stdout, /\[API Server\] stopping: Ctrl\+C\n\[API Server\] stopped\n$/);
});

describe("a start that is refused says what to do", () => {
  const cases: readonly [what: string, env: string, said: RegExp][] = [
    ["no key off loopback", "API_SERVER_HOST=0.0.0.0\n", /no key is set.*set API_SERVER_KEY/],
    ["a placeholder", "API_SERVER_HOST=0.0.0.0\nAPI_SERVER_KEY=change-me-local-dev\n", /is a placeholder/],
    ["a port that is none", "API_SERVER_PORT=eighty\n", /API_SERVER_PORT is not a port: eighty/],
  ];
  for (const [what, env, said] of cases)
    test(what, async () => {
      await using home = await tempHome({ ".env": env });
      const { code, stderr } = await runHermes(["api"], { home });
      assert.equal(code, 1);
      assert.match(stderr, said);
    });

  test("a port that is taken", async () => {
    await using home = await tempHome();
    const { port, free } = await takenPort();
    const { code, stderr } = await runHermes(["api", "--port", String(port)], { home });
    await free();
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`port ${port} on 127\\.0\\.0\\.1 is taken; choose another with API_SERVER_PORT`));
  });
});

test("F251, F259, F260, F262: the gateway serves the API too, lives on while its port is taken, and its status says where", async () => {
  model.clear().otherwise({ text: "from the gateway" });
  const { port, free } = await takenPort();
  await using home = await gatewayHome(model, {
    env: { API_SERVER_ENABLED: "true", API_SERVER_KEY: KEY, API_SERVER_PORT: String(port) },
  });
  const gateway = await startGateway(home, { ready: /^\[Gateway\] ready: none connected, 1 retrying$/ });
  await gateway.waitFor(
    new RegExp(
      `^\\[API Server\\] failed: port ${port} on 127\\.0\\.0\\.1 is taken; choose another with API_SERVER_PORT`,
    ),
  );
  await free();
  await gateway.waitFor(LISTENS, 120_000);
  const url = LISTENS.exec(gateway.lines.join("\n"))?.[1] ?? "";
  const answer = await post(`${url}/v1/chat/completions`, { messages: [{ role: "user", content: "hi" }] });
  const { choices } = (await answer.json()) as { choices: { message: { content: string } }[] };
  assert.equal(choices[0]?.message.content, "from the gateway");
  const health = async () => {
    const response = await fetch(`${url}/health/detailed`, { headers: { authorization: `Bearer ${KEY}` } });
    return (await response.json()) as Record<string, unknown>;
  };
  await until("the gateway runs", async () => (await health()).gateway_state === "running");
  const { status, platforms } = await health();
  assert.equal(status, "ok");
  assert.equal((platforms as { api_server: { listening: string } }).api_server.listening, url);
  assert.equal((await gateway.stop()).code, 0);
});

test("F261, F263, F271, F273–F276: the guide's example works, for two profiles side by side, with tools, memory and SOUL.md", async () => {
  const [port, otherPort] = [await freePort(), await freePort()];
  const example = (key: string, at: number) =>
    `API_SERVER_ENABLED=true\nAPI_SERVER_KEY=${key}\nAPI_SERVER_HOST=127.0.0.1\nAPI_SERVER_PORT=${at}\nAPI_SERVER_CORS_ORIGINS=http://localhost:3000\n`;
  await using home = await tempHome({
    "config.yaml": modelConfig(model),
    ".env": example("change-me-local-dev", port),
    "memories/MEMORY.md": "The user sails.",
    "profiles/work/config.yaml": modelConfig(model),
    "profiles/work/.env": example("the-key-of-work", otherPort),
    "profiles/work/memories/MEMORY.md": "The user codes.",
  });
  model.clear().otherwise({ text: "heard" });
  const servers = [
    { key: "change-me-local-dev", port, knows: /The user sails\./, not: /codes/, args: ["api"] },
    { key: "the-key-of-work", port: otherPort, knows: /The user codes\./, not: /sails/, args: ["-p", "work", "api"] },
  ].map((one) => {
    const child = startHermes(one.args, { home, timeoutMs: 120_000 });
    const listens = Promise.withResolvers<void>();
    child.stdout?.on("data", (text: string) => text.includes(`http://127.0.0.1:${one.port}`) && listens.resolve());
    void child.result.then(({ stderr }) => listens.reject(new Error(stderr)));
    return { ...one, child, listens: listens.promise };
  });
  const [mine, works] = servers.map(({ key }) => key);
  for (const { key, port: at, knows, not, listens } of servers) {
    await listens;
    const url = `http://127.0.0.1:${at}`;
    const call = (authorization: string | null, more = {}) =>
      fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { ...(authorization === null ? {} : { authorization: `Bearer ${authorization}` }), ...more },
        body: JSON.stringify({ messages: [{ role: "user", content: "hello" }] }),
      });
    const other = key === mine ? works : mine;
    for (const wrong of [null, "wrong", other ?? ""]) assert.equal((await call(wrong)).status, 401);
    const listed = await call(key, { origin: "http://localhost:3000" });
    assert.deepEqual(
      [listed.status, listed.headers.get("access-control-allow-origin")],
      [200, "http://localhost:3000"],
      "a page that is listed",
    );
    assert.equal((await call(key, { origin: "http://localhost:3001" })).status, 403, "a page that is not");
    assert.equal((await call(key)).status, 200, "a front end that asks from its server has no origin");
    const { messages, tools } = model.last.body;
    assert.match(String(messages[0].content), knows);
    assert.doesNotMatch(String(messages[0].content), not);
    const names = tools.map((tool: { function: { name: string } }) => tool.function.name);
    for (const name of ["terminal", "memory", "skill_view"]) assert.ok(names.includes(name), `${name} of ${names}`);
  }
  for (const { child } of servers) {
    child.kill("SIGINT");
    assert.equal((await child.result).code, 0);
  }
});

async function freePort(): Promise<number> {
  const { port, free } = await takenPort();
  await free();
  return port;
}

async function takenPort() {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const { port } = other.address() as AddressInfo; // it listens on a port
  return { port, free: () => new Promise<void>((resolve) => other.close(() => resolve())) };
}
