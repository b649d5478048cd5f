import assert from "node:assert/strict";
import { test } from "node:test";
import { aRequest, aTarget } from "../../../test/support/model-target.ts";
import type { CallPurpose } from "../gate.ts";
import type { ModelRequest, SentBody } from "../wire.ts";
import { PrefixWatch } from "./watch.ts";

const here = aRequest(aTarget("chat_completions"));
const there = aRequest(aTarget("chat_completions", { model: "other" }));
const main: CallPurpose = { task: "main", sessionId: "s" };
const body = (...texts: readonly string[]): SentBody => ({
  text: "",
  system: "prompt",
  tools: "[]",
  messages: texts
    .map((text, index) => JSON.stringify({ role: index % 2 ? "assistant" : "user", content: text }))
    .join(","),
});

/** Sends bodies in turn, each of them answered, and tells what the last one's check said. */
function send(watch: PrefixWatch, request: ModelRequest, ...bodies: readonly SentBody[]) {
  const checks = bodies.map((sent) => {
    const check = watch.check(request, main, sent);
    check.answered();
    return check;
  });
  return checks.at(-1);
}

test("a conversation that only grows has no break, and its common bytes are those of the request before", () => {
  const watch = new PrefixWatch();
  const first = send(watch, here, body("a"))?.report;
  assert.equal(first?.commonBytes, 0);
  const { report, defect } = watch.check(here, main, body("a", "b", "c"));
  assert.deepEqual(
    [report.commonBytes, report.brokeOwner, report.cause, defect],
    [first?.bytes, undefined, undefined, null],
  );
});

test("a break that nobody announced is a defect with owner, byte, session and model", () => {
  const watch = new PrefixWatch();
  send(watch, here, body("a", "b", "c"));
  const { report, defect } = watch.check(here, main, body("a", "B", "c"));
  assert.equal(report.brokeOwner, "message 1 (assistant)");
  assert.match(defect ?? "", /fake-model .* message 1 \(assistant\) differs at byte 69 of \d+ \(session s\)/);
});

test("an announced cause explains one break, and the next one is a defect again", () => {
  const watch = new PrefixWatch();
  send(watch, here, body("a", "b", "c"));
  watch.expect("s", "rewind");
  const explained = send(watch, here, body("x"));
  assert.deepEqual([explained?.report.cause, explained?.defect], ["rewind", null]);
  assert.notEqual(watch.check(here, main, body("y")).defect, null);
});

test("a cause stays in force while requests fail, and goes unused when nothing broke", () => {
  const watch = new PrefixWatch();
  send(watch, here, body("a"));
  watch.expect("s", "repair");
  assert.equal(watch.check(here, main, body("x")).report.cause, "repair");
  assert.equal(send(watch, here, body("x"))?.report.cause, "repair");
  watch.expect("s", "rewind");
  assert.equal(send(watch, here, body("x", "y", "z"))?.report.cause, undefined);
  assert.notEqual(watch.check(here, main, body("!")).defect, null);
});

test("each destination has its own line, and a cause counts once for each of them", () => {
  const watch = new PrefixWatch();
  send(watch, here, body("a"));
  assert.deepEqual(send(watch, there, body("z"))?.report.cause, "model");
  watch.expect("s", "rewind");
  assert.equal(send(watch, here, body("b"))?.report.cause, "rewind");
  assert.equal(send(watch, there, body("c"))?.report.cause, "rewind");
  assert.notEqual(watch.check(there, main, body("d")).defect, null);
  assert.equal(watch.check(here, main, body("b", "x")).defect, null);
});

test("the first request after a compression says so", () => {
  const watch = new PrefixWatch();
  watch.expect("s", "compression");
  const { report } = watch.check(here, main, body("summary"));
  assert.deepEqual([report.cause, report.commonBytes, report.brokeOwner], ["compression", 0, undefined]);
});

