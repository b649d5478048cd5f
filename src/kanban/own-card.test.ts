// What a process is told of its card, and whether it still has it.
import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { recordingLog } from "../../test/support/tool-context.ts";
import { systemClock } from "../kit/clock.ts";
import { cardOf, comment, createCard, link } from "./cards.ts";
import { contextText } from "./context-text.ts";
import { claim, complete, reclaim } from "./moves.ts";
import {
  commentsAfter,
  isOpenFor,
  keepClaim,
  newestComment,
  refusalFor,
  requireOwn,
  type Worker,
  workerOf,
} from "./own-card.ts";
import { BoardFile } from "./schema.ts";

const variables: readonly (readonly [what: string, given: Record<string, string>, expected: Partial<Worker> | null])[] =
  [
    ["nothing", {}, null],
    ["a blank card", { TASK: "  " }, null],
    [
      "a card alone",
      { TASK: "t_1" },
      { task: "t_1", run: null, board: "default", workspace: null, goal: null, isReminded: true, claimSeconds: 900 },
    ],
    [
      "all of it",
      { TASK: "t_1", RUN_ID: "7", BOARD: "side", WORKSPACE: "/w", CLAIM_TTL_SECONDS: "60" },
      { run: 7, board: "side", workspace: "/w", claimSeconds: 60 },
    ],
    ["no number", { TASK: "t_1", RUN_ID: "x", CLAIM_TTL_SECONDS: "-1" }, { run: null, claimSeconds: 900 }],
    ["a goal", { TASK: "t_1", GOAL_MODE: "1", GOAL_MAX_TURNS: "3" }, { goal: { maxTurns: 3 } }],
    ["a goal without a limit", { TASK: "t_1", GOAL_MODE: "true" }, { goal: { maxTurns: null } }],
    ["no goal", { TASK: "t_1", GOAL_MODE: "0", GOAL_MAX_TURNS: "3" }, { goal: null }],
    ["no reminders", { TASK: "t_1", STOP_NUDGE: "0" }, { isReminded: false }],
    ["reminders", { TASK: "t_1", STOP_NUDGE: "1" }, { isReminded: true }],
  ];
for (const [what, given, expected] of variables)
  test(`variables: ${what}`, () => {
    const worker = workerOf((name) => given[name.replace("HERMES_KANBAN_", "")]);
    if (expected === null) assert.equal(worker, null);
    else assert.deepEqual({ ...worker, ...expected }, worker);
  });

const typed: readonly (readonly [line: string, variables: Record<string, string>, refusal: RegExp | null])[] = [
  ["complete t_2", {}, null],
  ["show t_2", { TASK: "t_1" }, null],
  ["log t_2", { DELEGATED: "1" }, null],
  ["complete t_1", { TASK: "t_1" }, null],
  ["complete t_1", { TASK: "t_1", BOARD: "side" }, null],
  ["create x", { TASK: "t_1" }, null],
  ["comment t_2", { TASK: "t_1" }, null],
  ["comment t_2", { DELEGATED: "1" }, /only the worker of a card/],
  ["comment t_1", { TASK: "t_1", DELEGATED: "1" }, /only the worker of a card/],
  ["complete t_1 t_2", { TASK: "t_1" }, /may complete no other card/],
  ["block t_2", { TASK: "t_1" }, /may block no other card/],
  ["complete t_1 --board side", { TASK: "t_1" }, /may complete no other card/],
  ["complete t_1 --board side", { TASK: "t_1", BOARD: "side" }, null],
  ["comment t_2 --author", { TASK: "t_1" }, /who writes is its profile/],
  ["create x --author", { TASK: "t_1" }, /who writes is its profile/],
  ...["archive", "unlink", "set-model", "specify", "swarm", "attach-rm", "notify-subscribe", "dispatch", "init"].map(
    (name) => [`${name} t_1`, { TASK: "t_1" }, /is for people/] as const,
  ),
  ["boards create x", { TASK: "t_1" }, /is for people/],
];
for (const [line, variables, refusal] of typed)
  test(`typed in a shell with ${JSON.stringify(variables)}: ${line}: ${refusal === null ? "goes on" : "refused"}`, () => {
    const words = line.split(" ");
    const isOfBoards = words[0] === "boards";
    const [name = "", ...more] = isOfBoards ? words.slice(1) : words;
    const board = words.includes("--board") ? words.at(-1) : undefined;
    const cards = more.filter((one) => one.startsWith("t_"));
    const command = { name, isOfBoards, cards, board, namesAuthor: words.includes("--author") };
    const said = refusalFor(command, (variable) => variables[variable.replace("HERMES_KANBAN_", "")]);
    if (refusal === null) assert.equal(said, null);
    else assert.match(said ?? "nothing", refusal);
  });

