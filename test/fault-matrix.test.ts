// Every fault, on every wire, at every place of a turn: the turn ends in an answer or a clear error, the history stays legal, nothing runs twice.
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { runChild } from "../src/agent/delegation/run-child.ts";
import { defaultConfig } from "../src/home/config/schema.ts";
import type { Clock } from "../src/kit/clock.ts";
import { createGate } from "../src/llm/gate/create-gate.ts";
import { API_MODES, type ApiMode } from "../src/llm/wire.ts";
import { createWire } from "../src/llm/wires/drive.ts";
import type { ToolContext } from "../src/tools/toolset/context.ts";
import { play, type RigOptions, rigAgent } from "./support/agent/agent-rig.ts";
import { assertLegalHistory } from "./support/agent/legal.ts";
import { talkOf } from "./support/agent/long-talk.ts";
import {
  eventCount,
  MemoryModel,
  type MemoryRequest,
  patientClock,
  type Reply,
} from "./support/model-server/in-memory.ts";
import type { Answer, WireName } from "./support/model-server/script.ts";
import { aTarget } from "./support/model-target.ts";
import { sampleOf, whole } from "./support/sample.ts";
import { manualClock } from "./support/session-store.ts";
import { validate, wireName } from "./support/wire-validators.ts";

const call: Answer = { text: "Let me see.", thinking: "hm", toolCalls: [{ name: "touch", arguments: { path: "/a" } }] };
const answer: Answer = { text: "All done." };

/** What breaks, and whether a second try can mend it. */
interface Break {
  readonly name: string;
  readonly mends: boolean;
  /** Its brothers show what happens when it stays. */
  readonly passes?: true;
  reply(whole: Answer, wire: WireName): Reply;
}

const status = (code: number, mends: boolean, message?: string, headers?: Record<string, string>): Break => ({
  name: `HTTP ${code}${message ? ` ${message}` : ""}`,
  mends,
  reply: () => ({
    fault: "status",
    status: code,
    ...(message ? { body: { error: { message } } } : {}),
    ...(headers ? { headers } : {}),
  }),
});

const STATUSES: readonly Break[] = [
  status(400, false, "this request has a field that is quite wrong, says the server"),
  status(401, false, "invalid api key"),
  status(402, false, "insufficient credits"),
  status(403, false, "forbidden"),
  status(404, false, "model not found"),
  status(404, true),
  status(408, true),
  status(409, false, "a conflict that this server explains at some length"),
  status(422, false, "a field that this server explains at some length"),
  status(429, true, "slow down", { "retry-after": "7" }),
  status(429, true, "overloaded"),
  status(500, true),
  status(502, true),
  status(503, true, "overloaded"),
  status(504, true),
  status(520, true),
  status(529, true),
  status(307, false, undefined, { location: "https://elsewhere.example/v1" }),
  // A conversation this short has nothing to give: that is said at once.
  status(413, false, "payload too large"),
  status(400, false, "maximum context length is 16000 tokens"),
];
const CONNECTIONS: readonly Break[] = ["ECONNREFUSED", "ECONNRESET", "ENOTFOUND", "ETIMEDOUT"].map((code) => ({
  name: code,
  mends: true,
  reply: () => ({ fault: "connect", code }),
}));
const MUTE: Break = { name: "not a word", mends: true, reply: () => ({ fault: "mute" }) };
const GARBAGE: readonly Break[] = [
  ["a web page", "<html><body>Bad gateway</body></html>", "text/html"],
  ["half a JSON event", 'data: {"choices":[{"del', undefined],
  ["no event at all", "", undefined],
  ["an event of nobody", 'event: surprise\ndata: {"type":"surprise"}\n\n', undefined],
  ["an error that says it is an answer", '{"error":{"message":"boom","code":500}}', "application/json"],
  ["an answer without anything in it", "{}", "application/json"],
  ["numbers", "data: 17\n\ndata: null\n\ndata: [DONE]\n\n", undefined],
].map(([name = "", text = "", type]) => ({
  name: `garbage: ${name}`,
  mends: true,
  reply: () => ({ fault: "garbage", text, ...(type ? { type } : {}) }),
}));
/** Counts of tokens that cannot be: the answer is good all the same. */
const WRONG_USAGE: readonly Break[] = [
  ["negative", "-5"],
  ["text", '"many"'],
  ["huge", "1e300"],
  ["nothing", "null"],
].map(([name = "", value = ""]) => ({
  name: `usage: ${name}`,
  mends: true,
  reply: (whole) => ({
    fault: "twist",
    answer: whole,
    twist: (event) => event.replace(/"((?:prompt|input|output|completion|total)_tokens)":\d+/g, `"$1":${value}`),
  }),
}));
const HALF_CALLS: readonly Break[] = (["tool_calls", "length"] as const).map((finish) => ({
  name: `half a call, finish ${finish}`,
  mends: true,
  reply: () => ({ toolCalls: [{ name: "touch", arguments: '{"path":"/a' }], finish }),
}));

