import assert from "node:assert/strict";
import { test } from "node:test";
import { aRequest, aTarget } from "../../test/support/model-target.ts";
import { classifyApiError } from "./errors/classify.ts";
import { Lessons } from "./lessons.ts";
import { COMMON_LIMIT, STRICT_LIMIT } from "./pictures/fit.ts";
import type { ModelError, ModelRequest } from "./wire.ts";

const schema = {
  type: "object",
  properties: { when: { type: "string", format: "date", pattern: "^x" }, pattern: { type: "string" } },
};
const request = aRequest(aTarget("chat_completions"), {
  maxTokens: 100,
  overrides: { seed: 1 },
  tools: [{ type: "function", function: { name: "t", description: "d", parameters: schema } }],
  messages: [
    { role: "assistant", content: "x", reasoning_details: [{ signature: "s" }], anthropic_content_blocks: [1] },
  ],
});

function taught(error: ModelError): {
  readonly lessons: Lessons;
  readonly said: string | null;
  readonly next: ModelRequest;
} {
  const lessons = new Lessons();
  const said = lessons.learn(error, classifyApiError(error), request);
  return { lessons, said, next: lessons.apply(request) };
}

test("a destination that refused nothing gets the request as it is", () => {
  assert.deepEqual(new Lessons().apply(request), request);
});

const cases: readonly [name: string, error: ModelError, check: (next: ModelRequest) => void][] = [
  [
    "an unsupported parameter is left out, the caller's own overrides stay",
    { status: 400, message: "Unsupported parameter: 'temperature' is not supported with this model." },
    (next) => assert.deepEqual(next.overrides, { temperature: undefined, seed: 1 }),
  ],
  [
    "the other name of the output cap takes over",
    { status: 400, message: "Unsupported parameter: 'max_tokens' is not supported with this model." },
    (next) => assert.deepEqual(next.overrides, { max_tokens: undefined, max_completion_tokens: 100, seed: 1 }),
  ],
  [
    "thinking that the server no longer accepts goes",
    { status: 400, message: "messages.1: `thinking` blocks: invalid signature" },
    (next) => assert.deepEqual(next.messages, [{ role: "assistant", content: "x" }]),
  ],
  [
    "stored reasoning that the server no longer accepts goes",
    { status: 400, message: "invalid_encrypted_content: could not be verified" },
    (next) => assert.equal(next.replay?.codexItems, false),
  ],
  [
    "a long context the account does not have is not asked for",
    { status: 400, message: "The long context beta is not yet available for this subscription." },
    (next) => assert.equal(next.longContext, false),
  ],
  [
    "a server that cannot stream is not asked to",
    { status: 400, message: "stream mode is not supported by this deployment" },
    (next) => assert.equal(next.stream, false),
  ],
  [
    "patterns and formats go from schemas, a property of that name stays",
    { status: 400, message: "error parsing grammar: unexpected token" },
    (next) =>
      assert.deepEqual(next.tools[0]?.function.parameters, {
        type: "object",
        properties: { when: { type: "string" }, pattern: { type: "string" } },
      }),
  ],
];

for (const [name, error, check] of cases) {
  test(`${name}, and the same refusal teaches nothing twice`, () => {
    const { lessons, said, next } = taught(error);
    assert.notEqual(said, null);
    check(next);
    assert.equal(lessons.learn(error, classifyApiError(error), request), null);
  });
}

test("a refusal that says nothing of the kind teaches nothing", () => {
  assert.equal(taught({ status: 401, message: "invalid api key" }).said, null);
  assert.equal(taught({ status: 503, message: "streaming is not supported right now" }).said, null);
  assert.equal(taught({ status: 400, message: "this model does not support image input" }).said, null);
});

test("pictures that are too large are made smaller, then smaller still; when that does not help, all of them go", () => {
  const picture = (bytes: number) =>
    ({
      type: "image_url",
      image_url: { url: `data:image/png;base64,${Buffer.alloc(bytes).toString("base64")}` },
    }) as const;
  const error = { status: 400, message: "image exceeds the maximum size of 5 MB" };
  const asking = (...pictures: readonly ReturnType<typeof picture>[]) =>
    aRequest(aTarget("chat_completions"), { messages: [{ role: "user", content: pictures }] });
  const lessons = new Lessons();
  const learn = (request: ModelRequest) => lessons.learn(error, classifyApiError(error), request);
  assert.match(learn(asking(picture(5_000_000), picture(10))) ?? "", /over 4 MB or 8000 pixels are made smaller/);
  assert.deepEqual([lessons.imageLimit, lessons.takesImages], [COMMON_LIMIT, true]);
  assert.match(learn(asking(picture(2_000_000))) ?? "", /over 1 MB or 2000 pixels are made smaller/);
  assert.deepEqual([lessons.imageLimit, lessons.takesImages], [STRICT_LIMIT, true]);
  assert.match(learn(asking(picture(10))) ?? "", /they are skipped/);
  assert.equal(lessons.takesImages, false);
  assert.equal(learn(aRequest(aTarget("chat_completions"))), null, "nothing is left to leave out");
});

