// Every history a request may be made of: what users, three kinds of servers and tools leave behind, legal but unkind.
import fc from "fast-check";
import type {
  AssistantMessage,
  ContentPart,
  HistoryMessage,
  ToolCall,
  ToolMessage,
  UserMessage,
} from "../../src/llm/messages.ts";

const unkind = fc.constantFrom(
  "half a pair \ud83d",
  "\udc00 the other",
  "a NUL \u0000 inside",
  "😀 é 漢字",
  "<think>x</think> y",
  "a\r\nb\tc",
  "[DONE]",
  '"}',
  "\\ud800",
);
/** Text with something in it. */
export const someText = fc
  .oneof({ weight: 3, arbitrary: fc.string({ minLength: 1, maxLength: 20 }) }, unkind)
  .map((text) => (text.trim() === "" ? "text" : text));
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

const image: fc.Arbitrary<ContentPart> = fc
  .constantFrom(
    "data:image/png;base64,iVBORw0KGgo=",
    "https://example.com/cat.jpg",
    "data:image/svg+xml;base64,PHN2Zz4=",
  )
  .map((url) => ({ type: "image_url", image_url: { url } }));
const textPart: fc.Arbitrary<ContentPart> = someText.map((text) => ({ type: "text", text }));
const parts = fc.array(fc.oneof(textPart, image), { minLength: 1, maxLength: 3 });

const user: fc.Arbitrary<UserMessage> = fc
  .oneof(
    fc.record({ role: fc.constant("user" as const), content: someText, api_content: maybe(someText) }),
    fc.record({ role: fc.constant("user" as const), content: parts, api_content: maybe(someText) }),
  )
  .map(compact);

const thinkingBlock = fc.oneof(
  fc.record({ type: fc.constant("thinking"), thinking: someText, signature: fc.constantFrom("sig-a", "sig-b") }),
  fc.record({ type: fc.constant("thinking"), thinking: someText }),
  fc.record({ type: fc.constant("redacted_thinking"), data: fc.constant("opaque") }),
  fc.record({ type: fc.constant("reasoning.text"), text: someText, index: fc.nat(3) }),
);
const issuer = fc.constantFrom("127.0.0.1", "api.openai.com");
const reasoningItem = fc.record({
  type: fc.constant("reasoning"),
  id: fc.integer({ min: 0, max: 99 }).map((n) => `rs_${n}`),
  summary: fc.array(
    someText.map((text) => ({ type: "summary_text", text })),
    { maxLength: 2 },
  ),
  encrypted_content: fc.constant("cipher"),
  _issuer_kind: issuer,
});

const args = fc.oneof(
  fc.constant("{}"),
  fc
    .dictionary(fc.constantFrom("path", "text", "n"), fc.oneof(someText, fc.integer()))
    .map((value) => JSON.stringify(value)),
);
const callShape = fc.record({
  name: fc.constantFrom("ls", "read_file", "write_file"),
  arguments: args,
  style: fc.constantFrom("plain", "anthropic", "composite", "split", "dotted", "long"),
});

function makeCall(shape: { name: string; arguments: string; style: string }, serial: number): ToolCall {
  const fn = { name: shape.name, arguments: shape.arguments };
  const base = { type: "function", function: fn } as const;
  switch (shape.style) {
    case "anthropic":
      return { id: `toolu_${serial}`, ...base };
    case "composite":
      return { id: `call_${serial}|fc_${serial}`, ...base };
    case "split":
      return { id: `fc_${serial}`, ...base, call_id: `call_${serial}`, response_item_id: `fc_${serial}` };
    case "dotted":
      return {
        id: `functions.${shape.name}:${serial}`,
        ...base,
        extra_content: { google: { thought_signature: "t" } },
      };
    case "long":
      return { id: `call_${serial}_${"x".repeat(80)}`, ...base };
    default:
      return { id: `call_${serial}`, ...base };
  }
}

const assistantExtras = fc.record(
  {
    reasoning: someText,
    reasoning_content: fc.oneof(someText, fc.constant("")),
    reasoning_details: fc.array(thinkingBlock, { minLength: 1, maxLength: 3 }),
    codex_reasoning_items: fc.array(reasoningItem, { minLength: 1, maxLength: 2 }),
    recordOrder: fc.boolean(),
    recordMessage: issuer,
  },
  { requiredKeys: [] },
);

