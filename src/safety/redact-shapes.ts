// Secrets that show what they are by themselves: tokens of vendors and bots, private keys; and telephone numbers.
import type { Marks } from "./redact-known.ts";

const TELEGRAM = /(?<![A-Za-z0-9])(bot)?(\d{8,20}):([A-Za-z0-9_-]{30,})/g;

export function redactTelegramTokens(text: string, marks: Marks, taken?: (token: string) => void): string {
  return text.replace(TELEGRAM, (_whole, bot: string | undefined, id: string, secret: string) => {
    taken?.(`${id}:${secret}`);
    return `${bot ?? ""}${id}:${marks.hidden}`;
  });
}

const PHONE = /(?<![\w+])\+[1-9]\d{6,14}(?!\w)/g;

/** International numbers; what is left is enough to distinguish two of them. */
export function redactPhones(text: string): string {
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
  const lines = text.slice(Math.max(from, end - REACH), end).split(/(?<=\n|\\n)/);
  let start = end;
  let sure = end;
  for (let at = lines.length - 1; at >= 0; at--) {
    const line = lines[at] ?? "";
    const content = line.replace(/(?<!\s|\\[nr])(?:\s|\\[nr])+$/, "").trimStart();
    const isLast = at === lines.length - 1;
    if (!/^[A-Za-z0-9+/=]+$/.test(content) || (content.length < SHORTEST_LINE && !isLast)) break;
    start -= line.length;
    if (content.length >= SHORTEST_LINE || start === 0) sure = start;
  }
  return sure;
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
  ].join("|"),
  "g",
);

const ORDINARY_NAME = /^[a-z]{1,12}(?:[_-][a-z]{1,12})+$/;

export function redactTokens(text: string, marks: Marks): string {
  return text.replace(TOKEN, (value: string, clear?: string, ambiguous?: string, ...others: unknown[]) => {
    if (ambiguous !== undefined && ORDINARY_NAME.test(value.slice(ambiguous.length))) return value;
    const prefix = clear ?? ambiguous ?? others.find((group) => typeof group === "string") ?? "";
    return marks.token(value, String(prefix));
  });
}

const WEB_TOKEN = new RegExp(String.raw`${START}eyJ[A-Za-z0-9_-]{5,}\.eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]+`, "g");

/** JSON web tokens. */
export function redactWebTokens(text: string, marks: Marks): string {
  return text.replace(WEB_TOKEN, (value) => marks.token(value, "eyJ"));
}
