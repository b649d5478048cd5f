// One line per finished tool call, the same in every door that shows a feed.

import type { AgentEvent, SubagentEvent, ToolCallView } from "../agent/events.ts";
import { t } from "../home/language/words.ts";
import { pathsInPatch } from "../kit/patch-headers.ts";
import { withoutFence } from "../prompt/fence.ts";
import { toldToPeople } from "../safety/decision.ts";
import { cellWidth, cut, printable } from "./terminal-text.ts";

type Args = Readonly<Record<string, unknown>>;
interface FeedRow {
  readonly emoji: string;
  readonly verb: string;
  readonly detail: string;
  /** The detail is a path: its end says more than its beginning. */
  readonly path?: true;
}

interface FeedLook {
  /** Cells of the whole line; the detail gives way. */
  readonly width?: number;
  /** Characters of the detail; 0 = all. */
  readonly detailChars?: number;
  readonly prefix?: string;
  /** Of a tool, in place of its own. */
  readonly emojis?: Readonly<Record<string, string>>;
}

const VERB_CELLS = 9;

/** Emoji, verb and detail of a call. */
export function feedRow(call: Pick<ToolCallView, "name" | "args">): FeedRow {
  const describe = ROWS[call.name];
  if (describe) return describe(call.args);
  return { emoji: "⚡", verb: call.name.slice(0, VERB_CELLS), detail: firstOf(call.args, FALLBACK_KEYS) };
}

/** `┊ 💻 $         ls -la  0.3s [exit 2]`, without colour. */
export function feedLine(
  call: Pick<ToolCallView, "name" | "args">,
  ms: number,
  suffix: string | null,
  { width, detailChars = 0, prefix = "┊", emojis = {} }: FeedLook = {},
): string {
  const { emoji, verb, detail, path } = feedRow(call);
  const head = `${prefix} ${emojis[call.name] ?? emoji} ${oneLine(verb).padEnd(VERB_CELLS)} `;
  const tail = `  ${(ms / 1000).toFixed(1)}s${suffix ? ` ${oneLine(suffix)}` : ""}`;
  const room = Math.min(
    width === undefined ? Number.POSITIVE_INFINITY : Math.max(8, width - cellWidth(head) - cellWidth(tail)),
    detailChars > 0 ? detailChars : Number.POSITIVE_INFINITY,
  );
  return `${head}${path ? cutLeft(oneLine(detail), room) : cut(oneLine(detail), room)}${tail}`;
}

const oneLine = (text: string) => printable(text).replace(/\s+/g, " ").trim();

/** At most `cells` wide; what was cut is missing at the beginning. */
export function cutLeft(text: string, cells: number): string {
  if (cellWidth(text) <= cells) return text;
  const points = [...text];
  while (points.length > 0 && cellWidth(points.join("")) > cells - 3) points.shift();
  return `...${points.join("")}`;
}

/** The user said no to it, or nothing: the question told so when it closed. */
export function isRefusedByUser(result: string): boolean {
  return /^DENIED: (?:the user refused|nobody answered)/.test(String(parseObject(result)?.error ?? ""));
}

/** The failure, in brackets; null when there was none. Text from outside comes in its fence. */
export function feedSuffix(name: string, told: string): string | null {
  const result = withoutFence(told);
  const value = parseObject(result);
  if (value === null) return /^\s*error/i.test(result) ? "[error]" : null;
  if (name === "terminal" && typeof value.exit_code === "number") {
    if (value.exit_code === 0) return null;
    return typeof value.error === "string" && value.error !== ""
      ? `[${short(value.error)}]`
      : t("[exit {code}]", { code: value.exit_code });
  }
  if (name === "memory" && value.success === false && /limit|full/i.test(String(value.error))) return "[full]";
  if (typeof value.error === "string" && value.error !== "") return `[${short(value.error)}]`;
  if (value.success === false) return `[${short(String(value.message ?? "failed"))}]`;
  return null;
}

const FALLBACK_KEYS = ["query", "text", "command", "path", "name", "prompt", "code", "goal"];

