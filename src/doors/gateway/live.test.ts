import assert from "node:assert/strict";
import { stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import fc from "fast-check";
import { fewer } from "../../../test/support/sample.ts";
import { recordedLog } from "../../../test/support/session-store.ts";
import { tempHome } from "../../../test/support/temp-home.ts";
import type { AgentEvent, AgentEventBody } from "../../agent/events.ts";
import { openHome } from "../../home/open.ts";
import type { Clock } from "../../kit/clock.ts";
import { createRedactor } from "../../safety/redact.ts";
import { composeAnswer, splitFor } from "./answer.ts";
import type { PlatformAdapter, PlatformEntry, SendResult } from "./contract.ts";
import { LiveReply } from "./live.ts";
import { withoutHalfSecret } from "./live-text.ts";
import { GatewaySettings } from "./settings.ts";
import { splitMessage } from "./split.ts";

/** Time stands still until the test moves it; work that waits for the disk gets its turn in between. */
function steppedClock() {
  let now = 1_000_000;
  const sleepers = new Set<{ readonly at: number; wake(): void }>();
  const clock: Clock = {
    now: () => now,
    random: () => 0.5,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        const sleeper = { at: now + ms, wake: resolve };
        sleepers.add(sleeper);
        signal?.addEventListener("abort", () => sleepers.delete(sleeper) && reject(signal.reason), { once: true });
      }),
  };
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  // Looks at the disk that were asked for before are over when as many as are under way at once have come back.
  const settle = async () => {
    await turn();
    await Promise.all(Array.from({ length: 12 }, () => stat(".")));
    for (let turns = 0; turns < 3; turns++) await turn();
  };
  const advance = async (ms: number) => {
    const until = now + ms;
    for (;;) {
      await settle();
      const [next] = [...sleepers].sort((one, other) => one.at - other.at);
      if (!next || next.at > until) break;
      sleepers.delete(next);
      now = Math.max(now, next.at);
      next.wake();
    }
    now = until;
  };
  /** Moves time on until the work is done. */
  const during = async <T>(work: Promise<T>): Promise<T> => {
    let isOver = false;
    const watched = work.finally(() => {
      isOver = true;
    });
    watched.catch(() => undefined);
    for (let steps = 0; !isOver && steps < 2000; steps++) await advance(25);
    return watched;
  };
  return { clock, advance, during, sleeping: () => sleepers.size };
}

interface Shown {
  text: string;
  final: boolean;
}

type Fault = Extract<SendResult, { failed: string }> | "hang" | "throw";

/** A chat in memory: what a person would see, and what was asked of the platform. */
function pigeon(clock: Clock, entry: PlatformEntry) {
  const chat = new Map<string, Shown>();
  const calls: { readonly what: "send" | "edit" | "remove" | "typing"; readonly at: number; readonly text?: string }[] =
    [];
  const faults: Partial<Record<"send" | "edit" | "typing" | "remove", Fault[]>> = {};
  const replies: (string | undefined)[] = [];
  let ids = 0;
  const meet = async (what: "send" | "edit" | "typing" | "remove", text?: string): Promise<SendResult | null> => {
    calls.push({ what, at: clock.now(), ...(text === undefined ? {} : { text }) });
    if (text !== undefined)
      assert.ok(splitFor(entry).length(text) <= entry.maxLength, `${what} is longer than the platform takes`);
    const fault = faults[what]?.shift();
    if (fault === "hang") return new Promise(() => undefined);
    if (fault === "throw") throw new Error("the pigeon is gone");
    return fault ?? null;
  };
  const adapter: PlatformAdapter = {
    account: "pigeon",
    connect: async () => undefined,
    disconnect: async () => undefined,
    async send(target, text) {
      const fault = await meet("send", text);
      if (fault) return fault;
      replies.push(target.replyTo);
      const messageId = `m${++ids}`;
      chat.set(messageId, { text, final: true });
      return { messageId };
    },
    async edit(_target, messageId, text, { final }) {
      const fault = await meet("edit", text);
      if (fault) return fault;
      const message = chat.get(messageId);
      if (!message) return { failed: "refused", error: "no such message" };
      assert.ok(message.text !== text || final, "an edit changes something");
      chat.set(messageId, { text, final });
      return { messageId };
    },
    async remove(_target, messageId) {
      await meet("remove");
      chat.delete(messageId);
    },
    async typing() {
      await meet("typing");
    },
  };
  return { adapter, chat, calls, faults, replies, texts: () => [...chat.values()].map(({ text }) => text) };
}

