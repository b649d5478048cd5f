import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Action, type BoardView, type CardView, type Limits, type OpenRun, plan, UNSEEN } from "./plan.ts";

const NOW = 1_000_000;
const limits: Limits = {
  ...{ failureLimit: 2, maxInProgress: 4, maxPerProfile: null, staleSeconds: 14_400, claimSeconds: 900 },
  ...{ cooldownSeconds: 300, defaultAssignee: null, maxStarts: null },
};
const card = (more: Partial<CardView> = {}): CardView => ({
  ...{ id: "t_1", title: "card", status: "ready", assignee: "ann", priority: 0, createdAt: 1, failures: 0 },
  ...{ maxRetries: null, lastError: null, openParents: [], isForced: false, isHeld: false, run: null, last: null },
  ...{ completedAt: null, pullRequestAt: null, guardedFor: null },
  ...more,
});
const running = (run: Partial<OpenRun>, more: Partial<CardView> = {}) =>
  card({
    status: "running",
    run: {
      ...{ id: 7, startedAt: NOW - 100, heartbeatAt: null, claimExpires: NOW + 800, maxSeconds: null },
      ...{ isDispatched: true, worker: { type: "alive" }, protocolStreak: 0 },
      ...run,
    },
    ...more,
  });
const view = (cards: readonly CardView[], more: Partial<BoardView> = {}): BoardView => ({
  ...{ now: NOW, cards, leftovers: [], profiles: new Set(["ann", "bob", "default"]), limits, finishedFolders: [] },
  ...more,
});
const dead = (code: number | null, words = "the worker ended with code 1: boom") =>
  ({ type: "dead", code, isSeen: true, words }) as const;
const unseen = { type: "dead", code: null, isSeen: false, words: UNSEEN } as const;

/** What becomes of one card, in a few words. */
function said(actions: readonly Action[]): string {
  return actions
    .map((action) => {
      if (action.type === "end" || action.type === "stop")
        return `${action.type} ${action.event ?? action.outcome}${action.limit === undefined ? "" : ` of ${action.limit}`}${action.givesUp ? " gives up" : ""}`;
      if (action.type === "wait" || action.type === "guard") return `${action.type} ${action.reason}`;
      return action.type === "extend" ? `extend +${action.until - NOW}` : action.type;
    })
    .join(", ");
}

