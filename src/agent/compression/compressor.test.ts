import assert from "node:assert/strict";
import { test } from "node:test";
import { assertLegalHistory } from "../../../test/support/agent/legal.ts";
import { manualClock, recordedLog } from "../../../test/support/session-store.ts";
import { type HistoryMessage, type Message, textOf } from "../../llm/messages.ts";
import { messagesCost, thresholdFor } from "./boundaries.ts";
import {
  type CompressorOptions,
  ContextCompressor,
  type Summarize,
  SummaryError,
  type SummaryRequest,
} from "./compressor.ts";
import { renderSummary, SUMMARY_MARKER, splitSummary, takeSummary } from "./summary-text.ts";

const user = (content: string): HistoryMessage => ({ role: "user", content });
const says = (content: string): HistoryMessage => ({ role: "assistant", content });
const calls = (id: string, args: object = {}): HistoryMessage => ({
  role: "assistant",
  content: null,
  tool_calls: [{ id, type: "function", function: { name: "read_file", arguments: JSON.stringify(args) } }],
});
const result = (id: string, content: string): HistoryMessage => ({ role: "tool", tool_call_id: id, content });
const words = (chars: number, text = "word ") => text.repeat(Math.ceil(chars / text.length)).slice(0, chars);

/** Turns of that many characters on each side. */
function talk(turns: number, chars = 2000): HistoryMessage[] {
  return Array.from({ length: turns }, (_, i) => [
    user(`ask ${i}: ${words(chars)}`),
    says(`answer ${i}: ${words(chars)}`),
  ]).flat();
}

function compressor(options: Partial<CompressorOptions> = {}) {
  const requests: SummaryRequest[] = [];
  const { summarize = async () => "THE SUMMARY", ...rest } = options;
  const engine = new ContextCompressor({
    contextLength: 20_000,
    ...rest,
    summarize: (request) => {
      requests.push(request);
      return summarize(request);
    },
  });
  return { engine, requests };
}

const summaries = (messages: readonly Message[]) =>
  messages.filter((message) => textOf(message.content).includes(SUMMARY_MARKER));

const NUMBERS: readonly (readonly [
  context: number,
  options: Partial<CompressorOptions>,
  threshold: number,
  tail: number,
  summary: number,
])[] = [
  [200_000, {}, 100_000, 20_000, 10_000],
  [128_000, {}, 64_000, 12_800, 6400],
  [100_000, {}, 64_000, 12_800, 5000],
  [64_000, {}, 48_000, 9600, 3200],
  [12_000, {}, 9000, 1800, 600],
  [1_000_000, {}, 500_000, 100_000, 12_000],
  [200_000, { threshold: 0.85 }, 170_000, 34_000, 10_000],
  [200_000, { targetRatio: 0.01 }, 100_000, 10_000, 10_000],
  [200_000, { targetRatio: 0.99 }, 100_000, 80_000, 10_000],
];
for (const [context, options, threshold, tail, summary] of NUMBERS) {
  test(`a window of ${context} with ${JSON.stringify(options)} is shortened at ${threshold} and keeps ${tail}`, () => {
    const { engine } = compressor({ ...options, contextLength: context });
    assert.deepEqual(
      [engine.thresholdTokens, engine.tailTokenBudget, engine.maxSummaryTokens],
      [threshold, tail, summary],
    );
    assert.equal(engine.shouldCompress(threshold - 1), false);
    assert.equal(engine.shouldCompress(threshold), true);
  });
}

test("the middle becomes a summary; the first three messages and the recent ones stay", async () => {
  const { engine, requests } = compressor();
  const messages = talk(15);
  const shorter = await engine.compress(messages);
  assertLegalHistory(shorter);
  assert.deepEqual(shorter.slice(0, 3), messages.slice(0, 3));
  assert.equal(shorter.at(-1), messages.at(-1));
  assert.equal(summaries(shorter).length, 1);
  assert.ok(messagesCost(shorter) < messagesCost(messages));
  assert.equal(requests.length, 1);
  assert.equal(requests[0]?.previousSummary, null);
  assert.equal(requests[0]?.turns[0], messages[3]);
  assert.equal(engine.compressionCount, 1);
  assert.equal(engine.lastResult.dropped, requests[0]?.turns.length);
});

