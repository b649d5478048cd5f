// How the screen looks: colours, spinner, words and marks. A skin says only what it changes; the rest is the default's.
import { type Look, makeTheme, printable, ROLES, type Role, type Theme } from "../../terminal-text.ts";
import { type Colour, type Depth, isColour, parseHex, type Rgb, readable, sgr } from "./colours.ts";

export interface Skin {
  readonly name: string;
  readonly description: string;
  readonly colors: Partial<Readonly<Record<ColourKey, Colour>>>;
  readonly look: Partial<Look>;
}

/** Every colour a skin may set, with what the default has. Names of the files of the Python original, and some for what is new here. */
const DEFAULTS = {
  banner_border: "dim",
  banner_title: "default",
  banner_accent: "cyan",
  banner_dim: "dim",
  banner_text: "default",
  ui_accent: "cyan",
  ui_label: "dim",
  ui_ok: "green",
  ui_warn: "yellow",
  ui_error: "red",
  prompt: "blue",
  input_rule: "dim",
  response_border: "dim",
  session_label: "default",
  session_border: "dim",
  status_bar_bg: "default",
  status_bar_text: "default",
  status_bar_strong: "default",
  status_bar_dim: "dim",
  status_bar_good: "green",
  status_bar_warn: "yellow",
  status_bar_bad: "red",
  status_bar_critical: "red",
  completion_menu_bg: "default",
  completion_menu_current: "cyan",
  completion_menu_current_bg: "default",
  completion_menu_meta: "dim",
  diff_added: "green",
  diff_removed: "red",
  code_keyword: "magenta",
  code_string: "green",
  code_number: "yellow",
  code_comment: "dim",
  code_call: "blue",
  code_type: "cyan",
} as const satisfies Record<string, Colour>;

type ColourKey = keyof typeof DEFAULTS;
export const COLOUR_KEYS = Object.keys(DEFAULTS) as readonly ColourKey[]; // the keys just written

/** Which colours paint a role: the text, and what is behind it. Roles that are not here are no colours: bold, struck and so on. */
const PAINTED: Partial<Readonly<Record<Role, readonly [text: ColourKey, behind?: ColourKey]>>> = {
  accent: ["ui_accent"],
  dim: ["banner_dim"],
  ok: ["ui_ok"],
  warn: ["ui_warn"],
  error: ["ui_error"],
  added: ["diff_added"],
  removed: ["diff_removed"],
  user: ["prompt"],
  title: ["banner_title"],
  border: ["banner_border"],
  logo: ["banner_accent"],
  bannerText: ["banner_text"],
  label: ["ui_label"],
  answerRule: ["response_border"],
  inputRule: ["input_rule"],
  sessionLabel: ["session_label"],
  sessionRule: ["session_border"],
  status: ["status_bar_text", "status_bar_bg"],
  statusModel: ["status_bar_strong", "status_bar_bg"],
  statusDim: ["status_bar_dim", "status_bar_bg"],
  contextGood: ["status_bar_good", "status_bar_bg"],
  contextWarn: ["status_bar_warn", "status_bar_bg"],
  contextBad: ["status_bar_bad", "status_bar_bg"],
  contextCritical: ["status_bar_critical", "status_bar_bg"],
  menuRow: ["completion_menu_current", "completion_menu_current_bg"],
  menuText: ["completion_menu_meta", "completion_menu_bg"],
  keyword: ["code_keyword"],
  string: ["code_string"],
  number: ["code_number"],
  comment: ["code_comment"],
  call: ["code_call"],
  type: ["code_type"],
};

const BOLD: ReadonlySet<Role> = new Set(["title", "contextCritical"]);

interface Surface {
  readonly depth: Depth;
  /** Null where nobody knows. */
  readonly background: Rgb | null;
}

