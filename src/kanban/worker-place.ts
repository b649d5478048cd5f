// What a worker of a board, and whoever works for it, is shown of its card where commands run. Loaded in such a process alone.
import { join } from "node:path";
import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import { Boards } from "./boards.ts";
import { workerOf } from "./own-card.ts";

interface CardPlace {
  /** Instead of the usual one. */
  readonly environment?: Readonly<Record<string, string>>;
  /** The files that go with the card, and no other card's. */
  readonly readable: readonly string[];
}

/** `start`: somebody else than the dispatcher started it. */
export function cardPlace(
  { home, clock, start }: { readonly home: OpenHome; readonly clock: Clock; readonly start?: object | undefined },
  environment: Readonly<Record<string, string>>,
): CardPlace {
  const worker = workerOf((name) => home.env(name));
  if (worker === null || !/^[\w-]{1,64}$/.test(worker.task)) return { readable: [] };
  const readable = [join(new Boards(home, clock).place(worker.board).attachments, worker.task)];
  if (start === undefined) return { readable };
  // Whoever works for it knows the card only by what it is told, and its commands change no board.
  const others = Object.entries(environment).filter(([name]) => !name.startsWith("HERMES_KANBAN_"));
  return { readable, environment: { ...Object.fromEntries(others), HERMES_KANBAN_DELEGATED: "1" } };
}
