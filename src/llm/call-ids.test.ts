import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  CallIdsOnWire,
  deterministicCallId,
  FreshCallIds,
  splitResponsesToolId,
  uniquifyToolCallIds,
} from "./call-ids.ts";
import type { ToolCall } from "./messages.ts";

const call = (id: string, more: Partial<ToolCall> = {}): ToolCall => ({
  id,
  type: "function",
  function: { name: "ls", arguments: "{}" },
  ...more,
});

test("a missing id is the hash of name, arguments and place", () => {
  assert.match(deterministicCallId("ls", "{}", 0), /^call_[0-9a-f]{12}$/);
  assert.equal(deterministicCallId("ls", "{}", 0), deterministicCallId("ls", "{}", 0));
  assert.notEqual(deterministicCallId("ls", "{}", 0), deterministicCallId("ls", "{}", 1));
});

test("a repeated id gets the next free number", () => {
  const ids = (calls: ToolCall[]) => uniquifyToolCallIds(calls).map((entry) => entry.id);
  assert.deepEqual(ids([call("a"), call("b")]), ["a", "b"]);
  assert.deepEqual(ids([call("a"), call("a"), call("a")]), ["a", "a_d2", "a_d3"]);
  assert.deepEqual(ids([call("a"), call("a"), call("a_d2")]), ["a", "a_d3", "a_d2"]);
  assert.deepEqual(ids([call(""), call("")]), ["", ""]);
});

test("composite ids collide on their first half and keep their second", () => {
  assert.deepEqual(
    uniquifyToolCallIds([call("call_a|fc_1"), call("call_a|fc_2")]).map((entry) => entry.id),
    ["call_a|fc_1", "call_a_d2|fc_2"],
  );
});

test("a call id field is renamed together with the id", () => {
  const [, second] = uniquifyToolCallIds([call("x", { call_id: "x" }), call("x", { call_id: "x" })]);
  assert.equal(second?.id, "x_d2");
  assert.equal(second?.call_id, "x_d2");
});

test("after renaming all ids differ, and renaming again changes nothing", () => {
  const id = fc.constantFrom("a", "a_d2", "a_d3", "b", "b|fc_1", "a|fc_2");
  fc.assert(
    fc.property(fc.array(id, { maxLength: 8 }), (ids) => {
      const once = uniquifyToolCallIds(ids.map((each) => call(each)));
      assert.equal(new Set(once.map((entry) => entry.id.split("|")[0])).size, ids.length);
      assert.deepEqual(uniquifyToolCallIds(once), once);
    }),
  );
});

const splits: readonly [string, [string | null, string | null]][] = [
  ["call_a|fc_b", ["call_a", "fc_b"]],
  ["fc_z", [null, "fc_z"]],
  ["call_a", ["call_a", null]],
  ["toolu_1", ["toolu_1", null]],
  ["", [null, null]],
];
for (const [id, parts] of splits)
  test(`"${id}" splits into its two halves`, () => assert.deepEqual(splitResponsesToolId(id), parts));

test("a fresh answer's ids never repeat an earlier turn's", () => {
  const history = [
    { role: "assistant", content: null, tool_calls: [call("call_0"), call(deterministicCallId("ls", "{}", 0))] },
  ] as const;
  const ids = new FreshCallIds(history);
  assert.equal(ids.claim("call_0", "ls", "{}", 0), "call_0_d2");
  assert.equal(ids.claim("", "ls", "{}", 0), deterministicCallId("ls", "{}", 1));
  assert.equal(ids.claim("other", "ls", "{}", 0), "other");
});

test("an id that cannot be written as UTF-8 is mended before anything is known by it", () => {
  const ids = new FreshCallIds([]);
  assert.equal(ids.claim("a\ud800", "ls", "{}", 0), "a\ufffd");
  assert.equal(ids.claim("a\udfff", "ls", "{}", 1), "a\ufffd_d2");
});

test("a result finds its call by id, by call id and by the composite of both", () => {
  const ids = new CallIdsOnWire();
  assert.equal(ids.open(call("fc_1", { call_id: "call_1" }), 0), "call_1");
  for (const name of ["fc_1", "call_1", "call_1|fc_1"]) assert.equal(ids.answered(name), "call_1");
  assert.equal(ids.answered("call_2"), null);
});

test("ids that become equal on the wire are told apart", () => {
  const ids = new CallIdsOnWire((id) => id.replace(/\W/g, "_"));
  assert.equal(ids.open(call("a.b"), 0), "a_b");
  assert.equal(ids.open(call("a:b"), 1), "a_b_d2");
  assert.equal(ids.answered("a:b"), "a_b_d2");
  assert.equal(ids.answered("a.b"), "a_b");
});