const ENTRY: PlatformEntry = {
  ...{ name: "pigeon", label: "Pigeon", maxLength: 4096, lengthUnit: "utf16", variables: [], guide: "", options: [] },
  ...{ repeatIsSafe: false, canEdit: true, sendsAlone: false },
  identity: () => "token",
  parseTarget: () => null,
  open: () => Promise.reject(new Error("not opened here")),
};

const STREAMING = "streaming: { enabled: true }\n";

interface RigOptions {
  readonly config?: string;
  readonly entry?: Partial<PlatformEntry>;
  readonly without?: readonly ("edit" | "remove" | "typing")[];
}

async function world(t: TestContext, config: string) {
  const temp = await tempHome({ "config.yaml": config });
  const env = { HERMES_HOME: temp.dir };
  const home = await openHome({ argv: [], env, osHome: temp.osHome, cwd: temp.project, redactorFor: createRedactor });
  t.after(async () => {
    await home.close();
    await temp[Symbol.asyncDispose]();
  });
  return { temp, home, settings: await GatewaySettings.open(home) };
}

type World = Awaited<ReturnType<typeof world>>;

function begin({ home, settings, temp }: World, { entry: more = {}, without = [] }: RigOptions = {}) {
  const { clock, advance, during, sleeping } = steppedClock();
  const entry = { ...ENTRY, ...more };
  const platform = pigeon(clock, entry);
  const { adapter, ...rest } = platform;
  const offered = { ...adapter, ...Object.fromEntries(without.map((name) => [name, undefined])) };
  const log = recordedLog();
  const target = { chatId: "c", replyTo: "question" };
  const live = new LiveReply({ adapter: offered, entry, settings, target, clock, log, key: "live:1" });
  let seq = 0;
  const show = (event: AgentEventBody) => live.show({ ...event, sessionId: "s", turn: 1, seq: seq++ } as AgentEvent); // a body and its frame
  const say = (delta: string) => show({ type: "text", delta });
  const end = (text: string, kind: "interim" | "final", streamed = true) =>
    show({ type: "text_end", text, kind, streamed });
  const call = (name: string, preview: string) =>
    show({ type: "tool_start", call: { id: `${seq}`, name, args: { command: preview }, preview } });
  return { ...rest, live, show, say, end, call, clock, advance, during, sleeping, entry, settings, home, temp, log };
}

async function rig(t: TestContext, options: RigOptions = {}) {
  return begin(await world(t, options.config ?? STREAMING), options);
}

const PROGRESS = (mode: string, more = "") => `display: { tool_progress: ${mode}${more} }\n`;

const sends = (calls: readonly { what: string; text?: string; at: number }[]) =>
  calls.filter(({ what }) => what === "send" || what === "edit");

test("text is shown from its fourth character on, with a cursor, and edited in time or by length", async (t) => {
  const { say, advance, chat, calls, texts } = await rig(t);
  say("Hel");
  await advance(500);
  assert.equal(chat.size, 0);
  say("lo");
  await advance(50);
  assert.deepEqual(texts(), ["Hello ▉"]);
  say(" you");
  await advance(700);
  assert.deepEqual(texts(), ["Hello ▉"], "neither long enough nor late enough");
  await advance(150);
  assert.deepEqual(texts(), ["Hello you ▉"]);
  say(" and a good many words more");
  await advance(60);
  assert.deepEqual(texts(), ["Hello you and a good many words more ▉"], "by its length");
  assert.equal(sends(calls).length, 3);
});

