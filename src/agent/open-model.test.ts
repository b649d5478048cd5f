import assert from "node:assert/strict";
import { after, before, describe, type TestContext, test } from "node:test";
import { ModelServer } from "../../test/support/model-server/server.ts";
import { openRequest } from "../../test/support/open-request.ts";
import { tempHome } from "../../test/support/temp-home.ts";
import { chooseTarget, keepKey } from "./open-model.ts";

describe("a server on this machine, and no model in the settings", () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  after(() => server.close());

  async function choose(t: TestContext, baseUrl: string, more: { readonly model?: string } = {}) {
    const temp = await tempHome({ "config.yaml": `model:\n  provider: ollama\n  base_url: ${baseUrl}\n` });
    t.after(() => temp[Symbol.asyncDispose]());
    const { home, store } = await openRequest(temp);
    t.after(() => store.close());
    return chooseTarget(home, more);
  }
  const refused = (message: RegExp) => (thrown: unknown) =>
    thrown instanceof Error &&
    "code" in thrown &&
    thrown.code === "no_model_configured" &&
    message.test(thrown.message);

  test("the only one it has is taken", async (t) => {
    server.models = ["solo"];
    assert.equal((await choose(t, server.url)).target.model, "solo");
  });

  test("of several none is guessed: they are named", async (t) => {
    server.models = ["a", "b", "c", "d", "e", "f"];
    await assert.rejects(
      choose(t, server.url),
      refused(/for ollama at .*, which offers a, b, c, d, e, \.\.\.\. Choose one/),
    );
    assert.equal((await choose(t, server.url, { model: "b" })).target.model, "b");
  });

  test("a server that is not there is named with the question that failed", async (t) => {
    const gone = await ModelServer.start();
    await gone.close();
    await assert.rejects(
      choose(t, gone.url),
      refused(/could not be asked for one \(GET http:\/\/127\.0\.0\.1:\d+\/v1\/models: ECONNREFUSED\)\. Start it/),
    );
  });
});

describe("a model that is asked for by name, and no provider in the settings", () => {
  async function choose(t: TestContext, asked: Parameters<typeof chooseTarget>[1], settings = "") {
    const temp = await tempHome({ "config.yaml": settings });
    t.after(() => temp[Symbol.asyncDispose]());
    const { home, store } = await openRequest(temp);
    t.after(() => store.close());
    return chooseTarget(home, asked);
  }

  for (const model of ["gpt-5", "opus", "qwen:0.5b"]) {
    test(`${model} is refused: the demo does not stand in for it`, async (t) => {
      await assert.rejects(choose(t, { model }), {
        code: "no_provider_configured",
        exitCode: 1,
        message: new RegExp(
          `^The model ${model} cannot be used: no model provider is configured\\. Run \`hermes setup\`.*PROVIDER:MODEL`,
        ),
      });
    });
  }

  for (const asked of [
    {},
    { model: "demo" },
    { model: "demo:demo" },
    { model: "anything", provider: "demo" },
    { model: "gpt-5", remembered: true },
  ]) {
    test(`${JSON.stringify(asked)} is the demo`, async (t) => {
      assert.equal((await choose(t, asked)).demo, true);
    });
  }

  test("an alias that says where its model is needs no other provider", async (t) => {
    const settings = "model_aliases: { mine: { model: solo, base_url: http://127.0.0.1:9/v1 } }\n";
    const { target, demo } = await choose(t, { model: "mine" }, settings);
    assert.deepEqual([target.model, target.baseUrl, demo], ["solo", "http://127.0.0.1:9/v1", false]);
  });
});

test("a key that is kept in passing changes neither provider nor model of the next start", async (t) => {
  const temp = await tempHome({ "config.yaml": "model: some-model\n", ".env": "DEEPSEEK_API_KEY=a1b2c3d4e5f6g7h8\n" });
  t.after(() => temp[Symbol.asyncDispose]());
  const { home, store } = await openRequest(temp);
  t.after(() => store.close());
  const used = async () => {
    const { target } = await chooseTarget(home, {}, { offline: true });
    return [target.provider, target.model];
  };
  const before = await used();
  assert.deepEqual(before, ["deepseek", "some-model"]);
  assert.equal(await keepKey(home, "GITHUB_TOKEN", "ghp_a1b2c3d4e5f6g7h8i9j0"), null);
  assert.equal(
    await keepKey(home, "OPENROUTER_API_KEY", "sk-or-a1b2c3d4e5f6g7h8"),
    "deepseek stays your provider (model.provider).",
  );
  assert.deepEqual(await used(), before);
});
