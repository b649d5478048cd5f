// The times a question speaks of: "last week", "in May", 去年五月, "before the move". Read against a given now, in local time.

export interface TimeReading {
  /** As it was said. */
  readonly phrase: string;
  /** Unix seconds; `to` is the first moment behind it. Either side may be open. */
  readonly from: number | null;
  readonly to: number | null;
  /** Nobody named it: it is when an event seems to have been. */
  readonly guessed?: boolean;
}

/** A time that only the conversations themselves can tell. */
interface EventReading {
  readonly phrase: string;
  readonly relation: "before" | "after";
  readonly event: string;
}

export interface ReadTimes {
  readonly time: TimeReading | null;
  readonly event: EventReading | null;
  /** Of several conversations that fit, the last or the first one is meant. */
  readonly wanted: "newest" | "oldest" | null;
  /** The question without the words that were about time. */
  readonly rest: string;
}

type Span = readonly [from: Date, to: Date];
type Rule = readonly [pattern: RegExp, read: (match: RegExpExecArray, now: Date) => Span | null];

const MAX_QUESTION = 2000;

export function readTimes(question: string, nowMs: number): ReadTimes {
  const now = new Date(nowMs);
  // Single blanks throughout: no pattern has to look for more.
  let rest = question.slice(0, MAX_QUESTION).replace(/\s+/g, " ");
  let time: TimeReading | null = null;
  for (const [pattern, read] of RULES) {
    const match = pattern.exec(rest);
    const span = match && read(match, now);
    if (!match || !span) continue;
    const before = relationBefore(rest.slice(0, match.index));
    const after = relationAfter(rest.slice(match.index + match[0].length));
    const start = match.index - (before?.length ?? 0);
    const end = match.index + match[0].length + (after?.length ?? 0);
    const [from, to] = span.map((date) => date.getTime() / 1000) as [number, number];
    const relation = after?.relation ?? before?.relation ?? "within";
    time = {
      phrase: rest.slice(start, end).trim(),
      from: relation === "before" ? null : relation === "after" ? to : from,
      to: relation === "before" ? from : relation === "within" ? to : null,
    };
    if (relation === "since") time = { ...time, from, to: null };
    rest = `${rest.slice(0, start)} ${rest.slice(end)}`;
    break;
  }
  const event = time ? null : readEvent(rest);
  if (event) rest = rest.replace(event.phrase, " ");
  const wanted = NEWEST.test(rest) ? "newest" : OLDEST.test(rest) ? "oldest" : null;
  rest = rest.replace(wanted === "newest" ? NEWEST : wanted === "oldest" ? OLDEST : /(?!)/, " ");
  return { time, event, wanted, rest };
}

type Relation = "before" | "after" | "since" | "within";

function relationBefore(text: string): { readonly length: number; readonly relation: Relation } | null {
  const match = /\b(before|after|since|until|till|in|on|during|from|over|at) (?:the )?$/i.exec(text);
  if (!match) return null;
  const word = (match[1] ?? "").toLowerCase();
  const relation = { before: "before", until: "before", till: "before", after: "after", since: "since", from: "since" }[
    word
  ];
  return { length: match[0].length, relation: (relation as Relation | undefined) ?? "within" };
}

function relationAfter(text: string): { readonly length: number; readonly relation: Relation } | null {
  const match = /^ ?(?:(?:之前|以前)|(?:之后|以后)|(?:以来|至今))/.exec(text);
  if (!match) return null;
  const relation = /前/.test(match[0]) ? "before" : /后/.test(match[0]) ? "after" : "since";
  return { length: match[0].length, relation };
}

const NEWEST = /\bmost recent(?:ly)?\b|\blatest\b|\blast time\b|\blast\b|上一?次|最近一次|最后一次|最近/i;
const OLDEST = /\b(?:the )?first time\b|\bfirst\b|\bearliest\b|\boriginally\b|第一次|最早|首次|最初/i;

const EVENT_EN =
  /\b(before|after) ((?:the|my|our|his|her|their) [\p{L}\p{N}-]+(?: [\p{L}\p{N}-]+){0,2}) ?(?:[?.!]{0,4}$|,)/iu;