/** A talk whose messages cost so many tokens each. */
function talkAt(cost: number, messages: number): HistoryMessage[] {
  const text = words(4 * (cost - 10));
  return Array.from({ length: messages }, (_, i) => (i % 2 === 0 ? user(text) : says(text)));
}

// The budget of the tail is 3,000 tokens here, and the three newest messages stay in any case.
for (const [what, cost, count, kept] of [
  ["one and a half times its budget", 500, 30, 9],
  ["no message that passes one and a half times its budget", 501, 30, 8],
  ["its budget alone, where the whole talk would fit otherwise", 500, 11, 6],
  ["the three newest messages, whatever they cost", 4000, 30, 3],
] as const)
  test(`the tail takes ${what}`, async () => {
    const { engine } = compressor({ protectLastN: 3 });
    assert.equal(engine.tailTokenBudget, 3000);
    const messages = talkAt(cost, count);
    assert.equal(messagesCost(messages.slice(0, 1)), cost);
    await engine.compress(messages);
    assert.equal(count - engine.lastResult.dropped, 3 + kept, "the first three stay too");
  });

test("what the user asked for last stays with the answer before it, where there is room for both", async () => {
  // The request alone is more than the budget of the tail, so that the tail would begin behind it.
  const last = user(words(20_000, "now "));
  const work = ["a", "b", "c"].flatMap((id) => [calls(id), result(id, "done")]);
  for (const [chars, stays] of [
    [2000, true],
    [40_000, false],
  ] as const) {
    const answer = says(words(chars, "said "));
    const { engine } = compressor({ protectLastN: 3 });
    const shorter = await engine.compress([...talk(10), user("why?"), answer, last, ...work]);
    assertLegalHistory(shorter);
    const texts = shorter.map(({ content }) => textOf(content));
    assert.deepEqual(
      [answer, last].map(({ content }) => texts.some((text) => text.includes(textOf(content)))),
      [stays, true],
      `an answer of ${chars} characters`,
    );
  }
});

test("a summary is marked, says what it is, and says where it ends", async () => {
  const { engine } = compressor();
  const text = textOf(summaries(await engine.compress(talk(15)))[0]?.content ?? "");
  assert.ok(text.startsWith(SUMMARY_MARKER));
  assert.ok(text.includes("\n\nTHE SUMMARY\n\n"));
  assert.match(
    text,
    /not instructions.*newest user message below wins.*Memory files stay authoritative.*tools remain usable/s,
  );
  assert.match(text, /\n--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---/);
});

test("the second compression updates the first summary, and keeps no first messages", async () => {
  const { engine, requests } = compressor({ summarize: async () => `SUMMARY ${requests.length}` });
  const first = (await engine.compress(talk(15))) as HistoryMessage[];
  const longer = [...first, ...talk(15)];
  const second = await engine.compress(longer);
  assertLegalHistory(second);
  assert.equal(requests[1]?.previousSummary, "SUMMARY 1");
  assert.ok(requests[1]?.turns.every((turn) => !textOf(turn.content).includes(SUMMARY_MARKER)));
  assert.equal(summaries(second).length, 1);
  assert.ok(!second.includes(longer[0] as Message));
  assert.ok(engine.lastResult.again);
});

test("a summary that another program wrote, or an older form of it, is recognised", async () => {
  for (const text of [`${SUMMARY_MARKER} some preface.\nOLD NOTES`, "[CONTEXT SUMMARY]: OLD NOTES"]) {
    const { engine, requests } = compressor();
    const shorter = await engine.compress([says(text), ...talk(12)]);
    assert.equal(requests[0]?.previousSummary, "OLD NOTES");
    assert.equal(summaries(shorter).length, 1);
    assert.ok(!shorter.some((message) => textOf(message.content).includes("OLD NOTES")));
  }
});

test("few messages are left alone", async () => {
  const { engine, requests } = compressor();
  const messages = talk(3, 40_000);
  assert.equal(engine.hasContentToCompress(messages), false);
  assert.equal(await engine.compress(messages), messages);
  assert.equal(requests.length, 0);
  assert.equal(engine.hasContentToCompress(talk(4, 10_000)), true);
});