/** How a result may name its call: a stored history holds all of these. */
const resultContent = fc.oneof(fc.constant(""), someText, parts);

interface Round {
  readonly text: string | null;
  readonly extras: typeof assistantExtras extends fc.Arbitrary<infer T> ? T : never;
  readonly calls: readonly { name: string; arguments: string; style: string }[];
  readonly results: readonly {
    content: string | readonly ContentPart[];
    api_content: string | undefined;
    byCallId: boolean;
  }[];
}
const round = (minCalls: number, maxCalls: number): fc.Arbitrary<Round> =>
  fc.record({
    text: minCalls > 0 ? fc.option(someText, { nil: null }) : someText,
    extras: assistantExtras,
    calls: fc.array(callShape, { minLength: minCalls, maxLength: maxCalls }),
    results: fc.array(fc.record({ content: resultContent, api_content: maybe(someText), byCallId: fc.boolean() }), {
      minLength: 3,
      maxLength: 3,
    }),
  });
const exchange = fc.record({
  user,
  toolRounds: fc.array(round(1, 3), { maxLength: 3 }),
  answer: fc.option(round(0, 0), { nil: null }),
});

/** Ends where a request is made: after a user message or after the results of a round. */
export const legalHistory: fc.Arbitrary<readonly HistoryMessage[]> = fc
  .record({ before: fc.array(exchange, { maxLength: 4 }), user, toolRounds: fc.array(round(1, 3), { maxLength: 3 }) })
  .map(({ before, ...last }) => {
    let serial = 0;
    const history: HistoryMessage[] = [];
    const addRound = (each: Round) => {
      const calls = each.calls.map((shape) => makeCall(shape, serial++));
      history.push(makeAssistant(each, calls));
      calls.forEach((call, index) => {
        const result = each.results[index % each.results.length]!;
        history.push(makeResult(call, result));
      });
    };
    for (const { user: asked, toolRounds, answer } of [...before, { ...last, answer: null }]) {
      // A user message directly after another one never reaches a wire; the loop merges them before.
      if (history.at(-1)?.role === "user") continue;
      history.push(asked);
      toolRounds.forEach(addRound);
      if (answer) addRound(answer);
    }
    while (history.at(-1)?.role === "assistant") history.pop();
    return history;
  });

function makeAssistant({ text, extras }: Round, calls: readonly ToolCall[]): AssistantMessage {
  const { recordOrder, recordMessage, ...kept } = extras;
  const thinking = (kept.reasoning_details ?? []).filter((detail) => !detail.type.startsWith("reasoning."));
  const uses = calls.map((call) => ({ type: "tool_use", id: call.id, name: call.function.name, input: {} }));
  const said = text === null ? [] : [{ type: "text", text }];
  const order = recordOrder && uses.length > 0 && thinking.length > 0;
  return compact({
    role: "assistant" as const,
    content: text,
    tool_calls: calls.length > 0 ? calls : undefined,
    ...kept,
    anthropic_content_blocks: order
      ? [thinking[0], ...said, uses[0], ...thinking.slice(1), ...uses.slice(1)]
      : undefined,
    codex_message_items:
      recordMessage && text !== null
        ? [
            {
              type: "message",
              role: "assistant",
              id: "msg_1",
              status: "completed",
              content: [{ type: "output_text", text }],
              _issuer_kind: recordMessage,
            },
          ]
        : undefined,
    finish_reason: calls.length > 0 ? ("tool_calls" as const) : ("stop" as const),
  });
}

function makeResult(call: ToolCall, result: Round["results"][number]): ToolMessage {
  const id = result.byCallId ? (call.call_id ?? call.id.split("|")[0] ?? call.id) : call.id;
  return compact({
    role: "tool" as const,
    content: result.content,
    tool_call_id: id,
    name: call.function.name,
    api_content: result.api_content,
  });
}

function compact<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== undefined)) as T; // only absent fields are gone
}
