// Compression as a turn lives through it: before its first request, between tools, after a refusal.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { play } from "../../../test/support/agent/agent-rig.ts";
import { assertLegalRequest } from "../../../test/support/agent/legal.ts";
import {
  call,
  compressionConfig,
  eventsOf,
  longTalkRig,
  rowsOf,
  summarised,
  talk,
  talkOf,
  tasks,
  words,
} from "../../../test/support/agent/long-talk.ts";
import type { ScriptedStep } from "../../../test/support/agent/scripted-gate.ts";
import { aTarget } from "../../../test/support/model-target.ts";
import { textOf } from "../../llm/messages.ts";
import { fileActivity } from "../../tools/files/workspace.ts";
import { renderSummary } from "./summary-text.ts";

describe("before a turn", () => {
  test("a conversation of 40 % is sent as it is, one of 80 % goes on in a child session with a summary", async (t) => {
    const small = await longTalkRig(t, talkOf(8000), { steps: [{ text: "hello" }] });
    await play(small.agent, "hi");
    assert.deepEqual(tasks(small.gate), ["main"]);
    assert.equal(small.agent.sessionId, "session-1");

    const { store, gate, agent } = await longTalkRig(t, talkOf(16_000), {
      steps: [{ text: "THE NOTES" }, { text: "hello" }],
    });
    const { events, outcome } = await play(agent, "hi");
    assert.deepEqual(tasks(gate), ["compression", "main"]);
    const sent = gate.requests[1]?.messages ?? [];
    assertLegalRequest(sent);
    assert.ok(summarised(sent));
    assert.equal(textOf(sent.at(-1)?.content ?? ""), "hi");

    assert.notEqual(outcome.sessionId, "session-1");
    const [parent, child] = await Promise.all([store.get("session-1"), store.get(outcome.sessionId)]);
    assert.equal(parent?.endReason, "compression");
    assert.equal(child?.parentSessionId, "session-1");
    assert.equal(child?.title, "my talk #2");
    assert.equal((await rowsOf(store, "session-1")).length, 41, "what was said before can be traced");

    const [compressed] = eventsOf(events, "compressed");
    assert.equal(compressed?.kind, "summary");
    assert.ok(compressed && compressed.before >= 15_000 && compressed.after < 8000);
    assert.deepEqual([compressed.oldSessionId, compressed.newSessionId], ["session-1", outcome.sessionId]);
    assert.deepEqual([compressed.messagesBefore, compressed.messagesAfter], [41, outcome.messages.length - 1]);
    const session = eventsOf(events, "session").find((event) => event.reason === "compressed");
    assert.deepEqual([session?.id, session?.title], [outcome.sessionId, "my talk #2"]);
    const lines = eventsOf(events, "status").map((event) => event.message);
    assert.equal(lines.filter((line) => line.startsWith("Compressing")).length, 1);
    assert.equal(lines.filter((line) => line.startsWith("Compressed: ")).length, 1);
    assert.deepEqual(gate.expected, ["compression"]);
  });

  test("from the second compression on the user is told that details may be lost", async (t) => {
    const hints = async (history: ReturnType<typeof talkOf>) => {
      const { agent } = await longTalkRig(t, history, { steps: [{ text: "NOTES" }, { text: "hello" }] });
      const { events } = await play(agent, "hi");
      return eventsOf(events, "status").filter(
        ({ kind, message }) => kind === "warn" && /more than once/.test(message),
      );
    };
    assert.equal((await hints(talkOf(16_000))).length, 0);
    const before = { role: "user", content: renderSummary("OLD NOTES") } as const;
    assert.equal((await hints([before, ...talkOf(16_000).slice(1)])).length, 1);
  });

  test("memory holds exactly what a fresh process would load, and that one sends the same bytes", async (t) => {
    const { gate, agent, make } = await longTalkRig(t, talkOf(16_000), {
      steps: [{ text: "NOTES" }, { text: "a" }, { text: "b" }],
    });
    const { outcome } = await play(agent, "hi");
    const before = gate.requests[1]?.messages ?? [];
    await play(make({ session: { id: outcome.sessionId } }), "again");
    const after = gate.requests[2]?.messages ?? [];
    assert.deepEqual(after.slice(0, before.length), before);
  });

  test("an estimate that is twice the truth leads to one compression, not to a storm", async (t) => {
    const steps: ScriptedStep[] = [{ text: "NOTES" }];
    for (let i = 0; i < 6; i++) steps.push({ calls: [{ name: "noop", args: { i } }], usage: { promptTokens: 7000 } });
    steps.push({ text: "done", usage: { promptTokens: 7000 } }, { text: "more", usage: { promptTokens: 7000 } });
    const system = words(66_000); // prompt alone is over the threshold, by the estimate
    const { gate, agent } = await longTalkRig(t, talkOf(16_000), {
      steps,
      tools: { noop: () => "ok" },
      prompt: { system: async () => system },
    });
    await play(agent, "go");
    await play(agent, "and on");
    assert.equal(tasks(gate).filter((task) => task === "compression").length, 1);
  });

  test("a second one is not begun by an estimate before a request has shown the real size", async (t) => {
    const refused: ScriptedStep = { error: { status: 401, message: "bad key" } };
    const { gate, agent } = await longTalkRig(t, talkOf(16_000), {
      steps: [{ text: "NOTES" }, refused, { text: "hello", usage: { promptTokens: 7000 } }],
      prompt: { system: async () => words(66_000) },
    });
    await play(agent, "hi");
    await play(agent, "hi again");
    assert.deepEqual(tasks(gate), ["compression", "main", "main"]);
  });

  test("nothing happens when it is switched off", async (t) => {
    const { gate, agent } = await longTalkRig(t, talkOf(18_000), {
      steps: [{ text: "ok" }],
      ports: { config: compressionConfig({ enabled: false }) },
    });
    await play(agent, "hi");
    assert.deepEqual(tasks(gate), ["main"]);
    const fork = await longTalkRig(t, talkOf(18_000), { steps: [{ text: "ok" }], limits: { compression: false } });
    await play(fork.agent, "hi");
    assert.deepEqual(tasks(fork.gate), ["main"]);
  });
});

