// The reference servers, as a user would run them.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { SamplingCall } from "../src/mcp/contract.ts";
import { type HubRig, hubRig, realServer } from "./support/mcp/hub-rig.ts";

describe("the reference servers", () => {
  let rig: HubRig;
  const sampled: SamplingCall[] = [];
  before(async () => {
    rig = await hubRig(
      {
        every: { ...realServer("everything"), elicitation: {} },
        memory: { ...realServer("memory"), tools: { include: ["create_entities", "read_graph"] } },
        missing: { command: "no-such-program-anywhere" },
      },
      {
        sample: async (call) => {
          sampled.push(call);
          return { text: "a heron", toolCalls: [], finishReason: "stop", model: "fake" };
        },
      },
    );
  });
  after(() => rig[Symbol.asyncDispose]());

  test("are connected side by side, and one that is missing is named with what to do", () => {
    const states = rig.hub.statuses().map(({ name, state }) => `${name} ${state}`);
    assert.deepEqual(states, ["every connected", "memory connected", "missing failed"], rig.lines.join("\n"));
    const { reason } = rig.server("missing").status;
    assert.match(
      reason ?? "",
      /MCP server "missing": the command "no-such-program-anywhere" was not found.*config\.yaml/,
    );
  });

  test("answer with a text, with structured content and with an error", async () => {
    assert.equal(await rig.call("every", "echo", { message: "hi" }), '{"result":"Echo: hi"}');
    const weather = JSON.parse(await rig.call("every", "get-structured-content", { location: "Chicago" }));
    assert.equal(typeof weather.structuredContent.temperature, "number");
    assert.deepEqual(JSON.parse(weather.result), weather.structuredContent);
    assert.match(JSON.parse(await rig.call("every", "echo", {})).error, /Invalid arguments/);
  });

  test("a picture is kept as a file", async () => {
    const { result } = JSON.parse(await rig.call("every", "get-tiny-image"));
    const [, path = ""] = /MEDIA:(\S+)/.exec(result) ?? [];
    assert.ok(path.startsWith(join(rig.dir, "cache", "images")), result);
    assert.equal((await readFile(path)).subarray(1, 4).toString(), "PNG");
  });

  test("resources and prompts are reachable through utilities", async () => {
    const { resources } = JSON.parse(await rig.call("every", "list_resources"));
    const { result } = JSON.parse(await rig.call("every", "read_resource", { uri: resources[0].uri }));
    assert.ok(result.length > 100);
    const { prompts } = JSON.parse(await rig.call("every", "list_prompts"));
    assert.ok(prompts.some(({ name }: { name: string }) => name === "args-prompt"));
    const prompt = JSON.parse(
      await rig.call("every", "get_prompt", { name: "args-prompt", arguments: { city: "Oslo" } }),
    );
    assert.match(prompt.messages[0].content, /Oslo/);
  });

  test("a server that asks our model gets its answer, in the name of the conversation that called it", async () => {
    assert.match(await rig.call("every", "trigger-sampling-request", { prompt: "a bird", maxTokens: 9 }), /a heron/);
    assert.equal(sampled[0]?.sessionId, "s1");
    assert.equal(sampled[0]?.maxTokens, 9);
  });

  test("a server that asks the user is declined when nobody is there, and answered when somebody is", async () => {
    assert.match(await rig.call("every", "trigger-elicitation-request"), /declined/);
    const asked: string[] = [];
    const ask = (async (question: { question: string; choices: readonly string[] | null }) => {
      asked.push(question.question);
      return { text: question.choices?.[0] ?? (asked.length === 1 ? "Ada" : null) };
    }) as never; // only clarifications come here
    const answer = await rig.call("every", "trigger-elicitation-request", {}, { interactive: true, ask });
    assert.match(answer, /Name: Ada/);
    assert.match(asked[0] ?? "", /^MCP server "every" asks: /);
  });

  test("progress of a long call is passed on, and an interrupted call ends at once", async () => {
    const seen: (string | undefined)[] = [];
    const args = { duration: 0.2, steps: 2 };
    await rig.call("every", "trigger-long-running-operation", args, { progress: (text) => void seen.push(text) });
    assert.equal(seen[0], "1/2");
    const stop = new AbortController();
    const long = rig.call(
      "every",
      "trigger-long-running-operation",
      { duration: 60, steps: 1 },
      { signal: stop.signal },
    );
    stop.abort();
    assert.match(await long, /was interrupted/);
  });

  test("only the included tools are there, and the server's own variable reaches it alone", async () => {
    const tools = rig.server("memory").tools.map(({ tool }) => tool);
    assert.deepEqual(tools.slice(0, 2), ["create_entities", "read_graph"]);
    const env = JSON.parse(JSON.parse(await rig.call("every", "get-env")).result);
    assert.deepEqual(Object.keys(env).sort(), ["HOME", "LANG", "PATH"]);
  });

  test("what they write to standard error is kept apart", () => {
    assert.ok(rig.stderr.some((line) => line.startsWith("memory: ")));
  });
});

test("the filesystem server works inside its folder and refuses the rest", async () => {
  const dir = join(import.meta.dirname, "fixtures");
  const rig = await hubRig({ fs: realServer("filesystem", dir) });
  try {
    await writeFile(join(rig.dir, "x"), "");
    assert.match(await rig.call("fs", "list_directory", { path: dir }), /\[(?:FILE|DIR)\]/);
    assert.match(
      JSON.parse(await rig.call("fs", "read_text_file", { path: join(rig.dir, "x") })).error,
      /Access denied/,
    );
  } finally {
    await rig[Symbol.asyncDispose]();
  }
});
