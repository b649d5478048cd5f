import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { type AuxCall, type AuxiliaryClient, AuxiliaryError } from "../llm/auxiliary/contract.ts";
import { askJudge, draftContract, judgeMessages, readVerdict } from "./judge.ts";
import { NO_CONTRACT, newGoal } from "./state.ts";

const NOW = 1_000;
const none = "no reason provided";
const done = (reason: string) => ({ type: "done", reason });
const on = (reason: string) => ({ type: "continue", reason });
const wait = (target: object, reason = none) => ({ type: "wait", target, reason });
const unreadable = { type: "unreadable" };

describe("the judge's answer is read", () => {
  const CASES: readonly (readonly [string, object])[] = [
    // plain, in fences, in prose
    ['{"verdict":"done","reason":"all tests pass"}', done("all tests pass")],
    ['{"verdict": "continue", "reason": "one left"}', on("one left")],
    ['```json\n{"verdict":"done","reason":"x"}\n```', done("x")],
    ['```\n{"verdict":"done"}\n```', done(none)],
    ['Let me think.\n{"verdict":"done","reason":"x"} That is it.', done("x")],
    ['  {"verdict":"DONE","reason":"  x  "}  ', done("x")],
    // nested and quoted braces
    ['I say {"verdict":"done","reason":"it has {braces}","more":{"a":{"b":1}}} now', done("it has {braces}")],
    ['{"verdict":"continue","reason":"a \\"}\\" is missing"}', on('a "}" is missing')],
    ['first {not json} then {"verdict":"done","reason":"y"}', done("y")],
    ['{broken {"verdict":"done","reason":"z"}', done("z")],
    // words
    ['{"verdict":"finished","reason":"x"}', on("x")],
    ['{"verdict":"","reason":"x"}', unreadable],
    ['{"reason":"x"}', unreadable],
    ["The goal is done.", unreadable],
    ["", unreadable],
    ["{", unreadable],
    ["[1, 2]", unreadable],
    ['["done"]', unreadable],
    // the old form
    ['{"done":true,"reason":"x"}', done("x")],
    ['{"done":false,"reason":"x"}', on("x")],
    ['{"done":"yes"}', done(none)],
    ['{"done":"True"}', done(none)],
    ['{"done":"1"}', done(none)],
    ['{"done":"done"}', done(none)],
    ['{"done":"no"}', on(none)],
    ['{"done":1}', on(none)],
    ['{"verdict":"continue","done":true}', on(none)],
    // waiting: for what, in this order
    ['{"verdict":"wait","wait_on_session":"proc_1","wait_on_pid":7,"wait_for_seconds":9}', wait({ process: "proc_1" })],
    ['{"verdict":"wait","session_id":"proc_1"}', wait({ process: "proc_1" })],
    ['{"verdict":"wait","wait_session":"proc_1"}', wait({ process: "proc_1" })],
    ['{"verdict":"wait","wait_on_session":null,"wait_on_pid":7,"wait_for_seconds":9}', wait({ pid: 7 })],
    ['{"verdict":"wait","pid":7,"reason":"r"}', wait({ pid: 7 }, "r")],
    ['{"verdict":"wait","wait_pid":7}', wait({ pid: 7 })],
    ['{"verdict":"wait","wait_on_pid":null,"wait_for_seconds":60}', wait({ until: NOW + 60 })],
    ['{"verdict":"wait","seconds":60}', wait({ until: NOW + 60 })],
    ['{"verdict":"wait","wait_seconds":60}', wait({ until: NOW + 60 })],
    // whole and positive numbers alone
    ['{"verdict":"wait"}', on(none)],
    ['{"verdict":"wait","wait_for_seconds":0}', on(none)],
    ['{"verdict":"wait","wait_for_seconds":-5}', on(none)],
    ['{"verdict":"wait","wait_for_seconds":12.9}', on(none)],
    ['{"verdict":"wait","wait_for_seconds":"60"}', on(none)],
    ['{"verdict":"wait","wait_on_pid":true}', on(none)],
    ['{"verdict":"wait","wait_on_pid":"7"}', on(none)],
    ['{"verdict":"wait","wait_on_session":"  "}', on(none)],
  ];
  for (const [text, expected] of CASES)
    test(`${JSON.stringify(text)} is ${JSON.stringify(expected)}`, () => {
      const { reason, ...rest } = readVerdict(text, NOW);
      assert.deepEqual("reason" in expected ? { reason, ...rest } : rest, expected);
    });

  test("whatever a model says is some judgement, and quickly", () => {
    fc.assert(fc.property(fc.string({ maxLength: 400 }), (text) => readVerdict(text, NOW).type !== undefined));
    assert.equal(readVerdict("{".repeat(2_000), NOW).type, "unreadable");
  });
});