const EVENT_ZH = /(\p{Script=Han}{2,6}?)(之前|以前|之后|以后)/u;

function readEvent(text: string): EventReading | null {
  const english = EVENT_EN.exec(text);
  if (english) {
    const relation = english[1]?.toLowerCase() === "before" ? "before" : "after";
    return { phrase: english[0].replace(/ ?[?.!,]{0,4}$/, ""), relation, event: english[2] ?? "" };
  }
  const chinese = EVENT_ZH.exec(text);
  if (!chinese) return null;
  return { phrase: chinese[0], relation: chinese[2]?.includes("前") ? "before" : "after", event: chinese[1] ?? "" };
}

// Days, weeks, months and years as spans of local time. Weeks begin on Monday.

const day = (date: Date, days: number) => new Date(date.getFullYear(), date.getMonth(), date.getDate() + days);
const days = (date: Date, from: number, to: number): Span => [day(date, from), day(date, to)];
const month = (year: number, index: number, count = 1): Span => [
  new Date(year, index, 1),
  new Date(year, index + count, 1),
];
const year = (value: number): Span => month(value, 0, 12);
const weekday = (date: Date) => (date.getDay() + 6) % 7;
const week = (date: Date, weeks: number): Span => days(date, 7 * weeks - weekday(date), 7 * weeks - weekday(date) + 7);

/** The named month of a year, or the last one that began before now. */
function namedMonth(now: Date, index: number, given: number | null, dayOfMonth: number | null): Span | null {
  const value = given ?? (index <= now.getMonth() ? now.getFullYear() : now.getFullYear() - 1);
  if (dayOfMonth === null) return month(value, index);
  if (dayOfMonth < 1 || dayOfMonth > 31) return null;
  return days(new Date(value, index, dayOfMonth), 0, 1);
}

function ago(now: Date, count: number, unit: string): Span {
  if (unit === "day") return days(now, -count, 1 - count);
  if (unit === "week") return week(now, -count);
  if (unit === "month") return month(now.getFullYear(), now.getMonth() - count);
  return year(now.getFullYear() - count);
}

function lately(now: Date, count: number, unit: string): Span {
  const perUnit = { day: 1, week: 7, month: 30.5, year: 365.25 }[unit] ?? 1;
  return days(now, -Math.ceil(count * perUnit), 1);
}

const SEASONS = ["spring", "summer", "autumn", "winter"];

/** Spring is March to May; a winter begins in December of the year before. The last one that began. */
function season(now: Date, name: string, back: number | null): Span {
  const start = { spring: 2, summer: 5, autumn: 8, fall: 8, winter: 11 }[name] ?? 2;
  if (back !== null) return month(now.getFullYear() - back, start, 3);
  const begun = start <= now.getMonth();
  return month(now.getFullYear() - (begun ? 0 : 1), start, 3);
}

const MONTHS = "january february march april may june july august september october november december".split(" ");
const MONTH = `(${MONTHS.map((name) => (name.length > 4 ? `${name}|${name.slice(0, 3)}\\.?` : name)).join("|")}|sept\\.?)`;
const WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split(" ");
const COUNTS = new Map(
  Object.entries({
    a: 1,
    an: 1,
    one: 1,
    two: 2,
    couple: 2,
    three: 3,
    few: 3,
    four: 4,
    five: 5,
    six: 6,
    seven: 7,
    eight: 8,
    nine: 9,
    ten: 10,
  }),
);
const COUNT = String.raw`(\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|(?:a )?couple(?: of)?|(?:a )?few)`;
const UNIT = "(day|week|month|year)s?";

const monthIndex = (text: string) => MONTHS.findIndex((name) => name.startsWith(text.toLowerCase().slice(0, 3)));
const numberOf = (text: string) => COUNTS.get(text.toLowerCase().replace(/^a (?=c|f)| of$/g, "")) ?? Number(text);
const optional = (text: string | undefined) => (text === undefined ? null : Number(text));

const HAN_DIGITS = "零一二三四五六七八九";