test("a request that failed or carried the loop's own notes is nothing to begin with", () => {
  const watch = new PrefixWatch();
  send(watch, here, body("a"));
  watch.check(here, main, body("a", "b", "lost"));
  watch.check({ ...here, scaffolded: true }, main, body("a", "b", "note")).answered();
  assert.equal(watch.check(here, main, body("a", "c")).defect, null);
});

test("a client that keeps the history explains other messages, never another prompt or other tools", () => {
  const watch = new PrefixWatch();
  watch.expect("s", "client");
  assert.equal(send(watch, here, body("a", "b", "c"))?.report.cause, undefined, "a first request breaks nothing");
  watch.expect("s", "client");
  for (const changed of [{ tools: "[1]" }, { system: "another" }]) {
    const { report, defect } = watch.check(here, main, { ...body("a", "b", "c"), ...changed });
    assert.deepEqual([report.cause, defect === null], [undefined, false]);
  }
  const { report, defect } = watch.check(here, main, body("a", "B", "c"));
  assert.deepEqual([report.cause, defect], ["client", null]);
});

test("a text laid over the prompt explains itself", () => {
  const watch = new PrefixWatch();
  const request: ModelRequest = { ...here, promptLayout: { stable: "", blocks: [{ id: "identity", length: 6 }] } };
  send(watch, request, body("a"));
  const { report, defect } = watch.check(request, main, { ...body("a"), system: "prompt\n\nBe kind." });
  assert.deepEqual([report.brokeOwner, report.cause, defect], ["ephemeral", "ephemeral", null]);
});

test("a review of the conversation keeps its prompt and tools, speaks for itself, and changes nothing", () => {
  const watch = new PrefixWatch();
  const review: CallPurpose = { task: "background_review", sessionId: "s" };
  send(watch, here, body("a", "b", "c"));
  const own = watch.check(here, review, body("a", "review this"));
  own.answered();
  assert.deepEqual([own.defect, own.report.brokeOwner], [null, undefined]);
  assert.match(watch.check(here, review, { ...body("a"), tools: "[1]" }).defect ?? "", /tools differs/);
  assert.equal(watch.check(here, main, body("a", "b", "c", "d")).defect, null);
});

test("calls that continue nothing have a size and no more", () => {
  const watch = new PrefixWatch();
  for (const purpose of [
    { task: "title_generation", sessionId: "s" },
    { task: "main", sessionId: null },
  ] satisfies CallPurpose[]) {
    watch.check(here, purpose, body("a")).answered();
    assert.deepEqual(Object.keys(watch.check(here, purpose, body("b")).report), ["bytes"]);
  }
});

test("memory is bounded: the conversation that was silent longest is forgotten", () => {
  const watch = new PrefixWatch({ mostChars: 1000 });
  const purpose = (sessionId: string): CallPurpose => ({ task: "main", sessionId });
  for (const sessionId of ["old", "new"]) watch.check(here, purpose(sessionId), body("x".repeat(600))).answered();
  assert.equal(watch.check(here, purpose("old"), body("y")).defect, null);
  assert.notEqual(watch.check(here, purpose("new"), body("y")).defect, null);
});

/** A store of sessions' states, as JSON: what a process writes is what the next one reads. */
function memory() {
  const kept = new Map<string, string>();
  return {
    kept,
    read: async (sessionId: string) => JSON.parse(kept.get(sessionId) ?? "null"),
    write: async (sessionId: string, state: unknown) => void kept.set(sessionId, JSON.stringify(state)),
  };
}

async function nextProcess(store: ReturnType<typeof memory>, request = here) {
  const watch = new PrefixWatch({ memory: store });
  await watch.recall("s");
  const send = async (...texts: readonly string[]) => {
    const check = watch.check(request, main, body(...texts));
    await check.answered();
    return check;
  };
  return { watch, send };
}

