// What English adds to a search by words: which words say nothing about a subject, and which forms are one word. The stems are those of
// Porter's second algorithm ("Snowball English"); they are for comparing only and nobody reads them.

/** Words of every text. A question is not about them. */
const STOP_WORDS = setOf(`
  a about above after again against ago all almost already also although always am an and another any anybody anyone anything anyway are aren
  around as at away back be became because become been before behind being below beside besides between both but by came can cannot come could
  couldn d did didn do does doesn doing don done down during each either else enough etc even ever every everybody everyone everything few for
  from further get gets getting give given go goes going gone got had hadn has hasn have haven having he hello her here hers herself hey hi him
  himself his how however i if in indeed instead into is isn it its itself just kind let like ll lot m made make makes many may maybe me might
  mine more most much must my myself near need neither never no nobody none nor not nothing now of off ok okay on once one ones only onto or
  other others our ours ourselves out over own per perhaps please possible quite rather re really s same shall she should shouldn since so some
  somebody someone something somewhere soon still such t take taken than thank thanks that the their theirs them themselves then there these
  they thing things this those though through till to together too toward towards under unless until up upon us ve very via was wasn way we
  well went were weren what whatever when where whereas whether which while who whoever whole whom whose why will with within without won would
  wouldn yeah yes yet you your yours yourself yourselves`);

/** Words that ask, or that speak of the talk itself. They count a little: now and then they are what a text is about. */
const WEAK_WORDS = setOf(`
  ask asked asking chat chatted conversation day days detail details discuss discussed discussion explain explained find happen happened
  information know knew known long look looking mean mention mentioned month months remember remind reminded say saying said says show speak
  spoke talk talked talking tell telling think thought time times told try tried use used using want wanted week weeks word year years`);

/** Forms that no rule derives. */
const IRREGULAR = new Map(
  `ate eat, eaten eat, beaten beat, began begin, begun begin, bent bend, bit bite, bitten bite, blew blow, blown blow, bought buy, broke break,
  broken break, brought bring, built build, burnt burn, caught catch, children child, chose choose, chosen choose, crept creep, dealt deal,
  drank drink, drawn draw, drew draw, driven drive, drove drive, drunk drink, dug dig, fallen fall, fed feed, feet foot, fell fall, felt feel,
  fled flee, flew fly, flown fly, forgot forget, forgotten forget, fought fight, froze freeze, frozen freeze, geese goose, grew grow,
  grown grow, heard hear, held hold, hidden hide, hung hang, keeping keep, kept keep, knives knife, laid lay, leaves leaf, led lead, left leave,
  lent lend, lives life, lost lose, men man, met meet, mice mouse, paid pay, ran run, rang ring, ridden ride, rode ride, rung ring, sang sing,
  sank sink, sat sit, saw see, seen see, sent send, shaken shake, shelves shelf, shone shine, shook shake, shot shoot, shown show, slept sleep,
  sold sell, sought seek, spent spend, spun spin, stole steal, stolen steal, stood stand, struck strike, stuck stick, sung sing, swam swim,
  swept sweep, swore swear, sworn swear, swum swim, taught teach, teeth tooth, thieves thief, threw throw, thrown throw, tore tear, torn tear,
  understood understand, wept weep, wives wife, woke wake, woken wake, wolves wolf, women woman, won win, wore wear, worn wear, wound wind,
  wove weave, woven weave, written write, wrote write`
    .split(",")
    .map((pair) => pair.trim().split(" ") as [string, string]),
);

/** Kept as they are, or made what they are: the rules would put them together with others. */
const EXCEPTIONS = new Map(
  `skis ski, skies sky, dying die, lying lie, tying tie, news news, sky sky, atlas atlas, cosmos cosmos, bias bias, andes andes, early early,
  only only, idly idl, gently gentl, ugly ugli, singly singl, howe howe, inning inning, outing outing, canning canning, herring herring,
  earring earring, proceed proceed, exceed exceed, succeed succeed, evening evening`
    .split(",")
    .map((pair) => pair.trim().split(" ") as [string, string]),
);

function setOf(words: string): ReadonlySet<string> {
  return new Set(words.trim().split(/\s+/));
}

export type WordKind = "stop" | "weak" | "content";

export function englishKind(word: string): WordKind {
  if (STOP_WORDS.has(word)) return "stop";
  return WEAK_WORDS.has(word) ? "weak" : "content";
}

const known = new Map<string, string>();
const MOST_KNOWN = 50_000;

/** The stem of a word in lower case. Words with anything but a–z are their own. */
export function stem(word: string): string {
  let found = known.get(word);
  if (found === undefined) {
    found = derive(word);
    if (known.size >= MOST_KNOWN) known.clear();
    known.set(word, found);
  }
  return found;
}

