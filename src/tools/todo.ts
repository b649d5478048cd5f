// The task list of one agent. It lives with the agent; its last state also stands in the conversation, from where it is read back.
import { z } from "zod";
import { type HistoryMessage, textOf } from "../llm/messages.ts";
import type { StateKey, ToolState } from "./toolset/context.ts";
import { toolResult } from "./toolset/dispatch.ts";
import { register } from "./toolset/registry.ts";

const STATUSES = ["pending", "in_progress", "completed", "cancelled"] as const;
const MAX_ITEMS = 256;
const MAX_CHARS = 4000;

interface Todo {
  readonly id: string;
  readonly content: string;
  readonly status: (typeof STATUSES)[number];
}

// Nothing is refused: a list with one odd field is still the model's plan. Ids come as numbers now and then.
const anyText = z
  .unknown()
  .meta({ type: "string" })
  .transform((value) => (typeof value === "string" || typeof value === "number" ? String(value).trim() : ""));
const given = z
  .object({
    id: anyText.optional(),
    content: anyText.optional(),
    status: z.enum(STATUSES).optional().catch("pending"),
  })
  .meta({ required: ["id"] });
const parameters = z.object({
  todos: z.array(given).optional().describe("Left out: read the list"),
  merge: z.boolean().optional().describe("true: change by id and add; default: replace the list"),
});

const todoList: StateKey<{ items: readonly Todo[] }> = { name: "todo", create: () => ({ items: [] }) };

register({
  name: "todo",
  readOnly: true,
  toolset: "todo",
  emoji: "📋",
  description:
    "Your task list for work of three or more steps: plan first, keep exactly one item in_progress, mark items completed " +
    "as soon as they are done, cancelled when they fall away. Order is priority.",
  parameters,
  textOrigin: "local",
  hydrate: hydrateTodos,
  handler({ todos, merge }, ctx) {
    const list = ctx.state.of(todoList);
    if (todos) list.items = merge ? mergeTodos(list.items, todos) : tidy(todos.map(complete));
    return toolResult({ todos: list.items, summary: summarize(list.items) });
  },
});

/** The note about open tasks in a compressed conversation; null when there are none. */
export function renderActiveTodos(state: ToolState): string | null {
  const active = state.of(todoList).items.filter(({ status }) => status === "pending" || status === "in_progress");
  if (active.length === 0) return null;
  const lines = active.map(
    ({ id, content, status }) => `- [${status === "pending" ? " " : ">"}] ${id}. ${content} (${status})`,
  );
  return ["[Your active task list was preserved across context compression]", ...lines].join("\n");
}

/** Takes the list from the newest result in a conversation that carries one. */
function hydrateTodos(state: ToolState, history: readonly HistoryMessage[]): void {
  const newest = history.findLast((message) => message.role === "tool" && /"todos"\s*:/.test(textOf(message.content)));
  if (!newest) return;
  const found = z.looseObject({ todos: z.array(given) }).safeParse(parseJson(textOf(newest.content)));
  if (found.success) state.of(todoList).items = tidy(found.data.todos.map(complete));
}

type Given = z.infer<typeof given>;

function complete({ id, content, status }: Given): Todo {
  return { id: id || "?", content: content || "(no description)", status: status ?? "pending" };
}

/** Only the fields that were given change; what is new is appended. */
function mergeTodos(old: readonly Todo[], changes: readonly Given[]): readonly Todo[] {
  const items = [...old];
  for (const change of changes) {
    const at = items.findIndex(({ id }) => id === change.id);
    const present = items[at];
    if (!present) {
      items.push(complete(change));
      continue;
    }
    items[at] = { ...present, content: change.content || present.content, status: change.status ?? present.status };
  }
  return tidy(items);
}

/** Of items with the same id the last one counts; items without one are all different. */
function tidy(items: readonly Todo[]): readonly Todo[] {
  const last = items.filter(
    (item, index) => item.id === "?" || items.findLastIndex(({ id }) => id === item.id) === index,
  );
  return last.slice(0, MAX_ITEMS).map((item) => ({ ...item, content: cut(item.content) }));
}

function cut(text: string): string {
  return text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS - 3)}...`.toWellFormed() : text;
}

function summarize(items: readonly Todo[]) {
  const count = (status: Todo["status"]) => items.filter((item) => item.status === status).length;
  return { total: items.length, ...Object.fromEntries(STATUSES.map((status) => [status, count(status)])) };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null; // a result that was shortened or wrapped holds no list
  }
}