test("the answer is written into the streamed messages, and the chat ends as the splitter says", async (t) => {
  const { say, end, during, advance, live, chat, settings, home, entry, texts } = await rig(t, {
    entry: { maxLength: 700 },
  });
  const text = "A sentence of the answer that goes on for a while. ".repeat(40).trim();
  for (let at = 0; at < text.length; at += 37) {
    say(text.slice(at, at + 37));
    await advance(100);
  }
  assert.ok(chat.size > 2, "it did not fit into one message");
  assert.equal(texts().filter((one) => one.endsWith("▉")).length, 1);
  end(text, "final");
  const streamed = await during(live.streamed());
  const { payloads, unused } = await composeAnswer(text, { home, settings, entry, streamed, origin: "chat" });
  for (const payload of payloads) {
    if (payload.type === "edit") chat.set(payload.messageId, { text: payload.text, final: true });
    if (payload.type === "text") chat.set("new", { text: payload.text, final: true });
  }
  await during(live.close("answered", unused));
  assert.deepEqual(texts(), splitMessage(text, splitFor(entry)));
});

test("text before a tool is a message of its own in its last form, and what follows begins a new one", async (t) => {
  const { say, end, call, during, live, chat, replies, advance, texts } = await rig(t, {
    config: `${STREAMING}display: { platforms: { pigeon: { tool_progress: all } } }\n`,
  });
  say("Let me **look**");
  await advance(100);
  end("Let me **look**", "interim");
  call("terminal", "ls -la");
  await advance(200);
  say("Here it is, at last");
  await advance(200);
  end("Here it is, at last", "final");
  const streamed = await during(live.streamed());
  assert.deepEqual(texts(), ["Let me **look**", "💻 terminal: `ls -la`", "Here it is, at last ▉"]);
  assert.deepEqual([chat.get("m1")?.final, streamed], [true, ["m3"]]);
  assert.deepEqual(replies, ["question", undefined, undefined], "the first text answers the question");
});

test("remarks are sent without streaming too, or not at all, as the settings say", async (t) => {
  const on = await rig(t, { config: "{}\n" });
  on.say("Let me look");
  on.end("Let me look. MEDIA:/tmp/x.png", "interim");
  on.say("Done");
  on.end("Done", "final");
  assert.deepEqual(await on.during(on.live.streamed()), []);
  assert.deepEqual(on.texts(), ["Let me look."]);
  const off = await rig(t, { config: "display: { interim_assistant_messages: false }\n" });
  off.end("Let me look", "interim");
  await off.during(off.live.streamed());
  assert.deepEqual(off.texts(), []);
  const gone = await rig(t, { config: `${STREAMING}display: { interim_assistant_messages: false }\n` });
  gone.say("Let me look");
  await gone.advance(100);
  assert.equal(gone.chat.size, 1);
  gone.end("Let me look", "interim");
  await gone.advance(100);
  assert.deepEqual(gone.texts(), []);
});

test("where messages cannot be edited nothing is streamed", async (t) => {
  for (const options of [{ entry: { canEdit: false } }, { without: ["edit"] }] as const) {
    const { say, end, during, live, calls } = await rig(t, options);
    say("A long enough text");
    end("A long enough text", "final");
    assert.deepEqual(await during(live.streamed()), []);
    assert.deepEqual(sends(calls), []);
  }
  const { say, advance, calls } = await rig(t, { config: "streaming: { enabled: true, transport: 'off' }\n" });
  say("A long enough text");
  await advance(1000);
  assert.deepEqual(sends(calls), []);
});

