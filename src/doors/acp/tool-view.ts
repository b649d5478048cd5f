// How a tool call looks in an editor: its kind, its title, the files it is about, and what came of it in readable words.
import { isAbsolute, resolve } from "node:path";
import type { PlanEntry, ToolCallContent, ToolCallLocation, ToolCallStatus, ToolKind } from "@agentclientprotocol/sdk";
import { t } from "../../home/language/words.ts";
import { isRecord, parseJson } from "../../kit/json.ts";
import { pathsInPatch } from "../../kit/patch-headers.ts";
import { withoutControls } from "../../kit/strip-ansi.ts";
import { withoutFence } from "../../prompt/fence.ts";
import { toldToPeople } from "../../safety/decision.ts";

type Args = Readonly<Record<string, unknown>>;

/** What a title and a place are made of: the call itself. */
interface ViewedCall {
  readonly name: string;
  readonly args: Args;
}

const KINDS: Readonly<Record<string, ToolKind>> = {
  ...kindOf(
    "read",
    "read_file skill_view skills_list browser_snapshot browser_vision browser_get_images vision_analyze",
  ),
  ...kindOf("edit", "write_file patch skill_manage"),
  ...kindOf("search", "search_files"),
  ...kindOf(
    "execute",
    `terminal process execute_code delegate_task browser_click browser_type browser_scroll browser_press browser_back
    image_generate text_to_speech`,
  ),
  ...kindOf("fetch", "web_search web_extract browser_navigate"),
  ...kindOf("think", "_thinking"),
};

function kindOf(kind: ToolKind, names: string): Record<string, ToolKind> {
  return Object.fromEntries(names.split(/\s+/).map((name) => [name, kind]));
}

export const toolKind = (name: string): ToolKind => KINDS[name] ?? "other";

const TITLES: Readonly<Record<string, (args: Args) => string>> = {
  terminal: ({ command }) => `terminal: ${cut(text(command), 80)}`,
  read_file: ({ path }) => `read: ${text(path)}`,
  write_file: ({ path }) => `write: ${text(path)}`,
  patch: (args) => `patch (${text(args.mode) || (args.patch === undefined ? "replace" : "patch")}): ${patched(args)}`,
  search_files: ({ pattern }) => `search: ${text(pattern)}`,
  web_search: ({ query }) => `web search: ${text(query)}`,
  web_extract: ({ urls }) => `extract: ${listed(urls)}`,
  process: ({ action, session_id }) => `process ${text(action)}: ${text(session_id)}`,
  delegate_task: ({ goal, tasks }) =>
    Array.isArray(tasks) && tasks.length > 0
      ? `delegate batch (${tasks.length} tasks)`
      : `delegate: ${cut(text(goal), 60)}`,
  session_search: ({ query }) => `session search: ${text(query)}`,
  memory: ({ action, target }) => `memory ${text(action)}: ${text(target) || "memory"}`,
  execute_code: ({ code }) => `python: ${cut(text(code).trim().split("\n")[0] ?? "", 70)}`,
  todo: ({ todos }) => `todo (${Array.isArray(todos) ? todos.length : 0} items)`,
  skill_view: ({ name }) => `skill view (${text(name)})`,
  skill_manage: ({ action, name }) => `skill ${text(action)}: ${text(name)}`,
  browser_navigate: ({ url }) => `navigate: ${text(url)}`,
  cronjob: ({ action, job_id, name }) => `cron ${text(action)}: ${text(job_id) || text(name)}`,
};

export function toolTitle({ name, args }: ViewedCall): string {
  const title = TITLES[name]?.(args) ?? name;
  // Models write it, and editors show one line.
  return withoutControls(title).replace(/\s+/g, " ").trim();
}

/** The files a call is about. Editors follow along by them, so they are absolute. */
export function toolLocations({ name, args }: ViewedCall, cwd: string): ToolCallLocation[] {
  const at = (path: string) => (isAbsolute(path) ? path : resolve(cwd, path));
  if (name === "patch" && text(args.path) === "")
    return [...new Set(pathsInPatch(text(args.patch)))].map((path) => ({ path: at(path) }));
  const path = text(args.path);
  if (path === "" || path.startsWith("~")) return [];
  const line = [args.offset, args.line].find((value) => typeof value === "number" && value >= 1);
  return [{ path: at(path), ...(typeof line === "number" && name !== "search_files" ? { line } : {}) }];
}

/** `failed` as a program means it: a text that merely speaks of an error is none. */
export function toolStatus(name: string, told: string): Extract<ToolCallStatus, "completed" | "failed"> {
  const result = withoutFence(told);
  if (result.startsWith("Error executing tool")) return "failed";
  const value = parseJson(result);
  if (!isRecord(value)) return "completed";
  if (value.success === false) return "failed";
  if (typeof value.exit_code === "number" && value.exit_code !== 0) return "failed";
  const saysError = value.error !== undefined && value.error !== null && value.error !== "" && value.error !== false;
  return saysError && !name.startsWith("mcp_") ? "failed" : "completed";
}