/** 3, 三, 十, 十二, 二十, 两. */
function hanNumber(text: string): number {
  if (/^\d+$/.test(text)) return Number(text);
  const digit = (char: string | undefined) => (char === "两" ? 2 : Math.max(0, HAN_DIGITS.indexOf(char ?? "零")));
  const [tens, ones] = text.split("十");
  if (ones === undefined) return digit(text);
  return (tens === "" ? 1 : digit(tens)) * 10 + (ones === "" ? 0 : digit(ones));
}

const HAN_COUNT = "(\\d{1,3}|[一二三四五六七八九两]?十[一二三四五六七八九]?|[一二三四五六七八九两])";
const HAN_UNITS: Readonly<Record<string, string>> = {
  天: "day",
  日: "day",
  周: "week",
  星期: "week",
  礼拜: "week",
  月: "month",
  年: "year",
};
const hanUnit = (text: string) => HAN_UNITS[text.replace("个", "")] ?? "day";
const HAN_YEAR: Readonly<Record<string, number>> = { 今年: 0, 去年: 1, 前年: 2 };
const hanYear = (text: string | undefined, now: Date) => {
  if (text === undefined) return null;
  return text in HAN_YEAR ? now.getFullYear() - (HAN_YEAR[text] ?? 0) : Number(text.replace("年", ""));
};

