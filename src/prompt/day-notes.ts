// The prompt keeps the day it was built on; a conversation that lives longer is told the new day once, with the next message.
import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import type { SessionStore } from "../sessions/store.ts";
import { calendarDay, sameDay } from "./calendar.ts";
import type { CalendarDay } from "./contract.ts";
import { dateNote } from "./recall.ts";

const KEY = "told_day";

export interface DayNotesOptions {
  readonly home: Pick<OpenHome, "config" | "log">;
  readonly clock: Clock;
  readonly store: Pick<SessionStore, "getValue" | "setValue">;
  /** Unix seconds: the day the first prompt names. */
  readonly startedAt: number;
}

export class DayNotes {
  readonly #options: DayNotesOptions;
  #told: { readonly sessionId: string; readonly day: CalendarDay } | null = null;

  constructor(options: DayNotesOptions) {
    this.#options = options;
  }

  /** For the message that is sent now; null while the model knows the day. Asking counts as telling. */
  async take(sessionId: string): Promise<string | null> {
    const told = await this.#lastTold(sessionId);
    const today = this.#today();
    if (sameDay(told, today)) return null;
    await this.tell(sessionId);
    return dateNote(told, today);
  }

  /** A prompt that is built now names today. */
  async tell(sessionId: string): Promise<void> {
    const day = this.#today();
    this.#told = { sessionId, day };
    await this.#options.store.setValue(sessionId, KEY, day).catch((error) => {
      this.#options.home.log.warn("which day the model was told last could not be stored", error);
    });
  }

  async #lastTold(sessionId: string): Promise<CalendarDay> {
    if (this.#told?.sessionId === sessionId) return this.#told.day;
    const { store, startedAt, home } = this.#options;
    const stored = await store.getValue(sessionId, KEY).catch(() => null); // a store that fails is told of elsewhere
    const day = isDay(stored) ? stored : calendarDay(startedAt * 1000, home.config().timezone);
    this.#told = { sessionId, day };
    return day;
  }

  #today(): CalendarDay {
    return calendarDay(this.#options.clock.now(), this.#options.home.config().timezone);
  }
}

function isDay(value: unknown): value is CalendarDay {
  return typeof value === "object" && value !== null && "year" in value && "month" in value && "day" in value;
}
