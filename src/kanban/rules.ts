// Which change a card's state allows, and where it leads. Pure: facts in, the next state or a refusal out.
import type { BlockKind, CardStatus } from "./schema.ts";

/** Facts about a card that decide about its next state. */
export interface CardFacts {
  readonly status: CardStatus;
  /** Parents that are neither done nor archived. */
  readonly openParents: readonly string[];
  /** A person let it run although parents are open. */
  readonly isForced: boolean;
  /** Kinds of its blocks since it was last completed, promoted by hand or specified, oldest first. */
  readonly blockKinds: readonly (BlockKind | null)[];
}

export type Move =
  | { readonly type: "complete" }
  | { readonly type: "block"; readonly kind: BlockKind | null }
  | { readonly type: "unblock" }
  | { readonly type: "promote"; readonly force: boolean }
  | { readonly type: "schedule" }
  | { readonly type: "archive" }
  | { readonly type: "specify"; readonly as?: "specified" | "decomposed" };

/** `event` names what happened, for whoever follows the board. */
type Verdict =
  | { readonly to: CardStatus; readonly event: string; readonly recurrences?: number }
  | { readonly refused: string };

const FROM: Readonly<Record<Move["type"], ReadonlySet<CardStatus>>> = {
  complete: new Set(["running", "ready", "blocked"]),
  block: new Set(["running", "ready"]),
  unblock: new Set(["blocked", "scheduled"]),
  promote: new Set(["todo", "blocked"]),
  schedule: new Set(["todo", "ready", "running", "blocked"]),
  archive: new Set(["triage", "todo", "scheduled", "ready", "running", "blocked", "review", "done"]),
  specify: new Set(["triage"]),
};

/** A second block for the same reason is no accident: somebody has to look at the card itself. */
const LOOP = 2;

export function judge(card: CardFacts, move: Move): Verdict {
  if (!FROM[move.type].has(card.status))
    return {
      refused: `it is ${card.status}; only cards that are ${[...FROM[move.type]].join(", ")} can be ${PAST[move.type]}`,
    };
  const waits = card.openParents.length > 0;
  const free: CardStatus = waits ? "todo" : "ready";
  switch (move.type) {
    case "complete":
      return waits && !card.isForced
        ? { refused: `it depends on cards that are not done: ${card.openParents.join(", ")}` }
        : { to: "done", event: "completed" };
    case "block":
      return block(card, move.kind);
    case "unblock":
      return { to: free, event: "unblocked" };
    case "promote":
      return waits && !move.force
        ? {
            refused: `it depends on cards that are not done: ${card.openParents.join(", ")}; --force starts it anyway`,
          }
        : { to: "ready", event: "promoted_manual", recurrences: 0 };
    case "schedule":
      return { to: "scheduled", event: "scheduled" };
    case "archive":
      return { to: "archived", event: "archived" };
    case "specify":
      return { to: "todo", event: move.as ?? "specified", recurrences: 0 };
  }
}

function block(card: CardFacts, kind: BlockKind | null): Verdict {
  if (kind === "dependency")
    return card.openParents.length > 0
      ? { to: "todo", event: "dependency_wait" }
      : { refused: "it depends on no open card; link the card it waits for first, then block it" };
  const recurrences = kind === null ? 0 : card.blockKinds.filter((one) => one === kind).length + 1;
  return recurrences >= LOOP
    ? { to: "triage", event: "block_loop_detected", recurrences }
    : { to: "blocked", event: "blocked", recurrences };
}

const PAST: Readonly<Record<Move["type"], string>> = {
  complete: "completed",
  block: "blocked",
  unblock: "unblocked",
  promote: "promoted",
  schedule: "scheduled",
  archive: "archived",
  specify: "specified",
};

/** Where a card begins. */
export function firstStatus(start: {
  readonly triage: boolean;
  readonly blocked: boolean;
  readonly openParents: readonly string[];
}): CardStatus {
  if (start.triage) return "triage";
  if (start.blocked) return "blocked";
  return start.openParents.length > 0 ? "todo" : "ready";
}

/** What nobody has to ask for: a card whose parents are all done becomes ready. */
export function promotes(card: {
  readonly status: CardStatus;
  readonly openParents: readonly string[];
  /** Somebody, or the limit of failures, put it aside and nobody took that back. */
  readonly isHeld: boolean;
}): boolean {
  if (card.openParents.length > 0) return false;
  return card.status === "todo" || (card.status === "blocked" && !card.isHeld);
}

/** `from` → `to` would close a circle. `parentsOf` of a card that does not exist is empty. */
export function closesCircle(parent: string, child: string, parentsOf: (id: string) => readonly string[]): boolean {
  const seen = new Set<string>();
  const open = [parent];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    if (id === child) return true;
    if (seen.has(id)) continue;
    seen.add(id);
    open.push(...parentsOf(id));
  }
  return false;
}