/** How each protocol says in the middle of an answer that it cannot go on. */
const ERROR_EVENT: Readonly<Record<WireName, string>> = {
  chat: 'data: {"error":{"message":"Overloaded","code":529}}\n\n',
  responses: 'event: error\ndata: {"type":"error","code":"server_error","message":"Overloaded"}\n\n',
  anthropic: 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
};

function breaksFor(wire: WireName, whole: Answer): readonly Break[] {
  const events = eventCount(wire, whole);
  const at = (fault: "cut" | "end" | "stall", after: number): Break => ({
    name: `${fault} after ${after} of ${events} events`,
    mends: true,
    reply: (said) => ({ fault, after, answer: said }),
  });
  const then = (what: string, text: string, after: number): Break => ({
    name: `${what} after ${after} of ${events} events`,
    mends: true,
    ...(after === 0 ? {} : { passes: true }),
    reply: (said) => ({ fault: "then", after, answer: said, text }),
  });
  const everywhere = Array.from({ length: events }, (_, index) => index);
  return [
    ...STATUSES,
    ...CONNECTIONS,
    MUTE,
    ...GARBAGE,
    ...WRONG_USAGE,
    ...HALF_CALLS,
    ...everywhere.map((after) => at("cut", after)),
    ...everywhere.map((after) => at("end", after)),
    ...everywhere.map((after) => at("stall", after)),
    ...everywhere.map((after) => then("an error", ERROR_EVENT[wire], after)),
    ...everywhere.map((after) => then("half an event", 'data: {"type":"con\n\n', after)),
  ];
}

interface Place {
  readonly name: string;
  /** The answer that breaks. */
  readonly whole: Answer;
  /** Tokens of talk before the turn; enough of it starts a compression. */
  readonly history: number;
  /** The work is done by a sub-agent; the agent itself only hands it on. */
  readonly delegates?: true;
  /** Breaks here and nowhere else. */
  hits(request: MemoryRequest, spoken: { readonly results: number }): boolean;
}

const isMain = (request: MemoryRequest) => (request.body.tools ?? []).length > 0;
const CHILD = "You are a sub-agent.";
const isChild = (request: MemoryRequest) => request.raw.includes(CHILD);

/** Where a fault can strike. */
const PLACES: readonly Place[] = [
  { name: "first call", whole: call, history: 0, hits: (request, { results }) => isMain(request) && results === 0 },
  { name: "behind a tool", whole: answer, history: 0, hits: (request, { results }) => isMain(request) && results > 0 },
  {
    name: "in compression",
    whole: { text: "## Summary\nThey talked." },
    history: 17_000,
    hits: (request) => !isMain(request),
  },
  {
    name: "in a sub-agent",
    whole: call,
    history: 0,
    delegates: true,
    hits: (request, { results }) => isChild(request) && results === 0,
  },
];

if (isMainThread) {
  // Where the test runner follows every promise, half the time would go into that; a thread without tests is not followed.
  let worker: Worker;
  before(() => {
    worker = new Worker(new URL(import.meta.url));
  });
  after(() => worker.terminate());
  for (const mode of API_MODES) {
    for (const [place, { name }] of PLACES.entries()) {
      test(`${mode}, ${name}: a fault that passes is got over, one that stays ends in a clear sentence`, async () => {
        worker.postMessage({ mode, place });
        const [{ struck, error }] = await once(worker, "message");
        if (error) throw error;
        assert.ok(struck > (whole ? 100 : 10), `${struck} faults struck`);
      });
    }
  }
} else {
  parentPort?.on("message", ({ mode, place }: { mode: ApiMode; place: number }) =>
    strikeWithAll(mode, PLACES[place] as Place).then(
      (struck) => parentPort?.postMessage({ struck }),
      (error) => parentPort?.postMessage({ error }),
    ),
  );
}

/** Resolves to how many faults struck. */
async function strikeWithAll(mode: ApiMode, place: Place): Promise<number> {
  const cases = breaksFor(wireName[mode], place.whole).flatMap((broken) =>
    (broken.passes ? [1] : [1, Number.POSITIVE_INFINITY]).map((times) => ({ broken, times })),
  );
  const chosen = sampleOf(cases, 4, `${mode}, ${place.name}`);
  for (const { broken, times } of chosen) {
    await strike(mode, place, broken, times).catch((cause) => {
      const label = `${broken.name}, ${times === 1 ? "once" : "always"}`;
      throw new Error(`${label}: ${cause.message}`, { cause });
    });
  }
  return chosen.length;
}