const HOUR = 3600;
const cases: readonly (readonly [string, CardView, string, Partial<Limits>?])[] = [
  // Claims, in the order of the rules.
  ["a claim that holds is left alone", running({}), ""],
  ["a claim that runs out is extended while its worker lives", running({ claimExpires: NOW }), "extend +900"],
  [
    "with a heartbeat of less than an hour ago, too",
    running({ claimExpires: NOW, heartbeatAt: NOW - HOUR }),
    "extend +900",
  ],
  [
    "a worker that was silent for longer is stopped",
    running({ claimExpires: NOW, heartbeatAt: NOW - HOUR - 1 }),
    "stop reclaimed",
  ],
  [
    "a claim of another machine runs out",
    running({ claimExpires: NOW, worker: { type: "elsewhere" } }),
    "end reclaimed",
  ],
  ["and is left alone before", running({ worker: { type: "elsewhere" }, maxSeconds: 10 }), ""],
  [
    "a claim by hand runs out",
    running({ claimExpires: NOW, isDispatched: false, worker: { type: "none" } }),
    "end reclaimed",
  ],
  ["and is left alone before", running({ isDispatched: false, worker: { type: "none" } }), ""],
  [
    "a claim whose dispatcher died before the start is free at once",
    running({ worker: { type: "none" } }),
    "end reclaimed",
  ],
  // Stale.
  ["a worker that never said anything is stale in the end", running({ startedAt: NOW - 14_401 }), "stop stale"],
  ["not before", running({ startedAt: NOW - 14_400 }), ""],
  ["not with a sign of life in the last hour", running({ startedAt: NOW - 20_000, heartbeatAt: NOW - 3599 }), ""],
  ["not when that is turned off", running({ startedAt: NOW - 99_999 }), "", { staleSeconds: 0 }],
  ["a stale one is not extended instead", running({ startedAt: NOW - 14_401, claimExpires: NOW }), "stop stale"],
  // Processes that are gone.
  ["a crash counts", running({ worker: dead(1) }), "end crashed of 2"],
  ["the second one in a row is the last", running({ worker: dead(1) }, { failures: 1 }), "end crashed of 2 gives up"],
  [
    "the limit is the setting's",
    running({ worker: dead(1) }, { failures: 1 }),
    "end crashed of 5",
    { failureLimit: 5 },
  ],
  ["or the card's own", running({ worker: dead(1) }, { maxRetries: 1 }), "end crashed of 1 gives up"],
  ["a signal is a crash", running({ worker: dead(null) }), "end crashed of 2"],
  ["75 is a quota, and nobody's fault", running({ worker: dead(75) }, { failures: 1 }), "end rate_limited"],
  [
    "0 is the end of a worker that forgot its card",
    running({ worker: dead(0) }, { failures: 1 }),
    "end protocol_violation of 3",
  ],
  [
    "the third in a row is the last",
    running({ worker: dead(0), protocolStreak: 2 }),
    "end protocol_violation of 3 gives up",
  ],
  ["or the card's own number", running({ worker: dead(0) }, { maxRetries: 1 }), "end protocol_violation of 1 gives up"],
  ["a process that nobody saw may still show", running({ startedAt: NOW - 29, worker: unseen }), ""],
  ["from the start of this run on", running({ startedAt: NOW - 30, worker: unseen }), "end crashed of 2"],
  ["an end that was seen needs no such time", running({ startedAt: NOW - 1, worker: dead(1) }), "end crashed of 2"],
  [
    "an old claim of a process that is gone is only reclaimed",
    running({ claimExpires: NOW, worker: unseen }),
    "end reclaimed",
  ],
  // Time.
  ["an attempt that takes too long is stopped", running({ maxSeconds: 100 }), "stop timed_out of 2"],
  ["not before", running({ maxSeconds: 101 }), ""],
  ["also when its claim has run out", running({ maxSeconds: 100, claimExpires: NOW }), "stop timed_out of 2"],
  // Into line.
  ["what waits for nothing any more is promoted and started", card({ status: "todo" }), "promote, start"],
  ["what waits stays", card({ status: "todo", openParents: ["t_2"] }), ""],
  ["what was put aside stays", card({ status: "blocked", isHeld: true }), ""],
  ["what nobody put aside goes on", card({ status: "blocked" }), "promote, start"],
  ["what is ready and waits after all goes back", card({ openParents: ["t_2"] }), "hold_back"],
  ["unless a person forced it", card({ openParents: ["t_2"], isForced: true }), "start"],
  // Reasons.
  ["nobody's card waits", card({ assignee: null }), "wait unassigned"],
  [
    "or is given to the one who takes such cards",
    card({ assignee: null }),
    "assign, start",
    { defaultAssignee: "bob" },
  ],
  ["who has to exist", card({ assignee: null }), "wait unassigned", { defaultAssignee: "nobody" }],
  ["a lane waits for people", card({ assignee: "painters" }), "wait no_profile"],
  ["a full board", card(), "wait board_full", { maxInProgress: 0 }],
  ["a full profile", card(), "wait profile_full", { maxPerProfile: 0 }],
  ["enough for one look", card(), "wait look_full", { maxStarts: 0 }],
  ["a former worker that has not ended", card({ last: past({ isAlive: true }) }), "wait worker_ending"],
  [
    "a quota",
    card({ last: past({ outcome: "rate_limited", endedAt: NOW - 299 }) }),
    "guard rate_limited, wait rate_limited",
  ],
  ["is over after a while", card({ last: past({ outcome: "rate_limited", endedAt: NOW - 300 }) }), "start"],
  [
    "a guard is said once",
    card({ last: past({ outcome: "rate_limited" }), guardedFor: "rate_limited" }),
    "wait rate_limited",
  ],
  [
    "for each reason",
    card({ last: past({ outcome: "rate_limited" }), guardedFor: "open_pull_request" }),
    "guard rate_limited, wait rate_limited",
  ],
  [
    "an error about a key",
    card({ last: past({}), lastError: "HTTP 401: invalid API key" }),
    "guard quota_or_auth, wait quota_or_auth",
  ],
  [
    "in the words of this program",
    card({ last: past({}), lastError: "the worker ended with code 1: x.com did not accept the API key." }),
    "guard quota_or_auth, wait quota_or_auth",
  ],
  [
    "is tried again, so that it comes to its limit",
    card({ last: past({ endedAt: NOW - 300 }), lastError: "HTTP 429" }),
    "start",
  ],
  ["another error waits for nothing", card({ last: past({}), lastError: "exit code 1" }), "start"],
  ["what was just completed", card({ completedAt: NOW - 3599 }), "guard recently_completed, wait recently_completed"],
  ["is old after an hour", card({ completedAt: NOW - 3600 }), "start"],
  ["a pull request", card({ pullRequestAt: NOW - 86_399 }), "guard open_pull_request, wait open_pull_request"],
  ["is old after a day", card({ pullRequestAt: NOW - 86_400 }), "start"],
  ["a review may read of one", card({ status: "review", pullRequestAt: NOW - 1 }), "start"],
];

