// What texts are found by, and what a question asks for. Text becomes terms: stems of words, and of scripts without blanks each character
// and each pair of characters, because most of their words are two characters long and nothing marks where one begins.
import { englishKind, stem, type WordKind } from "./english.ts";
import { simplified } from "./simplified.ts";

// Written without blanks between words. The same as in `query.ts`, without the punctuation.
const HAN = String.raw`\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u3005\u3040-\u309f\u30a0-\u30ff\uac00-\ud7af`;
const PIECES = new RegExp(`[${HAN}]+|(?:(?![${HAN}])[\\p{L}\\p{N}\\p{M}])+`, "gu");
const ANY_HAN = new RegExp(`[${HAN}]`, "u");
const IS_HAN = new RegExp(`^[${HAN}]`, "u");
/** Longer ones are keys, hashes and encoded data; nobody asks for them in a question. */
const MAX_WORD = 40;

/** Terms of a text with how often each occurs. Order and case do not count. */
export type TermCounts = ReadonlyMap<string, number>;

export interface ReadText {
  readonly terms: TermCounts;
  /** Words, a character of a script without blanks counting as half of one. */
  readonly length: number;
  /** It is a question, and not a long text that ends with one. */
  readonly asks: boolean;
}

const MAX_ASKING = 40;

/** What a glued word is kept under: exactly as it was written, apart from its case. */
export const gluedTerm = (word: string) => `=${word}`;

const isAscii = (text: string) => !/[^\0-\x7f]/.test(text);

/** One spelling for what people write in several: width, case, accents, traditional characters. */
export function fold(text: string): string {
  if (isAscii(text)) return text.toLowerCase();
  const lower = text.normalize("NFKC").toLowerCase();
  const plain = /[\u00c0-\u024f]/.test(lower) ? lower.replace(/[\u00c0-\u024f]/g, withoutMarks) : lower;
  return simplified(plain);
}

const withoutMarks = (letter: string) => letter.normalize("NFD").replace(/\p{M}+/gu, "");

/**
 * The terms of one text. With `only: "blankless"` nothing but what stands in a script without blanks, and words that are glued to it: all
 * that SQLite's own index cannot find.
 */
