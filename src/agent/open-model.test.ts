import assert from "node:assert/strict";
import { after, before, describe, type TestContext, test } from "node:test";
import { ModelServer } from "../../test/support/model-server/server.ts";
import { openRequest } from "../../test/support/open-request.ts";
import { tempHome } from "../../test/support/temp-home.ts";
import { chooseTarget } from "./open-model.ts";

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