/** The more definite first. */
const RULES: readonly Rule[] = [
  [/\b(\d{4})-(\d{1,2})-(\d{1,2})\b/, (m) => days(new Date(Number(m[1]), Number(m[2]) - 1, Number(m[3])), 0, 1)],
  [
    new RegExp(`(?:(今年|去年|前年|\\d{4}年)(?:的)?)?${HAN_COUNT}月(?:份)?(?:${HAN_COUNT}[日号])?`, "u"),
    (m, now) =>
      namedMonth(now, hanNumber(m[2] ?? "") - 1, hanYear(m[1], now), m[3] === undefined ? null : hanNumber(m[3])),
  ],
  [
    new RegExp(`\\b(\\d{1,2})(?:st|nd|rd|th)? (?:of )?${MONTH},?(?: (\\d{4}))?\\b`, "i"),
    (m, now) => namedMonth(now, monthIndex(m[2] ?? ""), optional(m[3]), Number(m[1])),
  ],
  [
    new RegExp(`\\b${MONTH} (\\d{1,2})(?:st|nd|rd|th)?(?:,? (\\d{4}))?\\b(?!\\d)`, "i"),
    (m, now) => namedMonth(now, monthIndex(m[1] ?? ""), optional(m[3]), Number(m[2])),
  ],
  [
    new RegExp(`\\b${MONTH},? (?:of )?(\\d{4})\\b`, "i"),
    (m, now) => namedMonth(now, monthIndex(m[1] ?? ""), Number(m[2]), null),
  ],
  [
    new RegExp(
      `\\b(?<=\\b(?:in|since|during|of|before|after|until|by|from|around|last|this) )${MONTH}(?: (?:of )?(last|this) year)?\\b`,
      "i",
    ),
    (m, now) =>
      namedMonth(now, monthIndex(m[1] ?? ""), m[2] ? now.getFullYear() - (/last/i.test(m[2]) ? 1 : 0) : null, null),
  ],
  [/\b(?:the )?day before yesterday\b|前天/i, (_, now) => days(now, -2, -1)],
  [/\byesterday\b|昨天|昨晚/i, (_, now) => days(now, -1, 0)],
  [/\btoday\b|\btonight\b|\bthis (?:morning|afternoon|evening)\b|今天|今早|今晚/i, (_, now) => days(now, 0, 1)],
  [
    new RegExp(`\\b${COUNT} ${UNIT} ago\\b`, "i"),
    (m, now) => ago(now, numberOf(m[1] ?? ""), (m[2] ?? "").toLowerCase()),
  ],
  [
    new RegExp(`\\b(?:last|past) (?:${COUNT} )${UNIT}\\b`, "i"),
    (m, now) => lately(now, numberOf(m[1] ?? ""), (m[2] ?? "").toLowerCase()),
  ],
  [new RegExp(`\\b(?:last|previous|past) ${UNIT}\\b`, "i"), (m, now) => ago(now, 1, (m[1] ?? "").toLowerCase())],
  [/\bthis (week|month|year)\b/i, (m, now) => ago(now, 0, (m[1] ?? "").toLowerCase())],
  [/\b(last|this|past) weekend\b/i, (_, now) => days(now, -weekday(now) - 2, -weekday(now))],
  [
    new RegExp(`\\b(?:last|on|this past) (${WEEKDAYS.join("|")})\\b`, "i"),
    (m, now) => {
      const back = (weekday(now) - WEEKDAYS.indexOf((m[1] ?? "").toLowerCase()) + 7) % 7 || 7;
      return days(now, -back, 1 - back);
    },
  ],
  [
    new RegExp(`\\b(?:(last|this) |(?:in|during) (?:the )?)(${SEASONS.join("|")}|fall)\\b`, "i"),
    (m, now) => {
      const latest = season(now, (m[2] ?? "").toLowerCase(), null);
      const goesOn = latest[1] > now && m[1]?.toLowerCase() === "last";
      return goesOn ? month(latest[0].getFullYear() - 1, latest[0].getMonth(), 3) : latest;
    },
  ],
  [
    /(今年|去年|前年)的?([春夏秋冬])[天季]?/,
    (m, now) => season(now, SEASONS["春夏秋冬".indexOf(m[2] ?? "")] ?? "", HAN_YEAR[m[1] ?? ""] ?? 0),
  ],
  [
    /上个?(?:周|星期|礼拜)([一二三四五六日天])/,
    (m, now) => {
      const index = "一二三四五六日天".indexOf(m[1] ?? "");
      const start = -7 - weekday(now) + Math.min(index, 6);
      return days(now, start, start + 1);
    },
  ],
  [/上上个?(?:周|星期|礼拜)/, (_, now) => week(now, -2)],
  [/上个?(?:周|星期|礼拜)/, (_, now) => week(now, -1)],
  [/[这本]个?(?:周|星期|礼拜)/, (_, now) => week(now, 0)],
  [/上上个?月/, (_, now) => ago(now, 2, "month")],
  [/上个?月/, (_, now) => ago(now, 1, "month")],
  [/[这本]个?月/, (_, now) => ago(now, 0, "month")],
  [/半年前/, (_, now) => month(now.getFullYear(), now.getMonth() - 7, 3)],
  [
    new RegExp(`${HAN_COUNT}个?(天|日|周|星期|礼拜|月|年)(?:之前|以前|前)`, "u"),
    (m, now) => ago(now, hanNumber(m[1] ?? ""), hanUnit(m[2] ?? "")),
  ],
  [
    new RegExp(`(?:最近|过去|近)(?:的)?${HAN_COUNT}个?(天|日|周|星期|礼拜|月|年)`, "u"),
    (m, now) => lately(now, hanNumber(m[1] ?? ""), hanUnit(m[2] ?? "")),
  ],
  [/(今年|去年|前年)/, (m, now) => year(now.getFullYear() - (HAN_YEAR[m[1] ?? ""] ?? 0))],
  [/(\d{4})年/, (m) => year(Number(m[1]))],
  [/\b(?<=\b(?:in|during|since|before|after|until|of) )(19\d{2}|20\d{2})\b/i, (m) => year(Number(m[1]))],
];

/** So much that saying a word more often, elsewhere, is never as much; having more of the words still may be. */
const WITHIN = 3;
const OPEN_SIDE = 2;
const GUESSED = 1.3;
/** What is asked about is often told a few days later. */
const SOON_AFTER = 1.25;
const SOON = 10 * 86_400;

export const isWithin = ({ from, to }: Pick<TimeReading, "from" | "to">, at: number): boolean =>
  (from === null || at >= from) && (to === null || at < to);

/** How much more something counts that was said at a time, when the question speaks of one. */
export function favourOf(time: TimeReading): (at: number) => number {
  const { from, to, guessed } = time;
  const inside = guessed ? GUESSED : from === null || to === null ? OPEN_SIDE : WITHIN;
  return (at) => {
    if (isWithin(time, at)) return inside;
    return from !== null && to !== null && at >= to && at < to + SOON ? SOON_AFTER : 1;
  };
}

/** Whether what counts so much was said in the time itself. */
export const saidWithin = (favour: number) => favour > SOON_AFTER;