function past(more: Partial<NonNullable<CardView["last"]>>): NonNullable<CardView["last"]> {
  return { id: 6, outcome: "crashed", endedAt: NOW - 10, isAlive: false, ...more };
}

for (const [name, one, expected, change = {}] of cases)
  test(`${name}: ${expected || "nothing"}`, () =>
    assert.equal(said(plan(view([one], { limits: { ...limits, ...change } }))), expected));

test("three cards that end in the same way at one time are put aside at once, whatever their limits are", () => {
  const crash = (at: number, words: string) => running({ worker: dead(1, words) }, { id: `t_${at}`, maxRetries: 9 });
  const same = [1, 2, 3].map((at) => crash(at, `Error in process ${at}4711 at 0x000${at}9999: no model`));
  assert.equal(said(plan(view(same))), Array(3).fill("end crashed of 1 gives up").join(", "));
  assert.equal(said(plan(view(same.slice(0, 2)))), Array(2).fill("end crashed of 9").join(", "));
  const unlike = ["one", "two", "three"].map((words, at) => crash(at, words));
  assert.equal(said(plan(view(unlike))), Array(3).fill("end crashed of 9").join(", "));
  // A machine that was turned off took them all; that is nobody's error.
  const lost = [1, 2, 3].map((at) => running({ worker: unseen }, { id: `t_${at}`, maxRetries: 9 }));
  assert.equal(said(plan(view(lost))), Array(3).fill("end crashed of 9").join(", "));
});

test("higher priorities come first, then older cards, reviews last; a place is free once its process is gone", () => {
  const cards = [
    card({ id: "late", createdAt: 9 }),
    card({ id: "early", createdAt: 2 }),
    card({ id: "urgent", createdAt: 5, priority: 3 }),
    card({ id: "review", status: "review", priority: 9 }),
    running({ worker: dead(1) }, { id: "gone" }),
    running({ maxSeconds: 1 }, { id: "slow" }),
  ];
  const of = (maxInProgress: number) =>
    plan(view(cards, { limits: { ...limits, maxInProgress } })).flatMap((one) =>
      one.type === "start" ? [one.card] : [],
    );
  assert.deepEqual([of(1), of(2), of(4)], [[], ["urgent"], ["urgent", "early", "late"]]);
  assert.deepEqual(of(5), ["urgent", "early", "late", "review"]);
});

test("former workers get a minute, then they are stopped; folders of finished cards are removed", () => {
  const leftovers = [
    { card: "t_1", run: 1, endedAt: NOW - 59 },
    { card: "t_2", run: 2, endedAt: NOW - 60 },
  ];
  const actions = plan(view([], { leftovers, finishedFolders: ["t_3"] }));
  assert.deepEqual(actions, [
    { type: "stop_leftover", card: "t_2", run: 2 },
    { type: "clean", card: "t_3" },
  ]);
});

// Laws.

