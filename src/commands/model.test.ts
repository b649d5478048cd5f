import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { commandRig } from "../../test/support/command-rig.ts";
import { ModelServer } from "../../test/support/model-server/server.ts";
import { modelConfig } from "../../test/support/temp-home.ts";
import { checkName } from "../llm/providers/model-list.ts";

const MORE = `model_aliases:
  quick: swift-small
  far: {model: there, provider: nowhere}
fallback_providers:
  - {provider: openrouter, model: vendor/stand-in}
`;

describe("/model", () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  beforeEach(() => {
    server.clear();
    server.models = ["fake-model", "swift-small", "swift-large"];
    server.window = 32_000;
  });
  after(() => server.close());
  const rigOf = (t: Parameters<typeof commandRig>[0], more = "") =>
    commandRig(t, { "config.yaml": modelConfig(server) + more });

  test("offers what the server lists, with windows, the short names and the fallbacks; the one in use is marked", async (t) => {
    const rig = await rigOf(t, MORE);
    const rows: { label: string; hint?: string | readonly string[]; current?: boolean }[] = [];
    const selected: (number | undefined)[] = [];
    const { pick } = rig.ctx;
    rig.ctx.pick = (title, items, options) => {
      rows.push(...items);
      selected.push(options?.selected);
      return pick(title, items, options);
    };
    rig.picks.push("swift-large", "quick");
    await rig.type("/model");
    assert.deepEqual(
      rows.map(({ label, hint, current }) => [label, hint, current === true]),
      [
        ["fake-model", ["32K", "included", new URL(server.url).host], true],
        ["swift-small", ["32K", "included", new URL(server.url).host], false],
        ["swift-large", ["32K", "included", new URL(server.url).host], false],
        ["quick → swift-small", ["", "", "alias"], false],
        ["far → there", ["", "", "alias"], false],
        ["vendor/stand-in", ["", "", "openrouter, fallback"], false],
      ],
    );
    const text = rig.text();
    assert.match(text, /^Model: fake-model \(127\.0\.0\.1:\d+\), 128K tokens\nSwitch to \(offered by http/);
    assert.match(text, /\nNow using swift-large \(127\.0\.0\.1:\d+\), 32K tokens, /);
    await rig.type("/model");
    assert.match(rig.text(), /Now using swift-small/);
    assert.deepEqual(selected, [0, 2]);
    rig.picks.push(null);
    await rig.type("/model");
    assert.equal(rig.ctx.conversation.target.model, "swift-small", "nothing was taken");
  });

  test("asks about a name that the server does not list, and keeps the old model unless told otherwise", async (t) => {
    const rig = await rigOf(t);
    server.window = null;
    rig.picks.push("Keep");
    await rig.type("/model swift-smal");
    const asked = rig.text();
    assert.match(asked, /^warning: http\S+ does not list a model "swift-smal"\./);
    assert.match(
      asked,
      /The server does not list "swift-smal"\. Which model\?: swift-small \| Use swift-smal anyway \| Keep fake-model/,
    );
    assert.match(asked, /warning: Still using fake-model \(127\.0\.0\.1:\d+\)\.$/);
    assert.equal(rig.ctx.conversation.target.model, "fake-model");
    rig.picks.push(null);
    await rig.type("/model nothing-like-it");
    assert.match(
      rig.text(),
      /"nothing-like-it"\. Which model\?: Use nothing-like-it anyway \| Keep[\s\S]*Still using fake-model/,
    );
    rig.picks.push("swift-small");
    await rig.type("/model swift");
    assert.match(rig.text(), /: swift-small \| swift-large \| Use[\s\S]*Now using swift-small/);
    rig.picks.push("anyway");
    await rig.type("/model unheard-of");
    assert.match(rig.text(), /Now using unheard-of \(127\.0\.0\.1:\d+\), 256K tokens \(assumed\), /);
    await rig.type("/model another-one --anyway");
    assert.match(rig.text(), /^Now using another-one \(127\.0\.0\.1:\d+\), 256K tokens \(assumed\), /);
    await rig.type("/model SWIFT-large:latest");
    assert.match(rig.text(), /^Now using SWIFT-large:latest/);
  });

  test("says that it could not look, and switches, when the server does not answer", async (t) => {
    const gone = await ModelServer.start();
    const rig = await commandRig(t, { "config.yaml": modelConfig(gone) });
    await gone.close();
    await rig.type("/model whatever");
    assert.match(
      rig.text(),
      /^warning: Could not check whether the model whatever exists: [\s\S]*\nNow using whatever/,
    );
    await rig.type("/model");
    assert.match(rig.text(), /warning: Could not fetch the model list: .*\n\/model NAME switches/);
  });

  test("completes names from the same list", async (t) => {
    const rig = await rigOf(t, MORE);
    const { builtinCommands } = await import("./builtin.ts");
    const found = await builtinCommands().get("model")?.values?.("sw", rig.ctx);
    assert.deepEqual(
      found?.values.map(({ value }) => value),
      ["quick", "far", "fake-model", "swift-small", "swift-large"],
    );
  });
});

const LIST = ["qwen3:8b", "llama3:latest", "claude-sonnet-4-5-20250929", "vendor/model"];
const names: [string, string][] = [
  ["qwen3:8b", "listed"],
  ["Qwen3:8B", "listed"],
  ["llama3", "listed"],
  ["claude-sonnet-4-5", "listed"],
  ["vendor/model:free", "listed"],
  ["claude-sonnet-4", "unlisted"],
  ["qwen3:32b", "unlisted"],
  ["model", "unlisted"],
];
for (const [name, expected] of names)
  test(`${name} is ${expected}`, () => {
    const models = LIST.map((id) => ({ id, contextLength: null, price: null }));
    assert.equal(checkName(name, { models, source: "server", trouble: null }).type, expected);
    const published = checkName("unheard-of", { models, source: "catalogue", trouble: null });
    assert.equal(published.type, "unknown", "what is published may be old");
  });
