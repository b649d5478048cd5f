// Wall-clock time of a zone and real time. Nothing here asks what time it is.
import { UserError } from "../kit/errors.ts";

/** Milliseconds: what a clock on the wall shows, written down as if it were UTC. */
export type Wall = number;

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** No rule in the world holds for a shorter time than this. */
const LOOK_EVERY = 10 * DAY;

/** How the machine's own zone is named in settings. */
const OWN = "";

interface Change {
  /** The first moment of the new offset. */
  readonly at: number;
  readonly before: number;
  readonly after: number;
}

/**
 * One time zone.
 *
 * - `offsetAt` is exact to the minute for every moment of the years 1970 to 9999.
 * - `changes` are all moments in a UTC year at which the offset is another than just before.
 */
export class Zone {
  /** Null: the machine's own zone, which `Date` knows without the locale data of `Intl`: 8 MB that most gateways never need. */
  readonly #format: Intl.DateTimeFormat | null;
  #name: string;
  readonly #years = new Map<number, { readonly changes: readonly Change[]; readonly offset: number }>();

  private constructor(name: string) {
    this.#name = name;
    this.#format =
      name === OWN
        ? null
        : new Intl.DateTimeFormat("en-US", {
            timeZone: name,
            hourCycle: "h23",
            ...({ year: "numeric", month: "numeric", day: "numeric" } as const),
            ...({ hour: "numeric", minute: "numeric", second: "numeric" } as const),
          });
  }

  get name(): string {
    if (this.#name === OWN) this.#name = Intl.DateTimeFormat().resolvedOptions().timeZone;
    return this.#name;
  }

  static readonly #known = new Map<string, Zone>();

  /** Empty: the machine's own. Throws a `UserError` for a name that no zone has. */
  static named(name: string): Zone {
    const wanted = name.trim();
    if (wanted === OWN) return new Zone(OWN); // not kept: TZ may change
    const known = Zone.#known.get(wanted);
    if (known) return known;
    try {
      const zone = new Zone(wanted);
      Zone.#known.set(wanted, zone);
      return zone;
    } catch {
      throw new UserError(`"${wanted}" is not a time zone. Write a name like Europe/Berlin, America/New_York or UTC.`);
    }
  }

  /** In milliseconds; positive east of Greenwich. */
  offsetAt(at: number): number {
    const { changes, offset } = this.#year(new Date(at).getUTCFullYear());
    let present = offset;
    for (const change of changes) if (change.at <= at) present = change.after;
    return present;
  }

  wallAt(at: number): Wall {
    return at + this.offsetAt(at);
  }

  /** The first change after a moment, if it comes before another one. */
  changeAfter(at: number, until: number): Change | null {
    const last = new Date(until).getUTCFullYear();
    for (let year = new Date(at).getUTCFullYear(); year <= last; year++) {
      const next = this.#year(year).changes.find((change) => change.at > at);
      if (next) return next.at <= until ? next : null;
    }
    return null;
  }

  /** A wall time that comes twice is its first moment; one that never comes is the moment the clock jumped over it. */
  momentOf(wall: Wall): number {
    const early = wall - this.offsetAt(wall - DAY);
    const change = this.changeAfter(wall - DAY - HOUR, wall + DAY + HOUR);
    if (change === null || early < change.at) return early;
    return Math.max(change.at, wall - change.after);
  }

  /** `2026-11-18T09:00:00+01:00` */
  iso(at: number): string {
    const offset = this.offsetAt(at);
    const minutes = Math.round(Math.abs(offset) / 60_000);
    const two = (value: number) => String(value).padStart(2, "0");
    const sign = offset < 0 ? "-" : "+";
    const text = new Date(at + offset).toISOString().slice(0, 19);
    return `${text}${sign}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
  }

  /** `2026-11-18 09:00`, for people. */
  minute(at: number): string {
    return new Date(this.wallAt(at)).toISOString().slice(0, 16).replace("T", " ");
  }

  #year(year: number) {
    const known = this.#years.get(year);
    if (known) return known;
    const start = Date.UTC(year, 0, 1);
    const end = Date.UTC(year + 1, 0, 1);
    const changes: Change[] = [];
    const offset = this.#ask(start - 1);
    let before = offset;
    for (let from = start - 1; from < end - 1; ) {
      const to = Math.min(from + LOOK_EVERY, end - 1);
      const after = this.#ask(to);
      if (after !== before) {
        changes.push({ at: this.#turn(from, to, before), before, after });
        before = after;
      }
      from = to;
    }
    const found = { changes, offset };
    this.#years.set(year, found);
    return found;
  }

  /** The first moment in (from, to] whose offset is not `before`, to the second. */
  #turn(from: number, to: number, before: number): number {
    let low = Math.floor(from / 1000);
    let high = Math.ceil(to / 1000);
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.#ask(middle * 1000) === before) low = middle;
      else high = middle;
    }
    return high * 1000;
  }

  #ask(at: number): number {
    if (this.#format === null) return -new Date(at).getTimezoneOffset() * 60_000;
    const seconds = Math.floor(at / 1000) * 1000;
    const fields: Record<string, number> = {};
    for (const { type, value } of this.#format.formatToParts(seconds)) fields[type] = Number(value);
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = fields;
    return Math.round((Date.UTC(year, month - 1, day, hour, minute, second) - seconds) / 60_000) * 60_000;
  }
}
