// Schedules in plain English and Chinese. What is not understood whole is not understood: nothing is guessed.

type Said =
  | { readonly type: "in"; readonly minutes: number; readonly said: string }
  | { readonly type: "every"; readonly minutes: number }
  /** Milliseconds, a wall-clock time written down as if it were UTC. */
  | { readonly type: "at"; readonly wall: number }
  | { readonly type: "cron"; readonly expr: string };

interface Time {
  readonly hour: number;
  readonly minute: number;
}

const DAYS = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
const SHORT_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const DAY_MS = 86_400_000;

/** `today` is what the clock on the wall shows, as if it were UTC. */
export function readWords(text: string, today: Date): Said | null {
  return readEnglish(text.toLowerCase(), today) ?? readChinese(text.replace(/\s+/g, ""), today);
}

const weekly = ({ hour, minute }: Time, days: string): Said => ({
  type: "cron",
  expr: `${minute} ${hour} * * ${days}`,
});

const monthly = ({ hour, minute }: Time, day: number): Said | null =>
  day >= 1 && day <= 31 ? { type: "cron", expr: `${minute} ${hour} ${day} * *` } : null;

function onDay(today: Date, days: number, time: Time | null): Said | null {
  if (time === null) return null;
  const midnight = Date.UTC(today.getUTCFullYear(), today.getUTCMonth(), today.getUTCDate());
  return { type: "at", wall: midnight + days * DAY_MS + (time.hour * 60 + time.minute) * 60_000 };
}

const daysList = (numbers: readonly number[]) => [...new Set(numbers)].sort((a, b) => a - b).join(",");

// English.

const UNIT = "(minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?)";
const UNIT_MINUTES: Readonly<Record<string, number>> = { m: 1, h: 60, d: 1440, w: 10_080 };
const COUNTS: Readonly<Record<string, number>> = { a: 1, an: 1, one: 1, two: 2, three: 3, five: 5, ten: 10 };

function minutesIn(count: string, unit: string): number | null {
  const number = COUNTS[count] ?? Number(count);
  const factor = UNIT_MINUTES[unit.slice(0, 1)];
  return factor === undefined || !Number.isInteger(number) ? null : number * factor;
}

function readEnglish(text: string, today: Date): Said | null {
  if (text === "in half an hour") return { type: "in", minutes: 30, said: "30m" };
  const [, how, count = "", unit = ""] =
    new RegExp(`^(in|every) (\\d{1,7}|an?|one|two|three|five|ten) ?${UNIT}$`).exec(text) ?? [];
  if (how !== undefined) {
    const minutes = minutesIn(count, unit);
    if (minutes === null) return null;
    return how === "in" ? { type: "in", minutes, said: text.slice(3) } : { type: "every", minutes };
  }
  if (/^(?:every hour|hourly)$/.test(text)) return { type: "every", minutes: 60 };
  if (text === "every minute") return { type: "every", minutes: 1 };
  const day = /^(today|tonight|tomorrow) (?:at )?(.*)$/.exec(text);
  if (day) {
    const time = englishTime(day[2] ?? "");
    return onDay(today, day[1] === "tomorrow" ? 1 : 0, day[1] === "tonight" ? inPart(time, "evening") : time);
  }
  const [whole, lead, when = "", at = ""] =
    /^(every |each |on )?(.*?)(?:,? at | )(\S+(?: ?[ap]\.?m\.?)?)$/.exec(text) ?? [];
  if (whole === undefined) return null;
  // "on friday" is the one that comes next; "fridays" are all of them.
  const isEach = lead === "every " || lead === "each " || /^(?:daily|\w+s(?:(?:,? and |, ?)\w+s){0,6})$/.test(when);
  return isEach ? repeated(when, at) : null;
}

/** The hours of a part of the day, as a clock of 24 hours shows them. */
const PARTS = { morning: [0, 11], afternoon: [12, 18], evening: [17, 23] } as const;
type PartOfDay = keyof typeof PARTS;