/** The skin on a terminal. */
export function skinTheme(skin: Skin, { depth, background }: Surface): Theme {
  const plain = makeTheme(depth !== 0);
  const colourOf = (key: ColourKey) => skin.colors[key] ?? DEFAULTS[key];
  const paint = (role: Role) => {
    const keys = PAINTED[role];
    if (!keys) return plain[role];
    const [text, behind] = keys;
    const back = behind === undefined ? "default" : colourOf(behind);
    const front = readable(colourOf(text), backgroundBehind(back, background));
    const codes = [sgr(front, depth), sgr(back, depth, { behind: true })].flatMap((code) => code ?? []);
    if (BOLD.has(role) && depth !== 0) codes.push("1", "22");
    const open = codes.filter((_, at) => at % 2 === 0).join(";");
    const close = codes.filter((_, at) => at % 2 === 1).join(";");
    return open === "" ? same : (text: string) => (text === "" ? "" : `\u001b[${open}m${text}\u001b[${close}m`);
  };
  const painted = Object.fromEntries(ROLES.map((role) => [role, paint(role)])) as unknown as Omit<Theme, "look">; // every role
  return { ...painted, look: { ...plain.look, ...skin.look } };
}

const same = (text: string) => text;

function backgroundBehind(back: Colour, background: Rgb | null): Rgb | null {
  return back === "default" ? background : (parseHex(back) ?? background);
}

// A skin file.

interface ReadSkin {
  readonly skin: Skin;
  /** What of it was left out, and why. */
  readonly problems: readonly string[];
}

/** From the tree of a YAML file. Throws what is wrong with a file that is no skin at all. */
export function readSkin(name: string, tree: unknown): ReadSkin {
  if (!isRecord(tree)) throw new Error("it contains no settings");
  const problems: string[] = [];
  const texts = (value: unknown) =>
    Array.isArray(value) ? value.filter((one) => typeof one === "string").map(oneLine) : [];
  const colors = Object.entries(isRecord(tree.colors) ? tree.colors : {}).flatMap(([key, value]) => {
    if (!(key in DEFAULTS)) return []; // skins of the original have more keys
    if (typeof value === "string" && isColour(value.trim().toLowerCase())) return [[key, value.trim().toLowerCase()]];
    problems.push(`colors.${key}: "${String(value)}" is not a colour; write #rrggbb or a name such as cyan`);
    return [];
  });
  const spinner = isRecord(tree.spinner) ? tree.spinner : {};
  const branding = isRecord(tree.branding) ? tree.branding : {};
  const word = (key: string) => (typeof branding[key] === "string" ? oneLine(branding[key]) : undefined);
  const emojis = Object.entries(isRecord(tree.tool_emojis) ? tree.tool_emojis : {}).flatMap(([tool, emoji]) =>
    typeof emoji === "string" ? [[tool, oneLine(emoji)]] : [],
  );
  const look: { -readonly [Key in keyof Look]: Look[Key] | undefined } = {
    agentName: word("agent_name"),
    welcome: word("welcome"),
    goodbye: word("goodbye"),
    answerLabel: word("response_label")?.trim(),
    promptSymbol: word("prompt_symbol")?.trim(),
    helpHeader: word("help_header"),
    waitingFaces: filled(texts(spinner.waiting_faces)),
    thinkingFaces: filled(texts(spinner.thinking_faces)),
    thinkingVerbs: filled(texts(spinner.thinking_verbs)),
    wings: filled(pairs(spinner.wings)),
    toolPrefix: typeof tree.tool_prefix === "string" ? oneLine(tree.tool_prefix) : undefined,
    toolEmojis: emojis.length > 0 ? Object.fromEntries(emojis) : undefined,
    logo: art(tree.banner_logo),
    hero: art(tree.banner_hero),
  };
  return {
    skin: {
      name,
      description: typeof tree.description === "string" ? oneLine(tree.description) : "",
      colors: Object.fromEntries(colors),
      look: Object.fromEntries(Object.entries(look).filter(([, value]) => value !== undefined)),
    },
    problems,
  };
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const filled = <T>(list: readonly T[]) => (list.length > 0 ? list : undefined);
const oneLine = (text: string) => printable(text).replace(/\s+/g, " ");

function pairs(value: unknown): (readonly [string, string])[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((pair) => {
    const [left, right] = Array.isArray(pair) ? pair : [];
    return typeof left === "string" && typeof right === "string" ? [[oneLine(left), oneLine(right)] as const] : [];
  });
}

/** Lines of a drawing, without the colour marks that the original puts into its own. */
function art(value: unknown): readonly string[] | undefined {
  if (typeof value !== "string" || value.trim() === "") return undefined;
  return printable(value)
    .replace(/\[\/?[#\w. ]{0,40}\]/g, "")
    .split("\n")
    .map((line) => line.trimEnd())
    .filter((line) => line !== "")
    .slice(0, 20);
}
