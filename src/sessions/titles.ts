// Titles are names a person resumes by: unique, on one line, at most 100 code points, numbered along a lineage (`name`, `name #2`, …).
import { countCodePoints, sliceCodePoints } from "../kit/code-points.ts";
import type { StoreCore } from "./core.ts";
import { conversationOf } from "./lineage.ts";
import { sessionExists } from "./sessions.ts";
import { StoreError } from "./store.ts";

const MAX_TITLE = 100;
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g;
/** Invisible characters that would make two titles look alike. */
const INVISIBLE = /[\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffc]/g;
const NUMBERED = /^(.*) #(\d+)$/s;

/** The title as it is stored, or null when nothing is left of it. */
export function cleanTitle(title: string): string | null {
  const clean = title
    .replace(CONTROL, "")
    .replace(INVISIBLE, "")
    .replace(/[\s\u0085]+/g, " ")
    .trim();
  if (clean === "") return null;
  const length = countCodePoints(clean);
  if (length > MAX_TITLE) throw new StoreError("invalid", `Title too long (${length} chars, max ${MAX_TITLE})`);
  return clean;
}

/** False for an unknown session. A title held by an ancestor of the same conversation moves down to the descendant. */
export function assignTitle(core: StoreCore, id: string, title: string | null): boolean {
  const clean = title === null ? null : cleanTitle(title);
  if (!sessionExists(core, id)) return false;
  if (clean !== null) {
    const holder = holderOf(core, clean);
    if (holder !== null && holder !== id) {
      if (!conversationOf(core, id).includes(holder)) {
        throw new StoreError("conflict", `Title '${clean}' is already in use by session ${holder}`);
      }
      core.db.run("UPDATE sessions SET title = NULL WHERE id = ?", holder);
    }
  }
  core.db.run("UPDATE sessions SET title = ? WHERE id = ?", clean, id);
  return true;
}

/** The next free title after `base`: itself when nothing of its lineage exists, else `base #N`. */
export function nextTitleAfter(core: StoreCore, title: string): string {
  const base = NUMBERED.exec(title)?.[1] ?? title;
  const numbers = numbersOf(core, base);
  if (numbers.length === 0) return base;
  const next = `${base} #${numbers.reduce((most, n) => (n > most ? n : most)) + 1n}`;
  const over = countCodePoints(next) - MAX_TITLE;
  return over <= 0 ? next : nextTitleAfter(core, sliceCodePoints(base, 0, -over).trimEnd());
}

/** Numbers taken in the lineage of a base; the unnumbered title counts as 1. */
function numbersOf(core: StoreCore, base: string): bigint[] {
  return titlesFrom(core, base).flatMap(({ title }) => {
    if (title === base) return [1n];
    const number = numberAfter(base, title);
    return number === null ? [] : [number];
  });
}

/** The newest of the numbered ones, else the exact holder. */
export function idOfTitle(core: StoreCore, title: string): string | null {
  const rows = titlesFrom(core, title);
  const numbered = rows.filter((row) => numberAfter(title, row.title) !== null);
  const newest = numbered.reduce<(typeof rows)[number] | undefined>(
    (best, row) => (best === undefined || row.started_at > best.started_at ? row : best),
    undefined,
  );
  return newest?.id ?? rows.find((row) => row.title === title)?.id ?? null;
}

/** Exact, or the only id that begins so. */
export function idFromPrefix(core: StoreCore, text: string): string | null {
  if (text === "") return null;
  if (sessionExists(core, text)) return text;
  const found = core.db.all<{ id: string }>(
    "SELECT id FROM sessions WHERE id >= ?1 AND substr(id, 1, length(?1)) = ?1 ORDER BY id LIMIT 2",
    text,
  );
  return found.length === 1 ? (found[0]?.id ?? null) : null;
}

function holderOf(core: StoreCore, title: string): string | null {
  return core.db.get<{ id: string }>("SELECT id FROM sessions WHERE title = ?", title)?.id ?? null;
}

function titlesFrom(core: StoreCore, base: string) {
  return core.db.all<{ id: string; title: string; started_at: number }>(
    "SELECT id, title, started_at FROM sessions WHERE title = ? OR title LIKE ? ESCAPE '\\'",
    base,
    `${escapeLike(base)} #%`,
  );
}

/** LIKE ignores case and `#bar` is no number, so what it found is looked at again. */
function numberAfter(base: string, title: string): bigint | null {
  if (!title.startsWith(`${base} #`)) return null;
  const digits = title.slice(base.length + 2);
  return /^\d+$/.test(digits) ? BigInt(digits) : null;
}

export const escapeLike = (text: string) => text.replace(/[\\%_]/g, "\\$&");
