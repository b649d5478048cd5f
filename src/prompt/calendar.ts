import type { CalendarDay } from "./contract.ts";

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