function repeated(when: string, at: string): Said | null {
  const part = Object.hasOwn(PARTS, when) ? (when as PartOfDay) : undefined; // it is one of the keys
  const time = part === undefined ? englishTime(at) : inPart(englishTime(at), part);
  if (time === null) return null;
  if (part !== undefined || when === "day" || when === "daily") return weekly(time, "*");
  if (/^(?:weekdays?|workdays?|working days?)$/.test(when)) return weekly(time, "1-5");
  if (/^weekends?$/.test(when)) return weekly(time, "0,6");
  const ordinal = /^(?:month on the )?(\d{1,2})(?:st|nd|rd|th)(?: of (?:the|each|every) month)?$/.exec(when);
  if (ordinal) return monthly(time, Number(ordinal[1]));
  const names = when.split(/,? and |, ?/).map(weekday);
  return names.every((one) => one >= 0) ? weekly(time, daysList(names)) : null;
}

/** Its number; -1 for another word. */
function weekday(word: string): number {
  const full = DAYS.indexOf(word.replace(/s$/, ""));
  return full >= 0 ? full : SHORT_DAYS.indexOf(word);
}

function englishTime(text: string): Time | null {
  if (text === "noon") return { hour: 12, minute: 0 };
  if (text === "midnight") return { hour: 0, minute: 0 };
  const [, hours = "", minutes = "0", half] = /^(\d{1,2})(?::(\d{2}))? ?([ap])?(?:\.?m\.?)?$/.exec(text) ?? [];
  const isTwelve = half !== undefined;
  if (isTwelve !== /m\.?$/.test(text)) return null;
  const hour = Number(hours);
  if (hours === "" || (isTwelve && (hour < 1 || hour > 12))) return null;
  return checked(isTwelve ? (hour % 12) + (half === "p" ? 12 : 0) : hour, Number(minutes));
}

/** `every evening at 8` means 20:00; `every morning at 20:00` and `every evening at 2` mean nothing. */
function inPart(time: Time | null, part: PartOfDay): Time | null {
  if (time === null) return null;
  const [from, to] = PARTS[part];
  const hour = part === "morning" || time.hour >= 12 ? time.hour : time.hour + 12;
  return hour >= from && hour <= to ? { ...time, hour } : null;
}

const checked = (hour: number, minute: number): Time | null => (hour < 24 && minute < 60 ? { hour, minute } : null);

// Chinese.

const DIGITS = "零一二三四五六七八九";
const NUMBER = "(\\d{1,5}|[零〇一二两三四五六七八九十]{1,3})";
const UNITS_ZH: Readonly<Record<string, number>> = {
  分钟: 1,
  分: 1,
  小时: 60,
  个小时: 60,
  天: 1440,
  周: 10_080,
  个星期: 10_080,
};
const UNIT_ZH = "(分钟|分|个小时|小时|天|周|个星期)";
const TIME_ZH = new RegExp(
  `^(凌晨|清晨|早上|早晨|上午|中午|下午|傍晚|晚上|夜里)?(?:(\\d{1,2})[:：](\\d{2})|${NUMBER}[点时](?:整|(半)|(一刻)|${NUMBER}分?)?)$`,
);