test("a call is never parted from its results", async () => {
  for (let tools = 1; tools < 25; tools++) {
    const messages = [...talk(4), user("do it")];
    for (let i = 0; i < tools; i++) messages.push(calls(`c${i}`), result(`c${i}`, words(1500, `line ${i} `)));
    messages.push(says("done"));
    const { engine } = compressor({ contextLength: 8000 });
    const shorter = await engine.compress(messages);
    assertLegalHistory(shorter);
    const called = shorter.flatMap((one) => (one.role === "assistant" ? (one.tool_calls ?? []) : []));
    const answered = shorter.filter((one) => one.role === "tool");
    assert.equal(called.length, answered.length);
    assert.ok(!answered.some((one) => textOf(one.content).includes("earlier conversation")));
  }
});

test("a pair that was broken before is repaired, with a line in the log", async () => {
  const log = recordedLog();
  const { engine } = compressor({ log });
  const recent = [calls("lost"), user("go on"), says("ok")];
  const shorter = await engine.compress([...talk(12), user("x"), ...recent]);
  assertLegalHistory(shorter);
  assert.ok(
    shorter.some((one) => textOf(one.content) === "[Result from earlier conversation — see context summary above]"),
  );
  assert.deepEqual(log.lines, [
    "INFO compression repaired tool pairs: 0 orphan results removed, 1 missing results stubbed",
  ]);
});

test("what the user said last stays in the tail, behind however many tool results", async () => {
  const messages = [...talk(8), user("the last wish")];
  for (let i = 0; i < 12; i++) messages.push(calls(`c${i}`), result(`c${i}`, words(1500, `line ${i} `)));
  const { engine } = compressor();
  const shorter = await engine.compress(messages);
  assert.ok(shorter.some((one) => one.role === "user" && one.content === "the last wish"));
});

test("a single turn that fills the window loses its middle, not what was asked for", async () => {
  const messages: HistoryMessage[] = [user("the only wish")];
  for (let i = 0; i < 80; i++) {
    messages.push({ ...(calls(`c${i}`, { path: `/f${i}` }) as object), content: words(900) } as HistoryMessage);
    messages.push(result(`c${i}`, words(100, `line ${i} `)));
  }
  const { engine } = compressor({ protectFirstN: 0 });
  const shorter = await engine.compress(messages);
  assertLegalHistory(shorter);
  const said = textOf(shorter[0]?.content ?? "");
  assert.deepEqual(splitSummary(said), { body: "THE SUMMARY", rest: "the only wish" });
  assert.ok(messagesCost(shorter) < engine.thresholdTokens / 2);
  const again = await engine.compress([...(shorter as HistoryMessage[]), ...messages.slice(1)]);
  assert.equal(splitSummary(textOf(again[0]?.content ?? ""))?.rest, "the only wish");
  assert.equal(summaries(again).length, 1);
});

// Which role the summary takes between its neighbours; `merge` = it goes into the first message of the tail.
const ROLES: readonly (readonly [head: readonly HistoryMessage[], tail: "user" | "assistant", role: string])[] = [
  [[], "user", "assistant"],
  [[], "assistant", "user"],
  [[user("a"), says("b")], "user", "merge"],
  [[user("a"), says("b")], "assistant", "user"],
  [[user("a")], "user", "assistant"],
  [[user("a")], "assistant", "merge"],
  [[user("a"), calls("h"), result("h", "r")], "user", "assistant"],
  [[user("a"), calls("h"), result("h", "r")], "assistant", "user"],
];
for (const [head, first, role] of ROLES) {
  test(`behind ${head.at(-1)?.role ?? "nothing"} and before ${first} a summary is ${role}`, async () => {
    const filler = head.at(-1)?.role === "user" ? [says(words(9000)), ...talk(4, 9000)] : talk(4, 9000);
    const tail =
      first === "user"
        ? [user("last"), says("bye"), user("really"), says("ok")]
        : [calls("t"), result("t", "r"), says("well"), user("hm")];
    const body = first === "user" ? filler : [...filler, user(words(9000))];
    const { engine } = compressor({
      protectFirstN: head.length,
      protectLastN: 4,
      targetRatio: 0.1,
      contextLength: 4000,
    });
    const shorter = await engine.compress([...head, ...body, ...tail], { keepTurns: undefined });
    assertLegalHistory(shorter);
    const at = shorter.findIndex((one) => textOf(one.content).includes(SUMMARY_MARKER));
    if (role !== "merge") assert.equal(shorter[at]?.role, role);
    else assert.ok(takeSummary(shorter[at] as Message)?.rest, "something of its own is left without the summary");
  });
}