describe("old tool results", () => {
  const results = () => [
    { role: "user", content: "look around" } as const,
    ...Array.from({ length: 14 }, (_, i) => call(`c${i}`, `result ${i} ${words(4000)}`)).flat(),
    { role: "assistant", content: "seen" } as const,
    ...talk(8, 300),
  ];

  test("are sent in one line each when that is enough: no model is asked, the session stays, the store keeps the text", async (t) => {
    const { store, gate, agent, make } = await longTalkRig(t, results(), {
      steps: [{ text: "a" }, { text: "b" }, { text: "c" }],
    });
    const { events, outcome } = await play(agent, "hi");
    assert.deepEqual(tasks(gate), ["main"]);
    assert.equal(outcome.sessionId, "session-1");
    assert.equal(eventsOf(events, "compressed")[0]?.kind, "prune");
    assert.deepEqual(gate.expected, ["prune"]);
    const sent = gate.requests[0]?.messages ?? [];
    assert.match(textOf(sent[3]?.content ?? ""), /^\[read_file\] read \/f\/c0 from line 1 \(4,0\d\d chars\)$/);
    const rows = await store.load("session-1");
    assert.ok(textOf(rows[2]?.content ?? "").startsWith("result 0 word"), "the full text is still there to be found");

    await play(make(), "once more");
    assert.deepEqual(gate.requests[1]?.messages.slice(0, sent.length), sent, "a restart sends the same bytes");
  });

  test("come back when the first thing that follows is an undo", async (t) => {
    const { store, gate, agent, make } = await longTalkRig(t, results(), { steps: [{ hang: "" }] });
    const started = Promise.withResolvers<void>();
    gate.onRequest = () => started.resolve();
    const turn = play(agent, "hi");
    await started.promise;
    agent.interrupt();
    await turn;
    assert.deepEqual(await make().undoCompression(), { kind: "prune" });
    assert.ok((await store.load("session-1")).every((row) => row.role !== "tool" || row.api_content === undefined));
    assert.equal(await make().undoCompression(), null);
  });
});

