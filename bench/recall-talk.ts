// Conversations over months with facts planted in them, and questions that ask for the facts in other words. The kinds share neither frames
// nor words of a subject. Weights were chosen while looking at `friends`, `helper`, `team` and `reports` (the team's, facts
// inside long messages); `shop` and `diary` are held out: do not look
// at what they miss.
import { DIARY_KIND } from "./recall-diary.ts";
import { FRIENDS_KIND } from "./recall-friends.ts";
import { HELPER_KIND } from "./recall-helper.ts";
import type { Frame, Kind } from "./recall-kind.ts";
import { SHOP_KIND } from "./recall-shop.ts";
import { TEAM_KIND } from "./recall-team.ts";

export interface PlantedQuestion {
  readonly language: Frame["language"];
  readonly text: string;
  /** The conversation that holds the answer. */
  readonly session: string;
}

interface TalkSession {
  readonly id: string;
  /** Unix seconds. */
  readonly startedAt: number;
  readonly messages: readonly { readonly role: "user" | "assistant"; readonly content: string }[];
}

export interface Talk {
  readonly sessions: readonly TalkSession[];
  readonly questions: readonly PlantedQuestion[];
  /** When the questions are asked: unix seconds. */
  readonly now: number;
}

/** What people say to their team, and the same in long reports. */
const KINDS = {
  friends: FRIENDS_KIND,
  helper: HELPER_KIND,
  team: TEAM_KIND,
  reports: { ...TEAM_KIND, buried: true, messages: [4, 20] as const },
  shop: SHOP_KIND,
  diary: DIARY_KIND,
};

export type TalkKind = keyof typeof KINDS;

const DAY = 86_400;
/** The same comes up again no sooner: a named month or week has one of it. */
const APART = 45 * DAY;

export function makeTalk(name: TalkKind, seed: number): Talk {
  const kind: Kind = KINDS[name];
  const random = seeded(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  const pick = <T>(list: readonly T[]) => list[below(list.length)] as T; // never empty
  const between = ([least, most]: readonly [number, number]) => least + below(most - least + 1);
  const used = new Map<string, number>();
  const sessions: TalkSession[] = [];
  const planned: (PlantedQuestion & { readonly at: number })[] = [];
  let at = Date.UTC(2025, 0, 6, 9) / 1000;
  for (let n = 0; n < kind.sessions; n++) {
    at += DAY * (0.3 + 2 * random());
    const id = `${name}-${n}`;
    const pair = [pick(kind.people), pick(kind.people)] as const;
    const lines: string[] = [];
    const facts = between(kind.facts);
    for (let fact = 0; fact < facts; fact++) {
      const frame = pick(kind.frames);
      const person = pick(pair);
      const object = pick(frame.objects.split(/\s*,\s*/));
      const key = `${kind.personal ? person : ""} ${object} ${kind.frames.indexOf(frame)}`;
      const before = used.get(key);
      // One conversation has the answer; of those that a time tells apart, one in that time.
      if (before !== undefined && !(kind.timed && at - before > APART)) continue;
      used.set(key, at);
      const fill = (text: string) =>
        text
          .replaceAll("{p}", person)
          .replaceAll("{o}", object)
          .replaceAll("{v}", pick(frame.values.split(/\s*,\s*/)));
      for (const line of fill(pick(frame.said)).split("|")) {
        const said = kind.buried ? bury(line.trim()) : line.trim();
        lines.push(kind.named ? `${person}: ${said}` : said);
      }
      for (const asked of kind.named ? [pick(frame.asked)] : frame.asked)
        planned.push({ language: frame.language, text: fill(asked), session: id, at });
      for (let idle = below(3); idle > 0; idle--) lines.push(chat(pick(kind.chatter), pick(pair)));
    }
    const length = between(kind.messages);
    while (lines.length < length) lines.splice(below(lines.length + 1), 0, chat(pick(kind.chatter), pick(pair)));
    const messages = lines.flatMap((content, index) => {
      if (kind.named) return [{ role: index % 2 ? ("assistant" as const) : ("user" as const), content }];
      const answer = fillChatter(pick(kind.answers));
      return [
        { role: "user" as const, content },
        { role: "assistant" as const, content: answer },
      ];
    });
    sessions.push({ id, startedAt: at, messages });
  }
  const now = at + DAY;
  const questions = planned.map(({ at: said, text, ...question }) => ({
    ...question,
    text: text.replaceAll("{t}", () => pick(timesOf(said, now, /\p{Script=Han}{2}/u.test(text)))),
  }));
  return { sessions, questions, now };

  function chat(text: string, person: string): string {
    const said = fillChatter(text);
    return kind.named ? `${person}: ${said}` : said;
  }

  function bury(fact: string): string {
    const around = Array.from({ length: 2 + below(4) }, () => fillChatter(pick(kind.chatter)));
    around.splice(below(around.length + 1), 0, fact);
    return around.join(" ");
  }

  /** Talk in passing about what the facts are about: words alone do not find them. */
  function fillChatter(text: string): string {
    return text
      .replaceAll("{o}", () => pick(pick(kind.frames).objects.split(/\s*,\s*/)))
      .replaceAll("{p}", () => pick(kind.people));
  }
}

const MONTHS = "January February March April May June July August September October November December".split(" ");

/** Ways to name a time of the past that hold it, and that people use. */
function timesOf(at: number, now: number, chinese: boolean): readonly string[] {
  const then = new Date(at * 1000);
  const today = new Date(now * 1000);
  const [year, month] = [then.getFullYear(), then.getMonth()];
  const years = today.getFullYear() - year;
  const months = 12 * years + today.getMonth() - month;
  const monday = (date: Date) =>
    Math.round(
      new Date(date.getFullYear(), date.getMonth(), date.getDate() - ((date.getDay() + 6) % 7)).getTime() / 1000 / DAY,
    );
  const weeks = Math.round((monday(today) - monday(then)) / 7);
  const times = chinese
    ? [`${year}年${month + 1}月`, ...(years < 2 ? [`${years === 0 ? "今年" : "去年"}${month + 1}月`] : [])]
    : [`in ${MONTHS[month]} ${year}`, `on ${MONTHS[month]} ${then.getDate()}, ${year}`];
  if (!chinese && months > 0 && months < 12) times.push(`in ${MONTHS[month]}`);
  if (months === 1) times.push(chinese ? "上个月" : "last month");
  if (months > 1 && months < 9) times.push(chinese ? `${months}个月前` : `${months} months ago`);
  if (weeks === 1) times.push(chinese ? "上周" : "last week");
  if (weeks > 1 && weeks < 5) times.push(chinese ? `${weeks}周前` : `${weeks} weeks ago`);
  return times;
}

export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647;
  };
}
