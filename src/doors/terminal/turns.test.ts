import assert from "node:assert/strict";
import { test } from "node:test";
import type { AgentEvent, TurnOutcome } from "../../agent/events.ts";
import type { UserInput } from "../../llm/messages.ts";
import { type BusyMode, type Speaker, Turns } from "./turns.ts";

/** A conversation whose turns end when the test says so. */
class Scripted implements Speaker {
  readonly said: string[] = [];
  readonly interrupts: (string | undefined)[] = [];
  steered: string[] = [];
  activeChildren = 0;
  leftover: string | undefined;
  /** Another process works on the conversation: no turn begins. */
  inUse = false;
  #end = Promise.withResolvers<void>();

  async *run(input: UserInput): AsyncIterable<AgentEvent> {
    const { inUse } = this;
    const stamp = { sessionId: "s", turn: 1, seq: 1 };
    this.#end = Promise.withResolvers<void>();
    if (inUse) yield { type: "status", kind: "waiting", message: "process 1 works on it", ...stamp };
    else this.said.push(input.text);
    await this.#end.promise;
    const unsent = inUse && { unsent: true };
    const outcome = { finalText: "ok", pendingSteer: this.leftover, ...unsent } as TurnOutcome; // the driver looks at nothing else
    this.leftover = undefined;
    yield { type: "done", outcome, ...stamp };
  }
  interrupt(reason?: string) {
    this.interrupts.push(reason);
    this.#end.resolve();
  }
  steer(text: string) {
    this.steered.push(text);
    return true;
  }
  end() {
    this.#end.resolve();
  }
}

function setUp(mode: BusyMode, nextText: () => Promise<string | null> = async () => null) {
  const speaker = new Scripted();
  const events: string[] = [];
  const unsent: string[] = [];
  const turns = new Turns({
    speaker: () => speaker,
    busyMode: () => mode,
    onEvent: (event) => events.push(event.type),
    onChange: () => undefined,
    onError: (error) => assert.fail(String(error)),
    onUnsent: ({ text }) => unsent.push(text),
    goals: { turnBegins: () => undefined, turnEnded: () => undefined, nextText },
  });
  return { speaker, events, unsent, turns };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

test("in interrupt mode Enter stops the turn and sends the text next", async () => {
  const { speaker, turns } = setUp("interrupt");
  assert.equal(turns.say({ text: "one" }), "started");
  await settle();
  assert.equal(turns.say({ text: "two" }), "interrupting");
  await settle();
  assert.deepEqual(speaker.said, ["one", "two"]);
  assert.equal(speaker.interrupts.length, 1);
  speaker.end();
  await turns.idle();
  assert.equal(turns.busy, false);
});

test("in queue mode texts wait their turn in order", async () => {
  const { speaker, turns } = setUp("queue");
  turns.say({ text: "one" });
  await settle();
  assert.equal(turns.say({ text: "two" }), "queued");
  assert.equal(turns.say({ text: "three" }), "queued");
  assert.deepEqual(turns.waiting, ["two", "three"]);
  for (let i = 0; i < 3; i++) {
    speaker.end();
    await settle();
  }
  await turns.idle();
  assert.deepEqual(speaker.said, ["one", "two", "three"]);
});

test("in steer mode the text rides along, and what found no place is said next", async () => {
  const { speaker, turns } = setUp("steer");
  turns.say({ text: "one" });
  await settle();
  assert.equal(turns.say({ text: "left" }), "steered");
  speaker.leftover = "left";
  speaker.end();
  await settle();
  speaker.end();
  await turns.idle();
  assert.deepEqual(speaker.said, ["one", "left"]);
});

const picture = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } } as const;

test("a message with pictures is never steered: it waits, and comes back whole", async () => {
  const { speaker, turns } = setUp("steer");
  turns.say({ text: "one" });
  await settle();
  assert.equal(turns.say({ text: "look", parts: [picture] }), "queued");
  assert.equal(turns.say({ text: "what is @pic.png?" }), "queued");
  assert.deepEqual(speaker.steered, []);
  assert.deepEqual(turns.waiting, ["look [📎 1]", "what is @pic.png?"]);
  turns.takeBack();
  assert.deepEqual(turns.takeBack(), { text: "look", parts: [picture] });
  speaker.end();
  await turns.idle();
});

test("messages that interrupt keep all their pictures when they are said as one", async () => {
  const { speaker, turns } = setUp("interrupt");
  turns.say({ text: "one" });
  await settle();
  turns.say({ text: "two", parts: [picture] });
  turns.say({ text: "", parts: [picture] });
  assert.deepEqual(turns.queued, [{ text: "two", parts: [picture, picture] }]);
  turns.dropQueue();
  speaker.end();
  await turns.idle();
});

