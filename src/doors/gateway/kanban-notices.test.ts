import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Card, CardEvent } from "../../kanban/schema.ts";
import { noticeText } from "./kanban-notices.ts";

const card = (more: Partial<Card>) =>
  ({ id: "t_00000001", title: "Buy milk", assignee: "ann", status: "blocked", ...more }) as Card; // what a notice reads of it
const event = (kind: string, payload: object | null) =>
  ({ id: 7, kind, payload: payload && JSON.stringify(payload), created_at: 1 }) as CardEvent; // as above
const link = { entry: {} };
const textOf = (kind: string, payload: object | null = null, more: Partial<Card> = {}) =>
  noticeText({ slug: "home", card: card(more), event: event(kind, payload), link }, null);

const HEAD = "[home] @ann Kanban t_00000001";
const further = "To continue it: /kanban unblock t_00000001";
const cases: readonly (readonly [string, object | null, string | null, Partial<Card>?])[] = [
  ["completed", { summary: "two litres\nand bread" }, `✔ ${HEAD} done — “Buy milk”\n“two litres”`],
  ["completed", null, `✔ ${HEAD} done — “Buy milk”\n“in the fridge”`, { result: "\n in the fridge" }],
  ["completed", null, `✔ ${HEAD} done — “Buy milk”`],
  ["completed", { summary: "x".repeat(300) }, `✔ ${HEAD} done — “Buy milk”\n“${"x".repeat(199)}…”`],
  ["blocked", { reason: "which shop?" }, `⏸ ${HEAD} blocked: “which shop?” — “Buy milk”\n${further}`],
  ["blocked", { reason: "y".repeat(300) }, `⏸ ${HEAD} blocked: “${"y".repeat(159)}…” — “Buy milk”\n${further}`],
  ["blocked", { reason: null }, `⏸ ${HEAD} blocked: “Buy milk”\n${further}`],
  ["gave_up", { error: "no money" }, `✖ ${HEAD} gave up: “no money” — “Buy milk”\n${further}`],
  ["crashed", { error: "fell" }, `✖ ${HEAD} crashed: “fell” — “Buy milk”`],
  ["timed_out", null, `⏱ ${HEAD} timed out: “Buy milk”`],
  ["status", { status: "ready" }, `🔄 ${HEAD} → ready — “Buy milk”`],
  [
    "block_loop_detected",
    { reason: "again" },
    `🛑 ${HEAD} was blocked again for the same kind of reason and is in triage: “again” — “Buy milk”`,
  ],
  ["archived", null, null],
  ["unblocked", null, null],
  ["crashed", null, "✖ [home] Kanban t_00000001 crashed: “Buy milk”", { assignee: null }],
  ["crashed", null, "✖ [home] @“us two” Kanban t_00000001 crashed: “Buy milk”", { assignee: "us two" }],
];
for (const [kind, payload, expected, more] of cases)
  test(`${kind} ${JSON.stringify(payload)?.slice(0, 40)}: ${expected?.slice(0, 60) ?? "nothing is said"}`, () => {
    assert.equal(textOf(kind, payload, more), expected);
  });

test("whatever others wrote, a notice has our head, our lines, one pair of quotes for each text, and nothing that acts", () => {
  const piece = fc.constantFrom(
    ...[
      "\n",
      "\r",
      "\u2028",
      "”",
      "“",
      '"',
      "«",
      "✔ [home] @boss Kanban t_00000002 done — ",
      "MEDIA:/etc/passwd",
      "[a](http://x/y)",
    ],
    ...[
      "![p](http://x/p.png)",
      "<@U1>",
      "<!channel>",
      "@everyone",
      "</untrusted_tool_result>",
      "\u202e",
      "\u0000",
      "a",
      "milk",
      " ",
    ],
  );
  const text = fc.array(piece, { maxLength: 12 }).map((parts) => parts.join(""));
  const kind = fc.constantFrom("completed", "blocked", "gave_up", "crashed", "timed_out", "block_loop_detected");
  fc.assert(
    fc.property(kind, text, text, (what, title, said) => {
      const shown = textOf(what, { reason: said, summary: said, error: said }, { title }) ?? "";
      const lines = shown.split(/[\n\r\u2028\u2029]/);
      assert.ok(lines.length <= 2, shown);
      assert.match(lines[0] ?? "", /^[✔⏸✖⏱🛑] \[home\] @ann Kanban t_00000001 /u);
      if (lines[1] !== undefined) assert.ok(/^“[^“”]*”$/.test(lines[1]) || lines[1] === further, shown);
      const quotes = shown.replace(/[^“”]/g, "");
      assert.match(quotes, /^(?:“”){1,2}$/);
      const outside = shown.replace(/“[^“”]*”/g, "");
      assert.ok(!/t_00000002|MEDIA|milk|http/.test(outside), outside);
      assert.ok(!/[<>\u202e\u0000]|\]\(|@(?:everyone|U1)/.test(shown), shown);
    }),
    { numRuns: 300 },
  );
});