const PICTURE = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } } as const;

test("pictures in tool results that a model does not take go alone; the user's own stay", () => {
  const error = { status: 400, message: "tool message content must be a string" };
  const messages = [
    { role: "user", content: [{ type: "text", text: "see" }, PICTURE] },
    { role: "tool", tool_call_id: "c", content: [{ type: "text", text: "shot" }, PICTURE] },
  ] as const;
  const asked = aRequest(aTarget("chat_completions"), { messages });
  const lessons = new Lessons();
  assert.match(lessons.learn(error, classifyApiError(error), asked) ?? "", /tool results/);
  const [user, tool] = lessons.apply(asked).messages;
  assert.deepEqual(user, messages[0]);
  assert.deepEqual(tool?.content, [{ type: "text", text: "shot" }]);
  assert.equal(lessons.takesImages, true);
  assert.match(lessons.learn(error, classifyApiError(error), asked) ?? "", /takes no pictures;/);
  assert.equal(lessons.takesImages, false);
});

test("pictures that are too many for the Messages API are cut to the newest three results, once", () => {
  const error = { status: 400, message: "messages: Too many images and documents: 101 > 100" };
  const asked = aRequest(aTarget("anthropic_messages"));
  const lessons = new Lessons();
  assert.match(lessons.learn(error, classifyApiError(error), asked) ?? "", /newest 3/);
  assert.deepEqual(lessons.apply(asked).replay, { keepImages: 3 });
  assert.equal(lessons.learn(error, classifyApiError(error), asked), null);
});

test("an account without summaries of thinking still gets the thinking itself back", () => {
  const message = "Your organization must be verified to generate reasoning summaries.";
  const asked = aRequest(aTarget("codex_responses"), { reasoning: { enabled: true, effort: "high" } });
  const lessons = new Lessons();
  const error = { status: 400, message };
  assert.match(lessons.learn(error, classifyApiError(error), asked) ?? "", /no summaries/);
  assert.deepEqual(lessons.apply(asked).reasoning, { enabled: true, effort: "high", summary: false });
  assert.equal(lessons.learn(error, classifyApiError(error), asked), null);
});

test("a model that does not think is asked neither to think nor for its thoughts", () => {
  const error = { status: 400, message: "Encrypted content is not supported with this model." };
  const { next } = taught(error);
  assert.deepEqual(next.overrides, { reasoning: undefined, include: undefined, seed: 1 });
});

const shot = (name: string) => ({ type: "image_url", image_url: { url: `data:image/png;base64,${name}` } }) as const;

const unreadable: readonly ModelError[] = [
  { status: 400, message: "messages.2.content.1.image.source.base64.data: Could not process image" },
  { status: 400, message: "You uploaded an unsupported image. Please make sure your image is valid." },
  { status: 400, message: "Bad request", body: { error: { code: "invalid_image_format" } } },
  { status: 400, message: "The image data you provided does not represent a valid image." },
];
for (const error of unreadable) {
  test(`pictures of the newest message go when the server says: ${error.message}`, () => {
    const lessons = new Lessons();
    const one = aRequest(aTarget("chat_completions"), {
      messages: [
        { role: "user", content: [{ type: "text", text: "a" }, shot("OLD")] },
        { role: "assistant", content: "ok" },
        { role: "user", content: [shot("NEW")] },
        { role: "assistant", content: null, tool_calls: [] },
      ],
    });
    const learn = (request: ModelRequest) => lessons.learn(error, classifyApiError(error), request);
    assert.match(learn(one) ?? "", /could not read a picture; it is left out/);
    const next = lessons.apply(one);
    assert.deepEqual(next.messages[2]?.content, [
      { type: "text", text: "[picture left out: the server could not read it]" },
    ]);
    assert.deepEqual(next.messages[0], one.messages[0]);
    assert.equal(lessons.takesImages, true);
    assert.notEqual(learn(next), null, "then the one before");
    assert.doesNotMatch(JSON.stringify(lessons.apply(one)), /image_url/);
    assert.equal(learn(lessons.apply(one)), null, "without pictures the refusal means something else");
  });
}
