import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { comparePrefix, compareSketch, type Prefix, type Sketch, sketchOf } from "./sketch.ts";

const role = fc.constantFrom("user", "assistant", "tool");
const ends = fc.constantFrom("", '"', "}", "]", '"}', "]}", '"}]}', "\\");
const words = fc.tuple(fc.string({ unit: "grapheme", maxLength: 4 }), ends).map((both) => both.join(""));
const part = fc.oneof(
  words.map((text) => ({ type: "text", text })),
  words.map((text) => ({ type: "input_text", text })),
  words.map((url) => ({ type: "image_url", image_url: { url } })),
  words.map((content) => ({ type: "tool_result", tool_use_id: "1", content })),
  words.map((text) => ({ type: "tool_result", tool_use_id: "1", content: [{ type: "text", text }] })),
);
const content = fc.oneof(words, fc.array(part, { maxLength: 3 }));
const aMessage = fc.record({ role, content });
const message = aMessage.map((each) => JSON.stringify(each));
const text = fc.string({ unit: "grapheme", maxLength: 12 });
const request = fc.record({ system: text, tools: text, messages: fc.array(message, { maxLength: 6 }) });
const joined = (messages: readonly string[]) => messages.join(",");
const asPrefix = ({
  system,
  tools,
  messages,
}: {
  system: string;
  tools: string;
  messages: readonly string[];
}): Prefix => ({
  system,
  tools,
  messages: joined(messages),
});

test("a sketch sees the same breaks as the request itself, at the beginning of the part that differs", () =>
  fc.assert(
    fc.property(request, request, fc.nat(6), fc.boolean(), fc.boolean(), (a, b, shared, system, tools) => {
      const now = {
        system: system ? a.system : b.system,
        tools: tools ? a.tools : b.tools,
        messages: [...a.messages.slice(0, shared), ...b.messages],
      };
      const whole = comparePrefix(asPrefix(a), asPrefix(now));
      const sketched = compareSketch(sketchOf(asPrefix(a), []), asPrefix(now));
      assert.equal(sketched.bytes, whole.bytes);
      assert.equal(sketched.broke?.owner.replace(/ \(.*/, ""), whole.broke?.owner.replace(/ \(.*/, ""));
      assert.ok(sketched.commonBytes <= whole.commonBytes);
      if (!whole.broke) assert.equal(sketched.commonBytes, whole.commonBytes);
    }),
    { numRuns: 400 },
  ));

/** A message, and one that a user may have made of it. */
const grown = fc
  .tuple(aMessage, fc.oneof(words, fc.array(part, { minLength: 1, maxLength: 2 })))
  .map(([from, more]) => {
    const parts = Array.isArray(from.content) ? from.content : [];
    const last = parts.at(-1);
    if (typeof more === "object") return [from, { ...from, content: [...parts, ...more] }];
    if (typeof from.content === "string") return [from, { ...from, content: from.content + more }];
    if (!last || !("text" in last)) return [from, from];
    return [from, { ...from, content: [...parts.slice(0, -1), { ...last, text: last.text + more }] }];
  });

test("a sketch and the request agree on what has grown, to the byte", () =>
  fc.assert(
    fc.property(request, grown, fc.array(message, { maxLength: 2 }), (a, pair, more) => {
      const [from = "", to = ""] = pair.map((each) => JSON.stringify(each));
      const before = asPrefix({ ...a, messages: [...a.messages, from] });
      const now = asPrefix({ ...a, messages: [...a.messages, to, ...more] });
      const whole = comparePrefix(before, now);
      const sketched = compareSketch(sketchOf(before, []), now);
      assert.deepEqual(sketched.broke?.owner, whole.broke?.owner);
      if (!whole.broke) assert.equal(sketched.commonBytes, whole.commonBytes);
    }),
    { numRuns: 400 },
  ));

test("a sketch that grew with the conversation is the one made at once", () =>
  fc.assert(
    fc.property(request, fc.array(message, { maxLength: 5 }), (first, more) => {
      const before = asPrefix(first);
      const now = asPrefix({ ...first, messages: [...first.messages, ...more] });
      const grown = sketchOf(now, [], { prefix: before, sketch: sketchOf(before, []) });
      assert.deepEqual(grown, sketchOf(now, []));
    }),
  ));

test("a long conversation keeps its newest messages apart, and still sees what changed", () => {
  const messages: string[] = [];
  let before: { prefix: Prefix; sketch: Sketch } | undefined;
  for (let n = 0; n < 1000; n++) {
    messages.push(JSON.stringify({ role: n % 2 ? "assistant" : "user", content: `message ${n}` }));
    if (n % 7 !== 0) continue;
    const prefix = asPrefix({ system: "s", tools: "t", messages });
    before = { prefix, sketch: sketchOf(prefix, [], before) };
  }
  assert.ok(before);
  const { sketch } = before;
  assert.ok(sketch.messages.length <= 400 && JSON.stringify(sketch).length < 12_000);
  const at = (index: number) =>
    compareSketch(sketch, asPrefix({ system: "s", tools: "t", messages: messages.with(index, '{"role":"tool"}') }))
      .broke?.owner;
  assert.equal(compareSketch(sketch, asPrefix({ system: "s", tools: "t", messages })).broke, null);
  assert.equal(at(990), "message 990 (tool)");
  assert.equal(at(0), `messages 0 to ${sketch.older[0] - 1}`);
});

test("a block of the prompt is named; what follows the blocks was laid over", () => {
  const blocks = [
    { id: "identity", length: 4 },
    { id: "memory", length: 3 },
  ];
  const sketch = sketchOf({ system: "I..\nnot", tools: "", messages: "" }, blocks);
  const broke = (system: string) => compareSketch(sketch, { system, tools: "", messages: "" }).broke;
  assert.deepEqual(broke("I..\nnut"), { owner: "memory", offset: 4 });
  assert.deepEqual(broke("J..\nnot"), { owner: "identity", offset: 0 });
  assert.deepEqual(broke("I..\nnot and more"), { owner: "ephemeral", offset: 7 });
});