async function strike(mode: ApiMode, place: Place, broken: Break, times: number): Promise<void> {
  const wires = patientClock();
  const ran: string[] = [];
  let struck = 0;
  let healthy = false;
  const model = new MemoryModel(wires, (request) => {
    const results = resultsIn(request);
    if (!healthy && struck < times && place.hits(request, { results })) {
      struck++;
      return broken.reply(place.whole, request.wire);
    }
    if (!isMain(request)) return { text: "## Summary\nThey talked." };
    if (place.delegates && !isChild(request))
      return results === 0 ? { toolCalls: [{ name: "hand_on", arguments: {} }] } : answer;
    return results === 0 ? call : answer;
  });
  const gate = createGate({
    ledger: { recordCall: async () => undefined, reserveCall: async () => ({ reservation: 1 }) },
    caps: () => ({ call: FREE, session: FREE, job: FREE, day: FREE }),
    priceOf: () => ({ type: "unknown" }),
    wireFor: (target) => createWire(target.apiMode, { fetch: model.fetch, clock: wires }),
    clock: wires,
    onDefect: (what, error) => {
      throw new Error(what, { cause: error });
    },
  });
  const touch = (_args: unknown, ctx: ToolContext) => {
    ran.push(ctx.callId);
    return "touched";
  };
  const common: RigOptions = {
    gate,
    tools: { touch },
    model: { target: aTarget(mode, { contextLength: 20_000 }), liveness: { staleSeconds: 180 } },
    ports: { clock: manualClock(), renewConnections: () => undefined },
  };
  const reports: Awaited<ReturnType<typeof work>>[] = [];
  const handOn = async (_args: unknown, ctx: ToolContext) => {
    const report = await work(common, ctx);
    reports.push(report);
    return JSON.stringify(report);
  };
  const agent = rigAgent({
    ...common,
    tools: place.delegates ? { hand_on: handOn } : { touch },
    session: place.history > 0 ? { history: talkOf(place.history) } : {},
  });
  const { outcome } = await play(agent, "go");
  const end = `${outcome.exitReason}: ${outcome.finalText}`;
  assert.ok(struck > 0, "the fault never struck");
  assert.ok((outcome.finalText ?? "").trim() !== "", `no word for the user (${end})`);
  assert.ok(!/\n\s+at /.test(outcome.finalText ?? ""), end);
  assert.equal(outcome.completed || outcome.failed || outcome.partial, true, end);
  if (broken.mends && times === 1) assert.equal(outcome.completed, true, end);
  for (const { status, summary, error } of reports) {
    assert.ok((status === "completed" ? summary : error)?.trim(), `a child without a word (${status})`);
    if (broken.mends && times === 1) assert.equal(status, "completed", error ?? "");
  }
  assertLegalHistory(outcome.messages);
  assert.equal(new Set(ran).size, ran.length, "a call ran twice");
  // Whatever broke and was asked again, the one piece of work is done once.
  assert.ok(ran.length <= 1, `the work was done ${ran.length} times (${end})`);
  // The Responses protocol has no way to tell an answer whose last events were lost from one that never had them.
  const whole = !(mode === "codex_responses" && broken.name.startsWith("end after"));
  if (broken.mends && times === 1 && whole) assert.equal(ran.length, 1, `the work was not done (${end})`);
  for (const id of ran) assert.ok(model.offeredCalls.includes(id), `${id} ran, though its answer never came whole`);
  for (const { wire, raw } of model.requests) validate(wire, raw);
  healthy = true;
  const next = await play(agent, "and now?");
  assert.equal(next.outcome.completed, true, `the next turn: ${next.outcome.exitReason}: ${next.outcome.finalText}`);
  for (const { wire, raw } of model.requests) validate(wire, raw);
  await agent.close();
}

let children = 0;

/** A sub-agent does the work and reports. */
async function work(common: RigOptions, { signal }: ToolContext) {
  const agent = rigAgent({
    ...common,
    prompt: { system: async () => CHILD },
    session: { id: `child-${++children}`, origin: "subagent", task: "subagent" },
  });
  const { report, over } = await runChild({
    agent,
    facts: { id: "sa-0-0", parentId: null, depth: 1, taskIndex: 0, taskCount: 1, task: { goal: "do it" }, model: "m" },
    call: {
      ...{ sessionId: "session-1", callId: "c", signal },
      ...{ emit: () => undefined, progress: () => undefined, used: () => undefined },
    },
    stop: new AbortController().signal,
    clock: standingClock,
    settings: defaultConfig().delegation,
  });
  await over;
  assertLegalHistory(agent.lastOutcome?.messages ?? []);
  await agent.close();
  return report;
}

/** Nobody is late. */
const standingClock: Clock = {
  ...manualClock(),
  sleep: (_ms, signal) => new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason))),
};

const FREE = { usd: null, tokens: null };

/** Results behind the newest message of the user; the notes of the loop are not the user's. */
function resultsIn({ wire, body }: MemoryRequest): number {
  const list: readonly { readonly role?: string; readonly type?: string; readonly content?: unknown }[] =
    wire === "responses" ? body.input : body.messages;
  let results = 0;
  for (const item of list) {
    const holdsResult = JSON.stringify(item.content ?? "").includes('"tool_result"');
    if (item.role === "tool" || item.type === "function_call_output" || holdsResult) results++;
    else if (item.role === "user" && !JSON.stringify(item.content).includes("[System note:")) results = 0;
  }
  return results;
}
