// What a kind of generated conversations is made of.

/** `{p}` a person, `{o}` what it is about, `{v}` the answer, `{t}` a time. Statements and questions are chosen apart from each other. */
export interface Frame {
  readonly language: "english" | "chinese" | "mixed";
  readonly objects: string;
  readonly values: string;
  readonly said: readonly string[];
  readonly asked: readonly string[];
}

export interface Kind {
  readonly people: readonly string[];
  readonly frames: readonly Frame[];
  readonly chatter: readonly string[];
  readonly answers: readonly string[];
  /** Facts are about a person. */
  readonly personal: boolean;
  /** Who speaks stands in front of what was said. */
  readonly named: boolean;
  /** A fact is one sentence of a longer message. */
  readonly buried: boolean;
  /** The same comes up again in other months, and the question names a time. */
  readonly timed: boolean;
  readonly sessions: number;
  readonly messages: readonly [least: number, most: number];
  readonly facts: readonly [least: number, most: number];
}

export const frame = (
  language: Frame["language"],
  objects: string,
  values: string,
  said: readonly string[],
  asked: readonly string[],
): Frame => ({ language, objects, values, said, asked });

/** What an assistant says to anything. */
export const ANSWERS = [
  "Of course. Here is a first version; tell me what to change and I will adjust length, tone or structure as you like.",
  "I would begin with the simplest option, check whether it helps, and only then spend time or money on the rest.",
  "Done. I kept the facts as you gave them and left everything else out, so that it stays easy to read.",
  "Good question. In general there are three things to look at: cost, time, and how much you care about the result.",
  "Noted. If anything changes, tell me, and I will take it into account from then on.",
  "好的，已经记下了。如果有变化随时告诉我，我会更新。",
  "没问题。我建议先从最简单的办法开始，看看有没有效果，再考虑别的。",
  "整理好了，您看看还需要怎么改。",
];
