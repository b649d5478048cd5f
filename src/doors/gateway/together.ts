// Which of the messages that wait in a chat are one turn.
import type { InboxRow } from "../../sessions/work.ts";
import type { QueuedMessage } from "./reply.ts";
import type { TurnPorts } from "./turn.ts";

/** So much of what was only overheard comes along. */
export const MOST_OBSERVED = 50;
/** Seconds between two texts that are answered together because a turn ran, and from the first of them to the last. */
const BREATH = 0.35;
const LONGEST_BREATH = 1;

interface Bearing extends Pick<TurnPorts, "bot"> {
  /** Texts that came while a turn of their chat ran, and that it goes on in spite of. */
  readonly meanwhile: ReadonlySet<number>;
  /** How long the owner wants to wait, times what is usual. */
  readonly batch: number;
}

export const messageIn = ({ event }: InboxRow) => event as QueuedMessage; // written by us

/** Goals come after everything that people said. */
export const goalsLast = (one: InboxRow, other: InboxRow) =>
  Number(one.kind === "goal") - Number(other.kind === "goal") || one.id - other.id;

/** Messages that belong together: what was only overheard comes along with the next one that is meant for us. */
export function together(rows: readonly InboxRow[], bearing: Bearing): readonly InboxRow[] {
  const meant = rows.findIndex((row) => !messageIn(row).observed);
  if (meant === -1) return [];
  const group = [...rows.slice(Math.max(0, meant - MOST_OBSERVED), meant + 1)];
  for (const next of rows.slice(meant + 1)) {
    const last = group.at(-1);
    if (!last || !(belong(last, next, bearing) || inOneBreath(group, next, bearing))) break;
    group.push(next);
  }
  return group;
}

/** Seconds that a message waits for what belongs to it. */
export function windowOf(row: InboxRow, { bot, batch }: Bearing): number {
  const message = messageIn(row);
  if (message.queued) return 0;
  return (bot(message.source.platform).entry.batchSeconds?.(message) ?? 0) * batch;
}

function belong(last: InboxRow, next: InboxRow, bearing: Bearing): boolean {
  if (!areOfOne(last, next)) return false;
  const window = windowOf(last, bearing);
  // Some platforms tell the time in whole seconds.
  return window > 0 && messageIn(next).sentAt - messageIn(last).sentAt <= Math.ceil(window);
}

/** They came in quick succession while a turn ran, whatever the platform waits for otherwise. */
function inOneBreath(group: readonly InboxRow[], next: InboxRow, { meanwhile, batch }: Bearing): boolean {
  const [first, last] = [group.find(({ id }) => meanwhile.has(id)), group.at(-1)];
  if (!first || !last || !meanwhile.has(last.id) || !meanwhile.has(next.id)) return false;
  const since = (row: InboxRow) => next.receivedAt - row.receivedAt;
  // What a platform hands out late, all at once, was not written so.
  const isLive = messageIn(next).sentAt - messageIn(last).sentAt <= 1;
  return areOfOne(last, next) && isLive && since(last) <= BREATH * batch && since(first) <= LONGEST_BREATH * batch;
}

/** Two texts of one person that may be one turn. */
function areOfOne(last: InboxRow, next: InboxRow): boolean {
  const [one, other] = [messageIn(last), messageIn(next)];
  if (last.kind !== "user" || next.kind !== "user" || one.queued || other.queued) return false;
  return !other.observed && one.source.user_id === other.source.user_id;
}