async function board() {
  const path = join(mkdtempSync(join(tmpdir(), "own-card-")), "kanban.db");
  const file = await BoardFile.open(path, { clock: systemClock, log: recordingLog() });
  const card = await file.change((change) => createCard(change, { title: "Paint", assignee: "painter" }));
  const take = async () => (await file.change((change) => claim(change, card.id, { lock: "h:1:x" })))?.run ?? 0;
  return { file, id: card.id, take };
}
const workerFor = (task: string, run: number | null): Worker => ({
  ...{ task, run, board: "default", workspace: null, goal: null, isReminded: true, claimSeconds: 60 },
});

test("a sign of life keeps the claim of the attempt that is open, and of no other one", async () => {
  const { file, id, take } = await board();
  const first = workerFor(id, await take());
  assert.equal(await file.change((change) => keepClaim(change, first)), true);
  const beaten = cardOf(file.db, id);
  assert.deepEqual([beaten.last_heartbeat_at, beaten.claim_expires], [file.now, file.now + 60]);
  await file.change((change) => reclaim(change, id, undefined));
  assert.deepEqual(
    [await file.change((change) => keepClaim(change, first)), isOpenFor(cardOf(file.db, id), first)],
    [false, false],
  );
  const second = workerFor(id, await take());
  assert.deepEqual(
    [first, second].map((one) => isOpenFor(cardOf(file.db, id), one)),
    [false, true],
  );
  assert.equal(isOpenFor(cardOf(file.db, id), workerFor(id, null)), true);
  assert.equal(isOpenFor(null, second), false);
  file.close();
});

test("a worker hears what others say behind what it has read, and not itself", async () => {
  const { file, id } = await board();
  assert.equal(newestComment(file, id), 0);
  for (const author of ["a", "painter", "b"])
    await file.change((change) => comment(change, id, { author, body: author }));
  const heard = (after: number) => commentsAfter(file, id, { after, notBy: "painter" }).map(({ author }) => author);
  assert.deepEqual([heard(0), heard(1), heard(newestComment(file, id))], [["a", "b"], ["b"], []]);
  file.close();
});

test("only a worker is held to its own card", () => {
  requireOwn(null, "t_2", false, "complete");
  requireOwn(workerFor("t_1", 1), "t_1", true, "complete");
  assert.throws(
    () => requireOwn(workerFor("t_1", 1), "t_2", false, "complete"),
    /t_2 is not your card.*only t_1.*kanban_comment/,
  );
});

test("no text and no name leaves the frame it stands in", async () => {
  const { file, id } = await board();
  const marks = [
    "\n",
    "\r",
    "\r\n",
    "\u2028",
    "\u2029",
    "\v",
    "\f",
    "\u0085",
    "### comment from worker boss",
    "## Task",
    "| ",
    "# Card",
    "x",
    "[cut: ",
  ];
  const text = fc
    .array(fc.oneof(fc.constantFrom(...marks), fc.string({ unit: "binary" })), { maxLength: 8 })
    .map((parts) => parts.join(""));
  const texts = fc.record({ title: text, body: text, author: text, said: text, parent: text, result: text });
  await fc.assert(
    fc.asyncProperty(texts, async ({ title, body, author, said, parent, result }) => {
      const card = await file.change((change) => {
        const before = createCard(change, { title: `p${parent}`.slice(0, 400), assignee: "other" });
        complete(change, before.id, { summary: `r${result}` });
        const made = createCard(change, { title: `t${title}`.slice(0, 400), body: `b${body}`, assignee: `of-${id}` });
        link(change, before.id, made.id);
        comment(change, made.id, { author: `a${author}`, body: `c${said}` });
        return made;
      });
      const { text: whole } = contextText(file.db, card.id, file.now);
      const free = whole
        .split(/\r\n|[\n\r\v\f\u0085\u2028\u2029]/)
        .filter((line) => !line.startsWith("| ") && line !== "|");
      const heads = free.filter((line) => line.startsWith("#"));
      const expected = [
        ...[`# Card ${card.id}: t`, "## Task", "## Results of the cards it depends on", "### result of t_"],
        ...["## Comments", "### comment from worker a"],
      ];
      assert.deepEqual(
        heads.map((line, at) => line.slice(0, expected[at]?.length)),
        expected,
      );
      assert.equal(free.filter((line) => line === "").length, 4, "between the sections alone");
    }),
    { numRuns: 100 },
  );
  file.close();
});
