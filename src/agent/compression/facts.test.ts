import assert from "node:assert/strict";
import { test } from "node:test";
import type { HistoryMessage } from "../../llm/messages.ts";
import { factsIn, missingFacts } from "./facts.ts";

const CASES: readonly (readonly [text: string, facts: readonly string[]])[] = [
  ["edit /etc/hosts and ~/.ssh/config.", ["/etc/hosts", "~/.ssh/config"]],
  ["see src/agent/turn.ts and ./run.sh", ["src/agent/turn.ts", "./run.sh"]],
  ["and/or, he/she", []],
  ["open https://example.com/a?b=1, please", ["https://example.com/a?b=1"]],
  ["commit 3f2a9bc and ABC-123", ["3f2a9bc", "ABC-123"]],
  ["id 6ba7b810-9dad-11d1-80b4-00c04fd430c8", ["6ba7b810-9dad-11d1-80b4-00c04fd430c8"]],
  ["call `openStore` now", ["openStore"]],
  ["port 8080, 12 ms, 1,024 rows, 7 apples, $5", ["8080", "12 ms", "1,024", "$5"]],
  ["We decided to use SQLite.", ["We decided to use SQLite."]],
  ["Decisions:\n- tabs, not spaces\n- no semicolons\n\nOther text\n- not this", ["tabs, not spaces", "no semicolons"]],
];

for (const [text, facts] of CASES) {
  test(`the facts of ${JSON.stringify(text)} are ${facts.join(" | ") || "none"}`, () => {
    assert.deepEqual([...factsIn(text)].sort(), [...facts].sort());
  });
}

test("missing is what stands neither in the summary nor in the kept messages, most frequent first", () => {
  const dropped: HistoryMessage[] = [
    { role: "user", content: "use port 8080 and port 9090 and file /srv/app" },
    {
      role: "assistant",
      content: "port 9090 it is",
      tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: '{"path":"/opt/x"}' } }],
    },
    { role: "tool", tool_call_id: "c", content: "printed 55555" },
  ];
  assert.deepEqual(missingFacts(dropped, "port 8080", []), ["9090", "/srv/app", "/opt/x"]);
  assert.deepEqual(missingFacts(dropped, "8080 9090 /srv/app /opt/x", []), []);
  assert.deepEqual(missingFacts(dropped, "8080 /srv/app", [{ role: "user", content: "9090 in /opt/x" }]), []);
});

test("at most fifty are reported", () => {
  const text = Array.from({ length: 80 }, (_, i) => `/tmp/file${i}`).join(" ");
  assert.equal(missingFacts([{ role: "user", content: text }], "", []).length, 50);
});

test("long texts without facts are read in no time", () => {
  const began = process.cpuUsage();
  for (const letter of ["+", "a", "/", ".", "-", "`", "1", "a/"]) factsIn(letter.repeat(50_000));
  assert.ok(process.cpuUsage(began).user < 5_000_000);
});
