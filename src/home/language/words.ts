// The language of what people read on the screen. The English text is the key: it stands where it is said, and a catalogue of another
// language maps it, with its named places, to a translation. What a catalogue lacks stays English. Prompts to the model, logs and names of
// commands are never translated.

/** The names of the places in a text: `"Skin: {name}."` has `name`. */
type Places<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}` ? Name | Places<Rest> : never;
type Values<Text extends string> = [Places<Text>] extends [never]
  ? []
  : [values: Readonly<Record<Places<Text>, string | number>>];

export type Catalogue = Readonly<Record<string, string>>;

interface Pattern {
  readonly literals: readonly string[];
  readonly names: readonly string[];
  readonly translation: string;
}

let catalogue: Catalogue = {};
/** Texts with places, by how they begin. */
let patterns: readonly Pattern[] = [];

/** The text in the user's language, with its places filled. A place that nobody fills stays as it is written. */
export function t<const Text extends string>(text: Text, ...[values]: Values<Text>): string {
  return filled(Object.hasOwn(catalogue, text) ? (catalogue[text] ?? text) : text, values ?? {});
}

/** A text that was put together already: translated as a whole, else line by line, as far as the catalogue has it. */
export function said(text: string): string {
  if (patterns.length === 0 || text.length > MOST_CHARS) return text;
  const whole = lookUp(text);
  if (whole !== null || !text.includes("\n")) return whole ?? text;
  return text
    .split("\n")
    .map((line) => lookUp(line) ?? line)
    .join("\n");
}

const MOST_CHARS = 20_000;

export function useCatalogue(next: Catalogue): void {
  catalogue = next;
  patterns = Object.entries(next).flatMap(([text, translation]) => {
    const parts = text.split(/\{(\w+)\}/);
    const literals = parts.filter((_, at) => at % 2 === 0);
    const names = parts.filter((_, at) => at % 2 === 1);
    return isTelling(literals) ? [{ literals, names, translation }] : [];
  });
}

/** A text of places alone fits everything, one with a place at both ends and little between ("{name} in {file}, {value}") any sentence. */
function isTelling(literals: readonly string[]): boolean {
  const isOpen = literals[0] === "" && literals.at(-1) === "";
  const letters = literals.join("").match(/\p{L}/gu)?.length ?? 0;
  return literals.some((literal) => /\p{L}{2}/u.test(literal)) && (!isOpen || letters >= 8);
}

/** What may stand in front of a sentence that is in the catalogue without it. */
const MARK = /^(?:hermes: |[✓✗⚠→] +)/;

function lookUp(text: string): string | null {
  const [, indent = "", rest = ""] = /^(\s*)([\s\S]*)$/.exec(text) ?? [];
  const [mark = ""] = MARK.exec(rest) ?? [];
  const behind = mark === "" ? null : lookUpBare(rest.slice(mark.length));
  const found = behind === null ? lookUpBare(rest) : mark + behind;
  return found === null ? null : indent + found;
}

function lookUpBare(bare: string): string | null {
  if (Object.hasOwn(catalogue, bare)) return catalogue[bare] ?? bare;
  for (const pattern of patterns) {
    const values = pattern.names.length > 0 ? match(bare, pattern) : null;
    if (values) return filled(pattern.translation, nested(values));
  }
  return null;
}

/** Places of these names hold words of ours; what people and programs named themselves is never translated. */
const OURS: ReadonlySet<string> = new Set(["state", "what", "why"]);

const nested = (values: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(values).map(([name, text]) => [name, OURS.has(name) ? said(text) : text]));

/** What stands in the places, taken from left to right. */
function match(text: string, { literals, names }: Pattern): Readonly<Record<string, string>> | null {
  const [first = ""] = literals;
  const last = literals.at(-1) ?? "";
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length) return null;
  const values: Record<string, string> = {};
  let at = first.length;
  for (const [index, name] of names.entries()) {
    const next = literals[index + 1] ?? "";
    const end = index === names.length - 1 ? text.length - last.length : text.indexOf(next, at);
    if (end < at) return null;
    values[name] = text.slice(at, end);
    if (values[name].includes("\n")) return null;
    if (name === "count" && !/^\d[\d.,]*[KMB]?$/.test(values[name])) return null;
    at = end + next.length;
  }
  return values;
}

const filled = (text: string, values: Readonly<Record<string, string | number>>) =>
  text.replace(/\{(\w+)\}/g, (place, name: string) => (Object.hasOwn(values, name) ? String(values[name]) : place));
