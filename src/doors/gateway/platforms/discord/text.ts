// Texts and ids of Discord, as pure functions.
import { truncateCodePoints } from "../../../../kit/code-points.ts";
import type { User } from "./shapes.ts";

/** Ids carry the time they were made at, in milliseconds since this one. */
const EPOCH = 1_420_070_400_000n;
const TIME_BITS = 22n;
const THREAD_NAME = 80;

export const timeOf = (id: string): number => Number((BigInt(id) >> TIME_BITS) + EPOCH);

/** The smallest id of a moment; 0 before Discord's first. */
export function idAt(milliseconds: number): bigint {
  const since = BigInt(Math.floor(milliseconds)) - EPOCH;
  return since > 0n ? since << TIME_BITS : 0n;
}

/** Before the rest of the text; what a person typed between blanks stays one line. */
export function threadName(text: string, fallback: string): string {
  const line =
    text
      .replace(/<[@#&!:\w]{1,60}>/g, "")
      .trim()
      .split("\n", 1)[0] ?? "";
  const words = line.replace(/\s{1,1000}/g, " ").replace(/^[#>*\-\s]{1,20}/, "");
  return truncateCodePoints(words, THREAD_NAME, "…").trim() || fallback;
}

export type Named = Pick<User, "id" | "username" | "global_name">;

export function displayName(user: Named, nick?: string | null): string {
  return nick || user.global_name || user.username;
}

/** Whether a text names the bot itself, not only answers it. */
export const namesBot = (text: string, selfId: string) =>
  text.includes(`<@${selfId}>`) || text.includes(`<@!${selfId}>`);

/**
 * The text as a person would read it: without the call of the bot, with the names of the others instead of their ids.
 */
export function readableText(
  content: string,
  about: { readonly selfId: string; readonly ownRoles: ReadonlySet<string>; readonly people: readonly Named[] },
): string {
  const names = new Map(about.people.map((person) => [person.id, displayName(person)]));
  return content
    .replace(/<@([!&]?)(\d{1,20})> ?/g, (written, kind: string, id: string) => {
      if (kind === "&") return about.ownRoles.has(id) ? "" : written;
      if (id === about.selfId) return "";
      const name = names.get(id);
      return name === undefined ? written : `@${name}${written.endsWith(" ") ? " " : ""}`;
    })
    .trim();
}