test("a dropped queue is not said", async () => {
  const { speaker, turns } = setUp("queue");
  turns.say({ text: "one" });
  await settle();
  turns.say({ text: "two" });
  assert.equal(turns.dropQueue(), 1);
  speaker.end();
  await turns.idle();
  assert.deepEqual(speaker.said, ["one"]);
});

test("several messages that interrupt are said as one, before what was queued", async () => {
  const { speaker, turns } = setUp("interrupt");
  turns.say({ text: "one" });
  await settle();
  turns.queue({ text: "later" });
  // No pause between the two: the first turn is still ending.
  turns.say({ text: "two" });
  turns.say({ text: "three" });
  assert.deepEqual(turns.waiting, ["two\nthree", "later"]);
  await settle();
  speaker.end();
  await settle();
  speaker.end();
  await turns.idle();
  assert.deepEqual(speaker.said, ["one", "two\nthree", "later"]);
});

test("a message whose turn never began is shown as held, and is the user's again when they stop it", async () => {
  const { speaker, unsent, turns } = setUp("interrupt");
  speaker.inUse = true;
  turns.say({ text: "one" });
  await settle();
  assert.equal(turns.held, "one");
  speaker.interrupt();
  await turns.idle();
  assert.equal(turns.held, null);
  assert.deepEqual(unsent, ["one"]);
  assert.deepEqual(speaker.said, []);
});

test("a message that interrupts one whose turn never began goes out with it", async () => {
  const { speaker, unsent, turns } = setUp("interrupt");
  speaker.inUse = true;
  turns.say({ text: "one" });
  await settle();
  turns.say({ text: "two" });
  await settle();
  assert.equal(turns.held, "one\ntwo");
  speaker.inUse = false;
  turns.say({ text: "three" });
  await settle();
  speaker.end();
  await turns.idle();
  assert.deepEqual(speaker.said, ["one\ntwo\nthree"]);
  assert.deepEqual(unsent, []);
});

test("a waiting text can be taken back", async () => {
  const { speaker, turns } = setUp("queue");
  turns.say({ text: "one" });
  await settle();
  turns.say({ text: "two" });
  turns.queue({ text: "a process ended", from: "synthetic" });
  assert.equal(turns.takeBack()?.text, "two");
  assert.equal(turns.takeBack(), null);
  assert.deepEqual(turns.waiting, ["a process ended"]);
  turns.dropQueue();
  speaker.end();
  await turns.idle();
});

test("while sub-agents work a message waits instead of stopping them", async () => {
  const { speaker, turns } = setUp("interrupt");
  turns.say({ text: "one" });
  await settle();
  speaker.activeChildren = 2;
  assert.equal(turns.say({ text: "two" }), "queued");
  assert.equal(speaker.interrupts.length, 0);
  speaker.activeChildren = 0;
  assert.equal(turns.say({ text: "three" }), "interrupting");
  await settle();
  for (let i = 0; i < 3; i++) {
    speaker.end();
    await settle();
  }
  await turns.idle();
  assert.deepEqual(speaker.said, ["one", "three", "two"]);
});

test("the goal's turn comes after everything that waits, and after what is said while it is looked at", async () => {
  const { speaker, turns } = setUp("queue", async () => {
    if (speaker.said.length === 2) turns.say({ text: "third" });
    return "toward the goal";
  });
  turns.say({ text: "first" });
  turns.continueGoal(true);
  turns.say({ text: "second" });
  for (const said of [["first"], ["first", "second"], ["first", "second", "third"]]) {
    await settle();
    assert.deepEqual(speaker.said, said);
    speaker.end();
  }
  await settle();
  assert.deepEqual(speaker.said, ["first", "second", "third", "toward the goal"]);
  speaker.end();
  await turns.idle();
  assert.equal(turns.busy, false);
});

test("a goal that wants no turn any more, or whose turn was dropped, has none", async () => {
  const paused = setUp("queue");
  paused.turns.continueGoal(true);
  await paused.turns.idle();
  assert.deepEqual(paused.speaker.said, []);
  const dropped = setUp("queue", async () => "toward the goal");
  dropped.turns.say({ text: "first" });
  dropped.turns.continueGoal(true);
  dropped.turns.dropQueue();
  dropped.speaker.end();
  await dropped.turns.idle();
  assert.deepEqual(dropped.speaker.said, ["first"]);
});
