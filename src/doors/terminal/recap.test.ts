import assert from "node:assert/strict";
import { test } from "node:test";
import type { HistoryMessage } from "../../llm/messages.ts";
import { recap } from "./opening.ts";

const limits = { exchanges: 2, userChars: 10, assistantChars: 12, assistantLines: 2, skipToolOnly: true };
const call = (name: string) => ({ id: name, type: "function" as const, function: { name, arguments: "{}" } });

test("old exchanges are counted, recent ones cut, the last reply is whole", () => {
  const messages: HistoryMessage[] = [
    { role: "user", content: "first" },
    { role: "assistant", content: "one" },
    { role: "user", content: "a question that is long" },
    { role: "assistant", content: "line one is long\nline two\nline three" },
    { role: "user", content: "last" },
    { role: "assistant", content: null, tool_calls: [call("terminal"), call("terminal"), call("read_file")] },
    { role: "tool", content: "x", tool_call_id: "terminal" },
    { role: "assistant", content: "the whole last answer\nwith\nall\nlines" },
  ];
  assert.deepEqual(recap(messages, limits), {
    olderExchanges: 1,
    entries: [
      { who: "user", text: "a question..." },
      { who: "assistant", text: "line one is..." },
      { who: "user", text: "last" },
      { who: "tools", text: "3 tool calls: terminal×2, read_file" },
      { who: "assistant", text: "the whole last answer\nwith\nall\nlines" },
    ],
  });
});

test("images are named, not shown", () => {
  const message: HistoryMessage = {
    role: "user",
    content: [
      { type: "text", text: "look" },
      { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
    ],
  };
  assert.deepEqual(recap([message], { ...limits, userChars: 99 }).entries, [{ who: "user", text: "look [image]" }]);
  const stored: HistoryMessage = { role: "user", content: "look\n[screenshot]" };
  assert.deepEqual(recap([stored], { ...limits, userChars: 99 }).entries, [{ who: "user", text: "look [image]" }]);
});

test("an exchange of tool calls alone is left out where the settings say so", () => {
  const messages: HistoryMessage[] = [
    { role: "user", content: "" },
    {
      role: "assistant",
      content: "",
      tool_calls: [{ id: "c", type: "function", function: { name: "terminal", arguments: "{}" } }],
    },
  ];
  const named = (skipToolOnly: boolean) => recap(messages, { ...limits, skipToolOnly }).entries.map(({ who }) => who);
  assert.deepEqual(named(true), []);
  assert.deepEqual(named(false), ["user", "tools"]);
});
