// What Slack's Web API accepts: arguments by its tables, blocks by their limits, and its markup as a reader sees it.
import { readFileSync } from "node:fs";

interface Argument {
  readonly type: "string" | "integer" | "number" | "boolean" | "json";
  readonly required?: boolean;
}
type Methods = Readonly<Record<string, { readonly args: Readonly<Record<string, Argument>> }>>;

const fixture = (name: string): Methods => {
  const path = new URL(`../../fixtures/platforms/${name}`, import.meta.url);
  return (JSON.parse(readFileSync(path, "utf8")) as { methods: Methods }).methods;
};
const [early, later] = [fixture("slack-web-api.json"), fixture("slack-web-api-later.json")];

/** What is wrong with a call, in words; null: nothing. */
export function judgeCall(method: string, args: Readonly<Record<string, string>>): string | null {
  if (!(method in early) && !(method in later)) return `there is no method ${method}`;
  const known: Record<string, Argument> = { ...early[method]?.args, ...later[method]?.args };
  for (const [name, { required }] of Object.entries(known))
    if (required && name !== "token" && !(name in args)) return `${method} needs ${name}`;
  for (const [name, value] of Object.entries(args)) {
    const rule = known[name];
    if (!rule) return `${method} knows no ${name}`;
    if (!fits(rule.type, name, value)) return `${method}: ${name} is not of type ${rule.type}: ${value.slice(0, 80)}`;
  }
  return args.blocks === undefined ? null : judgeBlocks(JSON.parse(args.blocks));
}

function fits(type: Argument["type"], name: string, value: string): boolean {
  if (type === "json" || name === "blocks" || name === "attachments") return isJson(value);
  if (type === "integer") return /^\d+$/.test(value);
  if (type === "number") return /^\d+(?:\.\d+)?$/.test(value);
  if (type === "boolean") return /^(?:true|false|1|0)$/.test(value);
  return true;
}

function isJson(text: string): boolean {
  try {
    return typeof JSON.parse(text) === "object";
  } catch {
    return false;
  }
}

interface Block {
  readonly type: string;
  readonly text?: { readonly type: string; readonly text: string } | string;
  readonly elements?: readonly Readonly<Record<string, unknown>>[];
}

function judgeBlocks(blocks: readonly Block[]): string | null {
  if (blocks.length > 50) return "more than 50 blocks";
  const ids = new Set<string>();
  for (const { type, text, elements = [] } of blocks) {
    if (type === "markdown") {
      if (typeof text !== "string" || text === "" || text.length > 12_000)
        return "a markdown block has 1 to 12,000 signs";
    } else if (type === "section") {
      if (typeof text !== "object" || !/^(?:mrkdwn|plain_text)$/.test(text.type))
        return "a section needs a text object";
      if (text.text === "" || text.text.length > 3000) return "the text of a section has 1 to 3,000 signs";
    } else if (type === "actions") {
      if (elements.length === 0 || elements.length > 25) return "a row has 1 to 25 elements";
      for (const one of elements) {
        const label = (one.text as { text?: string } | undefined)?.text ?? "";
        if (one.type !== "button" || label === "" || label.length > 75) return "a button has a label of 1 to 75 signs";
        if (String(one.value ?? "").length > 2000) return "the value of a button has at most 2,000 signs";
        const id = String(one.action_id ?? "");
        if (id === "" || id.length > 255 || ids.has(id))
          return `the action id "${id}" is missing, too long or there twice`;
        ids.add(id);
      }
    } else return `no block of type ${type} is sent`;
  }
  return null;
}

/** A run of a message as it is shown. */
export interface Shown {
  readonly text: string;
  readonly as: "text" | "bold" | "italic" | "strike" | "code" | "block" | "link" | "person" | "channel" | "group";
  readonly url?: string;
}

const plainly = (text: string) => text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");

/** How Slack shows a text: entities first, marks only at the edges of words. */
export function readMrkdwn(text: string): readonly Shown[] {
  const shown: Shown[] = [];
  const pieces = text.split(/(```[\s\S]*?```|`[^`\n]+`|<[^\s<>][^<>\n]*>)/);
  pieces.forEach((piece, at) => {
    if (at % 2 === 0) shown.push(...readMarks(piece));
    else if (piece.startsWith("```")) shown.push({ as: "block", text: readCode(piece.slice(3, -3)) });
    else if (piece.startsWith("`")) shown.push({ as: "code", text: readCode(piece.slice(1, -1)) });
    else shown.push(readEntity(piece.slice(1, -1)));
  });
  return shown.filter((run) => run.text !== "");
}

/** Entities are read in code too. */
const readCode = (code: string) =>
  plainly(code.replace(/<([^\s<>][^<>\n]*)>/g, (_, inner: string) => readEntity(inner).text));

function readEntity(inner: string): Shown {
  const [target = "", label] = inner.split("|").map(plainly);
  if (target.startsWith("@")) return { as: "person", text: target };
  if (target.startsWith("#")) return { as: "channel", text: target };
  if (target.startsWith("!")) return { as: "group", text: target };
  return { as: "link", text: label ?? target, url: target };
}

function readMarks(text: string): Shown[] {
  const runs: Shown[] = [];
  const pattern = /(?<![\p{L}\p{N}])([*_~])(?=\S)([^\n]*?\S)\1(?![\p{L}\p{N}])/gu;
  let last = 0;
  for (const match of text.matchAll(pattern)) {
    const [whole, mark, inner = ""] = match;
    runs.push({ as: "text", text: plainly(text.slice(last, match.index)) });
    const as = mark === "*" ? "bold" : mark === "_" ? "italic" : "strike";
    runs.push({ as, text: plainly(inner.replace(/^[*_~]|[*_~]$/g, "")) });
    last = match.index + whole.length;
  }
  return [...runs, { as: "text", text: plainly(text.slice(last)) }];
}