const ROWS: Readonly<Record<string, (args: Args) => FeedRow>> = {
  terminal: (args) => ({ emoji: "💻", verb: "$", detail: text(args.command) }),
  process: (args) => ({ emoji: "⚙️", verb: "proc", detail: words(args.action, args.session_id) }),
  read_file: (args) => ({ emoji: "📖", verb: "read", detail: text(args.path), path: true }),
  write_file: (args) => ({ emoji: "✍️", verb: "write", detail: text(args.path), path: true }),
  patch: (args) => ({
    emoji: "🔧",
    verb: "patch",
    detail: text(args.path) || pathsInPatch(text(args.patch)).join(", "),
    path: true,
  }),
  search_files: (args) => ({
    emoji: "🔎",
    verb: ["files", "find"].includes(text(args.target)) ? "find" : "grep",
    detail: text(args.pattern),
  }),
  web_search: (args) => ({ emoji: "🔍", verb: "search", detail: text(args.query) }),
  web_extract: (args) => ({ emoji: "📄", verb: "fetch", detail: hosts(args.urls) }),
  browser_navigate: (args) => ({ emoji: "🌐", verb: "navigate", detail: hosts([args.url]) }),
  browser_snapshot: () => ({ emoji: "📸", verb: "snapshot", detail: "" }),
  browser_click: (args) => ({ emoji: "👆", verb: "click", detail: text(args.ref) }),
  browser_type: (args) => ({ emoji: "⌨️", verb: "type", detail: `"${text(args.text)}"` }),
  browser_scroll: (args) => ({ emoji: "↓", verb: "scroll", detail: text(args.direction) }),
  browser_back: () => ({ emoji: "◀️", verb: "back", detail: "" }),
  browser_press: (args) => ({ emoji: "⌨️", verb: "press", detail: text(args.key) }),
  browser_get_images: () => ({ emoji: "🖼️", verb: "images", detail: "" }),
  browser_vision: (args) => ({ emoji: "👁️", verb: "vision", detail: text(args.question) }),
  todo: (args) => ({ emoji: "📋", verb: "plan", detail: todoDetail(args) }),
  session_search: (args) => ({ emoji: "🔍", verb: "recall", detail: `"${text(args.query)}"` }),
  memory: (args) => ({ emoji: "🧠", verb: "memory", detail: memoryDetail(args) }),
  skills_list: (args) => ({ emoji: "📚", verb: "skills", detail: words("list", args.category) }),
  skill_view: (args) => ({ emoji: "📚", verb: "skill", detail: text(args.name) }),
  skill_manage: (args) => ({ emoji: "📝", verb: "skill", detail: words(args.action, args.name) }),
  image_generate: (args) => ({ emoji: "🎨", verb: "create", detail: text(args.prompt) }),
  text_to_speech: (args) => ({ emoji: "🔊", verb: "speak", detail: text(args.text) }),
  vision_analyze: (args) => ({ emoji: "👁️", verb: "vision", detail: text(args.question) || text(args.image_url) }),
  send_message: (args) => ({ emoji: "📨", verb: "send", detail: `${text(args.target)}: "${text(args.message)}"` }),
  cronjob: (args) => ({ emoji: "⏰", verb: "cron", detail: words(args.action, args.name) }),
  clarify: (args) => ({ emoji: "❓", verb: "ask", detail: text(args.question) }),
  execute_code: (args) => ({ emoji: "🐍", verb: "exec", detail: text(args.code).trim().split("\n")[0] ?? "" }),
  delegate_task: (args) => ({
    emoji: "🔀",
    verb: "delegate",
    detail: Array.isArray(args.tasks) ? t("{count} parallel tasks", { count: args.tasks.length }) : text(args.goal),
  }),
};

function todoDetail(args: Args): string {
  if (!Array.isArray(args.todos)) return t("reading tasks");
  const items = args.todos as readonly { status?: unknown }[]; // rows of a validated call
  if (args.merge === true) return t("update {count} task(s)", { count: items.length });
  return t("{done}/{count} task(s)", {
    done: items.filter((item) => item?.status === "completed").length,
    count: items.length,
  });
}

function memoryDetail(args: Args): string {
  const target = text(args.target) || "memory";
  const sign = { add: "+", replace: "~", remove: "-" }[text(args.action)] ?? "~";
  const content = text(args.content);
  return content && sign === "+" ? `+${target}: "${content}"` : `${sign}${target}`;
}

