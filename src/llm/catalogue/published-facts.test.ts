// What is published about models: fetched from a server of the test, kept in a home, and asked by everything that asks for facts.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { commandRig } from "../../../test/support/command-rig.ts";
import { VERSION } from "../../home/paths.ts";
import { modelFacts, modelsOf } from "./facts.ts";
import { refreshFacts, useKeptFacts } from "./published-facts.ts";

const published = (price: number) => ({
  anthropic: {
    models: { "claude-test-9": { limit: { context: 3_000_000 }, cost: { input: price, output: 2 * price } } },
  },
});

async function served(t: TestContext, answer: () => unknown) {
  let asked = 0;
  const server = createServer((_request, response) => {
    asked++;
    const body = answer();
    response.statusCode = body === null ? 503 : 200;
    response.end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo; // listens on TCP
  const rig = await commandRig(t, {
    "config.yaml": `model:\n  provider: anthropic\n  default: claude-sonnet-4-6\n  context_length: 77000\nmodel_catalog:\n  models_dev_url: http://127.0.0.1:${port}/api.json\n`,
    ".env": "ANTHROPIC_API_KEY=sk-ant-api03-0123456789\n",
  });
  return { rig, home: rig.ctx.home, asked: () => asked };
}

test("lists are fetched once an hour, kept, and known beside what came with this version", async (t) => {
  let price = 1;
  const { home, asked } = await served(t, () => published(price));
  let now = 10_000_000_000;
  const ports = { fetch, now: () => now };
  const before = (await modelsOf("anthropic")).length;
  assert.equal(await modelFacts("anthropic", "claude-test-9"), null);
  assert.deepEqual(await Promise.all([refreshFacts(home, ports), refreshFacts(home, ports)]), [null, null]);
  assert.equal(asked(), 1, "two wishes at once are one request");
  const facts = await modelFacts("anthropic", "claude-test-9");
  assert.deepEqual([facts?.contextLength, facts?.price?.input], [3_000_000, 1]);
  assert.equal((await modelsOf("anthropic")).length, before + 1);
  price = 4;
  now += 59 * 60_000;
  assert.equal(await refreshFacts(home, ports), null);
  assert.equal(asked(), 1, "it is fresh for an hour");
  now += 2 * 60_000;
  assert.equal(await refreshFacts(home, ports), null);
  assert.equal(asked(), 2);
  assert.equal((await modelFacts("anthropic", "claude-test-9"))?.price?.input, 4);
  const kept = JSON.parse(await readFile(home.paths.at("cache", "model_facts.json"), "utf8"));
  assert.deepEqual([kept.version, kept.fetched_at], [VERSION, now]);
});

test("a list that cannot be fetched is a sentence; what is at hand serves", async (t) => {
  const { home } = await served(t, () => null);
  const trouble = await refreshFacts(home, { fetch, now: () => 1 }, { force: true });
  assert.match(trouble ?? "", /could not be fetched \(.*HTTP 503\); using the stored one/);
  const { home: odd } = await served(t, () => ({ hello: "world" }));
  assert.match((await refreshFacts(odd, { fetch, now: () => 1 }, { force: true })) ?? "", /no model of a provider/);
  assert.ok((await modelsOf("anthropic")).length > 0);
});

test("a kept copy that is broken, or of another version, is not used", async (t) => {
  const { home, asked } = await served(t, () => published(1));
  const path = home.paths.at("cache", "model_facts.json");
  await refreshFacts(home, { fetch, now: () => 5 });
  for (const text of ["{", '{"version":"0.0.0-other","fetched_at":5,"models":{"anthropic":["x|9"]}}']) {
    await writeFile(path, text);
    await useKeptFacts(home);
    assert.equal(await refreshFacts(home, { fetch, now: () => 5 }), null);
  }
  assert.equal(asked(), 3);
});

test("/model --refresh fetches, says so, and a switch names window and price", async (t) => {
  const { rig, asked } = await served(t, () => published(3));
  assert.equal(rig.ctx.conversation.target.contextLength, 77_000);
  await rig.type("/model claude-test-9 --provider anthropic --refresh");
  assert.equal(asked(), 1);
  const said = rig.text();
  assert.match(said, /Model list updated/);
  assert.match(said, /Now using claude-test-9 \(anthropic\), 3M tokens, \$3 in and \$6 out per million tokens\./);
  await rig.type("/model claude-sonnet-4-6");
  assert.equal(rig.ctx.conversation.target.contextLength, 77_000, "stated for this very model");
});
