// What the Bot API accepts, by the vendor's tables: methods, parameters, types, lengths. The other direction too: updates that the look-alike
// hands out are held against the same tables.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { repository } from "../run-hermes.ts";

interface Field {
  readonly types: readonly string[];
  readonly required?: boolean;
  readonly length?: readonly [least: number, most: number, unit: "characters" | "bytes"];
}

interface Shape {
  readonly fields?: Readonly<Record<string, Field>>;
  readonly subtypes?: readonly string[];
}

interface Tables {
  readonly methods: Readonly<Record<string, Shape>>;
  readonly types: Readonly<Record<string, Shape>>;
}

const tables: Tables = JSON.parse(
  readFileSync(join(repository, "test/fixtures/platforms/telegram-bot-api.json"), "utf8"),
);

/** A file that was uploaded with a call. */
export class UploadedFile {
  readonly name: string;
  readonly bytes: Buffer;
  constructor(name: string, bytes: Buffer) {
    this.name = name;
    this.bytes = bytes;
  }
}

/** What is wrong with a call; null: nothing. Texts that are formatted are measured where their marks are known. */
export function problemOf(method: string, params: Readonly<Record<string, unknown>>): string | null {
  const shape = tables.methods[method];
  if (!shape) return `there is no method ${method}`;
  return shapeProblem(method, shape, params, { formatted: "parse_mode" in params });
}

/** The same for what a type of the table looks like. */
export const valueProblem = (type: string, value: unknown) => typeProblem(type, type, value);

function shapeProblem(
  name: string,
  { fields = {} }: Shape,
  value: Readonly<Record<string, unknown>>,
  { formatted = false } = {},
): string | null {
  for (const key of Object.keys(value)) if (!fields[key]) return `${name} has no field ${key}`;
  for (const [key, { types, required, length }] of Object.entries(fields)) {
    const part = value[key];
    if (part === undefined) {
      if (required) return `${name}.${key} is missing`;
      continue;
    }
    const problems = types.map((type) => typeProblem(`${name}.${key}`, type, part));
    if (!problems.includes(null)) return problems[0] ?? `${name}.${key} has no type`;
    const isMeasuredLater = formatted && (key === "text" || key === "caption");
    if (!length || typeof part !== "string" || isMeasuredLater) continue;
    const [least, most, unit] = length;
    const size = unit === "bytes" ? Buffer.byteLength(part) : part.length;
    if (size < least || size > most) return `${name}.${key} has ${size} ${unit}, not ${least} to ${most}`;
  }
  return null;
}

function typeProblem(name: string, type: string, value: unknown): string | null {
  const wrong = `${name} is not ${type}`;
  if (type.startsWith("Array of ")) {
    if (!Array.isArray(value)) return wrong;
    const inner = type.slice("Array of ".length);
    return value.map((one) => typeProblem(name, inner, one)).find((problem) => problem !== null) ?? null;
  }
  switch (type) {
    case "Integer":
      return Number.isSafeInteger(value) ? null : wrong;
    case "Float":
      return typeof value === "number" ? null : wrong;
    case "String":
      // In a group the name of an upload stands for it.
      if (name.endsWith(".media") && value instanceof UploadedFile) return null;
      // Half a character is no UTF-8.
      return typeof value === "string" && value.isWellFormed() ? null : wrong;
    case "Boolean":
      return typeof value === "boolean" ? null : wrong;
    case "InputFile":
      return value instanceof UploadedFile ? null : wrong;
  }
  const shape = tables.types[type];
  if (!shape) return `${name}: the table has no type ${type}`;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return wrong;
  const record = value as Readonly<Record<string, unknown>>; // an object that is no list
  if (!shape.subtypes) return shapeProblem(name, shape, record);
  const problems = shape.subtypes.map((one) => typeProblem(name, one, value));
  return problems.includes(null) ? null : (problems[0] ?? wrong);
}

/** The reactions that bots may set without paying. */
export const REACTIONS = new Set([
  ..."👍 👎 ❤ 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤‍🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴".split(
    " ",
  ),
  ..."😭 🤓 👻 👨‍💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷‍♂ 🤷 🤷‍♀ 😡".split(" "),
]);

/** Parameters of a call: JSON, or a form with files. In a form everything that is no text is written as JSON. */
export function paramsOf(method: string, contentType: string, body: Buffer): Record<string, unknown> {
  if (!contentType.startsWith("multipart/form-data")) return body.length === 0 ? {} : JSON.parse(body.toString("utf8"));
  const boundary = /boundary=([^;]+)/.exec(contentType)?.[1] ?? "";
  const fields: Record<string, unknown> = {};
  const files = new Map<string, UploadedFile>();
  const mark = Buffer.from(`--${boundary}`);
  for (let at = body.indexOf(mark); at !== -1; ) {
    const start = at + mark.length + 2;
    const next = body.indexOf(mark, start);
    if (next === -1) break;
    const part = body.subarray(start, next - 2);
    const split = part.indexOf("\r\n\r\n");
    const head = part.subarray(0, split).toString("utf8");
    const bytes = part.subarray(split + 4);
    const name = /name="([^"]*)"/.exec(head)?.[1] ?? "";
    const file = /filename="?([^"\r\n;]*)"?/.exec(head)?.[1];
    if (file === undefined) fields[name] = fromForm(method, name, bytes.toString("utf8"));
    else files.set(name, new UploadedFile(file, Buffer.from(bytes)));
    at = next;
  }
  const attached = (value: unknown) =>
    typeof value === "string" && value.startsWith("attach://")
      ? (files.get(value.slice("attach://".length)) ?? value)
      : value;
  for (const [name, value] of Object.entries(fields)) fields[name] = attached(value);
  if (Array.isArray(fields.media))
    fields.media = fields.media.map((item) => ({ ...item, media: attached(item.media) }));
  return fields;
}

function fromForm(method: string, name: string, text: string): unknown {
  const types = tables.methods[method]?.fields?.[name]?.types ?? ["String"];
  if (types.includes("String")) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export const isPicture = ({ bytes }: UploadedFile) =>
  /^(?:\x89PNG|\xff\xd8\xff|RIFF)/.test(bytes.toString("latin1", 0, 4));
