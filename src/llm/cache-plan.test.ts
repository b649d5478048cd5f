import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { aTarget } from "../../test/support/model-target.ts";
import { type CacheTtl, type OutgoingMessage, stripCacheControl } from "./cache-control.ts";
import { type CacheOptions, planCache, transactionEnds } from "./cache-plan.ts";
import type { ProviderProfile, ToolDefinition } from "./wire.ts";

const marker = { type: "ephemeral" } as const;
const ls: ToolDefinition = { type: "function", function: { name: "ls", description: "list", parameters: {} } };
const cat: ToolDefinition = { type: "function", function: { name: "cat", description: "read", parameters: {} } };
const call = { id: "c", type: "function", function: { name: "ls", arguments: "{}" } } as const;
const user = (content: string): OutgoingMessage => ({ role: "user", content });
const said = (content: string): OutgoingMessage => ({ role: "assistant", content });
const calls: OutgoingMessage = { role: "assistant", content: null, tool_calls: [call] };
const result: OutgoingMessage = { role: "tool", content: "r", tool_call_id: "c" };
const system: OutgoingMessage = { role: "system", content: "stable\n\nrest" };

const anthropic = aTarget("anthropic_messages", {
  baseUrl: "https://api.anthropic.com",
  profile: { cacheLayout: "native" },
});
const compatible = aTarget("anthropic_messages", { profile: { cacheLayout: "native" } });
const openrouter = aTarget("chat_completions", {
  baseUrl: "https://openrouter.ai/api/v1",
  profile: { cacheLayout: "envelope" },
});

const plan = (
  target: CacheOptions["target"],
  messages: readonly OutgoingMessage[],
  change: Partial<CacheOptions> = {},
) => planCache({ messages, tools: [ls, cat], target, ttl: "5m", stable: "stable", ...change });
/** Which messages carry how many markers. */
const marks = (messages: readonly OutgoingMessage[]) =>
  messages.map(
    (message) =>
      Number(message.cache_control !== undefined) +
      (typeof message.content === "object" ? (message.content ?? []).filter((part) => part.cache_control).length : 0),
  );

const turns = [user("a"), calls, result, calls, result, said("b"), user("c"), calls, result];
const cases: readonly [
  what: string,
  target: CacheOptions["target"],
  messages: readonly OutgoingMessage[],
  change: Partial<CacheOptions>,
  marked: readonly number[],
  onTools: number,
][] = [
  ["direct: last tool, stable text, two ends", anthropic, [system, ...turns], {}, [1, 0, 0, 0, 0, 0, 0, 1, 0, 1], 1],
  ["direct, another text: system unmarked", anthropic, [system, user("a")], { stable: "other" }, [0, 1], 1],
  ["direct, no stable text known", anthropic, [system, user("a")], { stable: "" }, [0, 1], 1],
  [
    "direct without tools: both parts, two messages",
    anthropic,
    [system, ...turns],
    { tools: [] },
    [2, 0, 0, 0, 0, 0, 0, 0, 1, 1],
    0,
  ],
  [
    "same wire elsewhere: both parts, two messages",
    compatible,
    [system, ...turns],
    {},
    [2, 0, 0, 0, 0, 0, 0, 0, 1, 1],
    0,
  ],
  [
    "envelope: both parts, two that can carry one",
    openrouter,
    [system, ...turns],
    {},
    [2, 0, 0, 0, 0, 0, 0, 1, 0, 1],
    0,
  ],
  [
    "envelope, another text: whole system, three",
    openrouter,
    [system, ...turns],
    { stable: "x" },
    [1, 0, 0, 0, 0, 0, 1, 1, 0, 1],
    0,
  ],
  [
    "nothing behind the stable text: one part, three",
    openrouter,
    [{ role: "system", content: "stable\n" }, user("a"), said("b"), user("c"), said("d")],
    {},
    [1, 0, 1, 1, 1],
    0,
  ],
  ["no system message: four", compatible, turns, {}, [0, 0, 0, 0, 0, 1, 1, 1, 1], 0],
  ["off", anthropic, [system, ...turns], { ttl: "off" }, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 0],
  ["a host that wants none", aTarget("chat_completions"), [system, ...turns], {}, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 0],
];
for (const [what, target, messages, change, marked, onTools] of cases)
  test(what, () => {
    const made = plan(target, messages, change);
    assert.deepEqual(marks(made.messages), marked);
    assert.deepEqual(
      made.tools.map((tool) => Number(tool.cache_control !== undefined)),
      (change.tools ?? [ls, cat]).map((_, at, all) => (at === all.length - 1 ? onTools : 0)),
    );
    assert.equal(
      made.markers,
      marked.reduce((sum, each) => sum + each, onTools),
    );
    assert.equal(made.layout, made.markers > 0 ? target.profile.cacheLayout : "none");
  });

