// Lines of IRC, read and written. Pure.

export interface IrcLine {
  readonly tags: ReadonlyMap<string, string>;
  /** Who it is from: a nick, or the name of a server; empty when the line does not say. */
  readonly from: string;
  readonly command: string;
  readonly params: readonly string[];
}

/** Null for an empty line. */
export function parseLine(line: string): IrcLine | null {
  let rest = line.replace(/[\r\n\0]/g, "").trimStart();
  const tags = new Map<string, string>();
  if (rest.startsWith("@")) {
    const [head, tail] = cutAt(rest.slice(1), " ");
    for (const tag of head.split(";")) {
      const [name, value] = cutAt(tag, "=");
      if (name !== "") tags.set(name, unescapeTag(value));
    }
    rest = tail.trimStart();
  }
  let from = "";
  if (rest.startsWith(":")) {
    const [source, tail] = cutAt(rest.slice(1), " ");
    [from] = cutAt(source, "!");
    rest = tail.trimStart();
  }
  const params: string[] = [];
  while (rest !== "") {
    if (rest.startsWith(":") && params.length > 0) {
      params.push(rest.slice(1));
      break;
    }
    const [word, tail] = cutAt(rest, " ");
    params.push(word);
    rest = tail.trimStart();
  }
  const [command, ...others] = params;
  return command === undefined ? null : { tags, from, command: command.toUpperCase(), params: others };
}

function cutAt(text: string, mark: string): readonly [string, string] {
  const at = text.indexOf(mark);
  return at === -1 ? [text, ""] : [text.slice(0, at), text.slice(at + mark.length)];
}

const TAG_ESCAPES: Readonly<Record<string, string>> = { ":": ";", s: " ", "\\": "\\", r: "\r", n: "\n" };

const unescapeTag = (value: string) => value.replace(/\\(.?)/g, (_, char: string) => TAG_ESCAPES[char] ?? char);

/** UTF-8, or what old clients write instead. */
export function decodeBytes(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return Buffer.from(bytes).toString("latin1");
  }
}

/** Names that differ only in case are one name; `[]\~` are the capitals of `{}|^`, unless the server says otherwise. */
export function foldCase(name: string, mapping: "ascii" | "rfc1459" = "rfc1459"): string {
  const lower = name.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  if (mapping === "ascii") return lower;
  return lower.replaceAll("[", "{").replaceAll("]", "}").replaceAll("\\", "|").replaceAll("~", "^");
}

export const isChannel = (name: string) => /^[#&+!]/.test(name);

/** A channel, or a nick; nothing that could end a parameter. */
export const isName = (name: string) =>
  /^[#&+!][^\s,\x07\0]{1,199}$/.test(name) || /^[A-Za-z[\]\\`_^{|}][A-Za-z0-9[\]\\`_^{|}-]{0,63}$/.test(name);

const COLOURS = /\x03(?:\d{1,2}(?:,\d{1,2})?)?|\x04(?:[0-9a-fA-F]{6}(?:,[0-9a-fA-F]{6})?)?/g;

/** Without colours and other marks that only clients of IRC understand. */
export const withoutControls = (text: string) => text.replace(COLOURS, "").replace(/[\x00-\x1f\x7f]/g, "");

/** What a line says to us: `nick: text`, `@nick text`; null when it does not begin with our name. */
export function addressedText(text: string, nick: string): string | null {
  const said = text.startsWith("@") ? text.slice(1) : text;
  if (foldCase(said.slice(0, nick.length)) !== foldCase(nick)) return null;
  const rest = said.slice(nick.length);
  if (rest !== "" && !/^[\s:,;!?.]/.test(rest)) return null;
  return rest.replace(/^[:,;]?\s*/, "");
}

/** Clients take what begins with `/` for themselves, so that commands begin with `!` here. */
export const asCommand = (text: string) => text.replace(/^!(?=[a-z][a-z0-9_-]{0,40}(?:\s|$))/i, "/");
