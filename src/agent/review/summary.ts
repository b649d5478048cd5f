// What a review did, in one line for the user. Only what was really saved, or put aside to be approved, is told.
import type { Config } from "../../home/config/schema.ts";
import { truncateCodePoints } from "../../kit/code-points.ts";

/** A call that came to an end, with its result as the model got it. */
export interface EndedCall {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly result: string;
}

export type NoticeMode = "off" | "on" | "verbose";

export function noticeMode({ display }: Config, platform: string): NoticeMode {
  const own = display.platforms[platform];
  const given = isFields(own) ? own.memory_notifications : undefined;
  if (given === "off" || given === "on" || given === "verbose") return given;
  if (typeof given === "boolean") return given ? "on" : "off";
  return display.memory_notifications;
}

/** Null when there is nothing to tell. */
export function reviewLine(calls: readonly EndedCall[], mode: NoticeMode): string | null {
  const parts = summaryParts(calls, mode);
  return parts.length === 0 ? null : `💾 Self-improvement review: ${parts.join(" · ")}`;
}

export function summaryParts(calls: readonly EndedCall[], mode: NoticeMode): readonly string[] {
  if (mode === "off") return [];
  const done = calls.flatMap((call) => {
    const result = parse(call.result);
    return result?.success === true && result.no_change !== true ? [{ ...call, result }] : [];
  });
  const written = done.filter(({ result }) => result.staged !== true);
  const staged = done.filter(({ result }) => result.staged === true);
  const describe = mode === "verbose" ? inDetail : inShort;
  const parts = [...written.flatMap(describe), ...stagedParts(staged, mode)];
  return [...new Set(parts)];
}

interface Done {
  readonly name: string;
  readonly args: Fields;
  readonly result: Fields;
}

type Fields = Readonly<Record<string, unknown>>;

function inShort({ name, args, result }: Done): readonly string[] {
  if (name === "skill_manage") return textIn(result.message) ? [textIn(result.message)] : [];
  if (name !== "memory" || changedNothing(result)) return [];
  return [`${labelOf(args)} updated`];
}

function inDetail({ name, args, result }: Done): readonly string[] {
  if (name === "skill_manage") return [`📝 ${skillDetail(args, result)}`];
  if (name !== "memory" || changedNothing(result)) return [];
  const operations = Array.isArray(args.operations) && args.operations.length > 0 ? args.operations : [args];
  return operations.map((one) => `${labelOf(args)} ${operationDetail(isFields(one) ? one : {})}`);
}

function operationDetail({ action, content, old_text }: Fields): string {
  if (action === "remove") return `➖ ${cut(old_text, 60)}`;
  return `${action === "replace" ? "✏️" : "➕"} ${cut(content, 120)}`;
}

function skillDetail(args: Fields, result: Fields): string {
  const skill = `Skill '${textIn(args.name)}'`;
  if (args.action === "patch") return `${skill} patched: "${cut(args.old_string, 80)}" → "${cut(args.new_string, 80)}"`;
  const description = /^description:\s*(.+)$/m.exec(textIn(args.content))?.[1]?.replace(/^["']|["']$/g, "");
  if (args.action === "create" && description) return `${skill} created: ${cut(description, 120)}`;
  if (args.action === "edit" && description) return `${skill} rewritten: ${cut(description, 120)}`;
  return textIn(result.message);
}

function stagedParts(staged: readonly Done[], mode: NoticeMode): readonly string[] {
  if (staged.length === 0) return [];
  if (mode !== "verbose") return [`${staged.length} change${staged.length === 1 ? "" : "s"} staged for approval`];
  return staged.map((done) => {
    const what = done.name === "memory" ? inDetail({ ...done, result: {} }).join(" · ") : textIn(done.result.gist);
    return `staged: ${what || textIn(done.result.message)}`;
  });
}

/** A duplicate is a success that wrote nothing. */
const changedNothing = ({ message }: Fields) => /already exists/.test(textIn(message));

const labelOf = ({ target }: Fields) => (target === "user" ? "User profile" : "Memory");

const cut = (value: unknown, max: number) => truncateCodePoints(textIn(value).replace(/\s+/g, " ").trim(), max, "…");

const textIn = (value: unknown) => (typeof value === "string" ? value : "");

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function parse(text: string): Fields | null {
  try {
    const value: unknown = JSON.parse(text);
    return isFields(value) ? value : null;
  } catch {
    return null; // a refusal in words, a result that was cut: nothing was saved by it
  }
}
