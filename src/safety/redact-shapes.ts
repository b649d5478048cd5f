// Secrets that show what they are by themselves: tokens of vendors and bots, private keys; and telephone numbers.
import type { Marks } from "./redact-known.ts";

const TELEGRAM = /(?<![A-Za-z0-9])(bot)?(\d{8,20}):([A-Za-z0-9_-]{30,})/g;

export function redactTelegramTokens(text: string, marks: Marks, taken?: (token: string) => void): string {
  if (!text.includes(":")) return text;
  return text.replace(TELEGRAM, (_whole, bot: string | undefined, id: string, secret: string) => {
    taken?.(`${id}:${secret}`);
    return `${bot ?? ""}${id}:${marks.hidden}`;
  });
}

const PHONE = /(?<![\w+])\+[1-9]\d{6,14}(?!\w)/g;

/** International numbers; what is left is enough to distinguish two of them. */
export function redactPhones(text: string): string {
  if (!text.includes("+")) return text;
  return text.replace(PHONE, (phone) =>
    phone.length <= 8 ? `${phone.slice(0, 2)}****${phone.slice(-2)}` : `${phone.slice(0, 4)}****${phone.slice(-4)}`,
  );
}

const MARK = /-----(BEGIN|END) (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----/g;
/** What follows a header whose end was cut off: lines of base64, also with line breaks written as `\n`. */
const BODY = /(?:(?:[^\S]|\\[nr])*[A-Za-z0-9+/=]{16,})*/y;
/** Only the last line of a key is shorter. */
const SHORTEST_LINE = 16;
/** Longer than any key. */
const REACH = 16_384;

/** Whole blocks; of a block that was cut, what is there: its header and the lines behind it, or its end and the lines before it. */
export function redactPrivateKeys(text: string, marks: Marks): string {
  if (!text.includes("PRIVATE KEY")) return text;
  const found = [...text.matchAll(MARK)];
  const ends = found.filter(([, kind]) => kind === "END");
  const out: string[] = [];
  let position = 0;
  let nextEnd = 0;
  const hide = (start: number, end: number) => {
    out.push(text.slice(position, start), marks.privateKey(text.slice(start, end)));
    position = end;
  };
  for (const mark of found) {
    if (mark.index < position) continue;
    const behind = mark.index + mark[0].length;
    if (mark[1] === "END") {
      const start = bodyStart(text, position, mark.index);
      if (start < mark.index) hide(start, behind);
      continue;
    }
    while ((ends[nextEnd]?.index ?? Infinity) < behind) nextEnd++;
    const end = ends[nextEnd];
    hide(mark.index, end ? end.index + end[0].length : bodyEnd(text, behind));
  }
  out.push(text.slice(position));
  return out.join("");
}

function bodyEnd(text: string, from: number): number {
  BODY.lastIndex = from;
  BODY.exec(text);
  return Math.max(from, BODY.lastIndex);
}

/** Back over lines of base64, as `bodyEnd` goes forward. The last one may be short, where others or nothing stand before it. */
function bodyStart(text: string, from: number, end: number): number {
  let start = end;
  let sure = end;
  for (const line of linesFromEnd(text.slice(Math.max(from, end - REACH), end))) {
    const content = line.replace(/(?<!\s|\\[nr])(?:\s|\\[nr])+$/, "").trimStart();
    const isLast = start === end;
    if (!/^[A-Za-z0-9+/=]+$/.test(content) || (content.length < SHORTEST_LINE && !isLast)) break;
    start -= line.length;
    if (content.length >= SHORTEST_LINE || start === 0) sure = start;
  }
  return sure;
}

/** Each line with its break, which may be written as `\n`; most callers leave at the first one. */
function* linesFromEnd(text: string): Generator<string> {
  let stop = text.length;
  let real = stop;
  let written = stop;
  while (stop > 0) {
    // Where the kind of break was found that was not the nearer one it is not looked for again.
    if (real > stop - 2) real = stop < 2 ? -1 : text.lastIndexOf("\n", stop - 2);
    if (written > stop - 3) written = stop < 3 ? -1 : text.lastIndexOf("\\n", stop - 3);
    const start = Math.max(0, real + 1, written < 0 ? 0 : written + 2);
    yield text.slice(start, stop);
    stop = start;
  }
}

// Secrets that show what they are by how they begin.

/** A token starts where no word is under way; a line break written as `\n` ends a word. */
const START = String.raw`(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))`;

const prefixes = [
  "sk-",
  "sk_live_",
  "sk_test_",
  "rk_live_",
  "ghp_",
  "gho_",
  "ghu_",
  "ghs_",
  "ghr_",
  "github_pat_",
  "xox[abeprs]-",
  "xapp-",
  "pplx-",
  "bb_live_",
  "dop_v1_",
  "doo_v1_",
  "tvly-",
  "gsk_",
  "retaindb_",
  "rk_test_",
  "dckr_pat_",
  "shp(?:at|ca|pa|ss)_",
  "lin_api_",
  "nvapi-",
  "whsec_",
  "figd_",
  "GOCSPX-",
  "ATATT3x",
  "dapi(?=[0-9a-f]{32})",
  "HRKU-",
  "sbp_",
  "NRAK-",
  "gl(?:c|sa)_",
  "tskey-",
  "dp\\.pt\\.",
  "rubygems_",
  "sq0(?:csp|atp)-",
  "gl(?:pat|dt|rt|rtr|ptt|ft|cbt|imt|agent|oas|soat)-",
];

/** These also begin ordinary names (`npm_config_registry`, `hf_hub_download`). */
const ambiguousPrefixes = [
  "sk_",
  "fal_",
  "fc-",
  "hf_",
  "r8_",
  "npm_",
  "pypi-",
  "am_",
  "exa_",
  "syt_",
  "hsk-",
  "mem0_",
  "brv_",
  "ntn_",
  "fw_",
];

const TOKEN = new RegExp(
  [
    `${START}(${prefixes.join("|")})[A-Za-z0-9_-]{10,}`,
    `${START}(${ambiguousPrefixes.join("|")})[A-Za-z0-9_-]{10,}`,
    `${START}(AIza|xai-)[A-Za-z0-9_-]{30,}`,
    `${START}(gAAAA)[A-Za-z0-9_-]{20,}={0,2}`,
    `${START}(sntrys_)[A-Za-z0-9_+/=-]{10,}`,
    `${START}(A[KS]IA)[A-Z0-9]{16}(?![A-Za-z0-9_-])`,
    // A private key file as base64, as Kubernetes keeps it.
    `${START}(LS0tLS1CRUdJTi(?:BQUklWQVRF|BSU0EgUFJJ|BFQyBQUklW|BPUEVOU1NI|BFTkNSWVBU))[A-Za-z0-9+/]{20,}={0,2}`,
    String.raw`${START}(ya29\.|hvs\.)[A-Za-z0-9_-]{20,}`,
    `${START}(AGE-SECRET-KEY-1)[A-Z0-9]{30,}`,
    String.raw`${START}(SG\.)[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]{1,100})?`,
    // Discord: the number of the bot as base64, a time, a signature.
    String.raw`${START}(?=[\w-]{0,26}\d)([MNO][A-Za-z0-9])[A-Za-z0-9_-]{21,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{25,48}(?![\w-])`,
    String.raw`${START}(mfa\.)[A-Za-z0-9_-]{40,120}`,
  ].join("|"),
  "g",
);

const ORDINARY_NAME = /^[a-z]{1,12}(?:[_-][a-z]{1,12})+$/;

/** In every token; asked first, because most texts of a conversation are short and the expression above takes a millisecond to make. */
const LONG_WORD = /[A-Za-z0-9_-]{10}/;
/** How a token begins, up to where its expression says more than the letters themselves. */
const BEGINNINGS = [
  ...[...prefixes, ...ambiguousPrefixes].map((prefix) => /^[\w-]+/.exec(prefix)?.[0] ?? ""),
  ...[
    "AIza",
    "xai-",
    "gAAAA",
    "sntrys_",
    "AKIA",
    "ASIA",
    "LS0tLS1CRUdJTi",
    "ya29.",
    "hvs.",
    "AGE-SECRET-KEY-1",
    "SG.",
    "mfa.",
  ],
];
/** The one kind that begins like any word: it has a long part before a dot. */
const LONG_PART = /[A-Za-z0-9_-]{23}\./;
/** A longer text is read by the expression in the time that looking for each beginning takes. */
const SHORT_TEXT = 4096;

function mayHoldToken(text: string): boolean {
  if (!LONG_WORD.test(text)) return false;
  return text.length > SHORT_TEXT || BEGINNINGS.some((one) => text.includes(one)) || LONG_PART.test(text);
}

export function redactTokens(text: string, marks: Marks): string {
  if (!mayHoldToken(text)) return text;
  return text.replace(TOKEN, (value: string, clear?: string, ambiguous?: string, ...others: unknown[]) => {
    if (ambiguous !== undefined && ORDINARY_NAME.test(value.slice(ambiguous.length))) return value;
    const prefix = clear ?? ambiguous ?? others.find((group) => typeof group === "string") ?? "";
    return marks.token(value, String(prefix));
  });
}

// What passwords are kept as: crypt(3) and its kin, directories, Django, Windows.
const HASH =
  /(?:(?<![\w$])|(?<=\\[nrt]))\$(?:[1567y]|gy|sm3|md5|sha1|scrypt|2[abxy]?|apr1|argon2(?:id|[id])|pbkdf2[\w-]{0,12}|bcrypt-sha256)\$(?:[\w.,=+/-]{1,64}\$){0,4}[A-Za-z0-9./+=]{20,256}|\{(?:S?SHA\d{0,3}|S?MD5|CRYPT|PBKDF2[\w-]{0,8})\}[A-Za-z0-9+/=$.]{20,256}|(?:(?<![\w$])|(?<=\\[nrt]))(?:pbkdf2|bcrypt|scrypt)_\w{1,12}\$(?:[\w.,=+/-]{1,64}\$){1,4}[A-Za-z0-9./+=]{20,256}|(?<=:\d{1,10}:)[0-9a-f]{32}:[0-9a-f]{32}(?=:::)/gi;

export function redactHashes(text: string, marks: Marks): string {
  if (!text.includes("$") && !text.includes("{") && !text.includes(":::")) return text;
  return text.replace(HASH, marks.hidden);
}

// The words that open a wallet: twelve to twenty-four plain ones behind a name for them, on one line or as a list.
const SEED_NAME =
  /(?:(?<![a-z])|(?<=\\[nrt]))(?:(?:seed|recovery|backup|wallet|bip-?39)(?:[ _-]{0,2}(?:phrase|words?|seed|mnemonic)){1,3}|mnemonic(?:[ _-]?(?:phrase|words?|seed))?|seed)(?![a-z])|助[记記][词詞]|ニーモニック|(?:シード|リカバリー?)フレーズ|니모닉|(?:시드|복구) ?(?:구문|문구)|(?:сид|мнемоническая)[ -]фраза|фраза восстановления|frase (?:semilla|semente|mnem[oó]nica|de recupera\S{1,6})|phrase (?:de r[ée]cup[ée]ration|secr[èe]te)|wiederherstellungsphrase/gi;
const SEED_WORDS =
  /(?:[ \t]{0,4}\([^()\n]{0,40}\))?(?:\s{1,4}(?:is|are|was|es|est|ist)\b|\\?["'`]?\s{0,4}[:=：]|\s{0,4}[是为は]|\*{0,2}(?:\n|\\n))(?:[\s:"'`[>*-]|\\[nrt"]){0,24}?((?:(?:\d{1,2}[.):]{0,2}[ \t]{0,3}|[*-] )?[a-z]{3,8}(?![a-z])(?:[\s,]|\\[nr]){0,6}){12,48}|(?:\\?["'][a-z]{3,8}\\?["'](?:[\s,]|\\n){0,12}){12,24})/iy;
const SEED_PARTS = /\n|\\[nr]|[a-z]{3,8}/gi;
/** Words that no such list has, and few sentences can do without. */
const SENTENCE = /^(?:the|and|are|for|not|but|your|from|has|was|were|which|must|should|our|their|when|each|used)$/i;

/** In every name of them. */
const MAY_NAME_SEED = /[^\x00-\x7f]|seed|recovery|backup|wallet|bip|mnemonic|phrase|frase/i;

export function redactSeeds(text: string, marks: Marks): string {
  if (!MAY_NAME_SEED.test(text)) return text;
  const out: string[] = [];
  let position = 0;
  for (const name of text.matchAll(SEED_NAME)) {
    SEED_WORDS.lastIndex = name.index + name[0].length;
    const found = name.index < position ? null : SEED_WORDS.exec(text);
    if (!found) continue;
    const [, list = ""] = found;
    const count = wordsOfSeed(list);
    const start = SEED_WORDS.lastIndex - list.length;
    let left = count;
    const masked = list.replace(SEED_PARTS, (part) => (/^[\n\\]/.test(part) || left-- <= 0 ? part : marks.hidden));
    if (count === 0) continue;
    out.push(text.slice(position, start), masked);
    position = start + list.length;
  }
  if (position === 0) return text;
  out.push(text.slice(position));
  return out.join("");
}

/** How many of the words at the beginning of a list are a phrase; what follows on other lines is other text. */
function wordsOfSeed(list: string): number {
  const lines = list
    .split(/\n|\\n/)
    .map((line) => line.match(/[a-z]{3,8}/gi) ?? [])
    .filter(({ length }) => length > 0);
  const across = lines[0]?.length ?? 0;
  const alike = lines.findIndex(({ length }) => length !== across);
  const total = across >= 12 ? across : across * (alike === -1 ? lines.length : alike);
  const words = lines.flat().slice(0, total);
  if (total < 12 || words.slice(0, 12).some((word) => SENTENCE.test(word))) return 0;
  return across >= 12 ? total : Math.min(24, total - (total % 3));
}

const WEB_TOKEN = new RegExp(String.raw`${START}eyJ[A-Za-z0-9_-]{5,}\.eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]+`, "g");

/** JSON web tokens. */
export function redactWebTokens(text: string, marks: Marks): string {
  if (!text.includes("eyJ")) return text;
  return text.replace(WEB_TOKEN, (value) => marks.token(value, "eyJ"));
}