const SHOWN_CHARS = 12_000;

/** What came of a call, in words: the output of a command, the text of a page, the reason of a failure. Never raw JSON where it can be helped. */
export function resultContent(name: string, told: string): ToolCallContent[] {
  const words = readable(name, withoutFence(told)).trimEnd();
  return words === "" ? [] : [textContent(shorten(words), name === "terminal" || name === "execute_code")];
}

export function textContent(words: string, asCode = false): ToolCallContent {
  const fence = "`".repeat(Math.max(3, ...[...words.matchAll(/`{3,}/g)].map(([ticks]) => ticks.length + 1)));
  return { type: "content", content: { type: "text", text: asCode ? `${fence}\n${words}\n${fence}` : words } };
}

function readable(name: string, result: string): string {
  const value = parseJson(result);
  if (!isRecord(value)) return result;
  const error = typeof value.error === "string" && value.error !== "" ? toldToPeople(value.error) : "";
  switch (name) {
    case "terminal":
    case "execute_code": {
      const code = typeof value.exit_code === "number" && value.exit_code > 0 ? `[exit ${value.exit_code}]` : "";
      return [text(value.output), error, code].filter((part) => part !== "").join("\n");
    }
    case "read_file":
    case "skill_view":
      return text(value.content) || error || text(value.message);
    case "write_file":
      return error || t("{count} bytes written", { count: Number(value.bytes_written ?? 0) }) + behind(value.lint);
    case "patch":
      return error || text(value.diff) || text(value.note);
    case "todo":
      return planEntries(result)
        .map(({ content, status }) => `- [${status === "completed" ? "x" : " "}] ${content}`)
        .join("\n");
    default:
      if (error !== "") return error;
      for (const key of ["text", "content", "output", "summary", "message", "results"])
        if (typeof value[key] === "string" && value[key] !== "") return text(value[key]);
      return lines(value, "");
  }
}

const behind = (note: unknown) => (typeof note === "string" && note !== "" ? `\n${note}` : "");

/** An object in indented lines, as far as somebody reads it. */
function lines(value: unknown, indent: string): string {
  if (Array.isArray(value))
    return value.map((item) => `${indent}- ${lines(item, `${indent}  `).trimStart()}`).join("\n");
  if (!isRecord(value)) return `${indent}${String(value)}`;
  return Object.entries(value)
    .filter(([, inner]) => inner !== null && inner !== undefined && inner !== "")
    .map(([key, inner]) =>
      typeof inner === "object"
        ? `${indent}${key}:\n${lines(inner, `${indent}  `)}`
        : `${indent}${key}: ${String(inner)}`,
    )
    .join("\n");
}

/** The plan that a result of `todo` holds. */
export function planEntries(result: string): PlanEntry[] {
  const value = parseJson(withoutFence(result));
  const todos = isRecord(value) && Array.isArray(value.todos) ? value.todos : [];
  return todos.filter(isRecord).map(({ id, content, status }) => {
    const words = text(content) || text(id);
    const entry = { priority: "medium" as const };
    if (status === "cancelled") return { ...entry, content: `[cancelled] ${words}`, status: "completed" };
    const known = status === "in_progress" || status === "completed" ? status : "pending";
    return { ...entry, content: words, status: known };
  });
}

/** What a stored call of a file tool changed, as far as the call itself tells. */
export function editContent({ name, args }: ViewedCall, cwd: string): ToolCallContent[] {
  const path = text(args.path);
  if (path === "" || path.startsWith("~")) return [];
  const at = isAbsolute(path) ? path : resolve(cwd, path);
  if (name === "write_file" && typeof args.content === "string")
    return [{ type: "diff", path: at, newText: shorten(args.content) }];
  if (name === "patch" && typeof args.old_string === "string" && typeof args.new_string === "string")
    return [{ type: "diff", path: at, oldText: shorten(args.old_string), newText: shorten(args.new_string) }];
  return [];
}

const patched = (args: Args) => text(args.path) || pathsInPatch(text(args.patch)).join(", ");

function listed(urls: unknown): string {
  const all = Array.isArray(urls) ? urls.map(String) : [text(urls)];
  return all.length > 1 ? `${all[0]} (+${all.length - 1})` : (all[0] ?? "");
}

const text = (value: unknown) => (typeof value === "string" ? value : typeof value === "number" ? String(value) : "");

function cut(words: string, most: number): string {
  const points = [...words];
  return points.length <= most ? words : `${points.slice(0, most - 3).join("")}...`;
}

function shorten(words: string): string {
  if (words.length <= SHOWN_CHARS) return words;
  const dropped = words.length - SHOWN_CHARS;
  return `${words.slice(0, SHOWN_CHARS)}\n… ${t("{count} more characters", { count: dropped })}`.toWellFormed();
}
