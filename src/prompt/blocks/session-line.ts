import type { CalendarDay, PromptInputs } from "../contract.ts";

const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS = "January February March April May June July August September October November December".split(" ");

// Day precision only: a clock time would make every rebuilt prompt a new one.
export function sessionLine(input: PromptInputs): string {
  return [
    `Conversation started: ${longDate(input.startedOn)}`,
    input.rebuiltOn &&
      `Today's date (as of the last context rebuild): ${longDate(input.rebuiltOn)} (this one tells what day it is now)`,
    input.sessionId && `Session ID: ${input.sessionId}`,
    input.model && `Model: ${input.model}`,
    input.provider && `Provider: ${input.provider}`,
    input.platform && `Platform: ${input.platform}`,
  ]
    .filter(Boolean)
    .join("\n");
}

/** `Monday, January 05, 2026`, in English whatever the locale. */
export function longDate({ year, month, day }: CalendarDay): string {
  const weekday = WEEKDAYS[new Date(Date.UTC(year, month - 1, day)).getUTCDay()];
  return `${weekday}, ${MONTHS[month - 1]} ${String(day).padStart(2, "0")}, ${year}`;
}