function hosts(urls: unknown): string {
  const list = Array.isArray(urls) ? urls.map(String) : [];
  const first = list[0] && URL.canParse(list[0]) ? new URL(list[0]).host : (list[0] ?? "");
  return list.length > 1 ? `${first} +${list.length - 1}` : first;
}

function firstOf(args: Args, keys: readonly string[]): string {
  const key = keys.find((candidate) => typeof args[candidate] === "string");
  return key ? text(args[key]) : "";
}

const text = (value: unknown) => (typeof value === "string" ? value : typeof value === "number" ? String(value) : "");
const words = (...values: readonly unknown[]) =>
  values
    .map(text)
    .filter((word) => word !== "")
    .join(" ");

function short(message: string): string {
  const line = toldToPeople(message).split("\n")[0]?.trim() ?? "";
  const facts = line.replace(/^(?:DENIED|BLOCKED)(?: \([^)]{1,40}\))?: ./, (head) => head.slice(-1).toUpperCase());
  return cut(facts, 60);
}

function parseObject(result: string): Readonly<Record<string, unknown>> | null {
  if (!result.startsWith("{")) return null;
  try {
    return JSON.parse(result);
  } catch {
    return null; // not JSON: the caller looks at the text
  }
}

// What child agents do, one line each, the same in every door that shows a feed.

interface SubagentLook {
  /** Cells of the whole line; the text gives way. */
  readonly width?: number;
  /** Every call of a child too, not only its beginning, its stages and its end. */
  readonly everyCall?: boolean;
  readonly prefix?: string;
}

/** `┊ 🔀 [1/3] find the tests`, indented by depth; null for what is not worth a line. */
export function subagentLine(
  event: SubagentEvent,
  { width, everyCall, prefix = "┊" }: SubagentLook = {},
): string | null {
  const said = subagentWords(event, everyCall === true);
  if (said === null) return null;
  const { mark, text, tail = "" } = said;
  const place = event.taskCount > 1 ? `[${event.taskIndex + 1}/${event.taskCount}] ` : "";
  const head = `${prefix} ${"  ".repeat(event.depth - 1)}${mark} ${place}`;
  const room = width === undefined ? Number.POSITIVE_INFINITY : Math.max(8, width - cellWidth(head) - cellWidth(tail));
  return `${head}${cut(text.replace(/\s+/g, " ").trim(), room)}${tail}`;
}

/** The same in a few words, for a line that is overwritten. */
export function subagentActivity(event: SubagentEvent): string | null {
  if (event.phase === "complete" || event.phase === "spawn_requested") return null;
  const place = event.taskCount > 1 ? `[${event.taskIndex + 1}/${event.taskCount}] ` : "";
  return `🔀 ${place}${event.call ? callText(event.call) : event.text || event.goal}`;
}

interface Words {
  readonly mark: string;
  readonly text: string;
  readonly tail?: string;
}

function subagentWords(event: SubagentEvent, everyCall: boolean): Words | null {
  switch (event.phase) {
    case "start":
      return { mark: "🔀", text: event.goal };
    case "progress":
      return { mark: "· ", text: event.text ?? "" };
    case "tool":
      return everyCall && event.call ? { mark: "· ", text: callText(event.call) } : null;
    case "complete": {
      const tail = event.ms === undefined ? "" : `  ${(event.ms / 1000).toFixed(1)}s`;
      if (event.status === "completed") return { mark: "✓ ", text: event.goal, tail };
      return { mark: "✗ ", text: `${event.goal}: ${event.status}, ${event.text ?? ""}`, tail };
    }
    default:
      return null;
  }
}

function callText(call: NonNullable<SubagentEvent["call"]>): string {
  const { emoji, verb, detail } = feedRow(call);
  return `${emoji} ${verb} ${detail.slice(0, 300)}`;
}

// Failures the agent recovered from, for doors that print lines.

/** One line for a step of recovery or a shortened conversation; null for everything else. Warnings are the door's own. */
export function recoveryLine(event: AgentEvent): string | null {
  if (event.type === "compressed") return `🗜️ context compressed: ${event.before} → ${event.after} tokens`;
  return event.type === "status" && event.kind !== "warn" && event.recovery ? `↻ ${event.message}` : null;
}