function derive(word: string): string {
  if (word.length < 3 || !/^[a-z]+$/.test(word)) return word;
  const base = IRREGULAR.get(word) ?? word;
  const exception = EXCEPTIONS.get(base);
  if (exception !== undefined) return exception;
  const { r1, r2 } = regions(base);
  let current = markConsonantY(base);
  current = withoutPlural(current);
  current = withoutPastAndIng(current, r1);
  if (current.length > 2 && /[^aeiouy][yY]$/.test(current)) current = `${current.slice(0, -1)}i`;
  current = replaceSuffix(current, STEP_2, r1);
  current = replaceSuffix(current, STEP_3, r1, r2);
  current = dropSuffix(current, r2);
  return withoutLastE(current, r1, r2).toLowerCase();
}

const isVowel = (letter: string | undefined) => letter !== undefined && "aeiouy".includes(letter);

/** `y` at the beginning or behind a vowel is a consonant, written `Y` on the way. */
function markConsonantY(word: string): string {
  return word.replace(/^y|(?<=[aeiouy])y/g, "Y");
}

/** Where the parts begin in which suffixes may be taken off. */
function regions(word: string): { readonly r1: number; readonly r2: number } {
  const special = /^(?:gener|commun|arsen)/.exec(word)?.[0].length;
  const r1 = special ?? behindVowelAndConsonant(word, 0);
  return { r1, r2: behindVowelAndConsonant(word, r1) };
}

function behindVowelAndConsonant(word: string, from: number): number {
  for (let at = from + 1; at < word.length; at++) if (isVowel(word[at - 1]) && !isVowel(word[at])) return at + 1;
  return word.length;
}

function withoutPlural(word: string): string {
  if (word.endsWith("sses")) return word.slice(0, -2);
  if (/ie[sd]$/.test(word)) return word.length > 4 ? word.slice(0, -2) : word.slice(0, -1);
  if (!word.endsWith("s") || /[us]s$/.test(word)) return word;
  return /[aeiouy]/.test(word.slice(0, -2)) ? word.slice(0, -1) : word;
}

function withoutPastAndIng(word: string, r1: number): string {
  const ee = /eed(?:ly)?$/.exec(word);
  if (ee) return ee.index >= r1 ? `${word.slice(0, ee.index)}ee` : word;
  const suffix = /(?:ed|ing)(?:ly)?$/.exec(word);
  if (!suffix) return word;
  const rest = word.slice(0, suffix.index);
  if (!/[aeiouy]/.test(rest)) return word;
  if (/(?:at|bl|iz)$/.test(rest)) return `${rest}e`;
  if (/(?:bb|dd|ff|gg|mm|nn|pp|rr|tt)$/.test(rest)) return rest.slice(0, -1);
  return r1 >= rest.length && endsShort(rest) ? `${rest}e` : rest;
}

function endsShort(word: string): boolean {
  return /(?:^[aeiouy][^aeiouy]|[^aeiouy][aeiouy][^aeiouywxY])$/.test(word);
}

type Rules = readonly (readonly [suffix: string, instead: string])[];

const rules = (text: string): Rules =>
  text
    .split(",")
    .map((rule) => rule.trim().split(" "))
    .map(([suffix = "", instead = ""]) => [suffix, instead] as const)
    .sort((a, b) => b[0].length - a[0].length);

const STEP_2 = rules(
  `tional tion, enci ence, anci ance, abli able, entli ent, izer ize, ization ize, ational ate, ation ate, ator ate, alism al, aliti al,
  alli al, fulness ful, ousli ous, ousness ous, iveness ive, iviti ive, biliti ble, bli ble, ogi og, fulli ful, lessli less, li`,
);
const STEP_3 = rules("tional tion, ational ate, alize al, icate ic, iciti ic, ical ic, ful, ness, ative");
const STEP_4 = `al ance ence er ic able ible ant ement ment ent ism ate iti ous ive ize ion`
  .split(" ")
  .sort((a, b) => b.length - a.length);

function replaceSuffix(word: string, list: Rules, r1: number, r2?: number): string {
  const rule = list.find(([suffix]) => word.endsWith(suffix));
  if (!rule) return word;
  const [suffix, instead] = rule;
  const at = word.length - suffix.length;
  if (at < r1) return word;
  if (suffix === "ogi" && word[at - 1] !== "l") return word;
  if (suffix === "li" && !"cdeghkmnrt".includes(word[at - 1] ?? "-")) return word;
  if (suffix === "ative" && at < (r2 ?? 0)) return word;
  return word.slice(0, at) + instead;
}

function dropSuffix(word: string, r2: number): string {
  const suffix = STEP_4.find((one) => word.endsWith(one));
  if (suffix === undefined) return word;
  const at = word.length - suffix.length;
  if (at < r2 || (suffix === "ion" && !"st".includes(word[at - 1] ?? "-"))) return word;
  return word.slice(0, at);
}

function withoutLastE(word: string, r1: number, r2: number): string {
  const at = word.length - 1;
  if (word.endsWith("e")) return at >= r2 || (at >= r1 && !endsShort(word.slice(0, -1))) ? word.slice(0, -1) : word;
  return word.endsWith("ll") && at >= r2 ? word.slice(0, -1) : word;
}
