// Two thousand turns against a window of 128 K: what a turn costs beside the model, and memory, must not grow with the past.
import { FACTS, factOf, talkFor } from "../test/support/agent/endless-talk.ts";
import { benchStore, median, row } from "./measure.ts";

const TURNS = 2000;
const SAMPLE = 300;
/** Generous: a turn's cost swings with how full the window is. */
const TIME_BUDGET = 2;
const MEMORY_BUDGET = 1.5;

const { store, discard } = await benchStore();
try {
  const rss = new Map<number, number>();
  const { turnMs, compressions, lastText } = await talkFor(TURNS, {
    store,
    perTurn: 600,
    onTurn: (turn) => {
      if (turn === 999 || turn === TURNS - 1) rss.set(turn, process.memoryUsage().rss / 2 ** 20);
    },
  });
  // The first turns warm the code up.
  const early = median(turnMs.slice(SAMPLE, 2 * SAMPLE));
  const late = median(turnMs.slice(-SAMPLE));
  row("a turn beside the model, late / early", `${late.toFixed(2)} ms`, late / early, TIME_BUDGET, "early turns");
  const [before = 1, after = 1] = [rss.get(999), rss.get(TURNS - 1)];
  row("memory, turn 2,000 / turn 1,000", `${after.toFixed(0)} MB`, after / before, MEMORY_BUDGET, "turn 1,000");
  const sent = lastText();
  const kept = Array.from({ length: FACTS }, (_, index) => factOf(index)).filter((fact) => sent.includes(fact)).length;
  row("pinned facts still sent", `${kept} of ${FACTS}`, FACTS / Math.max(kept, 1), 1, "all of them");
  row("compressions", String(compressions.length), null, null, "");
} finally {
  await discard();
}