test("tags, markers of silence and halves of secrets are never shown", async (t) => {
  const { say, advance, calls, texts, temp } = await rig(t);
  await writeFile(join(temp.project, "here"), "x");
  const text = `Look:\n\nMEDIA:${temp.project}/here\nMEDIA:/tmp/chart.png\n[[audio_as_voice]] key ghp_abcdefghijklmnopqrstuvwxyz0123456789 end. `;
  for (const letter of text) {
    say(letter);
    await advance(850);
  }
  assert.deepEqual(texts(), ["Look:\n\nkey ghp_ab...6789 end. ▉"]);
  for (const { text: shown = "" } of sends(calls)) assert.doesNotMatch(shown, /MEDIA|chart|here|\[\[|ghp_abc/);
  for (const marker of ["[SILENT]", "**no reply**"]) {
    const silent = await rig(t);
    for (const letter of marker) {
      silent.say(letter);
      await silent.advance(100);
    }
    silent.end(marker, "final");
    assert.deepEqual(await silent.during(silent.live.streamed()), []);
    assert.deepEqual(sends(silent.calls), []);
  }
});

test("a message is left before it is full, with room for its last form", async (t) => {
  for (const [maxLength, most] of [
    [1000, 900],
    [300, 300],
  ] as const) {
    const config = "streaming: { enabled: true, buffer_threshold: 1 }\n";
    const { say, advance, calls, chat } = await rig(t, { config, entry: { maxLength } });
    for (const letter of "words and ".repeat(maxLength / 9)) {
      say(letter);
      await advance(50);
    }
    assert.ok(chat.size > 1);
    for (const { text = "" } of sends(calls)) assert.ok(text.length <= most, `${text.length}`);
  }
});

test("an end that is still on its way to the door is waited for", async (t) => {
  const { say, end, advance, during, live } = await rig(t);
  say("A first bit of text");
  await advance(100);
  const streamed = live.streamed();
  end("A first bit of text", "final");
  assert.deepEqual(await during(streamed), ["m1"]);
});

test("a line that waits behind a text which never ends is shown before the answer", async (t) => {
  const { say, show, advance, during, live, texts, clock } = await rig(t, { config: `${STREAMING}${PROGRESS("all")}` });
  say("A first bit of text");
  await advance(100);
  show({ type: "status", kind: "warn", message: "the model is slow" });
  await advance(100);
  assert.equal(texts().length, 1);
  const before = clock.now();
  await during(live.streamed());
  assert.deepEqual(texts().slice(1), ["⚠️ the model is slow"]);
  assert.ok(clock.now() - before < 1000, "at once");
});

test("nothing that is shown at the very end of a look is forgotten", async (t) => {
  const open = await world(t, PROGRESS("all"));
  for (let steps = 0; steps < 14; steps++) {
    const { call, clock, advance, texts } = begin(open);
    const { sleep } = clock;
    let isFirst = true;
    clock.sleep = (ms, signal) => {
      const slept = sleep(ms, signal);
      if (ms === 50 && isFirst) {
        isFirst = false;
        let later = slept;
        for (let step = 0; step < steps; step++) later = later.then(() => undefined);
        void later.then(() => call("terminal", "b"));
      }
      return slept;
    };
    call("terminal", "a");
    await advance(5000);
    assert.deepEqual(texts(), ["💻 terminal: `a`\n💻 terminal: `b`"], `after ${steps} steps`);
  }
});

test("a word that may be half a secret waits for its end", () => {
  for (const [text, shown] of [
    ["Hello", "Hello"],
    ["the key sk-pro", "the key"],
    ["token abc12", "token"],
    ["Authorization: Bearer abcdef", "Authorization: Bearer"],
    ["done. ", "done. "],
    ["文字3", "文字"],
  ] as const)
    assert.equal(withoutHalfSecret(text), shown);
});

const limited = (retryAfter?: number): Fault => ({
  failed: "rate_limited",
  error: "slow down",
  ...(retryAfter === undefined ? {} : { retryAfter }),
});

test("a limit doubles the pause; the third in a row ends the stream, and its message goes so that the answer comes whole", async (t) => {
  const { say, end, advance, calls, faults, during, live, chat } = await rig(t);
  say("A first bit of text");
  await advance(100);
  faults.edit = [limited(), limited(), limited()];
  const times: number[] = [];
  for (let turn = 0; turn < 40; turn++) {
    say(" and some more of it that is long");
    await advance(500);
  }
  for (const { what, at } of calls) if (what === "edit") times.push(at);
  assert.equal(times.length, 3, "nothing is edited after the third");
  const [one = 0, two = 0, three = 0] = times;
  assert.ok(two - one >= 1600 && two - one < 1700, `${two - one}`);
  assert.ok(three - two >= 3200 && three - two < 3300, `${three - two}`);
  end("all of it", "final");
  assert.deepEqual(await during(live.streamed()), []);
  assert.equal(chat.size, 0);
});

test("what cannot be removed is left to the answer, so that nothing is said twice", async (t) => {
  const { say, end, advance, faults, during, live } = await rig(t, { without: ["remove"] });
  say("A first bit of text");
  await advance(100);
  faults.edit = [limited(), limited(), limited()];
  for (let turn = 0; turn < 20; turn++) {
    say(" and more of it");
    await advance(1000);
  }
  end("all", "final");
  assert.deepEqual(await during(live.streamed()), ["m1"]);
});

test("a success between limits lets the stream go on, and a long pause is kept", async (t) => {
  const { say, advance, calls, faults, texts } = await rig(t);
  say("A first bit of text");
  await advance(100);
  faults.edit = [limited(5)];
  say(" and more of it that counts");
  await advance(4900);
  assert.equal(calls.filter(({ what }) => what === "edit").length, 1);
  await advance(200);
  assert.deepEqual(texts(), ["A first bit of text and more of it that counts ▉"]);
  faults.edit = [limited(), limited()];
  say(" and still more of it, on and on");
  await advance(12_000);
  const edits = calls.filter(({ what }) => what === "edit");
  assert.equal(edits.length, 5, "two limits, then a success");
  say(" and a lot of it comes fast now, more than enough for an edit");
  await advance(1000);
  assert.equal(calls.filter(({ what }) => what === "edit").length, 5, "the pause counts, not the length");
  await advance(10_000);
  assert.equal(calls.filter(({ what }) => what === "edit").length, 6);
});

test("a message that was deleted, a format that is refused, calls that hang or throw: the turn never hears of it", async (t) => {
  const world = await rig(t);
  const { say, end, advance, faults, during, live, chat, texts } = world;
  faults.send = [{ failed: "format", error: "no" }];
  say("A first *bit of text");
  await advance(200);
  assert.equal(chat.size, 1, "as plain text");
  chat.clear();
  say(" and more of it that counts");
  await advance(2000);
  end("whole", "final");
  assert.deepEqual(await during(live.streamed()), [], "the answer needs a message of its own");
  for (const without of [[], ["remove"]] as const) {
    const locked = await rig(t, { without });
    locked.say("A first bit of text");
    await locked.advance(100);
    locked.faults.edit = [{ failed: "refused", error: "too old to be edited" }];
    locked.say(" and more of it that counts");
    await locked.advance(100);
    assert.equal(locked.chat.size, without.length, "it goes if it can");
    locked.end("whole", "final");
    assert.deepEqual(await locked.during(locked.live.streamed()), [], "no edit would get through");
  }
  const slow = await rig(t);
  slow.say("A first bit of text");
  await slow.advance(100);
  slow.faults.edit = ["hang"];
  slow.say(" and more of it that counts");
  await slow.advance(40_000);
  assert.deepEqual(slow.texts(), ["A first bit of text and more of it that counts ▉"], "a call is given up in time");
  const broken = await rig(t);
  broken.faults.send = ["throw"];
  broken.say("A first bit of text");
  await broken.advance(1000);
  broken.end("whole", "final");
  assert.deepEqual(await broken.during(broken.live.streamed()), []);
  const hung = await rig(t);
  hung.faults.send = ["hang"];
  hung.say("A first bit of text");
  await hung.advance(100);
  hung.end("whole", "final");
  assert.deepEqual(await hung.during(hung.live.streamed()), [], "it does not wait for ever");
  await hung.during(hung.live.close("answered"));
  assert.deepEqual(texts(), []);
});

test("of a turn that is stopped the cursor goes and it says so", async (t) => {
  for (const outcome of ["stopped", "failed"] as const) {
    const { say, advance, during, live, texts } = await rig(t);
    say("Half of an answer");
    await advance(100);
    assert.deepEqual(await during(live.streamed()), [], "there is no answer to write into it");
    await during(live.close(outcome));
    assert.deepEqual(texts(), ["Half of an answer\n\n(stopped)"]);
  }
});

test("an answer that was streamed for long comes as a new message where edits make no sound", async (t) => {
  for (const [freshFinal, left] of [
    [true, []],
    [false, ["m1"]],
  ] as const) {
    const { say, end, advance, during, live } = await rig(t, { entry: { freshFinal } });
    say("A first bit of text");
    await advance(61_000);
    end("all", "final");
    assert.deepEqual(await during(live.streamed()), left);
  }
});

test("a platform whose edits stay is shown no cursor", async (t) => {
  const { say, end, advance, texts, calls } = await rig(t, { entry: { withoutCursor: true } });
  say("A first bit of text");
  await advance(100);
  assert.deepEqual(texts(), ["A first bit of text"]);
  end("A first bit of text", "interim");
  await advance(100);
  assert.equal(calls.at(-1)?.what, "edit", "its last form is asked for all the same");
});

test("tools at work are one message, edited at most every 1.5 seconds, equal lines counted", async (t) => {
  const { call, advance, calls, texts } = await rig(t, { config: PROGRESS("all") });
  call("terminal", "ls");
  await advance(100);
  assert.deepEqual(texts(), ["💻 terminal: `ls`"]);
  for (let times = 0; times < 3; times++) call("terminal", "make");
  call("web_search", "a question about `herons` that is much longer than forty characters");
  await advance(1000);
  assert.equal(sends(calls).length, 1);
  await advance(600);
  assert.deepEqual(texts(), [
    "💻 terminal: `ls`\n💻 terminal: `make` (×3)\n🔍 web_search: `a question about herons that is much lo…`",
  ]);
  assert.equal(sends(calls).length, 2);
});

test("how much of the tools is shown goes by the settings", async (t) => {
  const play = async (config: string, entry: Partial<PlatformEntry> = {}) => {
    const { call, advance, texts } = await rig(t, { config, entry });
    call("terminal", "ls");
    call("terminal", "make");
    call("read_file", "a.txt");
    await advance(5000);
    return texts().join("\n").split("\n").filter(Boolean);
  };
  assert.deepEqual(await play("{}\n", { display: { tool_progress: "off" } }), []);
  assert.deepEqual(await play("display: { tool_progress: off }\n"), []);
  assert.deepEqual(await play(PROGRESS("new")), ["💻 terminal: `ls`", "📖 read_file: `a.txt`"]);
  assert.equal((await play("{}\n")).length, 3);
  assert.equal((await play("display: { tool_progress_overrides: { pigeon: new } }\n")).length, 2);
  const own = ", platforms: { pigeon: { tool_progress: new } }";
  assert.equal((await play(PROGRESS("all", own))).length, 2, "the platform's own setting wins");
  assert.deepEqual((await play(PROGRESS("verbose")))[0], '💻 terminal `{"command":"ls"}`');
  assert.deepEqual((await play(PROGRESS("all", ", tool_preview_length: 3")))[2], "📖 read_file: `a.…`");
});

test("secrets in what a tool is called with are masked", async (t) => {
  const { call, advance, texts } = await rig(t, { config: PROGRESS("all", ", tool_preview_length: 200") });
  call("terminal", "curl -H 'x: ghp_abcdefghijklmnopqrstuvwxyz0123456789'");
  await advance(100);
  assert.doesNotMatch(texts().join(), /abcdefghijklm/);
});

test("a full bubble, a text and a question begin a new one", async (t) => {
  const { call, advance, texts, end, live, chat } = await rig(t, { config: PROGRESS("all"), entry: { maxLength: 60 } });
  for (const word of ["one", "two", "three", "four"]) call("terminal", `run the program ${word}`);
  await advance(5000);
  assert.equal(chat.size, 4);
  end("A remark", "interim", false);
  call("terminal", "a");
  live.pause();
  live.resume();
  call("terminal", "b");
  await advance(5000);
  assert.deepEqual(texts().slice(4), ["A remark", "💻 terminal: `a`", "💻 terminal: `b`"]);
});

test("where messages cannot be edited, only what is new of the tools is sent", async (t) => {
  const { call, advance, texts } = await rig(t, { config: PROGRESS("all"), entry: { canEdit: false } });
  call("terminal", "a");
  await advance(100);
  call("terminal", "b");
  call("terminal", "c");
  await advance(3000);
  assert.deepEqual(texts(), ["💻 terminal: `a`", "💻 terminal: `b`\n💻 terminal: `c`"]);
});

test("bubbles go after a success where the settings say so, and stay after a failure", async (t) => {
  for (const [outcome, left] of [
    ["answered", 0],
    ["failed", 1],
  ] as const) {
    const { call, advance, during, live, chat } = await rig(t, { config: PROGRESS("all", ", cleanup_progress: true") });
    call("terminal", "a");
    await advance(100);
    await during(live.close(outcome));
    assert.equal(chat.size, left);
  }
});

test("typing is shown every two seconds while nobody is asked, bounded in time, and ends with the turn", async (t) => {
  const { advance, calls, live, during, faults, sleeping } = await rig(t);
  const typed = () => calls.filter(({ what }) => what === "typing").length;
  await advance(4100);
  assert.equal(typed(), 3);
  live.pause();
  await advance(10_000);
  assert.equal(typed(), 3);
  live.pause();
  live.resume();
  await advance(4000);
  assert.equal(typed(), 3, "another question still waits");
  live.resume();
  faults.typing = ["hang", "throw"];
  await advance(8000);
  assert.equal(typed(), 6, "one that hangs is given up after 1.5 seconds");
  await during(live.close("answered"));
  const before = typed();
  await advance(10_000);
  assert.deepEqual([typed(), sleeping()], [before, 0]);
});

test("a long turn shows one line that is edited, and takes it away at the end", async (t) => {
  const { advance, texts, live, during, chat } = await rig(t, { without: ["typing"] });
  await advance(179_000);
  assert.deepEqual(texts(), []);
  await advance(2000);
  assert.deepEqual(texts(), ["⏳ Working — 3 min"]);
  live.pause();
  await advance(180_000);
  assert.deepEqual(texts(), ["⏳ Working — 3 min"], "nobody works while a question waits");
  live.resume();
  await advance(180_000);
  assert.deepEqual(texts(), ["⏳ Working — 9 min"]);
  await during(live.close("answered"));
  assert.equal(chat.size, 0);
  const off = await rig(t, { config: "agent: { gateway_notify_interval: 0 }\n", without: ["typing"] });
  await off.advance(1000_000);
  assert.deepEqual(off.texts(), []);
});

test("over any chunks, pauses and limits nothing of an answer is lost or doubled", async (t) => {
  const open = await world(t, STREAMING);
  const chunk = fc.record({
    text: fc.constantFrom(
      "word ",
      "MEDIA:/tmp/a.png\n",
      "\n\n",
      "```\ncode\n```\n",
      "long ".repeat(60),
      "MED",
      "[[as_",
      "x",
      "é😀 ",
      "- ",
    ),
    pause: fc.constantFrom(0, 20, 60, 900),
    fault: fc.constantFrom<Fault | null>(
      null,
      null,
      null,
      limited(),
      limited(2),
      { failed: "format", error: "f" },
      "throw",
      {
        failed: "unreachable",
        error: "u",
      },
    ),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(chunk, { minLength: 1, maxLength: 25 }), fc.boolean(), async (chunks, canRemove) => {
      const { say, end, advance, during, live, chat, faults, settings, home, entry, texts, log, sleeping } = begin(
        open,
        {
          entry: { maxLength: 600 },
          without: canRemove ? [] : ["remove"],
        },
      );
      const text = chunks.map((one) => one.text).join("");
      for (const { text: delta, pause, fault } of chunks) {
        // A message that was sent and not confirmed is another matter: nobody can know of it.
        if (fault) faults.edit = [fault];
        say(delta);
        await advance(pause);
      }
      faults.edit = [];
      end(text, "final");
      const streamed = await during(live.streamed());
      assert.deepEqual([...chat.keys()], [...streamed], "what is in the chat is handed over");
      const { payloads, unused } = await composeAnswer(text, { home, settings, entry, streamed, origin: "chat" });
      let added = 0;
      for (const payload of payloads) {
        if (payload.type === "edit") chat.set(payload.messageId, { text: payload.text, final: true });
        if (payload.type === "text") chat.set(`new${added++}`, { text: payload.text, final: true });
      }
      await during(live.close("answered", canRemove ? unused : []));
      if (!canRemove) for (const id of unused) chat.delete(id);
      const { payloads: whole } = await composeAnswer(text, { home, settings, entry, origin: "chat" });
      assert.deepEqual(
        texts(),
        whole.flatMap((payload) => (payload.type === "text" ? [payload.text] : [])),
      );
      assert.deepEqual(
        log.lines.filter((line) => !line.startsWith("DEBUG")),
        [],
      );
      assert.equal(sleeping(), 0, "nothing runs on");
    }),
    { numRuns: fewer(60, 3) },
  );
});
