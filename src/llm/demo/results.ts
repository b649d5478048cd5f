// Turns a tool's result into an answer: what it gave, or plainly what went wrong.
import type { Words } from "./words.ts";

const MAX_LINES = 60;
const MAX_CHARS = 4000;

interface Call {
  readonly name: string;
  readonly arguments: string;
}

type Fields = Readonly<Record<string, unknown>>;

export function answerFrom(call: Call, result: string, words: Words): string {
  const args = fieldsOf(call.arguments);
  const fields = fieldsOf(result);
  if (Object.keys(fields).length === 0) return `${words.tool(call.name)}\n\n${fenced(result)}`;
  const failure = failureOf(fields);
  if (failure && call.name !== "terminal") return words.failed(call.name, failure);
  switch (call.name) {
    case "terminal":
      return terminalAnswer(String(args.command ?? ""), fields, words);
    case "search_files":
      return fileList(strings(fields.files), words);
    case "read_file":
      return readAnswer(String(args.path ?? ""), fields, words);
    case "memory":
      return words.remembered(String(args.content ?? ""));
    case "session_search":
      return searchAnswer(String(args.query ?? ""), fields, words);
    case "skill_manage":
      return words.skillMade(String(args.name ?? ""));
    default:
      return `${words.tool(call.name)}\n\n${fenced(result)}`;
  }
}

function terminalAnswer(command: string, fields: Fields, words: Words): string {
  const output = String(fields.output ?? "").trim();
  const exitCode = typeof fields.exit_code === "number" ? fields.exit_code : -1;
  if (fields.status === "blocked" || fields.status === "pending_approval" || exitCode === -1) {
    return words.refused(failureOf(fields) ?? (output || String(fields.status ?? "?")));
  }
  if (command.startsWith("ls -1p -- ") && exitCode === 0) return fileList(output.split("\n").filter(Boolean), words);
  const summary = words.ran(command, exitCode);
  return output ? `${summary}\n\n${fenced(output)}` : `${summary} ${words.noOutput}`;
}

function readAnswer(path: string, fields: Fields, words: Words): string {
  if (typeof fields.content !== "string") return words.failed("read_file", String(fields.message ?? "no content"));
  const text = fields.content.replace(/^ *\d+\|/gm, "").replace(/\n+$/, "");
  return text === "" ? words.emptyFile(path) : `${words.file(path)}\n\n${fenced(text)}`;
}

function fileList(names: readonly string[], words: Words): string {
  if (names.length === 0) return words.empty;
  const shown = names.slice(0, MAX_LINES).map((name) => `- ${name}`);
  const rest = names.length - shown.length;
  return [words.files(names.length), ...shown, ...(rest > 0 ? [words.more(rest)] : [])].join("\n");
}

function searchAnswer(query: string, fields: Fields, words: Words): string {
  const results = Array.isArray(fields.results) ? fields.results.map((entry) => asFields(entry)) : [];
  if (results.length === 0) return words.nothingFound(query);
  const lines = results.map((entry) => {
    const title = String(entry.title ?? entry.session_id ?? "");
    const when = entry.when ?? entry.last_active ?? entry.started_at ?? "";
    const snippet = String(entry.snippet ?? entry.preview ?? "").replace(/\s+/g, " ");
    return `- ${[title, String(when), snippet].filter(Boolean).join(" · ")}`;
  });
  return [words.found(results.length, query), ...lines].join("\n");
}

function failureOf(fields: Fields): string | null {
  if (typeof fields.error === "string" && fields.error !== "") return fields.error;
  if (fields.success === false) return String(fields.message ?? fields.code ?? "failed");
  return null;
}

/** A fence longer than any the text holds. */
function fenced(text: string): string {
  const cut = text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}\n...` : text;
  const longest = Math.max(2, ...[...cut.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${cut}\n${fence}`;
}

/** The object a text holds or begins with; notes may have been appended after it. */
function fieldsOf(text: string): Fields {
  try {
    return asFields(JSON.parse(text));
  } catch {
    const end = endOfObject(text);
    return end > 0 && end < text.length ? fieldsOf(text.slice(0, end)) : {};
  }
}

function endOfObject(text: string): number {
  let depth = 0;
  let quoted = false;
  for (let index = 0; index < text.length; index++) {
    const char = text[index];
    if (quoted) {
      if (char === "\\") index++;
      else if (char === '"') quoted = false;
    } else if (char === '"') quoted = true;
    else if (char === "{") depth++;
    else if (char === "}" && --depth === 0) return index + 1;
  }
  return 0;
}

function asFields(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {}; // checked just before
}

function strings(value: unknown): readonly string[] {
  return Array.isArray(value)
    ? value.map((item) => (typeof item === "string" ? item : String(asFields(item).path ?? "")))
    : [];
}
