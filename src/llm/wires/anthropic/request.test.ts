import assert from "node:assert/strict";
import { test } from "node:test";
import type Anthropic from "@anthropic-ai/sdk";
import { aRequest, aTarget } from "../../../../test/support/model-target.ts";
import type { Json } from "../../../kit/json.ts";
import type { ModelRequest, Target, ToolDefinition } from "../../wire.ts";
import { type AnthropicRequest, buildAnthropicRequest, renderAnthropicRequest } from "./protocol.ts";

const messages = [
  { role: "system", content: "s" },
  { role: "user", content: "hi" },
] as const;
const build = (rest: Partial<AnthropicRequest> = {}) =>
  buildAnthropicRequest({ model: "claude-opus-4-6", messages, ...rest });
const tool = (name: string, parameters: Json): ToolDefinition => ({
  type: "function",
  function: { name, description: "d", parameters },
});

test("a full request is what Anthropic's own types describe", () => {
  const body = build({
    tools: [tool("ls", { type: "object", properties: { path: { type: "string" } } })],
    maxTokens: 1000,
    reasoning: { enabled: true, effort: "high" },
  });
  assert.deepEqual(body, {
    model: "claude-opus-4-6",
    max_tokens: 1000,
    system: "s",
    messages: [{ role: "user", content: "hi" }],
    tools: [
      { name: "ls", description: "d", input_schema: { type: "object", properties: { path: { type: "string" } } } },
    ],
    tool_choice: { type: "auto" },
    thinking: { type: "adaptive", display: "summarized" },
    output_config: { effort: "high" },
  } satisfies Anthropic.MessageCreateParams);
});

const thinkings: readonly [
  model: string,
  AnthropicRequest["reasoning"],
  maxTokens: number | undefined,
  fields: Json,
][] = [
  ["claude-opus-4-6", undefined, 100, { max_tokens: 100 }],
  ["claude-opus-4-6", { enabled: false }, 100, { max_tokens: 100 }],
  ["claude-opus-4-6", { enabled: true, effort: "none" }, 100, { max_tokens: 100 }],
  ["claude-haiku-4-5", { enabled: true, effort: "high" }, 100, { max_tokens: 100 }],
  [
    "claude-opus-4-6",
    { enabled: true, effort: "minimal" },
    100,
    { max_tokens: 100, thinking: { type: "adaptive", display: "summarized" }, output_config: { effort: "low" } },
  ],
  [
    "claude-opus-4-6",
    { enabled: true, effort: "xhigh" },
    100,
    { max_tokens: 100, thinking: { type: "adaptive", display: "summarized" }, output_config: { effort: "max" } },
  ],
  [
    "claude-opus-4-8",
    { enabled: true, effort: "xhigh" },
    100,
    { max_tokens: 100, thinking: { type: "adaptive", display: "summarized" }, output_config: { effort: "xhigh" } },
  ],
  [
    "kimi-k2",
    { enabled: true },
    100,
    { max_tokens: 100, thinking: { type: "adaptive", display: "summarized" }, output_config: { effort: "medium" } },
  ],
  [
    "claude-sonnet-4-5",
    { enabled: true, effort: "xhigh" },
    100,
    { max_tokens: 36_096, temperature: 1, thinking: { type: "enabled", budget_tokens: 32_000 } },
  ],
  [
    "claude-sonnet-4-5",
    { enabled: true, effort: "high" },
    64_000,
    { max_tokens: 64_000, temperature: 1, thinking: { type: "enabled", budget_tokens: 16_000 } },
  ],
  [
    "MiniMax-M2",
    { enabled: true, effort: "low" },
    100,
    { max_tokens: 8_096, temperature: 1, thinking: { type: "enabled", budget_tokens: 4_000 } },
  ],
  [
    "claude-3-7-sonnet",
    { enabled: true, effort: "max" },
    undefined,
    { max_tokens: 128_000, temperature: 1, thinking: { type: "enabled", budget_tokens: 8_000 } },
  ],
];
for (const [model, reasoning, maxTokens, fields] of thinkings)
  test(`${model} with ${JSON.stringify(reasoning)} and ${maxTokens} tokens gets ${JSON.stringify(fields)}`, () => {
    const {
      model: _,
      messages: __,
      system: ___,
      ...rest
    } = build({ model, ...(reasoning && { reasoning }), ...(maxTokens && { maxTokens }) });
    assert.deepEqual(rest, fields);
  });

