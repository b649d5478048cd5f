// What holds for every history: the output is legal, smaller, keeps what matters, and comes whole or not at all.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { assertLegalHistory } from "../../../test/support/agent/legal.ts";
import { type HistoryMessage, type Message, textOf } from "../../llm/messages.ts";
import { repairMessageSequence, unansweredCalls } from "../repair.ts";
import { messagesCost } from "./boundaries.ts";
import { ContextCompressor } from "./compressor.ts";
import { isRealUser, renderSummary, takeSummary, wordsOf } from "./summary-text.ts";

const size = fc.oneof(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 200, max: 3000 }));
const text = fc.tuple(fc.nat(999), size).map(([n, chars]) => `t${n} ${"word ".repeat(Math.ceil(chars / 5))}`);
const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } } as const;

const userTurn = fc.oneof(
  { weight: 6, arbitrary: text.map((content): HistoryMessage => ({ role: "user", content })) },
  {
    weight: 1,
    arbitrary: text.map((said): HistoryMessage => ({ role: "user", content: [{ type: "text", text: said }, image] })),
  },
);
const batch = fc.array(text, { minLength: 1, maxLength: 3 });
const turn = fc.record({ ask: userTurn, batches: fc.array(batch, { maxLength: 6 }), answer: fc.option(text) });

let serial = 0;
const earlier: fc.Arbitrary<readonly HistoryMessage[]> = fc.oneof(
  fc.constant([]),
  fc
    .constantFrom("user" as const, "assistant" as const)
    .map((role) => [{ role, content: renderSummary("EARLIER NOTES") }]),
  text.map((said) => [{ role: "user" as const, content: `${renderSummary("MERGED NOTES")}\n\n${said}` }]),
  fc.constant([
    { role: "user", content: "the first words" },
    { role: "assistant", content: renderSummary("EARLIER NOTES") },
  ] as const),
);
const talk: fc.Arbitrary<readonly HistoryMessage[]> = fc.array(turn, { minLength: 1, maxLength: 12 }).map((turns) => {
  const messages = turns.flatMap(({ ask, batches, answer }): HistoryMessage[] => [
    ask,
    ...batches.flatMap((results): HistoryMessage[] => {
      const ids = results.map(() => `c${serial++}`);
      return [
        {
          role: "assistant",
          content: null,
          tool_calls: ids.map((id) => ({
            id,
            type: "function",
            function: { name: "terminal", arguments: '{"command":"ls"}' },
          })),
        },
        ...results.map((content, index): HistoryMessage => ({ role: "tool", tool_call_id: ids[index] ?? "", content })),
      ];
    }),
    ...(answer === null ? [] : [{ role: "assistant", content: answer } as const]),
  ]);
  return repairMessageSequence(messages).messages;
});
const history = fc.tuple(earlier, talk).map(([before, rest]) => repairMessageSequence([...before, ...rest]).messages);

const settings = fc.record({
  contextLength: fc.constantFrom(4000, 8000, 20_000, 200_000),
  protectFirstN: fc.nat(4),
  protectLastN: fc.constantFrom(0, 4, 20),
  targetRatio: fc.constantFrom(0.1, 0.2, 0.8),
});
const summary = fc.constantFrom("SHORT", "LONG ".repeat(2000), null);
const marked = (messages: readonly Message[]) => messages.filter((one) => takeSummary(one) !== null).length;

test("for every history: legal, smaller or untouched, one summary, the user's last words kept, results with their calls", async () => {
  await fc.assert(
    fc.asyncProperty(
      history,
      settings,
      summary,
      fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
      async (messages, options, text, keepTurns) => {
        const before = structuredClone(messages);
        const engine = new ContextCompressor({ ...options, summarize: async () => text });
        const shorter = await engine.compress(messages, { keepTurns, currentTokens: messagesCost(messages) + 2000 });
        assert.deepEqual(messages, before, "the input is not changed");
        assertLegalHistory(shorter);
        assert.deepEqual(unansweredCalls(shorter as HistoryMessage[]), []);
        if (shorter === messages) return;
        assert.ok(messagesCost(shorter) < messagesCost(messages));
        assert.equal(marked(shorter), 1);
        const last = messages.findLast(isRealUser);
        if (last) {
          const kept = shorter.some(
            (one) => one.role === "user" && textOf(one.content).endsWith(wordsOf(last).slice(-200)),
          );
          assert.ok(kept, "the last user message is kept");
        }
        assert.ok(
          !shorter.some((one) => textOf(one.content).includes("earlier conversation — see")),
          "no group was cut",
        );
        assert.ok(shorter.some((one) => one.role === "user" && textOf(one.content).trim() !== ""));
      },
    ),
    { numRuns: 300 },
  );
});

test("for every history: a summary that fails and may not be made up leaves the very same list", async () => {
  await fc.assert(
    fc.asyncProperty(history, settings, async (messages, options) => {
      const engine = new ContextCompressor({
        ...options,
        abortOnSummaryFailure: true,
        summarize: () => Promise.reject(new Error("down")),
      });
      assert.equal(await engine.compress(messages), messages);
      assert.equal(engine.compressionCount, 0);
    }),
  );
});

test("for every history: compressing again and again keeps the laws", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(talk, { minLength: 2, maxLength: 4 }), settings, async (pieces, options) => {
      const engine = new ContextCompressor({
        ...options,
        summarize: async ({ previousSummary }) => `N ${previousSummary?.length ?? 0}`,
      });
      let messages: readonly HistoryMessage[] = [];
      for (const piece of pieces) {
        messages = repairMessageSequence([...messages, ...piece]).messages;
        const shorter = (await engine.compress(messages, { force: true })) as readonly HistoryMessage[];
        assertLegalHistory(shorter);
        if (shorter !== messages) assert.equal(marked(shorter), 1);
        messages = shorter;
      }
    }),
  );
});
