// Deferred tools through the program itself: found, described and called, with a list that never changes.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { ModelServer } from "./support/model-server/server.ts";
import { runHermes } from "./support/run-hermes.ts";
import { modelConfig, tempHome } from "./support/temp-home.ts";

describe("a conversation with deferred tools", () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  beforeEach(() => void server.clear());
  after(() => server.close());

  const lastResult = () => JSON.parse(server.last.body.messages.at(-1).content);

  test("finds one, asks for its parameters, calls it under its own name and goes on with the same list", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    server.script(
      { toolCalls: [{ name: "tool_search", arguments: { query: "list the skills" } }] },
      { toolCalls: [{ name: "tool_describe", arguments: { name: "skills_list" } }] },
      { toolCalls: [{ name: "tool_call", arguments: { name: "skills_list", arguments: "{}" } }] },
      { text: "done" },
    );
    const run = await runHermes(["-z", "which skills are there?"], { home });
    assert.equal(run.code, 0, run.stderr);
    const [first, second, third, fourth] = server.requests;
    const names = first?.body.tools.map((tool: { function: { name: string } }) => tool.function.name);
    assert.ok(names.includes("tool_call") && !names.includes("skills_list"), names.join(" "));
    const found = JSON.parse(second?.body.messages.at(-1).content);
    assert.equal(found.matches[0].name, "skills_list");
    assert.equal(JSON.parse(third?.body.messages.at(-1).content).parameters.type, "object");
    assert.equal(lastResult().success, true);
    // The wire pairs results with calls by the name the model wrote.
    assert.equal(fourth?.body.messages.at(-2).tool_calls[0].function.name, "tool_call");
    for (const { body } of server.requests) assert.deepEqual(body.tools, first?.body.tools);

    server.script({ toolCalls: [{ name: "skills_list", arguments: {} }] }, { text: "again" });
    const resumed = await runHermes(["-z", "once more", "--continue"], { home });
    assert.equal(resumed.stdout, "again\n", resumed.stderr);
    assert.equal(lastResult().success, true);
    assert.deepEqual(server.last.body.tools, first?.body.tools);
  });

  test("with search switched off the list holds everything and no bridge", async () => {
    await using home = await tempHome({
      "config.yaml": `${modelConfig(server)}tools: { tool_search: { enabled: off } }\n`,
    });
    server.script({ text: "pong" });
    await runHermes(["-z", "ping"], { home });
    const names = server.last.body.tools.map((tool: { function: { name: string } }) => tool.function.name);
    assert.ok(
      names.includes("skills_list") && !names.some((name: string) => name.startsWith("tool_")),
      names.join(" "),
    );
  });
});