test("the next process goes on where the last one ended, and sees what was rewritten in between", async () => {
  const store = memory();
  const first = await nextProcess(store);
  await first.send("a");
  await first.send("a", "b", "c");
  const second = await nextProcess(store);
  const good = second.watch.check(here, main, body("a", "b", "c", "d"));
  assert.deepEqual([good.defect, good.report.brokeOwner], [null, undefined]);
  assert.equal(good.report.commonBytes, first.watch.check(here, main, body("a", "b", "c")).report.bytes);
  const bad = second.watch.check(here, main, body("a", "B", "c", "d"));
  assert.match(bad.defect ?? "", /message 1 \(assistant\) differs at byte/);
});

test("within a turn that goes on the first request is remembered, and a later process holds the next one against it", async () => {
  const store = memory();
  const watch = new PrefixWatch({ memory: store });
  const send = (goesOn: boolean, ...texts: readonly string[]) =>
    watch.check(here, main, body(...texts)).answered({ goesOn });
  await send(true, "a");
  const begun = store.kept.get("s");
  assert.notEqual(begun, undefined);
  await send(true, "a", "b", "c");
  assert.equal(store.kept.get("s"), begun);
  const afterCrash = await nextProcess({ ...store, kept: new Map(store.kept) });
  assert.equal(afterCrash.watch.check(here, main, body("a", "b", "x")).defect, null);
  assert.match(afterCrash.watch.check(here, main, body("A", "b", "c")).defect ?? "", /message 0/);
  await watch.expect("s", "rewind");
  await send(true, "a", "z"); // it used the cause up, which must not explain a break a second time
  assert.match((await nextProcess(store)).watch.check(here, main, body("a", "y")).defect ?? "", /message 1/);
  await send(false, "a", "z", "w");
  assert.match((await nextProcess(store)).watch.check(here, main, body("a", "z", "y")).defect ?? "", /message 2/);
});

test("causes outlive the process that gave them; what a server refused will be refused again", async () => {
  const store = memory();
  const first = await nextProcess(store);
  await first.send("a", "b", "c");
  await first.watch.expect("s", "rewind");
  const second = await nextProcess(store);
  assert.equal((await second.send("x")).report.cause, "rewind");
  const third = await nextProcess(store);
  assert.notEqual(third.watch.check(here, main, body("y")).defect, null);
  await third.watch.expect("s", "repair");
  await third.send("z");
  assert.equal((await nextProcess(store)).watch.check(here, main, body("picture")).report.cause, "repair");
});

test("another model in another process is another model, and a state nobody can read is none", async () => {
  const store = memory();
  await (await nextProcess(store)).send("a");
  assert.equal((await (await nextProcess(store, there)).send("q")).report.cause, "model");
  assert.equal((await (await nextProcess(store)).send("a", "b")).report.brokeOwner, undefined);
  for (const state of ["null", "1", "{}", '{"v":99,"baselines":7}']) {
    store.kept.set("s", state);
    assert.equal((await (await nextProcess(store)).send("n")).report.commonBytes, 0);
  }
});

test("a slow disk is waited for by everybody who asks, and a broken one is told about once", async () => {
  const store = memory();
  await (await nextProcess(store)).send("a", "b", "c");
  const { promise, resolve } = Promise.withResolvers<void>();
  const slow = { ...store, read: (id: string) => promise.then(() => store.read(id)) };
  const watch = new PrefixWatch({ memory: slow });
  const both = [watch.expect("s", "image_lost"), watch.recall("s")];
  resolve();
  await Promise.all(both);
  const { report } = watch.check(here, main, body("x"));
  assert.deepEqual([report.brokeOwner, report.cause], ["message 0 (user)", "image_lost"]);
  const broken = new PrefixWatch({ memory: { ...store, read: () => Promise.reject(new Error("disk")) } });
  await assert.rejects(broken.recall("s"), /disk/);
  await broken.recall("s");
  assert.equal(broken.check(here, main, body("x")).defect, null);
});
