// Whatever is done to a conversation, in whatever order: each history it can reach is one that all three wires may send.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Agent } from "../src/agent/agent.ts";
import { staysApart } from "../src/agent/repair.ts";
import { RequestBuilder } from "../src/agent/request.ts";
import { Transcript } from "../src/agent/transcript.ts";
import { createGate } from "../src/llm/gate/create-gate.ts";
import type { HistoryMessage } from "../src/llm/messages.ts";
import { API_MODES, type ApiMode, type Target } from "../src/llm/wire.ts";
import { createWire, writeBody } from "../src/llm/wires/drive.ts";
import type { SessionStore } from "../src/sessions/store.ts";
import { play, rigAgent } from "./support/agent/agent-rig.ts";
import { assertLegalHistory } from "./support/agent/legal.ts";
import { MemoryModel, type PatientClock, patientClock, type Reply } from "./support/model-server/in-memory.ts";
import { aRequest, aTarget } from "./support/model-target.ts";
import { fewer } from "./support/sample.ts";
import { manualClock, temporaryStore } from "./support/session-store.ts";
import { validate, wireName } from "./support/wire-validators.ts";

const FREE = { usd: null, tokens: null };
const PICTURE = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } } as const;
const target = (mode: ApiMode): Target =>
  aTarget(mode, { model: mode === "anthropic_messages" ? "claude-opus-4-6" : "gpt-5", contextLength: 16_000 });

/** One step of a conversation's life. */
type Edit =
  | {
      readonly edit: "say";
      readonly text: string;
      readonly picture: boolean;
      readonly rounds: number;
      readonly long: boolean;
    }
  | { readonly edit: "interrupt"; readonly at: number; readonly rounds: number }
  | { readonly edit: "cut"; readonly after: number }
  | { readonly edit: "refuse pictures" }
  | { readonly edit: "compress" }
  | { readonly edit: "undo compression" }
  | { readonly edit: "undo"; readonly turns: number }
  /** `before`: the fork ends before the user's message that many back; 0 = it holds everything. */
  | { readonly edit: "fork"; readonly before: number }
  | { readonly edit: "resume" }
  | { readonly edit: "crash"; readonly rows: "orphan" | "unanswered" | "two users" | "two assistants" }
  | { readonly edit: "switch"; readonly mode: ApiMode };