test("a system message stays first and is told once that turns were compacted", async () => {
  const { engine } = compressor();
  const system: Message = { role: "system", content: "You are a test." };
  const first = await engine.compress([system, ...talk(15)]);
  assert.match(textOf(first[0]?.content ?? ""), /^You are a test\.\n\n\[Note: .*Memory stays authoritative\.\]$/);
  const second = await engine.compress([...first, ...talk(15)]);
  assert.equal(second[0]?.content, first[0]?.content);
});

test("the focus, the room for the summary and a provider's notes reach the summariser", async () => {
  const { engine, requests } = compressor();
  await engine.compress(talk(15), { focusTopic: "the database", notes: "Ada likes tea" });
  assert.equal(requests[0]?.focusTopic, "the database");
  assert.equal(requests[0]?.notes, "Ada likes tea");
  assert.equal(requests[0]?.budgetTokens, 2000);
  const wide = compressor({ contextLength: 1_000_000 });
  await wide.engine.compress(talk(15, 100_000), { force: true });
  assert.equal(wide.requests[0]?.budgetTokens, 12_000);
});

test("pinned lines stand word for word at the end of every summary, once", async () => {
  const pins = ["never push to main", "port 8080"];
  for (const summarize of [async () => "S", async () => null] as readonly Summarize[]) {
    const { engine } = compressor({ summarize });
    const first = await engine.compress(talk(15), { pins });
    const second = await engine.compress([...(first as HistoryMessage[]), ...talk(15)], { pins, force: true });
    for (const messages of [first, second]) {
      const text = textOf(summaries(messages)[0]?.content ?? "");
      assert.equal(text.split("## Pinned\n- never push to main\n- port 8080\n\n---").length, 2);
    }
  }
});

test("facts that were lost are reported", async () => {
  const { engine } = compressor({ summarize: async () => "keeps /srv/kept.txt" });
  const messages = talk(15);
  messages[8] = user(`look at /srv/kept.txt and /srv/lost.txt ${words(2000)}`);
  await engine.compress(messages);
  assert.deepEqual(engine.lastResult.missing, ["/srv/lost.txt"]);
});

test("a summary that is not smaller than what it replaces is thrown away, and counts as ineffective", async () => {
  const { engine } = compressor({ summarize: async () => "S".repeat(100_000) });
  const messages = talk(15);
  assert.equal(await engine.compress(messages), messages);
  assert.equal(engine.lastResult.rejected, true);
  assert.equal(engine.shouldCompress(19_000), true);
  await engine.compress(messages);
  assert.deepEqual(engine.shouldCompressInfo(19_000), { compress: false, reason: "ineffective" });
});

test("without a summary a local one is made: asks, actions, files, errors, the last exchange", async () => {
  const { engine } = compressor({ summarize: async () => null });
  const messages = talk(15);
  messages.splice(
    20,
    0,
    user("fix the parser"),
    calls("c", { path: "/src/parser.ts" }),
    result("c", '{"error": "no such file"}'),
    says("hm"),
  );
  const shorter = await engine.compress(messages);
  assertLegalHistory(shorter);
  const text = textOf(summaries(shorter)[0]?.content ?? "");
  for (const part of [
    "fix the parser",
    "[read_file] read /src/parser.ts",
    "- /src/parser.ts",
    "no such file",
    "Last exchange",
  ]) {
    assert.ok(text.includes(part), part);
  }
  assert.equal(engine.lastResult.fallbackUsed, true);
  assert.ok(engine.lastResult.dropped > 0);
});

test("a local summary is never long, and keeps what an earlier one said", async () => {
  const { engine } = compressor({ summarize: async () => null, contextLength: 200_000 });
  const messages = [says(renderSummary(`EARLIER ${words(20_000)}`)), ...talk(400, 300)];
  const text = textOf(summaries(await engine.compress(messages))[0]?.content ?? "");
  assert.ok(text.includes("EARLIER"));
  assert.ok((splitSummary(text)?.body.length ?? 0) <= 8000);
});

