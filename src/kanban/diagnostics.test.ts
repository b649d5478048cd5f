import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { recordedLog } from "../../test/support/session-store.ts";
import { systemClock } from "../kit/clock.ts";
import { createCard, note } from "./cards.ts";
import { diagnose } from "./diagnostics.ts";
import { archive, block, claim, complete, unblock } from "./moves.ts";
import { endRun } from "./runs.ts";
import { BoardFile, type Change } from "./schema.ts";

const HOUR = 3600;
const DAY = 24 * HOUR;
const START = 1_700_000_000;

describe("what looks wrong", () => {
  let folder: string;
  let board: BoardFile;
  let now = START;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "hermes-diagnostics-"));
    const clock = { ...systemClock, now: () => now * 1000 };
    board = await BoardFile.open(join(folder, "kanban.db"), { clock, log: recordedLog() });
  });
  after(async () => {
    board.close();
    await rm(folder, { recursive: true, force: true });
  });

  const crash = (change: Change, id: string, error = "out of memory") => {
    const claimed = claim(change, id, { lock: "h:1:a" });
    assert.ok(claimed);
    endRun(change, id, { run: claimed.run, outcome: "crashed", error, limit: 9 });
  };
  /** How a card comes to be, how long ago that was, and what is found; "" = nothing. */
  const cases: readonly (readonly [string, (change: Change, id: string) => void, age: number, found: string])[] = [
    ["a card that was just made", () => undefined, 10, ""],
    ["ready for an hour", () => undefined, HOUR, "warning stranded_in_ready no worker was started"],
    ["ready for a day", () => undefined, DAY, "error stranded_in_ready"],
    [
      "ready, and its assignee is no profile",
      ({ db }, id) => void db.run("UPDATE tasks SET assignee = 'painter' WHERE id = ?", id),
      ...([HOUR, "warning stranded_in_ready painter is no profile"] as const),
    ],
    [
      "ready, and nobody's",
      ({ db }, id) => void db.run("UPDATE tasks SET assignee = NULL WHERE id = ?", id),
      ...([HOUR, "warning stranded_in_ready nobody is assigned"] as const),
    ],
    ["blocked for an hour", (change, id) => void block(change, id, { reason: "x" }), HOUR, ""],
    ["blocked for a day", (change, id) => void block(change, id, { reason: "x" }), DAY, "warning long_blocked"],
    ["blocked for a week", (change, id) => void block(change, id, { reason: "x" }), 7 * DAY, "error long_blocked"],
    [
      "blocked and unblocked three times",
      (change, id) => {
        for (let round = 0; round < 3; round++) {
          block(change, id, { reason: "x" });
          unblock(change, id, undefined);
        }
      },
      ...([10, "warning block_cycling 3 times"] as const),
    ],
    ["one crash", crash, 10, ""],
    [
      "two crashes",
      (change, id) => {
        crash(change, id);
        crash(change, id);
      },
      ...([10, "error repeated_failures 2 times, error repeated_crashes out of memory"] as const),
    ],
    [
      "four crashes",
      (change, id) => {
        for (let round = 0; round < 4; round++) crash(change, id);
      },
      ...([10, "critical repeated_failures, critical repeated_crashes"] as const),
    ],
    [
      "crashes that a completion has answered",
      (change, id) => {
        crash(change, id);
        crash(change, id);
        complete(change, id, { summary: "ok" });
      },
      ...([10, ""] as const),
    ],
    [
      "a completion that was refused for cards that do not exist",
      (change, id) =>
        void note(change, {
          card: id,
          kind: "completion_blocked_hallucination",
          payload: { phantom_cards: ["t_deadbeef"] },
        }),
      ...([10, "error phantom_cards t_deadbeef"] as const),
    ],
    [
      "a summary that names a card that does not exist",
      (change, id) => void complete(change, id, { summary: `follow-ups: t_deadbeef and ${id}` }),
      ...([10, "warning phantom_ids_in_prose t_deadbeef"] as const),
    ],
    [
      "an idea that could not be split",
      ({ db }, id) =>
        void db.run("UPDATE tasks SET status = 'triage', last_failure_error = 'no JSON' WHERE id = ?", id),
      ...([10, "warning triage_without_model no JSON"] as const),
    ],
  ];
  for (const [what, make, age, found] of cases)
    test(`${what}: ${found || "nothing"}`, async () => {
      now = START;
      const id = await board.change((change) => {
        const card = createCard(change, { title: what, assignee: "default" });
        make(change, card.id);
        return card.id;
      });
      const surroundings = { now: START + age, hasModel: true, isProfile: (name: string) => name === "default" };
      const diagnoses = diagnose(board.db, surroundings, { card: id });
      const lines = diagnoses.map(({ severity, kind, message }) => `${severity} ${kind} ${message}`);
      const wanted = found === "" ? [] : found.split(", ");
      assert.equal(lines.length, wanted.length, lines.join("\n"));
      for (const one of wanted)
        assert.ok(
          lines.some((line) => one.split(" ").every((word) => line.includes(word))),
          `${one} in ${lines.join("\n")}`,
        );
      for (const { actions } of diagnoses)
        assert.ok(actions.length > 0 && actions.every((action) => action.startsWith("hermes ")));
      const bad = diagnose(board.db, surroundings, { card: id, severity: "error" });
      assert.ok(bad.every(({ severity }) => severity !== "warning"));
      await board.change((change) => archive(change, id));
      assert.deepEqual(diagnose(board.db, surroundings, { card: id }), [], "what is off the board is nobody's trouble");
    });

  test("an idea where no model is connected is an error, and the worst comes first", async () => {
    await board.change((change) => createCard(change, { title: "idea", triage: true }));
    await board.change((change) => createCard(change, { title: "old", assignee: "default" }));
    const found = diagnose(board.db, { now: now + HOUR, hasModel: false, isProfile: () => true });
    assert.deepEqual(
      found.map(({ severity, kind }) => `${severity} ${kind}`),
      ["error triage_without_model", "warning stranded_in_ready"],
    );
    assert.match(found[0]?.actions[0] ?? "", /hermes model/);
  });
});