test("max_tokens is always there, and never above the window", () => {
  assert.equal(build().max_tokens, 128_000);
  assert.equal(build({ maxTokens: -1 }).max_tokens, 128_000);
  assert.equal(build({ maxTokens: Number.NaN }).max_tokens, 128_000);
  assert.equal(build({ contextLength: 32_000 }).max_tokens, 31_999);
  assert.equal(build({ contextLength: 32_000, maxTokens: 500 }).max_tokens, 500);
});

test("a window too small for thinking gets none", () => {
  const body = build({ model: "claude-sonnet-4-5", contextLength: 4_500, reasoning: { enabled: true } });
  assert.deepEqual([body.max_tokens, body.thinking], [4_499, undefined]);
});

test("a temperature goes only where it is taken", () => {
  assert.equal(build({ model: "claude-sonnet-4-5", temperature: 0.3 }).temperature, 0.3);
  assert.equal(build({ model: "claude-opus-4-7", temperature: 0.3 }).temperature, undefined);
  assert.equal(build({ model: "claude-unknown", temperature: 0.3 }).temperature, undefined);
  assert.equal(build({ temperature: 0.3, reasoning: { enabled: true } }).temperature, undefined);
});

test("tools: nullable unions collapse, unions at the top go, an object has properties, a name comes once", () => {
  const { tools } = build({
    tools: [
      tool("a", {
        anyOf: [{ required: ["x"] }, { required: ["y"] }],
        type: "object",
        properties: {
          x: { anyOf: [{ type: "string" }, { type: "null" }], description: "an x" },
          y: { type: ["integer", "null"] },
          z: {
            type: "array",
            items: { oneOf: [{ type: "null" }, { type: "object", properties: { q: { type: ["string", "null"] } } }] },
          },
          u: { anyOf: [{ type: "string" }, { type: "number" }] },
        },
        required: ["x"],
      }),
      tool("b", {}),
      tool("a", { type: "object" }),
    ],
  });
  assert.deepEqual(tools, [
    {
      name: "a",
      description: "d",
      input_schema: {
        type: "object",
        properties: {
          x: { description: "an x", type: "string" },
          y: { type: "integer" },
          z: { type: "array", items: { type: "object", properties: { q: { type: "string" } } } },
          u: { anyOf: [{ type: "string" }, { type: "number" }] },
        },
        required: ["x"],
      },
    },
    { name: "b", description: "d", input_schema: { type: "object", properties: {} } },
  ]);
});

const choices: readonly [string | undefined, unknown][] = [
  [undefined, { type: "auto" }],
  ["auto", { type: "auto" }],
  ["required", { type: "any" }],
  ["ls", { type: "tool", name: "ls" }],
  ["none", undefined],
];
for (const [toolChoice, expected] of choices)
  test(`tool choice ${toolChoice} is ${JSON.stringify(expected)}`, () => {
    const body = build({ tools: [tool("ls", {})], ...(toolChoice && { toolChoice }) });
    assert.deepEqual(body.tool_choice, expected);
    assert.equal("tools" in body, toolChoice !== "none");
  });

test("a forced call and thinking exclude each other", () => {
  assert.equal(
    build({ tools: [tool("ls", {})], toolChoice: "required", reasoning: { enabled: true } }).thinking,
    undefined,
  );
});

const render = (
  target: Partial<Omit<Target, "profile">> & { profile?: Partial<Target["profile"]> } = {},
  rest: Partial<ModelRequest> = {},
) =>
  renderAnthropicRequest(
    aRequest(
      aTarget("anthropic_messages", { baseUrl: "https://api.anthropic.com", model: "claude-opus-4-6", ...target }),
      rest,
    ),
  );

