// The prompt keeps the day it was built on; a conversation that lives longer gets the new date once, with the next message.
import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import type { SessionStore } from "../sessions/store.ts";
import type { CalendarDay } from "./contract.ts";
import { dateNote } from "./recall.ts";

const KEY = "told_day";

interface DayNotesOptions {
  readonly home: Pick<OpenHome, "config" | "log">;
  readonly clock: Clock;
  readonly store: Pick<SessionStore, "getValue" | "setValue">;
  /** Unix seconds: the day the first prompt names. */
  readonly startedAt: number;
}

export class DayNotes {
  readonly #options: DayNotesOptions;
  #noted: { readonly sessionId: string; readonly day: CalendarDay } | null = null;

  constructor(options: DayNotesOptions) {
    this.#options = options;
  }

  /** For the message that is sent now; null while the model knows the day. What is returned counts as sent. */
  async take(sessionId: string): Promise<string | null> {
    const last = await this.#lastNoted(sessionId);
    const today = this.#today();
    if (sameDay(last, today)) return null;
    await this.note(sessionId);
    return dateNote(last, today);
  }

  /** A prompt that is built now names today. */
  async note(sessionId: string): Promise<void> {
    const day = this.#today();
    this.#noted = { sessionId, day };
    await this.#options.store.setValue(sessionId, KEY, day).catch((error) => {
      this.#options.home.log.warn("which day the model was told last could not be stored", error);
    });
  }

  async #lastNoted(sessionId: string): Promise<CalendarDay> {
    if (this.#noted?.sessionId === sessionId) return this.#noted.day;
    const { store, startedAt, home } = this.#options;
    const stored = await store.getValue(sessionId, KEY).catch(() => null); // a store that fails is reported elsewhere
    const day = isDay(stored) ? stored : calendarDay(startedAt * 1000, home.config().timezone);
    this.#noted = { sessionId, day };
    return day;
  }

  #today(): CalendarDay {
    return calendarDay(this.#options.clock.now(), this.#options.home.config().timezone);
  }
}

function isDay(value: unknown): value is CalendarDay {
  return typeof value === "object" && value !== null && "year" in value && "month" in value && "day" in value;
}

/** The calendar day in a zone; without one, or with one nobody knows, the machine's own. */
export function calendarDay(ms: number, zone: string): CalendarDay {
  const here = new Date(ms);
  const local = { year: here.getFullYear(), month: here.getMonth() + 1, day: here.getDate() };
  // Asking for a zone loads all of them, which takes longer than the rest of the prompt.
  if (zone === "") return local;
  try {
    const parts = { timeZone: zone, year: "numeric", month: "2-digit", day: "2-digit" } as const;
    const [year = 0, month = 1, day = 1] = new Intl.DateTimeFormat("en-CA", parts).format(ms).split("-").map(Number);
    return { year, month, day };
  } catch {
    return local; // not a zone; whoever builds the prompt says so
  }
}

/** True for a zone that can be counted in, and for none at all. */
export function isKnownZone(zone: string): boolean {
  if (zone === "") return true;
  try {
    new Intl.DateTimeFormat("en-CA", { timeZone: zone });
    return true;
  } catch {
    return false;
  }
}

export const sameDay = (a: CalendarDay, b: CalendarDay) => a.year === b.year && a.month === b.month && a.day === b.day;
