// Everything a person can do to a chat, in any order, while the model takes its time: never two turns of one chat at once, no message without
// an end, nothing answered twice.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { answerTurns, ModelServer, startGateway, until } from "./support/gateway-rig.ts";
import { paperHome, rowsOf } from "./support/paper-home.ts";
import { PaperServer } from "./support/platforms/paper-server.ts";
import { fewer, seedFor } from "./support/sample.ts";

type Act =
  | { readonly type: "say" | "edit" | "delete" | "stop" | "new" | "queue" | "steer" | "status" | "approve" | "replay" }
  /** `meet`: until a turn of the chat is at the model, which holds it then, each for so long at most. A busy machine would begin none before all is said. */
  | { readonly type: "meet" | "wait"; readonly ms: number };

const met = { type: "meet", ms: 30_000 } as const;
/** On every machine: a turn that is stopped while the model works on it, and one that is left for a new conversation. */
const GIVEN_UP: readonly Act[] = [{ type: "say" }, met, { type: "stop" }, { type: "say" }, met, { type: "new" }];

const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 5, arbitrary: fc.constant({ type: "say" as const }) },
  {
    weight: 6,
    arbitrary: fc.constantFrom(
      ...(["edit", "delete", "stop", "new", "queue", "steer", "status", "approve", "replay"] as const).map((type) => ({
        type,
      })),
    ),
  },
  { weight: 3, arbitrary: fc.constant({ type: "meet" as const, ms: 1000 }) },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 60 }).map((ms) => ({ type: "wait" as const, ms })) },
);

for (const mode of ["interrupt", "queue", "steer"])
  test(`mode ${mode}: chats in any order of messages, edits, stops and commands`, async () => {
    const model = await ModelServer.start();
    const paper = await PaperServer.start();
    const home = await paperHome(model, paper, {
      // A review after the tenth turn runs beside the eleventh, as it may.
      config: `display:\n  busy_input_mode: ${mode}\napprovals:\n  destructive_slash_confirm: false\nmemory:\n  nudge_interval: 0\n`,
      gateway: "  max_concurrent_turns: 6\n",
    });
    const running = new Map<string, Set<{ met: boolean }>>();
    const meetings: Meetings = new Map();
    let interrupted = 0;
    /** Settled when it is known of each turn that met another one whether it had hung up by then. */
    const verdicts: Promise<string | null>[] = [];
    answerTurns(model, async ({ body, clientLeft }) => {
      const chat = /DM with (chat\d+)/.exec(String(body.messages[0].content))?.[1] ?? "?";
      const turns = running.get(chat) ?? new Set();
      running.set(chat, turns);
      for (const other of turns) other.met = true;
      const turn = { met: false };
      turns.add(turn);
      // A turn that was interrupted has hung up; this server may hear the next one's request before it hears that, on a busy machine long before.
      const left = clientLeft.then(() => true);
      const meeting = meetings.get(chat);
      meetings.delete(chat);
      meeting?.reached();
      const isOver = await Promise.race([left, sleep(meeting?.ms ?? Math.random() * 40)]);
      if (isOver) interrupted++;
      if (turn.met && !isOver) {
        const verdict = Promise.race([left, sleep(10_000)]).then((hasLeft) => (hasLeft ? null : chat));
        verdicts.push(verdict);
        await verdict;
      }
      turns.delete(turn);
      const last = [...body.messages].reverse().find(({ role }: { role: string }) => role === "user");
      return {
        text: `heard: ${String(last?.content)
          .match(/t\d+x\d+/g)
          ?.at(-1)}`,
      };
    });
    const gateway = await startGateway(home);
    try {
      const drawn = { numRuns: fewer(100, 6), seed: seedFor(`races ${mode}`) };
      const scripts = [GIVEN_UP, ...fc.sample(fc.array(act, { minLength: 4, maxLength: 14 }), drawn)];
      await Promise.all(scripts.map((script, chat) => play(paper, `chat${chat}`, script, meetings)));
      for (const [chat] of scripts.entries()) paper.say(`chat${chat}`, `t${chat}x999`);
      const isOver = (chat: number) =>
        paper.textsOf(`chat${chat}`).some((text) => text.includes(`heard: t${chat}x999`));
      const allOver = () => scripts.every((_, chat) => isOver(chat));
      const ended = () => rowsOf(home, "SELECT 1 FROM inbox WHERE state = 'done'").length;
      // As long as a busy machine needs, but no chat may stand still.
      for (let last = -1; !allOver(); last = ended())
        await until("every chat answers its last message", () => allOver() || ended() > last, 60_000);
      await until(
        "nothing waits",
        () => rowsOf(home, "SELECT 1 FROM inbox WHERE state = 'queued'").length === 0,
        30_000,
      );
      const together = (await Promise.all(verdicts)).filter((chat) => chat !== null);
      assert.deepEqual(together, [], "one turn of a chat at a time");
      assert.ok(interrupted >= 2, "turns were given up while the model worked on them");
      const ends = rowsOf(home, "SELECT state, outcome FROM inbox");
      assert.ok(
        ends.every(({ state, outcome }) => state === "done" && outcome !== null),
        "each row has an end",
      );
      for (const [chat] of scripts.entries()) {
        const heard = paper.textsOf(`chat${chat}`).flatMap((text) => text.match(/^heard: (t\d+x\d+)$/m)?.[1] ?? []);
        assert.deepEqual(heard, [...new Set(heard)], `chat${chat} hears nothing twice`);
      }
      // What was written in one breath is one turn.
      const answered = rowsOf(home, "SELECT DISTINCT message_id FROM inbox WHERE outcome = 'answered'").length;
      const causes = rowsOf(
        home,
        `SELECT DISTINCT cause FROM outbox WHERE cause LIKE 'inbox:%' AND payload LIKE '%"text":"heard: %'`,
      ).length;
      assert.equal(causes, answered, "each turn that was answered has its answer, and no other has one");
    } finally {
      await gateway.kill();
      await paper.close();
      await model.close();
      await home[Symbol.asyncDispose]();
    }
  });

/** By chat: who waits for a turn of it, and how long the model holds that. */
type Meetings = Map<string, { readonly ms: number; reached(): void }>;

async function play(paper: PaperServer, chat: string, script: readonly Act[], meetings: Meetings): Promise<void> {
  const number = chat.slice(4);
  let said = 0;
  let last = 0;
  const text = () => `t${number}x${said++}`;
  for (const one of script)
    switch (one.type) {
      case "wait":
        await sleep(one.ms);
        break;
      case "meet":
        await Promise.race([
          new Promise<void>((reached) => meetings.set(chat, { ms: one.ms, reached })),
          sleep(one.ms, undefined, { ref: false }),
        ]);
        meetings.delete(chat);
        break;
      case "say":
        last = paper.say(chat, text());
        break;
      case "edit":
        if (last > 0) paper.edit(last, text());
        break;
      case "delete":
        if (last > 0) paper.edit(last, null);
        break;
      case "replay":
        paper.replayFrom = Math.max(0, last - 5);
        break;
      case "queue":
      case "steer":
        paper.say(chat, `/${one.type} ${text()}`);
        break;
      default:
        paper.say(chat, `/${one.type}`);
    }
}