export function readText(text: string, options: { readonly only?: "blankless" } = {}): ReadText {
  const terms = new Map<string, number>();
  if (options.only === "blankless" && !ANY_HAN.test(text)) return { terms, length: 0, asks: false };
  const add = (term: string) => terms.set(term, (terms.get(term) ?? 0) + 1);
  const folded = fold(text);
  let length = 0;
  let previousEnd = -1;
  let previous = "";
  for (const match of folded.matchAll(PIECES)) {
    const piece = match[0];
    const touches = match.index === previousEnd;
    if (IS_HAN.test(piece)) {
      if (touches && previous !== "" && !IS_HAN.test(previous)) add(gluedTerm(previous));
      const points = [...piece];
      length += points.length / 2;
      for (let at = 0; at < points.length; at++) {
        add(points[at] ?? "");
        if (at > 0) add(`${points[at - 1]}${points[at]}`);
      }
    } else if (piece.length <= MAX_WORD) {
      if (touches) add(gluedTerm(piece));
      if (options.only !== "blankless") {
        length += 1;
        add(stem(piece));
      }
    }
    previous = piece.length <= MAX_WORD ? piece : "";
    previousEnd = match.index + piece.length;
  }
  return { terms, length, asks: length <= MAX_ASKING && /[?？]["'”’)）]?$/.test(text.slice(-200).trimEnd()) };
}

/** A folded text cut into words, also where one script touches another. */
export const splitScripts = (folded: string): readonly string[] => folded.match(PIECES) ?? [];

/** What a text must be indexed by to contain this one; empty when that cannot be told. */
export function hanTermsOf(text: string): readonly string[] {
  return [
    ...new Set(
      splitScripts(fold(text))
        .filter((piece) => IS_HAN.test(piece))
        .flatMap((piece) => {
          const points = [...piece];
          return points.length === 1 ? points : points.slice(1).map((point, at) => `${points[at]}${point}`);
        }),
    ),
  ];
}

/** One word of a question. */
export interface AskedWord {
  /** As it was typed. */
  readonly word: string;
  /** Any of these is the word; each with the share of it that it stands for. */
  readonly terms: readonly { readonly term: string; readonly share: number }[];
  /** How much it counts, before anything is known about how rare it is. */
  readonly weight: number;
  /** Somebody or something is called so: nobody says it in other words. */
  readonly name: boolean;
}

/** Whether it says what the question is about, rather than that something is asked. */
export const isSubject = (asked: AskedWord) => asked.weight > WEAK;

const WEAK = 0.3;
const NAME = 1.5;
const MAX_ASKED = 24;

/** The words of a question that say what it is about, each once. */
export function readQuestion(question: string): readonly AskedWord[] {
  const words = new Map<string, AskedWord>();
  const text = question.normalize("NFKC");
  const amongHan = ANY_HAN.test(text);
  let sentenceStart = true;
  let end = 0;
  for (const match of text.matchAll(PIECES)) {
    sentenceStart ||= /[.!?。！？\n]/.test(text.slice(end, match.index));
    end = match.index + match[0].length;
    const found = IS_HAN.test(match[0]) ? hanWords(match[0]) : [latinWord(match[0], { sentenceStart, amongHan })];
    for (const one of found) if (one && !words.has(one.word.toLowerCase())) words.set(one.word.toLowerCase(), one);
    sentenceStart = false;
  }
  return [...words.values()].slice(0, MAX_ASKED);
}

/** A Latin word in Chinese is the name of something, however it is written. */
function latinWord(
  written: string,
  { sentenceStart, amongHan }: { readonly sentenceStart: boolean; readonly amongHan: boolean },
): AskedWord | null {
  const word = fold(written);
  const kind: WordKind = englishKind(word);
  const isName = kind === "content" && (amongHan || (!sentenceStart && /^\p{Lu}\p{Ll}/u.test(written)));
  if (kind === "stop" || word.length > MAX_WORD || (word.length === 1 && !/\d|[^\0-\x7f]/.test(word))) return null;
  const weight = isName ? NAME : kind === "weak" ? WEAK : 1;
  return { word: written, terms: [{ term: stem(word), share: 1 }], weight, name: isName };
}

/** Says nothing about a subject, in Chinese. */
const HAN_STOP = new Set(
  `的 了 是 我 你 您 他 她 它 们 我们 你们 他们 她们 咱们 在 有 和 与 跟 及 或 或者 就 不 没 没有 都 也 还 还是 又 很 太 更 最 被 把 让 给 对 对于 关于
  从 向 到 去 来 会 能 能够 可以 可 要 想 应该 得 地 着 过 吗 呢 吧 啊 呀 嘛 哦 嗯 这 那 这个 那个 这些 那些 这样 那样 这里 那里 这儿 那儿 哪 哪个 哪些 哪里 哪儿
  谁 什么 什么样 啥 怎么 怎样 怎么样 如何 为什么 为何 多少 几 几个 多 多久 多大 何时 时候 什么时候 之 其 而 但 但是 不过 因为 所以 如果 虽然 然后 于是 而且 并且
  一 一个 一些 一下 一点 一次 个 次 些 家 上 下 里 中 内 外 前 后 以 为 由 于 等 自己 大家 别人 某 各 每 每个 所有 已经 曾经 正在 现在 刚 刚才 才 只 只是 再 先
  请 请问 帮 帮我 是否 是不是 有没有 能不能 可不可以 不是 叫 叫做 叫什么 上面 下面 里面 呗 喔 啦 么`.split(/\s+/),
);
const HAN_WEAK = new Set(
  `说 说过 说到 提 提到 提过 提起 聊 聊过 聊到 谈 谈过 谈到 讲 讲过 告诉 问 问过 记得 知道 觉得 看 看看 找 找到 做 做了 用 事 事情 东西 话 话题 讨论 时间 日子 对话 最后 上次 次数 月 日 年 天 周
  打算 准备 发生 具体`.split(/\s+/),
);
/** Particles and pronouns that words hardly ever contain: a run is cut at them before its words are looked for, apart from these words. */
const HAN_CUT = /(了解|目的|存在|在线|现在|其他|是否)|什么|怎么|为啥|[的了吗呢吧啊我你您他她它们是在这那哪谁么嘛呀叫]/u;

let segmenter: Intl.Segmenter | undefined;

/** ICU knows where the words of Chinese and Japanese are; a word of several characters is looked for by its pairs. */
function hanWords(run: string): readonly AskedWord[] {
  segmenter ??= new Intl.Segmenter("zh", { granularity: "word" });
  const words: AskedWord[] = [];
  const add = (word: string, name = CALLED.test(simplified(word))) => {
    const plain = simplified(word);
    if (word === "" || HAN_STOP.has(plain)) return;
    words.push({ word, terms: hanTerms([...plain]), weight: name ? NAME : hanWeight(plain), name });
  };
  for (const part of run.split(HAN_CUT)) {
    if (!part) continue;
    // Names and rare words come as single characters: those side by side are one word.
    let singles = "";
    const addSingles = () => {
      const isName = NAME_BEGINS.test(simplified(singles));
      const length = isName && singles.length > 3 ? 2 : singles.length;
      add(singles.slice(0, length), isName);
      add(singles.slice(length), false);
      singles = "";
    };
    for (const { segment } of segmenter.segment(part)) {
      const { length } = [...segment];
      if (length === 1 && !HAN_STOP.has(simplified(segment))) {
        singles += segment;
        continue;
      }
      // 陈建国, 吴师傅: a family name, and a word that is a given name or a title here.
      if (length === 2 && IS_SURNAME.test(simplified(singles))) {
        add(singles + segment, true);
        singles = "";
        continue;
      }
      addSingles();
      add(segment);
    }
    addSingles();
  }
  return words;
}

/** Common family names that are hardly ever words by themselves. */
const SURNAMES =
  "王李刘陈杨赵吴周徐孙胡朱林郭何罗郑梁谢宋唐许韩冯邓曹彭曾肖蔡潘袁董余叶蒋杜苏魏吕丁任沈姚卢傅钟姜崔谭廖范汪陆贾韦邱侯邹熊孟秦阎薛雷";
const IS_SURNAME = new RegExp(`^[${SURNAMES}]$`);
/** Of characters that ICU knows no word for. */
const NAME_BEGINS = new RegExp(`^(?:[小老阿]|[${SURNAMES}])\\p{Script=Han}`, "u");
const CALLED = new RegExp(`^[小老][${SURNAMES}]$`);

/** Most words of a single character are verbs of many meanings. */
const SINGLE = 0.7;

const hanWeight = (word: string) => (HAN_WEAK.has(word) ? WEAK : [...word].length === 1 ? SINGLE : 1);

/** A share of a longer word is found where only some of its pairs are; a single character of a pair says little. */
const CHARACTER_OF_WORD = 0.25;

function hanTerms(points: readonly string[]): AskedWord["terms"] {
  if (points.length === 1) return [{ term: points[0] ?? "", share: 1 }];
  const pairs = points.slice(1).map((point, at) => `${points[at]}${point}`);
  const share = 1 / pairs.length;
  return [
    ...pairs.map((term) => ({ term, share })),
    ...points.map((term) => ({ term, share: (CHARACTER_OF_WORD * 2) / points.length })),
  ];
}

/** A stretch of a text that is one of the words that were asked for. */
export interface Occurrence {
  readonly start: number;
  readonly end: number;
  /** Which of the words. */
  readonly word: number;
}

/** Where the words stand in a text, in order. */
export function findWords(text: string, asked: readonly AskedWord[]): readonly Occurrence[] {
  const wanted = new Map(
    asked.flatMap(({ terms }, word) =>
      terms.filter(({ share }) => share > CHARACTER_OF_WORD).map(({ term }) => [term, word]),
    ),
  );
  const found: Occurrence[] = [];
  const note = (term: string, start: number, end: number) => {
    const word = wanted.get(term);
    if (word === undefined) return;
    const last = found.at(-1);
    // Pairs of one word overlap.
    if (last && last.word === word && start < last.end) found[found.length - 1] = { ...last, end };
    else found.push({ start, end, word });
  };
  for (const match of text.matchAll(PIECES)) {
    if (!IS_HAN.test(match[0])) {
      if (match[0].length <= MAX_WORD) note(stem(fold(match[0])), match.index, match.index + match[0].length);
      continue;
    }
    let at = match.index;
    let previous = "";
    for (const point of match[0]) {
      const folded = fold(point);
      note(folded, at, at + point.length);
      if (previous !== "") note(`${fold(previous)}${folded}`, at - previous.length, at + point.length);
      previous = point;
      at += point.length;
    }
  }
  return found;
}