const text = fc.constantFrom("hello", " ", "", "half \ud800", "<think>x</think>", "你好");
const edit: fc.Arbitrary<Edit> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      edit: fc.constant("say" as const),
      text,
      picture: fc.boolean(),
      rounds: fc.nat(3),
      long: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ edit: fc.constant("interrupt" as const), at: fc.nat(20), rounds: fc.nat(2) }) },
  { weight: 1, arbitrary: fc.record({ edit: fc.constant("cut" as const), after: fc.nat(12) }) },
  { weight: 1, arbitrary: fc.constantFrom<Edit>({ edit: "refuse pictures" }) },
  { weight: 2, arbitrary: fc.constantFrom<Edit>({ edit: "compress" }, { edit: "undo compression" }) },
  { weight: 2, arbitrary: fc.record({ edit: fc.constant("undo" as const), turns: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 2, arbitrary: fc.record({ edit: fc.constant("fork" as const), before: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.constantFrom<Edit>({ edit: "resume" }) },
  {
    weight: 1,
    arbitrary: fc.record({
      edit: fc.constant("crash" as const),
      rows: fc.constantFrom("orphan" as const, "unanswered" as const, "two users" as const, "two assistants" as const),
    }),
  },
  { weight: 3, arbitrary: fc.record({ edit: fc.constant("switch" as const), mode: fc.constantFrom(...API_MODES) }) },
);

test("every history that edits can reach is valid on all three wires, and so is every request on the way", async (t) => {
  const { store } = await temporaryStore(t);
  let serial = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(edit, { minLength: 2, maxLength: 9 }), async (edits) => {
      const life = new Life(store, `s${++serial}`);
      await life.apply({ edit: "say", text: "first", picture: false, rounds: 1, long: false });
      for (const one of edits) {
        await life.apply(one);
        await life.check();
      }
    }),
    { numRuns: fewer(60, 3) },
  );
});

class Life {
  readonly #store: SessionStore;
  readonly #clock: PatientClock = patientClock();
  readonly #model: MemoryModel;
  readonly #name: string;
  #id: string;
  #agent: Agent;
  #mode: ApiMode = "chat_completions";
  #script: Reply[] = [];
  #forks = 0;

  constructor(store: SessionStore, name: string) {
    this.#store = store;
    this.#name = name;
    this.#id = name;
    this.#model = new MemoryModel(this.#clock, (request) =>
      (request.body.tools ?? []).length > 0
        ? (this.#script.shift() ?? { text: "An answer." })
        : { text: "## Summary\nTalk." },
    );
    this.#agent = this.#open();
  }

  async apply(one: Edit): Promise<void> {
    switch (one.edit) {
      case "say":
        this.#script = rounds(one.rounds);
        await this.#say(one.long ? "word ".repeat(4_000) : one.text, one.picture);
        return;
      case "interrupt": {
        this.#script = rounds(one.rounds);
        let seen = 0;
        const agent = this.#agent;
        await play(agent, "stop me", { onEvent: () => void (seen++ === one.at && agent.interrupt("stop")) });
        return;
      }
      case "cut":
        this.#script = [
          { fault: "cut", after: one.after, answer: { text: "Half an", thinking: "hm", toolCalls: [TOUCH] } },
          { text: "answer." },
        ];
        await this.#say("cut", false);
        return;
      case "refuse pictures":
        this.#script = [
          { fault: "status", status: 400, body: { error: { message: "this model does not support image input" } } },
        ];
        await this.#say("look", true);
        return;
      case "compress":
        await this.#agent.compress();
        return;
      case "undo compression":
        await this.#agent.undoCompression();
        return;
      case "undo":
        await this.#agent.undo(one.turns);
        return;
      case "fork": {
        const id = `${this.#name}-fork-${++this.#forks}`;
        if ((await this.#store.get(this.#agent.sessionId)) === null) return;
        const said = (await this.#store.load(this.#agent.sessionId)).filter(({ role }) => role === "user");
        const before = one.before === 0 ? undefined : said.at(-one.before)?.id;
        await this.#store.branch(this.#agent.sessionId, id, before === undefined ? {} : { before });
        await this.#reopen(id);
        return;
      }
      case "resume":
        await this.#reopen(this.#agent.sessionId);
        return;
      case "crash":
        // A process dies behind what its user said, never before.
        if ((await this.#store.load(this.#agent.sessionId)).length === 0) return;
        await this.#store.append(this.#agent.sessionId, CRASHES[one.rows]);
        await this.#reopen(this.#agent.sessionId);
        return;
      case "switch":
        this.#mode = one.mode;
        await this.#agent.switchModel({ target: target(one.mode) });
    }
  }

  /** As stored, as held in memory, as sent: all of it legal, on whichever wire it goes out next. */
  async check(): Promise<void> {
    const transcript = new Transcript({ sessionId: this.#agent.sessionId, store: this.#store, describe: () => ({}) });
    await transcript.open();
    const held = this.#agent.lastOutcome?.messages ?? [];
    for (const history of [transcript.messages, held]) {
      const last = history.at(-1)?.role;
      const next: readonly HistoryMessage[] =
        last === "user" ? history : [...history, { role: "user", content: "and now?" }];
      for (const mode of API_MODES) await assertSendable(mode, next);
    }
    assertLegalHistory(held, staysApart);
    for (const { wire, raw } of this.#model.requests.splice(0)) validate(wire, raw);
  }

  async #say(said: string, picture: boolean): Promise<void> {
    await play(this.#agent, { text: said, ...(picture ? { parts: [PICTURE] } : {}) });
  }

  async #reopen(id: string): Promise<void> {
    await this.#agent.close();
    this.#id = id;
    this.#agent = this.#open();
  }

  #open(): Agent {
    const clock = this.#clock;
    const gate = createGate({
      ledger: { recordCall: async () => undefined, reserveCall: async () => ({ reservation: 1 }) },
      caps: () => ({ call: FREE, session: FREE, job: FREE, day: FREE }),
      priceOf: () => ({ type: "unknown" }),
      wireFor: ({ apiMode }) => createWire(apiMode, { fetch: this.#model.fetch, clock }),
      clock,
      onDefect: (what, error) => {
        throw new Error(what, { cause: error });
      },
    });
    return rigAgent({
      gate,
      store: this.#store,
      session: { id: this.#id },
      model: { target: target(this.#mode) },
      tools: { touch: () => "touched" },
      ports: { clock: manualClock() },
    });
  }
}

const TOUCH = { name: "touch", arguments: { path: "/a" } };
const rounds = (count: number): Reply[] =>
  Array.from({ length: count }, (_, index) => ({
    thinking: "hm",
    ...(index % 2 === 0 ? { text: "Well." } : {}),
    toolCalls: Array.from({ length: index + 1 }, (_each, n) => ({ name: "touch", arguments: { path: `/${n}` } })),
  }));

/** What a process that died, or another program, may leave behind. */
const CRASHES: Readonly<Record<Extract<Edit, { edit: "crash" }>["rows"], readonly HistoryMessage[]>> = {
  orphan: [{ role: "tool", tool_call_id: "nobody", name: "touch", content: "lost" }],
  unanswered: [
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "open", type: "function", function: { name: "touch", arguments: "{" } }],
    },
  ],
  "two users": [
    { role: "user", content: "one" },
    { role: "user", content: "two" },
  ],
  "two assistants": [
    { role: "assistant", content: "one" },
    { role: "assistant", content: "two" },
  ],
};

async function assertSendable(mode: ApiMode, history: readonly HistoryMessage[]): Promise<void> {
  const place = target(mode);
  const messages = new RequestBuilder().build({
    target: place,
    system: "You are a test.",
    history,
    scaffold: [],
    images: true,
  });
  const wire = createWire(mode, { fetch: () => Promise.reject(new Error("nothing is sent")), clock: manualClock() });
  const { body } = await wire.render(aRequest(place, { messages }));
  try {
    validate(wireName[mode], writeBody(body).text);
  } catch (error) {
    throw new Error(`${mode}: ${history.map((message) => message.role).join(" ")}`, { cause: error });
  }
  assert.ok(messages.length > 0);
}
