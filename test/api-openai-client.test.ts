// The official client of the API that ours speaks: what it sends, and what it makes of our answers.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import OpenAI from "openai";
import { type ApiRig, apiRig, KEY, lastText } from "./support/api-rig.ts";
import { until } from "./support/gateway-rig.ts";

let rig: ApiRig;
let client: OpenAI;

before(async () => {
  rig = await apiRig({ extra: { model_routes: { "hermes-quick": "quick-model" } } });
  client = new OpenAI({ baseURL: `${rig.url}/v1`, apiKey: KEY, maxRetries: 0 });
});
after(() => rig[Symbol.asyncDispose]());
beforeEach(() => {
  rig.model.clear().otherwise(({ body }) => ({ text: `you said ${lastText(body.messages)}` }));
});

const say = (text: string) => [{ role: "user", content: text } as const];
const withTool = () =>
  rig.model.script(
    { text: "I look.", toolCalls: [{ id: "call_1", name: "terminal", arguments: { command: "echo seen" } }] },
    {
      text: "done",
    },
  );

test("F268: the list of models names the agent and the aliases of the settings", async () => {
  const names = [];
  for await (const model of await client.models.list()) names.push(model.id);
  assert.deepEqual(names, ["hermes-agent", "hermes-quick"]);
});

test("F264, F270, F277: a chat completion has text, usage and a reason, and keeps the client's history and system text", async () => {
  const completion = await client.chat.completions.create({
    model: "hermes-agent",
    messages: [
      { role: "system", content: "Speak like a pirate." },
      { role: "user", content: "first" },
      { role: "assistant", content: "aye" },
      { role: "user", content: "second" },
    ],
  });
  assert.equal(completion.choices[0]?.message.content, "you said second");
  assert.equal(completion.choices[0]?.finish_reason, "stop");
  assert.ok((completion.usage?.prompt_tokens ?? 0) > 100, "the whole prompt of the agent is counted");
  const { messages } = rig.model.last.body;
  const [system, ...talk] = messages as { role: string; content: string }[];
  assert.match(system?.content ?? "", /Hermes/, "the prompt of the agent stays");
  assert.match(system?.content ?? "", /Speak like a pirate\./, "and the client's words are laid over it");
  assert.deepEqual(
    talk.map(({ content }) => content),
    ["first", "aye", "second"],
  );
});

test("F265: it is stateless: a talk is what its messages say, and another call knows nothing of it", async () => {
  const heard = async (...messages: { role: "user" | "assistant"; content: string }[]) => {
    await client.chat.completions.create({ model: "hermes-agent", messages });
    return rig.model.last.body.messages.slice(1).map((message: { content: unknown }) => message.content);
  };
  assert.deepEqual(await heard(...say("my name is Ann")), ["my name is Ann"]);
  assert.deepEqual(await heard(...say("what is my name?")), ["what is my name?"]);
  assert.deepEqual(await heard(...say("my name is Ann")), ["my name is Ann"], "the same first words begin anew");
  const talk = [...say("my name is Ann"), { role: "assistant", content: "Hello Bob" } as const, ...say("who?")];
  assert.deepEqual(await heard(...talk), ["my name is Ann", "Hello Bob", "who?"], "what the client says was said");
});

test("the model of the client is echoed; only an alias chooses another one", async () => {
  const echoed = await client.chat.completions.create({ model: "gpt-whatever", messages: say("x") });
  assert.equal(echoed.model, "gpt-whatever");
  assert.equal(rig.model.last.body.model, "fake-model");
  await client.chat.completions.create({ model: "hermes-quick", messages: say("y") });
  assert.equal(rig.model.last.body.model, "quick-model");
  // A session that was made with one keeps it.
  const { json } = await rig.call("POST", "/api/sessions", { model: "hermes-quick" });
  await rig.call("POST", `/api/sessions/${json.session.id}/chat`, { message: "z" });
  assert.equal(rig.model.last.body.model, "quick-model");
});

test("a streamed completion comes in pieces, with the tokens at its end; tool events do not disturb the client", async () => {
  withTool();
  let text = "";
  let finish: string | null = null;
  let tokens = 0;
  const stream = await client.chat.completions.create({
    ...{ model: "hermes-agent", messages: say("look"), stream: true },
    stream_options: { include_usage: true },
  });
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? "";
    finish = chunk.choices[0]?.finish_reason ?? finish;
    tokens = chunk.usage?.total_tokens ?? tokens;
  }
  assert.equal(text, "I look.\n\ndone");
  assert.equal(finish, "stop");
  assert.ok(tokens > 0);
});

test("pictures reach the model", async () => {
  const url = `data:image/png;base64,${PIXEL}`;
  await client.chat.completions.create({
    model: "hermes-agent",
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "what is it?" },
          { type: "image_url", image_url: { url } },
        ],
      },
    ],
  });
  assert.match(JSON.stringify(rig.model.last.body.messages.at(-1)), /image_url.*base64/);
});