const FAILURES: readonly (readonly [name: string, summarize: Summarize, seconds: number])[] = [
  ["nobody to ask", () => Promise.reject(new SummaryError("no_provider", "no key")), 600],
  ["a timeout", () => Promise.reject(new SummaryError("failed", "timed out")), 60],
  ["an unknown error", () => Promise.reject(new Error("boom")), 60],
  ["no answer", async () => null, 60],
  ["a cut answer", () => Promise.reject(new SummaryError("malformed", "cut off")), 30],
];
for (const [name, summarize, seconds] of FAILURES) {
  test(`after ${name} no summary is asked for during ${seconds} s, except by the user`, async () => {
    const clock = manualClock();
    const { engine, requests } = compressor({ summarize, now: clock.now, abortOnSummaryFailure: true });
    const messages = talk(15);
    assert.equal(await engine.compress(messages), messages);
    assert.equal(engine.lastResult.aborted, true);
    assert.deepEqual(engine.shouldCompressInfo(19_000), { compress: false, reason: `cooldown:${seconds}` });
    await engine.compress(messages);
    assert.equal(requests.length, 1);
    await engine.compress(messages, { force: true });
    assert.equal(requests.length, 2);
    clock.ms += seconds * 1000;
    assert.equal(engine.shouldCompress(19_000), true);
  });
}

test("an interrupted summary leaves the messages alone and costs no cooldown", async () => {
  const controller = new AbortController();
  const { engine } = compressor({
    summarize: async () => {
      controller.abort();
      return "too late";
    },
  });
  const messages = talk(15);
  assert.equal(await engine.compress(messages, { signal: controller.signal }), messages);
  assert.equal(engine.lastResult.aborted, true);
  assert.equal(engine.cooldownSeconds, 0);
});

test("two compressions that real readings prove useless stop it, until usage falls or the model changes", async () => {
  const { engine } = compressor();
  const reading = (promptTokens: number) =>
    engine.updateFromResponse({ promptTokens, completionTokens: 1, totalTokens: promptTokens });
  for (let i = 0; i < 2; i++) {
    assert.equal(engine.shouldCompress(16_000), true);
    await engine.compress(talk(15));
    reading(16_000);
  }
  assert.deepEqual(engine.shouldCompressInfo(16_000), { compress: false, reason: "ineffective" });
  reading(3000);
  assert.equal(engine.shouldCompress(16_000), true);
});

test("the last user turns can be kept exactly", async () => {
  const { engine } = compressor();
  const messages = talk(15);
  const shorter = await engine.compress(messages, { keepTurns: 2, force: true });
  assert.deepEqual(
    shorter.slice(-4).map((one) => one.role),
    ["user", "assistant", "user", "assistant"],
  );
  assert.ok(textOf(shorter.at(-4)?.content ?? "").endsWith(textOf(messages.at(-4)?.content ?? "")));
  assert.equal(shorter.length, 3 + 1 + 4);
});

test("a preview says what would stay and go, and asks nobody", () => {
  const { engine, requests } = compressor();
  const messages = talk(15);
  const preview = engine.preview(messages);
  assert.ok(preview);
  assert.equal(preview.kept.length + preview.dropped.length, messages.length);
  assert.ok(preview.droppedTokens > preview.summaryTokens);
  assert.equal(requests.length, 0);
});

test("another model's window moves the threshold", () => {
  const { engine } = compressor();
  engine.updateModel({ contextLength: 200_000 });
  assert.equal(engine.thresholdTokens, 100_000);
  assert.equal(engine.contextLength, 200_000);
});

const THRESHOLDS: readonly (readonly [model: string, threshold: number])[] = [
  ["anthropic/claude-sonnet-4.6", 0.7],
  ["Claude-Opus", 0.8],
  ["gpt-5.4", 0.5],
  ["broken-model", 0.5],
];
for (const [model, threshold] of THRESHOLDS) {
  test(`${model} is shortened at ${threshold} of its window when models have thresholds of their own`, () => {
    const settings = {
      threshold: 0.5,
      model_thresholds: { claude: 0.8, "claude-sonnet": 0.7, broken: "half", bad: 7 },
    };
    assert.equal(thresholdFor(model, settings), threshold);
    const { engine } = compressor({ contextLength: 200_000, thresholdFor: (name) => thresholdFor(name, settings) });
    assert.equal(engine.thresholdTokens, 100_000);
    engine.updateModel({ model, contextLength: 200_000 });
    assert.equal(engine.thresholdTokens, 200_000 * threshold);
  });
}