function readChinese(text: string, today: Date): Said | null {
  if (/^半个?小时(?:后|之后|以后)$/.test(text)) return { type: "in", minutes: 30, said: "30m" };
  const delay = new RegExp(`^(?:过)?${NUMBER}${UNIT_ZH}(?:后|之后|以后)$`).exec(text);
  if (delay) return sized(delay, (minutes) => ({ type: "in", minutes, said: `${minutes}m` }));
  if (/^每(?:个)?小时$/.test(text)) return { type: "every", minutes: 60 };
  const every = new RegExp(`^每隔?${NUMBER}${UNIT_ZH}$`).exec(text);
  if (every) return sized(every, (minutes) => ({ type: "every", minutes }));
  const [, day = "", rest = ""] =
    /^(每天|每日|天天|每个?工作日|工作日|每个?周末|周末|(?:每个?|逢)?(?:周|星期|礼拜)[一二三四五六日天](?:[、,，和及]?(?:周|星期)?[一二三四五六日天]){0,7}|每个?月\d{1,2}[号日]|每个?月[一二三四五六七八九十]{1,3}[号日]|今天|明天|后天)(?:的|，|,)?(.{0,12})$/.exec(
      text.replace(/^今晚上?(?=.)/, "今天晚上"),
    ) ?? [];
  const time = day === "" ? null : chineseTime(rest);
  if (time === null) return null;
  if (/^(?:每天|每日|天天)$/.test(day)) return weekly(time, "*");
  if (day.endsWith("工作日")) return weekly(time, "1-5");
  if (day.endsWith("周末")) return weekly(time, "0,6");
  const ahead = ["今天", "明天", "后天"].indexOf(day);
  if (ahead >= 0) return onDay(today, ahead, time);
  const month = day.indexOf("月");
  if (month >= 0) return monthly(time, chineseNumber(day.slice(month + 1, -1)) ?? 0);
  // Without `每` it is the one that comes next, which nobody said.
  if (!/^[每逢]/.test(day)) return null;
  const letters = day.replace(/周|星期|礼拜|每个?|逢|[、,，和及]/g, "");
  return weekly(time, daysList([...letters].map((letter) => Math.max(0, "日一二三四五六".indexOf(letter)))));
}

function sized([, count = "", unit = ""]: readonly string[], make: (minutes: number) => Said): Said | null {
  const number = chineseNumber(count);
  const factor = UNITS_ZH[unit];
  return number === null || factor === undefined ? null : make(number * factor);
}

function chineseTime(text: string): Time | null {
  const [whole, part, clockHour, clockMinute, spokenHour, half, quarter, spokenMinute] = TIME_ZH.exec(text) ?? [];
  if (whole === undefined) return null;
  const hour = clockHour === undefined ? chineseNumber(spokenHour ?? "") : Number(clockHour);
  const minute = clockMinute ?? (half ? "30" : quarter ? "15" : (spokenMinute ?? "0"));
  const minutes = chineseNumber(minute);
  if (hour === null || minutes === null) return null;
  const shifted = partOfDay(hour, part);
  return shifted === null ? null : checked(shifted, minutes);
}

/** Null where word and number do not go together, such as the twelve of an evening, which is another day. */
function partOfDay(hour: number, part: string | undefined): number | null {
  if (part === undefined) return hour;
  if (/凌晨|清晨|早上|早晨|上午/.test(part)) return hour <= 12 ? (part === "凌晨" && hour === 12 ? 0 : hour) : null;
  if (part === "中午") return hour === 11 || hour === 12 ? hour : hour <= 2 ? hour + 12 : null;
  if (hour >= 13) return hour;
  if (hour === 12) return part === "下午" ? 12 : null;
  // An hour that is no afternoon: eleven of the evening was hardly meant.
  if (/下午|傍晚/.test(part) && hour > 7) return null;
  // Night reaches into the morning: two o'clock at night is not fourteen o'clock.
  if (/夜里|晚上/.test(part) && hour < 5) return null;
  return hour + 12;
}

function chineseNumber(text: string): number | null {
  if (/^\d+$/.test(text)) return Number(text);
  const plain = text.replaceAll("两", "二").replaceAll("〇", "零");
  const [, tens, , ones] = /^([一二三四五六七八九]?)(十)([一二三四五六七八九]?)$/.exec(plain) ?? [];
  if (tens !== undefined) return (tens === "" ? 1 : DIGITS.indexOf(tens)) * 10 + (ones ? DIGITS.indexOf(ones) : 0);
  if (!/^[零一二三四五六七八九]{1,2}$/.test(plain) || plain === "") return null;
  const digits = [...plain].map((digit) => DIGITS.indexOf(digit));
  if (digits.length === 2 && digits[0] !== 0) return null;
  return digits.at(-1) ?? null;
}