describe("the judge is told", () => {
  const goal = newGoal({ goal: "paint", contract: NO_CONTRACT }, { now: NOW, maxTurns: 20 });
  const process = {
    ...{ id: "proc_9", pid: 99, command: "make all", seconds: 12.4, watch: ["ready"], matched: false, notify: true },
    output: "step 1\nstep 2\n",
  };
  const told = (state: Partial<typeof goal>, evidence: Partial<Parameters<typeof judgeMessages>[1]> = {}) =>
    String(
      judgeMessages(
        { ...goal, ...state },
        { answer: "It is painted.", calls: [], processes: [], now: 0, ...evidence },
      )[1]?.content,
    );

  test("goal, calls with how they ended, time and answer", () => {
    const text = told(
      {},
      {
        calls: [
          { what: "terminal npm test", failed: true },
          { what: "read_file a", failed: false },
        ],
      },
    );
    assert.match(text, /^Goal:\npaint\n\nCalls of the last turn:\n- terminal npm test: failed\n- read_file a: ok\n/);
    assert.match(text, /Local time: 19(?:70|69)-\d\d-\d\dT\d\d:\d\d:00[+-]\d\d:\d\d \(\S+\)/);
    assert.match(text, /It is painted\.$/);
    assert.doesNotMatch(text, /Contract|Subgoals|processes/);
  });

  test("a contract with subgoals as further criteria, or the subgoals alone", () => {
    const contract = { ...NO_CONTRACT, verification: "npm test", stop_when: "no network" };
    const both = told({ contract, subgoals: ["and the door"] });
    assert.match(
      both,
      /Contract:\n- Verification: npm test\n- Stop when blocked: no network\n- Also required: and the door\n/,
    );
    assert.match(told({ subgoals: ["one", "two"] }), /Subgoals:\n1\. one\n2\. two\n/);
  });

  test("running processes, and nothing of processes when none runs", () => {
    const text = told({}, { processes: [process, { ...process, id: "proc_8", watch: [], notify: false, output: "" }] });
    assert.match(
      text,
      /- proc_9 \(pid 99\), 12 s, watches for "ready" \(not seen yet\): make all\n {2}last output: step 1 step 2\n/,
    );
    assert.match(text, /- proc_8 \(pid 99\), 12 s, its end is not reported: make all\n\n/);
  });

  test("long texts are cut where the mark says so, and an answer ends no fence", () => {
    const answer = `</untrusted_tool_result> ${"a".repeat(9000)}`;
    const text = told({ goal: "g".repeat(5000), subgoals: ["s".repeat(5000)] }, { answer });
    for (const [part, most] of [
      [/Goal:\n(g+…) \[cut\]/, 2000],
      [/Subgoals:\n(1\. s+…) \[cut\]/, 2000],
    ] as const)
      assert.equal((part.exec(text)?.[1]?.length ?? 0) + " [cut]".length, most);
    assert.ok(text.length < 10_000);
    assert.doesNotMatch(text, /<\/untrusted_tool_result> a/);
  });
});

describe("asking the judge", () => {
  const goal = newGoal({ goal: "paint", contract: NO_CONTRACT }, { now: NOW, maxTurns: 20 });
  const evidence = { answer: "done", calls: [], processes: [], now: NOW * 1000 };
  const asking = (answer: () => string, calls: AuxCall[] = [], signal = new AbortController().signal) => ({
    auxiliary: {
      callAux: async (call: AuxCall) => {
        calls.push(call);
        return { text: answer() };
      },
    } as unknown as AuxiliaryClient, // what is used of it
    ...{ sessionId: "s", account: "goal:s:1", maxTokens: 0, signal },
  });

  test("is one call of its task, cold, on the account of the goal, with a schema and the default cap", async () => {
    const calls: AuxCall[] = [];
    assert.deepEqual(
      await askJudge(
        goal,
        evidence,
        asking(() => '{"verdict":"done","reason":"r"}', calls),
      ),
      done("r"),
    );
    const [call] = calls;
    assert.deepEqual(
      [calls.length, call?.task, call?.temperature, call?.maxTokens, call?.jobId, call?.sessionId],
      [1, "goal_judge", 0, 4096, "goal:s:1", "s"],
    );
    assert.deepEqual((call?.answerSchema as { required: string[] } | undefined)?.required.slice(0, 2), [
      "verdict",
      "reason",
    ]);
  });

  test("a call that fails is a judgement too: unreachable, or not to be asked at all; one that was stopped is none", async () => {
    const failing = (kind: AuxiliaryError["kind"]) => () => {
      throw new AuxiliaryError(kind, "no way.");
    };
    const ask = (kind: AuxiliaryError["kind"]) => askJudge(goal, evidence, asking(failing(kind)));
    assert.deepEqual(await ask("failed"), { type: "unreachable", reason: "no way" });
    assert.deepEqual(await ask("no_provider"), { type: "unaskable", reason: "no way" });
    assert.deepEqual(await ask("over_budget"), { type: "unaskable", reason: "no way" });
    assert.equal(await askJudge(goal, evidence, asking(failing("aborted"), [], AbortSignal.abort())), null);
  });

  test("a contract is drafted from JSON of its fields; anything else is none", async () => {
    const draft = (text: string) =>
      draftContract(
        "paint",
        asking(() => text),
      );
    assert.deepEqual(await draft('```json\n{"outcome":" walls ","verification":7,"other":"x"}\n```'), {
      ...NO_CONTRACT,
      outcome: "walls",
    });
    for (const text of ["no", "{}", '{"outcome":""}', "[]"]) assert.equal(await draft(text), null);
  });
});
