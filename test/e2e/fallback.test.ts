// A model that fails, seen from the command line: another key or another model answers, and the user is told in one line.
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { after, before, beforeEach, describe, test } from "node:test";
import { ModelServer } from "../support/model-server/server.ts";
import { runHermes } from "../support/run-hermes.ts";
import { modelConfig, tempHome } from "../support/temp-home.ts";

describe("fallback", () => {
  let first: ModelServer;
  let second: ModelServer;
  before(async () => {
    first = await ModelServer.start();
    second = await ModelServer.start();
  });
  beforeEach(() => void [first.clear(), second.clear()]);
  after(() => Promise.all([first.close(), second.close()]));

  test("a model without credit gives way to the next one, on another wire with another key", async () => {
    const chain = `fallback_providers:\n  - provider: custom\n    model: other-model\n    base_url: ${second.origin}/anthropic\n    key_env: OTHER_KEY\n`;
    await using home = await tempHome({
      "config.yaml": `${modelConfig(first)}${chain}`,
      ".env": "OTHER_KEY=other-key-0123456789\n",
    });
    first.otherwise({ fault: "status", status: 402, body: { error: { message: "insufficient credits" } } });
    second.otherwise({ text: "from the other model" });
    const { code, stdout, stderr } = await runHermes(["chat", "-q", "hello"], { home });
    assert.equal(code, 0, stderr);
    assert.match(stdout, /from the other model/);
    assert.match(stdout + stderr, /fake-model \(custom\): .*402.* — continuing with other-model \(custom\)/);
    assert.equal(first.requests.length, 1);
    assert.equal(second.last.wire, "anthropic");
    assert.equal(second.last.body.model, "other-model");
    const sent = JSON.stringify(second.last.headers);
    assert.ok(sent.includes("other-key-0123456789") && !sent.includes("test-key-1234567890"), sent);
  });

  test("the old key fallback_model still names a stand-in", async () => {
    const chain = `fallback_model:\n  provider: custom\n  model: other-model\n  base_url: ${second.url}\n`;
    await using home = await tempHome({ "config.yaml": `${modelConfig(first)}${chain}` });
    first.otherwise({ fault: "status", status: 401 });
    second.otherwise({ text: "old spelling" });
    const { stdout } = await runHermes(["-z", "hello"], { home });
    assert.equal(stdout.trim(), "old spelling");
  });

  test("a spent key of auth.json makes room for the next one", async () => {
    const entry = (id: string, key: string, priority: number) => ({
      id,
      priority,
      source: "manual",
      auth_type: "api_key",
      access_token: key,
      base_url: first.url,
    });
    const pool = [entry("aaaaaa", "sk-or-first-0123456", 0), entry("bbbbbb", "sk-or-second-0123456", 1)];
    await using home = await tempHome({
      "config.yaml": "model:\n  default: fake-model\n  provider: openrouter\n",
      "auth.json": JSON.stringify({ credential_pool: { openrouter: pool } }),
    });
    first.script({ fault: "status", status: 402, body: { error: { message: "insufficient credits" } } });
    first.otherwise({ text: "second key" });
    const { stdout, stderr } = await runHermes(["-z", "hello"], { home });
    assert.equal(stdout.trim(), "second key", stderr);
    assert.deepEqual(
      first.requests.map(({ headers }) => headers.authorization),
      ["Bearer sk-or-first-0123456", "Bearer sk-or-second-0123456"],
    );
    const kept = JSON.parse(await readFile(home.at("auth.json"), "utf8")).credential_pool.openrouter;
    assert.deepEqual(
      kept.map((one: { last_status?: string }) => one.last_status ?? null),
      ["exhausted", null],
    );
    first.clear().otherwise({ text: "still the second" });
    await runHermes(["-z", "again"], { home });
    assert.equal(first.last.headers.authorization, "Bearer sk-or-second-0123456", "another process knows it too");
  });

  test("a request that is refused for good is kept without the key, wherever it stands, and the user reads why", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(first) });
    const message = "messages: a long explanation of what this server will never take";
    first.otherwise({ fault: "status", status: 422, body: { error: { message } } });
    const { code, stderr } = await runHermes(["-z", "hello there, is it test-key-1234567890?"], { home });
    assert.equal(code, 1);
    assert.match(stderr, /never take/);
    const dump = (await readdir(home.at("sessions"))).find((name) => name.startsWith("request_dump_"));
    const text = await readFile(home.at("sessions", dump ?? "none"), "utf8");
    assert.match(text, /hello there/);
    assert.ok(!text.includes("test-key-1234567890"));
  });

  test("model.max_tokens is what a request asks for", async () => {
    await using home = await tempHome({
      "config.yaml": modelConfig(first).replace("  context", "  max_tokens: 777\n  context"),
    });
    await runHermes(["-z", "hello"], { home });
    assert.equal(first.last.body.max_tokens ?? first.last.body.max_completion_tokens, 777);
  });
});
