// What a call was given and what came of it, as a person reads it: a command and its output, lines of a file, hits of a search. JSON is
// for models.
import type { ToolCallView } from "../../agent/events.ts";
import { withoutFence } from "../../prompt/fence.ts";
import { toldToPeople } from "../../safety/decision.ts";
import { printable } from "../terminal-text.ts";

type Fields = Readonly<Record<string, unknown>>;

export interface DetailLine {
  /** `given` was said to the tool, `found` came from it, `note` is about it. */
  readonly kind: "given" | "found" | "note" | "bad";
  readonly text: string;
}

const LONGEST_LINE = 2000;

/** All lines; whoever shows them bounds them. */
export function toolDetails(call: Pick<ToolCallView, "name" | "args">, result: string): readonly DetailLine[] {
  const plain = withoutFence(result);
  const fields = parseObject(plain);
  const given = GIVEN[call.name]?.(call.args) ?? fieldLines(call.args);
  const found = fields === null ? asLines("found", plain) : foundIn(call.name, fields);
  return [...asLines("given", given), ...found].map(({ kind, text }) => ({
    kind,
    text: text.length > LONGEST_LINE ? `${text.slice(0, LONGEST_LINE)}… (${text.length} characters)` : text,
  }));
}

function foundIn(name: string, fields: Fields): readonly DetailLine[] {
  const body = FOUND[name]?.(fields);
  const shown = body ?? fieldLines(without(fields, ["error", "success", "hint", "_warning"]));
  const error = text(fields.error) || (fields.success === false ? text(fields.message) || "failed" : "");
  const notes = ["hint", "note", "_warning", "exit_code_meaning"]
    .map((key) => text(fields[key]))
    .filter((each) => each !== "");
  return [
    ...asLines("found", shown),
    ...asLines("bad", toldToPeople(error)),
    ...asLines("note", name === "terminal" && Number(fields.exit_code) > 0 ? `exit code ${fields.exit_code}` : ""),
    ...(body === undefined
      ? asLines("note", [text(fields.hint), text(fields._warning)].filter((each) => each !== "").join("\n"))
      : asLines("note", notes.join("\n"))),
  ];
}

/** What is said to a tool whose arguments read better than as names and values. */
const GIVEN: Readonly<Record<string, (args: Fields) => string>> = {
  terminal: (args) => withRest(`$ ${text(args.command)}`, args, ["command"]),
  execute_code: (args) => withRest(text(args.code), args, ["code"]),
  read_file: (args) => withRest(text(args.path), args, ["path"]),
  write_file: (args) => `${text(args.path)}\n${text(args.content)}`,
  patch: (args) => text(args.patch) || fieldLines(args),
  search_files: (args) => withRest(`${text(args.pattern)}  in ${text(args.path) || "."}`, args, ["pattern", "path"]),
  web_search: (args) => withRest(text(args.query), args, ["query"]),
  web_extract: (args) => (Array.isArray(args.urls) ? args.urls.map(String).join("\n") : fieldLines(args)),
  todo: () => "",
};

/** What came back, by tool; `undefined` = as names and values. */
const FOUND: Readonly<Record<string, (fields: Fields) => string | undefined>> = {
  terminal: ({ output }) => (typeof output === "string" ? output : undefined),
  process: ({ output, ...rest }) => (typeof output === "string" ? `${fieldLines(rest)}\n${output}` : undefined),
  execute_code: ({ output }) => (typeof output === "string" ? output : undefined),
  read_file: ({ content }) => (typeof content === "string" ? content : undefined),
  search_files: hits,
  web_search: ({ data }) => {
    const pages = objectsIn(isObject(data) ? data.web : undefined);
    return pages
      ?.map((page) =>
        [page.title, page.url, page.description]
          .map(text)
          .filter((part) => part !== "")
          .join("\n  "),
      )
      .join("\n\n");
  },
  web_extract: ({ results }) =>
    objectsIn(results)
      ?.map((page) => [text(page.title), text(page.url), "", text(page.content) || text(page.error)].join("\n").trim())
      .join("\n\n"),
  todo: ({ todos }) =>
    objectsIn(todos)
      ?.map((item) => `${TODO_MARKS[text(item.status)] ?? "○"} ${text(item.content)}`)
      .join("\n"),
};

export const TODO_MARKS: Readonly<Record<string, string>> = {
  completed: "✓",
  in_progress: "▸",
  pending: "○",
  cancelled: "✗",
};

function hits(fields: Fields): string | undefined {
  const matches = objectsIn(fields.matches);
  if (matches) {
    const lines = matches.map((match) => `${text(match.path)}:${text(match.line)}: ${text(match.content)}`);
    return [`${text(fields.total_count) || lines.length} found`, ...lines].join("\n");
  }
  if (Array.isArray(fields.files)) return fields.files.map(String).join("\n") || "nothing found";
  if (!isObject(fields.counts)) return undefined;
  return Object.entries(fields.counts)
    .map(([path, count]) => `${String(count).padStart(5)}  ${path}`)
    .join("\n");
}

function withRest(head: string, args: Fields, used: readonly string[]): string {
  const rest = fieldLines(without(args, used));
  return rest === "" ? head : `${head}\n${rest}`;
}

const without = (fields: Fields, names: readonly string[]): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));

/** `name: value`, texts of several lines below their name, lists with dashes. */
function fieldLines(value: unknown, depth = 0): string {
  if (!isObject(value) && !Array.isArray(value)) return text(value);
  const indent = "  ".repeat(depth);
  const entries: [string, unknown][] = Array.isArray(value) ? value.map((each) => ["-", each]) : Object.entries(value);
  return entries
    .filter(([, each]) => each !== undefined && each !== null)
    .map(([name, each]) => {
      const label = `${indent}${name}${name === "-" ? "" : ":"}`;
      const isLong = typeof each === "object" || text(each).includes("\n");
      if (!isLong) return `${label} ${text(each)}`;
      if (typeof each !== "object") return `${label}\n${text(each).replace(/^/gm, `${indent}  `)}`;
      const inner = depth < 4 ? fieldLines(each, depth + 1) : JSON.stringify(each);
      return name === "-" ? `${label} ${inner.trimStart()}` : inner === "" ? `${label} none` : `${label}\n${inner}`;
    })
    .join("\n");
}

function asLines(kind: DetailLine["kind"], body: string): readonly DetailLine[] {
  const trimmed = printable(body).replace(/^\n+/, "").trimEnd();
  return trimmed === "" ? [] : trimmed.split("\n").map((line) => ({ kind, text: line }));
}

const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const objectsIn = (value: unknown): readonly Fields[] | undefined =>
  Array.isArray(value) ? value.filter(isObject) : undefined;
const text = (value: unknown): string =>
  typeof value === "string"
    ? value
    : value === undefined || value === null
      ? ""
      : typeof value === "object"
        ? JSON.stringify(value)
        : String(value);

function parseObject(result: string): Fields | null {
  if (!result.trimStart().startsWith("{")) return null;
  try {
    const value: unknown = JSON.parse(result);
    return isObject(value) ? value : null;
  } catch {
    return null; // shortened results are no longer JSON: shown as text
  }
}