test("a long window that was refused once is not asked for again", () => {
  const azure = { apiKey: "k", baseUrl: "https://x.services.ai.azure.com/anthropic" };
  assert.equal(render(azure, { longContext: false }).headers["anthropic-beta"], BOTH);
});

const BOTH = "interleaved-thinking-2025-05-14,fine-grained-tool-streaming-2025-05-14";
const headerCases: readonly [
  what: string,
  Partial<Target>,
  key: string | undefined,
  bearer: string | undefined,
  betas: string,
][] = [
  ["an API key", { apiKey: "sk-ant-api03-x" }, "sk-ant-api03-x", undefined, BOTH],
  ["a login token", { apiKey: "sk-ant-oat01-x" }, undefined, "Bearer sk-ant-oat01-x", `${BOTH},oauth-2025-04-20`],
  [
    "MiniMax",
    { apiKey: "k", provider: "minimax", baseUrl: "https://api.minimax.io/anthropic" },
    undefined,
    "Bearer k",
    "interleaved-thinking-2025-05-14",
  ],
  [
    "Azure",
    { apiKey: "k", baseUrl: "https://x.services.ai.azure.com/anthropic" },
    undefined,
    "Bearer k",
    `${BOTH},context-1m-2025-08-07`,
  ],
  ["another host", { apiKey: "k", baseUrl: "https://example.com/anthropic" }, "k", undefined, BOTH],
];
for (const [what, target, key, bearer, betas] of headerCases)
  test(`${what} travels in its own header`, () => {
    const { headers } = render({ ...target, profile: {} });
    assert.deepEqual(
      [headers["x-api-key"], headers.authorization, headers["anthropic-beta"], headers["anthropic-version"]],
      [key, bearer, betas, "2023-06-01"],
    );
  });

test("login tokens are told from keys", () => {
  const tokens = {
    "sk-ant-api03-x": false,
    "sk-ant-oat01-x": true,
    eyJhbGciOi: true,
    "cc-x": true,
    "sk-other": false,
    "": false,
  };
  for (const [apiKey, expected] of Object.entries(tokens)) {
    const { headers } = render({ apiKey });
    assert.equal(headers.authorization === `Bearer ${apiKey}`, expected, apiKey);
    assert.equal(headers["anthropic-beta"]?.includes("oauth"), expected, apiKey);
  }
});

test("the endpoint is found below any base URL", () => {
  assert.equal(render().url, "https://api.anthropic.com/v1/messages");
  assert.equal(
    render({ baseUrl: "https://api.minimax.io/anthropic/" }).url,
    "https://api.minimax.io/anthropic/v1/messages",
  );
  assert.equal(render({ baseUrl: "https://x/v1" }).url, "https://x/v1/messages");
});

test("requests to Anthropic carry cache markers, and the system prompt is no message", () => {
  const { body } = render({ profile: { cacheLayout: "native" } });
  assert.deepEqual(body.system, [{ type: "text", text: "You are a test.", cache_control: { type: "ephemeral" } }]);
  assert.deepEqual(body.messages, [
    { role: "user", content: [{ type: "text", text: "hi", cache_control: { type: "ephemeral" } }] },
  ]);
  assert.deepEqual(render({ profile: { cacheLayout: "native" } }, { cacheTtl: "off" }).body.system, "You are a test.");
});

test("within a session nothing is taken back; for a foreign history it can be asked", () => {
  const thought = { type: "thinking", thinking: "hm", signature: "s" };
  const assistant = { role: "assistant", content: "a", reasoning_details: [thought] } as const;
  const history = [
    { role: "user", content: "1" },
    assistant,
    { role: "user", content: "2" },
    assistant,
    { role: "user", content: "3" },
  ] as const;
  const count = (rest: Partial<ModelRequest>) =>
    JSON.stringify(render({}, { messages: history, ...rest }).body).split('"signature"').length - 1;
  assert.equal(count({}), 2);
  assert.equal(count({ replay: { keepThinking: "latest" } }), 1);
});