test("the system text is cut where the stable part ends, and the cut loses nothing", () => {
  const [first] = plan(compatible, [system]).messages;
  assert.deepEqual(first?.content, [
    { type: "text", text: "stable", cache_control: marker },
    { type: "text", text: "\n\nrest", cache_control: marker },
  ]);
  const [direct] = plan(anthropic, [system]).messages;
  assert.deepEqual(direct?.content, [
    { type: "text", text: "stable", cache_control: marker },
    { type: "text", text: "\n\nrest" },
  ]);
});

test("an hour is said on every marker", () => {
  const { messages, tools } = plan(anthropic, [system, user("a")], { ttl: "1h" });
  assert.equal(JSON.stringify([messages, tools]).match(/"ttl":"1h"/g)?.length, 3);
});

test("a request and the next one within a turn share an end", () => {
  for (let length = 2; length < turns.length; length++) {
    const ends = (upTo: number) => transactionEnds(turns.slice(0, upTo)).slice(-2);
    if (turns[length - 1]?.role !== "tool") continue;
    const last = turns.slice(0, length - 2).length;
    assert.ok(
      ends(length).some((end) => ends(last).includes(end)),
      `${ends(last)} and ${ends(length)}`,
    );
  }
});

test("calls that wait for a result end nothing", () => {
  const two: OutgoingMessage = { role: "assistant", content: "x", tool_calls: [call, { ...call, id: "d" }] };
  assert.deepEqual(transactionEnds([user("a"), two, result]), [0]);
  assert.deepEqual(transactionEnds([user("a"), two, result, { ...result, tool_call_id: "d" }]), [0, 3]);
  assert.deepEqual(transactionEnds([user("a"), said("x"), user("b"), said("  ")]), [1, 2]);
});

const text = fc.constantFrom("", " ", "x", "stable\n\nrest");
const parts = fc.array(
  fc.oneof(
    text.map((value) => ({ type: "text" as const, text: value })),
    fc.constant({ type: "image_url" as const, image_url: { url: "data:image/png;base64,AA==" } }),
  ),
  { minLength: 2, maxLength: 3 },
);
const message: fc.Arbitrary<OutgoingMessage> = fc.oneof(
  fc.oneof(text, parts).map((content) => ({ role: "user" as const, content })),
  fc.oneof(text, parts).map((content) => ({ role: "tool" as const, content, tool_call_id: "c" })),
  fc.constantFrom(null, "", "x").map((content) => ({ role: "assistant" as const, content })),
  fc.constant(calls),
);
const anything = fc.record({
  messages: fc
    .tuple(fc.constantFrom<readonly OutgoingMessage[]>([], [system]), fc.array(message))
    .map((all) => all.flat()),
  target: fc.constantFrom(anthropic, compatible, openrouter),
  stable: fc.constantFrom("", "stable", "stable\n\nrest", "other"),
  tools: fc.constantFrom<readonly ToolDefinition[]>([], [ls, cat]),
  ttl: fc.constantFrom<CacheTtl>("5m", "1h", "off"),
});

test("never more than four markers, and taking them out gives back what was there, for another destination too", () =>
  fc.assert(
    fc.property(anything, fc.constantFrom(anthropic, compatible, openrouter), (request, next) => {
      const before = structuredClone(request.messages);
      const made = planCache(request);
      assert.deepEqual(request.messages, before, "inputs stay as they were");
      assert.ok(made.markers <= 4);
      const laid = JSON.stringify([made.messages, made.tools]).match(/"cache_control"/g)?.length ?? 0;
      assert.equal(made.markers, laid);
      assert.deepEqual(stripCacheControl(made.messages), request.messages);
      assert.deepEqual(
        planCache({ ...request, messages: made.messages, target: next }),
        planCache({ ...request, target: next }),
      );
    }),
  ));

test("foreign parts with markers of their own keep their structure", () => {
  const image = { type: "image_url", image_url: { url: "https://example.com/a.png" } } as const;
  const foreign: OutgoingMessage = {
    role: "user",
    content: [{ type: "text", text: "a", cache_control: marker }, image],
  };
  assert.deepEqual(stripCacheControl([foreign]), [{ role: "user", content: [{ type: "text", text: "a" }, image] }]);
});

test("profiles decide by destination, not by words in an address", () => {
  const none: Partial<ProviderProfile> = { cacheLayout: "native" };
  const evil = aTarget("anthropic_messages", { baseUrl: "https://evil.example/api.anthropic.com", profile: none });
  assert.equal(
    plan(evil, [user("a")]).tools.some((tool) => tool.cache_control),
    false,
  );
});