const anyTime = fc.integer({ min: NOW - 100_000, max: NOW + 1000 });
const anyWorker = fc.oneof(
  fc.constantFrom({ type: "none" } as const, { type: "alive" } as const, { type: "elsewhere" } as const, unseen),
  fc.constantFrom(0, 1, 75, null).map((code) => dead(code)),
);
const anyRun: fc.Arbitrary<OpenRun> = fc.record({
  ...{ id: fc.nat(99), startedAt: anyTime, heartbeatAt: fc.option(anyTime), claimExpires: fc.option(anyTime) },
  ...{ maxSeconds: fc.option(fc.nat(9999)), isDispatched: fc.boolean(), worker: anyWorker, protocolStreak: fc.nat(3) },
});
const anyCard = fc
  .record({
    status: fc.constantFrom("ready", "ready", "running", "todo", "blocked", "review"),
    assignee: fc.constantFrom(null, "ann", "bob", "stranger"),
    ...{ priority: fc.nat(2), createdAt: fc.nat(5), failures: fc.nat(2), maxRetries: fc.option(fc.nat(3)) },
    lastError: fc.constantFrom(null, "quota exceeded", "boom"),
    openParents: fc.constantFrom([], [], ["t_9"]),
    ...{ isForced: fc.boolean(), isHeld: fc.boolean(), run: anyRun },
    last: fc.option(
      fc.record({
        id: fc.nat(),
        outcome: fc.constantFrom("crashed", "rate_limited", "completed"),
        ...{ endedAt: anyTime, isAlive: fc.boolean() },
      }),
    ),
    ...{ completedAt: fc.option(anyTime), pullRequestAt: fc.option(anyTime), guardedFor: fc.constant(null) },
  })
  .map(({ run, last, ...rest }) => {
    const isRunning = rest.status === "running";
    return card({ ...rest, run: isRunning ? run : null, last: isRunning ? null : last });
  });
const anyView = fc
  .record({
    cards: fc.array(anyCard, { maxLength: 14 }),
    maxInProgress: fc.option(fc.nat(5)),
    maxPerProfile: fc.option(fc.nat(3)),
    maxStarts: fc.option(fc.nat(3)),
    defaultAssignee: fc.constantFrom(null, "bob", "stranger"),
  })
  .map(({ cards, ...change }) =>
    view(
      cards.map((one, at) => ({ ...one, id: `t_${at}` })),
      { limits: { ...limits, ...change } },
    ),
  );

test("whatever a board looks like, no more run than may, and everything that is ready runs or waits for a reason", () => {
  fc.assert(
    fc.property(anyView, (board) => {
      const actions = plan(board);
      assert.deepEqual(plan(board), actions, "the same board, the same plan");
      const of = <Type extends Action["type"]>(type: Type) =>
        actions.filter((one): one is Extract<Action, { type: Type }> => one.type === type);
      const byId = new Map(board.cards.map((one) => [one.id, one]));
      const started = of("start");
      const gone = new Set(of("end").map((one) => one.card));
      const still = board.cards.filter(({ id, status }) => status === "running" && !gone.has(id));
      const { maxInProgress, maxPerProfile, maxStarts } = board.limits;
      if (started.length > 0) {
        assert.ok(still.length + started.length <= (maxInProgress ?? Number.POSITIVE_INFINITY));
        assert.ok(started.length <= (maxStarts ?? Number.POSITIVE_INFINITY));
      }
      for (const assignee of new Set(started.map((one) => one.assignee))) {
        const theirs = [
          ...still.filter((one) => one.assignee === assignee),
          ...started.filter((one) => one.assignee === assignee),
        ];
        assert.ok(theirs.length <= (maxPerProfile ?? Number.POSITIVE_INFINITY), `too many for ${assignee}`);
      }
      for (const { card: id, assignee } of started) {
        const one = byId.get(id);
        assert.ok(one && one.status !== "running" && board.profiles.has(assignee));
        assert.ok(one.isForced || one.openParents.length === 0, "it waits for others");
        assert.ok(!one.last?.isAlive, "its former worker lives");
        assert.ok(!(one.status === "blocked" && one.isHeld), "somebody put it aside");
      }
      const promoted = new Set(of("promote").map((one) => one.card));
      const ends = ["start", "wait", "hold_back"];
      for (const one of board.cards) {
        const answers = actions.filter((action) => action.card === one.id && ends.includes(action.type));
        const isInLine = one.status === "ready" || one.status === "review" || promoted.has(one.id);
        assert.equal(answers.length, isInLine ? 1 : 0, `${one.status} ${one.id}`);
        const judged = actions.filter(
          ({ card: id, type }) => id === one.id && ["end", "stop", "extend"].includes(type),
        );
        assert.ok(judged.length <= (one.status === "running" ? 1 : 0));
        for (const action of judged) {
          const worker = one.run?.worker.type;
          if (action.type === "end") assert.notEqual(worker, "alive", "its process goes first");
          if (action.type === "stop") assert.equal(worker, "alive", "there is nothing to stop");
        }
      }
    }),
    { numRuns: 2000 },
  );
});
