// One line that stands for a tool result which is no longer worth its room.
import { countCodePoints, sliceCodePoints, truncateCodePoints } from "../../kit/code-points.ts";

type Arguments = Readonly<Record<string, unknown>>;

interface Call {
  readonly name: string;
  readonly args: Arguments;
  readonly content: string;
}

type Line = (call: Call) => string;

const skill: Line = (call) => `name=${arg(call, "name")} (${chars(call)} chars)`;

const LINES: Readonly<Record<string, Line>> = {
  terminal: (call) =>
    `ran \`${truncateCodePoints(arg(call, "command"), 80, "...")}\` -> exit ${found(call, /"exit_code"\s*:\s*(-?\d+)/)}, ${outputLines(call)} lines output`,
  read_file: (call) => `read ${arg(call, "path")} from line ${arg(call, "offset", "1")} (${chars(call)} chars)`,
  write_file: (call) => `wrote to ${arg(call, "path")} (${writtenLines(call)} lines)`,
  patch: (call) => `${arg(call, "mode", "replace")} in ${arg(call, "path")} (${chars(call)} chars result)`,
  search_files: (call) =>
    `${arg(call, "target", "content")} search for '${arg(call, "pattern")}' in ${arg(call, "path", ".")} -> ${found(call, /"total_count"\s*:\s*(\d+)/)} matches`,
  web_search: (call) => `query='${arg(call, "query")}' (${chars(call)} chars result)`,
  web_extract: (call) => `${addresses(call)} (${chars(call)} chars)`,
  delegate_task: (call) => `'${truncateCodePoints(arg(call, "goal"), 60, "...")}' (${chars(call)} chars result)`,
  execute_code: (call) => `\`${codeStart(call)}\` (${outputLines(call)} lines output)`,
  skill_view: skill,
  skills_list: skill,
  skill_manage: skill,
  vision_analyze: (call) => `'${sliceCodePoints(arg(call, "question"), 0, 50)}' (${chars(call)} chars)`,
  memory: (call) => `${arg(call, "action")} on ${arg(call, "target")}`,
  process: (call) => `${arg(call, "action")} session=${arg(call, "session_id")}`,
  cronjob: (call) => arg(call, "action"),
  todo: () => "updated task list",
  clarify: () => "asked user a question",
};

export function summarizeToolResult(name: string, argsJson: string, content: string): string {
  const call: Call = { name, args: parseArguments(argsJson), content };
  const line = Object.hasOwn(LINES, name) ? LINES[name] : name.startsWith("browser_") ? browser : other;
  return `[${name}] ${(line ?? other)(call)}`;
}

const browser: Line = (call) => {
  const { url, ref } = call.args;
  const place = url ? `${show(url)} ` : ref ? `ref=${show(ref)} ` : "";
  return `${place}(${chars(call)} chars)`;
};

const other: Line = (call) => {
  const pairs = Object.entries(call.args).slice(0, 2);
  const shown = pairs.map(([key, value]) => `${key}=${sliceCodePoints(show(value), 0, 40)} `);
  return `${shown.join("")}(${chars(call)} chars result)`;
};

function arg({ args }: Call, key: string, missing = "?"): string {
  const value = args[key];
  return value === undefined || value === null || value === "" ? missing : show(value);
}

/** On one line, whatever it is. */
function show(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "?");
  return text.replace(/\s*\n\s*/g, " ");
}

function chars({ content }: Call): string {
  return countCodePoints(content).toLocaleString("en-US");
}

function found({ content }: Call, pattern: RegExp): string {
  return pattern.exec(content)?.[1] ?? "?";
}

/** Of what the program printed, when the result is the usual JSON around it. */
function outputLines({ content }: Call): number {
  const output = parseArguments(content).output;
  return countLines(typeof output === "string" ? output : content);
}

function writtenLines({ args }: Call): number | "?" {
  return typeof args.content === "string" && args.content !== "" ? countLines(args.content) : "?";
}

function countLines(text: string): number {
  const shown = text.trimEnd();
  return shown === "" ? 0 : shown.split("\n").length;
}

function addresses({ args }: Call): string {
  const urls = Array.isArray(args.urls) ? args.urls : args.url === undefined ? [] : [args.url];
  const more = urls.length > 1 ? ` (+${urls.length - 1} more)` : "";
  return `${urls.length === 0 ? "?" : show(urls[0])}${more}`;
}

function codeStart({ args }: Call): string {
  const code = typeof args.code === "string" && args.code !== "" ? args.code : "?";
  const line = sliceCodePoints(code, 0, 60).replaceAll("\n", " ");
  return countCodePoints(code) > 60 ? `${line}...` : line;
}

function parseArguments(json: string): Arguments {
  if (!json.trimStart().startsWith("{")) return {};
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null ? (value as Arguments) : {}; // a parsed object
  } catch {
    return {}; // cut off or never JSON: the line says what it can without
  }
}