test("F266: a response can be followed by the next, which knows what was said, and be read and deleted", async () => {
  const first = await client.responses.create({ model: "hermes-agent", input: "one", instructions: "Be brief." });
  assert.equal(first.output_text, "you said one");
  const second = await client.responses.create({
    ...{ model: "hermes-agent", input: [{ role: "user", content: "two" }], previous_response_id: first.id },
  });
  assert.equal(second.output_text, "you said two");
  const [system, ...talk] = rig.model.last.body.messages as { content: string }[];
  assert.match(system?.content ?? "", /Be brief\./, "instructions are inherited");
  assert.deepEqual(
    talk.map(({ content }) => content),
    ["one", "you said one", "two"],
  );
  assert.equal((await client.responses.retrieve(first.id)).output_text, "you said one");
  await client.responses.delete(first.id);
  await assert.rejects(client.responses.retrieve(first.id), (error) => error instanceof OpenAI.NotFoundError);
  await assert.rejects(
    client.responses.create({ model: "m", input: "x", previous_response_id: first.id }),
    (error) => error instanceof OpenAI.NotFoundError,
  );
});

test("a streamed response tells its items in order, calls and their results included", async () => {
  withTool();
  const types: string[] = [];
  const stream = await client.responses.create({ model: "hermes-agent", input: "look", stream: true });
  let sequence = -1;
  let final = "";
  for await (const event of stream) {
    assert.equal(event.sequence_number, ++sequence);
    types.push(event.type === "response.output_item.added" ? `added ${event.item.type}` : event.type);
    if (event.type === "response.completed") final = event.response.output.map(({ type }) => type).join(" ");
  }
  assert.equal(types[0], "response.created");
  assert.equal(types.at(-1), "response.completed");
  assert.deepEqual(
    types.filter((type) => type.startsWith("added")),
    ["added message", "added function_call", "added function_call_output", "added message"],
  );
  assert.equal(final, "message function_call function_call_output message");
});

test("a response that is not streamed has the calls and results of its turn alone, those of the program's own tools left out", async () => {
  const first = await client.responses.create({ model: "hermes-agent", input: "one" });
  withTool();
  const { output } = await client.responses.create({ model: "m", input: "look", previous_response_id: first.id });
  assert.deepEqual(
    output.map(({ type }) => type),
    ["function_call", "function_call_output", "message"],
  );
  const [call, result, message] = output;
  assert.ok(call?.type === "function_call" && result?.type === "function_call_output" && message?.type === "message");
  assert.deepEqual(
    [call.name, JSON.parse(call.arguments), call.call_id],
    ["terminal", { command: "echo seen" }, "call_1"],
  );
  assert.match(String(result.output), /seen/);
  assert.equal(result.call_id, "call_1");

  rig.model.script({ toolCalls: [{ name: "_inner", arguments: {} }] }, { text: "done" });
  const second = await client.responses.create({ model: "m", input: "think" });
  assert.deepEqual(
    second.output.map(({ type }) => type),
    ["message"],
  );
});

test("the client's helper for streams puts the same text together", async () => {
  const stream = client.responses.stream({ model: "hermes-agent", input: "whole" });
  const final = await stream.finalResponse();
  assert.equal(final.output[0]?.type === "message" && final.output[0].content[0]?.type, "output_text");
});

test("a wrong key, an empty conversation and a model that fails are errors of the kind the client knows", async () => {
  const stranger = new OpenAI({ baseURL: `${rig.url}/v1`, apiKey: "wrong", maxRetries: 0 });
  await assert.rejects(stranger.models.list(), (error) => error instanceof OpenAI.AuthenticationError);
  await assert.rejects(
    client.chat.completions.create({ model: "m", messages: [] }),
    (error) => error instanceof OpenAI.BadRequestError && error.param === "messages",
  );
  rig.model.otherwise({ fault: "status", status: 401, body: { error: { message: "no such key" } } });
  const asked = rig.model.requests.length;
  const patient = client.withOptions({ maxRetries: 2 });
  await assert.rejects(
    patient.chat.completions.create({ model: "m", messages: say("x") }),
    (error) => error instanceof OpenAI.APIError && error.status === 502 && error.code === "agent_incomplete",
  );
  assert.ok(rig.model.requests.length - asked <= 2, "the client does not run the agent again by itself");
});

test("a client that hangs up stops the turn", async () => {
  for (const stream of [true, false]) {
    rig.model.clear().otherwise({ fault: "stall", after: 0, answer: { text: "late" } });
    const controller = new AbortController();
    const asked = client.chat.completions
      .create({ model: "m", messages: say(`hold ${stream}`), stream }, { signal: controller.signal })
      .then(async (answer) => {
        if (Symbol.asyncIterator in answer) for await (const _ of answer);
      });
    await until("the model is asked", () => rig.model.requests.length === 1);
    controller.abort();
    await Promise.allSettled([asked]); // the client ends a stream without an error
    await rig.model.last.clientLeft;
  }
});

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