describe("between tools", () => {
  test("the real size of the last request decides", async (t) => {
    const steps: ScriptedStep[] = [
      { calls: [{ name: "read", args: { n: 1 } }], usage: { promptTokens: 14_000 } },
      { calls: [{ name: "read", args: { n: 2 } }], usage: { promptTokens: 15_000 } },
      { text: "NOTES" },
      { text: "done", usage: { promptTokens: 5000 } },
    ];
    const { gate, agent, store } = await longTalkRig(t, talkOf(9000), {
      steps,
      tools: { read: ({ n }) => `page ${n}` },
    });
    const { outcome } = await play(agent, "the wish");
    assert.deepEqual(tasks(gate), ["main", "main", "compression", "main"]);
    const sent = gate.requests[3]?.messages ?? [];
    assertLegalRequest(sent);
    assert.ok(summarised(sent));
    assert.ok(sent.some((one) => one.role === "user" && textOf(one.content) === "the wish"));
    assert.equal(textOf(sent.at(-1)?.content ?? ""), "page 2");
    assert.equal(outcome.finalText, "done");
    assert.deepEqual(await store.lineage(outcome.sessionId), ["session-1", outcome.sessionId]);
  });

  test("tools called after it are told the new session's id", async (t) => {
    const ids: string[] = [];
    const repeats: number[] = [];
    const steps: ScriptedStep[] = [
      { calls: [{ name: "who", args: {} }], usage: { promptTokens: 16_000 } },
      { text: "NOTES" },
      { calls: [{ name: "who", args: { again: 1 } }] },
      { text: "done" },
    ];
    const { agent } = await longTalkRig(t, talkOf(9000), {
      steps,
      tools: {
        who: (_args, ctx) => {
          ids.push(ctx.sessionId);
          const files = ctx.state.of(fileActivity);
          repeats.push(files.askedAgain("a:1", "v1"));
          files.returned("a:1", "a", "v1", false);
          return "ok";
        },
      },
    });
    await play(agent, "go");
    assert.deepEqual(repeats, [0, 0], "what was read before is not taken for known any more");
    assert.deepEqual(ids, ["session-1", agent.sessionId]);
    assert.notEqual(agent.sessionId, "session-1");
  });

  test("open tasks survive on the last user message as it is sent; the stored words stay the user's", async (t) => {
    const { registry } = await import("../../tools/toolset/registry.ts");
    await import("../../tools/todo.ts");
    const todo = registry.get("todo");
    const steps: ScriptedStep[] = [
      {
        calls: [{ name: "todo", args: { todos: [{ id: "1", content: "paint", status: "in_progress" }] } }],
        usage: { promptTokens: 16_000 },
      },
      { text: "NOTES" },
      { text: "done" },
    ];
    const { gate, agent, store } = await longTalkRig(t, talkOf(9000), {
      steps,
      tools: { todo: (args, ctx) => todo?.spec.handler(args as never, ctx) ?? "" },
    });
    await play(agent, "paint the house");
    const sent = gate.requests[2]?.messages ?? [];
    const said = sent.filter((one) => one.role === "user").at(-1);
    assert.match(
      textOf(said?.content ?? ""),
      /^paint the house\n\n\[Your active task list.*- \[>\] 1\. paint \(in_progress\)$/s,
    );
    assert.ok((await rowsOf(store, agent.sessionId)).some((row) => row.content === "paint the house"));
  });
});

describe("a request that is too long", () => {
  const tooLong = { error: { status: 400, message: "prompt is too long: reduce the length" } };

  test("is made shorter and sent again; each stretch of progress gets three tries", async (t) => {
    const steps: ScriptedStep[] = [
      tooLong,
      { text: "NOTES 1" },
      { calls: [{ name: "big", args: { n: 1 } }], usage: { promptTokens: 9000 } },
      tooLong,
      { text: "NOTES 2" },
      { text: "made it", usage: { promptTokens: 4000 } },
    ];
    const { gate, agent } = await longTalkRig(t, talkOf(12_000), { steps, tools: { big: () => words(9000) } });
    const { outcome } = await play(agent, "go");
    assert.equal(outcome.finalText, "made it");
    assert.deepEqual(tasks(gate), ["main", "compression", "main", "main", "compression", "main"]);
  });

  test("has three tries again after every answer", async (t) => {
    const notes = { text: "NOTES" };
    const steps: ScriptedStep[] = [tooLong, notes, tooLong, notes];
    steps.push({ calls: [{ name: "big", args: {} }], usage: { promptTokens: 9000 } }, tooLong, notes, tooLong, notes, {
      text: "made it",
    });
    const { gate, agent } = await longTalkRig(t, talkOf(14_000), { steps, tools: { big: () => words(9000) } });
    const { outcome } = await play(agent, "go");
    assert.equal(outcome.finalText, "made it");
    assert.equal(tasks(gate).filter((task) => task === "compression").length, 4);
  });

  test("ends the turn with a way out when nothing is left to shorten", async (t) => {
    const { gate, agent } = await longTalkRig(t, talk(2, 100), { steps: [tooLong, tooLong, tooLong] });
    const { outcome } = await play(agent, "go");
    assert.equal(outcome.exitReason, "context_overflow_exhausted");
    assert.equal(outcome.compressionExhausted, true);
    assert.match(outcome.finalText ?? "", /\/compress.*\/new/);
    assert.equal(gate.requests.length, 1);
  });

  test("is tried three times, then given up", async (t) => {
    const answers: ScriptedStep = (request) => (request.tools.length > 0 ? tooLong : { text: `NOTES ${words(200)}` });
    const { gate, agent } = await longTalkRig(t, talkOf(14_000), {
      steps: Array.from({ length: 12 }, () => answers),
      tools: { noop: () => "" },
    });
    const { outcome } = await play(agent, "go");
    assert.equal(outcome.compressionExhausted, true);
    assert.equal(tasks(gate).filter((task) => task === "main").length, 4);
  });

  test("teaches the window it names, for good", async (t) => {
    const learnt: number[] = [];
    const steps: ScriptedStep[] = [
      { error: { status: 400, message: "This model's maximum context length is 16384 tokens" } },
      { text: "NOTES" },
      { text: "ok" },
    ];
    const { agent } = await longTalkRig(t, talkOf(12_000), {
      steps,
      ports: { learnWindow: async (_target, tokens) => void learnt.push(tokens) },
    });
    await play(agent, "go");
    assert.deepEqual(learnt, [16_384]);
    assert.equal(agent.model.target.contextLength, 16_384);
  });

  test("for want of a tier shrinks the window here, and teaches nothing about the model", async (t) => {
    const learnt: number[] = [];
    const message = "extra usage is required for long context requests";
    const { agent } = await longTalkRig(t, talkOf(12_000), {
      steps: [{ error: { status: 429, message } }, { text: "NOTES" }, { text: "ok" }],
      model: { target: aTarget("chat_completions", { contextLength: 1_000_000 }) },
      ports: { learnWindow: async (_target, tokens) => void learnt.push(tokens) },
    });
    await play(agent, "go");
    assert.deepEqual(learnt, []);
    assert.equal(agent.model.target.contextLength, 200_000);
  });

  test("because of its output cap alone is sent again with a smaller cap, and nothing is compressed", async (t) => {
    const steps: ScriptedStep[] = [
      { error: { status: 400, message: "max_tokens: 9000 is too large, available_tokens: 4000" } },
      { text: "ok" },
      { text: "next" },
    ];
    const { gate, agent } = await longTalkRig(t, talkOf(9000), { steps });
    await play(agent, "go");
    await play(agent, "on");
    assert.deepEqual(
      gate.requests.map((request) => request.maxTokens),
      [undefined, 3936, undefined],
    );
    assert.deepEqual(tasks(gate), ["main", "main", "main"]);
  });

  test("costs none of the turn's model calls", async (t) => {
    const steps: ScriptedStep[] = [tooLong, { text: "NOTES" }, { text: "ok" }];
    const { agent } = await longTalkRig(t, talkOf(12_000), { steps, limits: { maxIterations: 1 } });
    const { outcome } = await play(agent, "go");
    assert.deepEqual([outcome.finalText, outcome.partial], ["ok", false]);
  });

  test("goes on with notes made without a model when no summary comes", async (t) => {
    const down = { error: { status: 503, message: "overloaded" } };
    const { agent, gate } = await longTalkRig(t, talkOf(12_000), { steps: [tooLong, down, { text: "ok" }] });
    const { outcome, events } = await play(agent, "go");
    assert.equal(outcome.finalText, "ok");
    assert.match(JSON.stringify(gate.requests[2]?.messages), /Put together without a model/);
    assert.ok(eventsOf(events, "status").some((event) => /no model gave a summary/.test(event.message)));
    const strict = await longTalkRig(t, talkOf(12_000), {
      steps: [tooLong, down, { text: "ok" }],
      ports: { config: compressionConfig({ abort_on_summary_failure: true }) },
    });
    const failed = await play(strict.agent, "go");
    assert.equal(failed.outcome.compressionExhausted, true);
    assert.equal(failed.outcome.sessionId, "session-1");
  });
});

test("secrets reach neither the summarising model nor the summary", async (t) => {
  const history = talkOf(16_000);
  history[8] = { role: "user", content: `my key is hunter2 ${words(1000)}` };
  const { gate, agent } = await longTalkRig(t, history, {
    steps: [{ text: "the key hunter2 was given" }, { text: "ok" }],
    ports: { redact: (text) => text.replaceAll("hunter2", "***") },
  });
  await play(agent, "hi");
  assert.ok(!JSON.stringify(gate.requests[0]?.messages).includes("hunter2"));
  assert.match(JSON.stringify(gate.requests[1]?.messages), /the key \*\*\* was given/);
});

test("memories are flushed first, a provider's text reaches the summary, everybody is told what is left", async (t) => {
  const order: string[] = [];
  const { gate, agent } = await longTalkRig(t, talkOf(16_000), {
    steps: [{ text: "NOTES" }, { text: "ok" }],
    ports: {
      compression: {
        flushMemories: async () => void order.push("flush"),
        preCompress: async () => "Ada likes tea",
        compressed: async ({ oldSessionId, messages }) => void order.push(`${oldSessionId} ${messages.length < 30}`),
      },
    },
  });
  await play(agent, "hi");
  assert.deepEqual(order, ["flush", "session-1 true"]);
  assert.match(JSON.stringify(gate.requests[0]?.messages), /Ada likes tea/);
});

test("what a summary costs is on the conversation's bill, and its size is not taken for the conversation's", async (t) => {
  const { agent, events } = await (async () => {
    const made = await longTalkRig(t, talkOf(16_000), {
      steps: [
        { text: "NOTES", usage: { promptTokens: 12_000, inputTokens: 12_000 } },
        { text: "ok", usage: { promptTokens: 4000, inputTokens: 4000 } },
      ],
    });
    return { ...made, ...(await play(made.agent, "hi")) };
  })();
  assert.equal(agent.totals.inputTokens, 16_000);
  assert.deepEqual(
    eventsOf(events, "usage").map((event) => [event.task, event.usage.promptTokens]),
    [
      ["compression", 12_000],
      ["main", 4000],
    ],
  );
  assert.equal(agent.lastOutcome?.lastPromptTokens, 4000);
});
