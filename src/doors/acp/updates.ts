// From what the agent does to what an editor shows. One translator for each conversation; `live` follows a turn, `replayed` tells an earlier one.
import { randomBytes } from "node:crypto";
import type { ClientCapabilities, SessionUpdate, ToolCallContent } from "@agentclientprotocol/sdk";
import type { AgentEvent, SubagentEvent, ToolCallView } from "../../agent/events.ts";
import { said } from "../../home/language/words.ts";
import { isRecord, parseJson } from "../../kit/json.ts";
import { type HistoryMessage, textOf } from "../../llm/messages.ts";
import { withoutFence } from "../../prompt/fence.ts";
import type { FileEdit } from "../../tools/toolset/context.ts";
import {
  editContent,
  planEntries,
  resultContent,
  textContent,
  toolKind,
  toolLocations,
  toolStatus,
  toolTitle,
} from "./tool-view.ts";

interface RunningCall {
  readonly id: string;
  readonly name: string;
  edits: readonly FileEdit[];
  /** The editor's own terminal, in which the command runs. */
  terminal: string | null;
  /** What sub-agents reported, newest last. */
  readonly reports: string[];
}

const MOST_REPORTS = 20;

const newCallId = () => `tc-${randomBytes(6).toString("hex")}`;

interface UpdateOptions {
  readonly capabilities: ClientCapabilities;
  /** The folder that relative paths of calls start from. */
  cwd(): string;
  now(): number;
}

export class Updates {
  readonly #options: UpdateOptions;
  /** Calls that run, by the id the model gave them. */
  readonly #running = new Map<string, RunningCall>();
  /** The answer of this turn was told as it came. */
  #told = false;

  constructor(options: UpdateOptions) {
    this.#options = options;
  }

  /** The id an editor knows a running call by; null for one that does not run. */
  idOf(callId: string): string | null {
    return this.#running.get(callId)?.id ?? null;
  }

  /** Both sides of what a running call is about to write. */
  noteEdits(callId: string, edits: readonly FileEdit[]): void {
    const call = this.#running.get(callId);
    if (call) call.edits = [...call.edits, ...edits];
  }

  /** A running call is shown in the editor's own terminal from now on. */
  showTerminal(callId: string, terminalId: string): SessionUpdate | null {
    const call = this.#running.get(callId);
    if (!call) return null;
    call.terminal = terminalId;
    return {
      sessionUpdate: "tool_call_update",
      toolCallId: call.id,
      status: "in_progress",
      content: [{ type: "terminal", terminalId }],
    };
  }

  /** What one event means for the editor; most mean one update or none. */
  live(event: AgentEvent): SessionUpdate[] {
    switch (event.type) {
      case "turn_start":
        this.#told = false;
        return [];
      case "text":
        this.#told = true;
        return event.delta === "" ? [] : [message(event.delta)];
      case "text_end":
        return this.#textEnd(event);
      case "thinking":
        return event.delta === "" ? [] : [thought(event.delta)];
      case "tool_start":
        return [this.#start(event.call)];
      case "tool_progress":
        return this.#progress(event);
      case "tool_end":
        return this.#end(event);
      case "subagent":
        return this.#subagent(event);
      case "usage":
        return usageOf(event);
      case "session":
        return event.reason === "titled" ? [this.title(event.title)] : [];
      case "status":
        return event.kind === "warn" || event.kind === "done" || event.changedInput || event.recovery
          ? this.notice(said(event.message), event.kind === "warn" ? "warning" : "info")
          : [];
      case "compressed":
        return this.notice(`🗜️ ${said("Compressing the conversation ...")} ${event.before} → ${event.after}`, "info");
      case "done": {
        // Ends without an answer of the model say why in their final text.
        const { finalText, interrupted, failed } = event.outcome;
        this.#running.clear();
        if (interrupted || finalText === null || finalText === "" || (this.#told && !failed)) return [];
        return [message(this.#told ? `\n\n${finalText}` : finalText)];
      }
      default:
        return [];
    }
  }

  title(title: string | null): SessionUpdate {
    return { sessionUpdate: "session_info_update", title, updatedAt: new Date(this.#options.now()).toISOString() };
  }

  /** A line beside the answer; where the editor knows no such thing it is a thought. */
  notice(text: string, severity: "info" | "warning"): SessionUpdate[] {
    if (this.#options.capabilities.session?.notices) return [{ sessionUpdate: "notice", severity, title: text }];
    return [thought(`${severity === "warning" ? "⚠ " : ""}${text}\n\n`)];
  }

  #textEnd({ text, kind, streamed }: Extract<AgentEvent, { type: "text_end" }>): SessionUpdate[] {
    const whole = streamed ? [] : text.trim() === "" ? [] : [message(text)];
    if (kind === "final") {
      this.#told ||= whole.length > 0;
      return whole;
    }
    // What follows the tools is a paragraph of its own.
    const ended = streamed || whole.length > 0 ? [message("\n\n")] : [];
    this.#told = false;
    return [...whole, ...ended];
  }

  #start(call: ToolCallView): SessionUpdate {
    const running: RunningCall = { id: newCallId(), name: call.name, edits: [], terminal: null, reports: [] };
    this.#running.set(call.id, running);
    return {
      sessionUpdate: "tool_call",
      toolCallId: running.id,
      ...this.#looks(call),
      status: "in_progress",
      rawInput: call.args,
    };
  }

  #looks(call: Pick<ToolCallView, "name" | "args">) {
    const locations = toolLocations(call, this.#options.cwd());
    return { title: toolTitle(call), kind: toolKind(call.name), ...(locations.length > 0 && { locations }) };
  }

  #progress({ call, text, output }: Extract<AgentEvent, { type: "tool_progress" }>): SessionUpdate[] {
    const running = this.#running.get(call.id);
    const words = output ?? text;
    if (!running || running.terminal !== null || words === undefined || words === "") return [];
    return [update(running.id, [textContent(words, output !== undefined)])];
  }

  /** Children report to the call that started them, if it is clear which one that is. */
  #subagent(event: SubagentEvent): SessionUpdate[] {
    const callers = [...this.#running.values()].filter(({ name }) => name === "delegate_task");
    const [caller] = callers;
    const words = childWords(event);
    if (!caller || callers.length > 1 || words === null) return [];
    caller.reports.push(words);
    return [update(caller.id, [textContent(caller.reports.slice(-MOST_REPORTS).join("\n"))])];
  }

  #end({ call, result, diff }: Extract<AgentEvent, { type: "tool_end" }>): SessionUpdate[] {
    const running = this.#running.get(call.id);
    if (!running) return [];
    this.#running.delete(call.id);
    const status = toolStatus(call.name, result);
    const diffs = status === "completed" ? running.edits.map(diffContent) : [];
    const words = resultContent(call.name, result);
    const shown: ToolCallContent[] =
      running.terminal !== null
        ? [{ type: "terminal", terminalId: running.terminal }]
        : diffs.length > 0
          ? diffs
          : diff && status === "completed"
            ? [textContent(diff, true)]
            : words;
    const plan = call.name === "todo" && status === "completed" ? planEntries(result) : null;
    return [
      {
        ...update(running.id, shown),
        status,
        rawOutput: rawOutput(result),
      },
      ...(plan ? [{ sessionUpdate: "plan" as const, entries: plan }] : []),
    ];
  }

  /** An earlier conversation, as it would have been seen. Calls and their results are told together. */
  *replayed(history: readonly HistoryMessage[]): Iterable<SessionUpdate> {
    const open = new Map<string, Pick<RunningCall, "id" | "name">>();
    for (const one of history) {
      if (one.role === "user") {
        const words = textOf(one.content);
        if (words.trim() !== "") yield { sessionUpdate: "user_message_chunk", content: { type: "text", text: words } };
        for (const part of Array.isArray(one.content) ? one.content : []) {
          const picture = part.type === "image_url" ? /^data:([^;]+);base64,(.+)$/s.exec(part.image_url.url) : null;
          const [, mimeType, data] = picture ?? [];
          if (mimeType && data)
            yield { sessionUpdate: "user_message_chunk", content: { type: "image", mimeType, data } };
        }
      } else if (one.role === "assistant") {
        if (one.reasoning?.trim()) yield thought(one.reasoning);
        if (one.content?.trim()) yield message(one.content);
        for (const { id, function: called } of one.tool_calls ?? []) {
          const parsed = parseJson(called.arguments);
          const view = { name: called.name, args: isRecord(parsed) ? parsed : {} };
          const callId = newCallId();
          open.set(id, { id: callId, name: called.name });
          const content = editContent(view, this.#options.cwd());
          yield {
            sessionUpdate: "tool_call",
            toolCallId: callId,
            ...this.#looks(view),
            status: "pending",
            rawInput: view.args,
            ...(content.length > 0 && { content }),
          };
        }
      } else {
        const call = open.get(one.tool_call_id);
        if (!call) continue;
        open.delete(one.tool_call_id);
        const result = textOf(one.content);
        const isEdit = call.name === "write_file" || call.name === "patch";
        const status = toolStatus(call.name, result);
        // The difference came with the call.
        const shown = isEdit && status === "completed" ? null : resultContent(call.name, result);
        yield {
          sessionUpdate: "tool_call_update",
          toolCallId: call.id,
          status,
          ...(shown && { content: shown }),
        };
        if (call.name === "todo" && status === "completed")
          yield { sessionUpdate: "plan", entries: planEntries(result) };
      }
    }
    // A turn that was cut off left calls without a result.
    for (const { id } of open.values()) yield { sessionUpdate: "tool_call_update", toolCallId: id, status: "failed" };
  }
}

export const message = (text: string): SessionUpdate => ({
  sessionUpdate: "agent_message_chunk",
  content: { type: "text", text },
});

const thought = (text: string): SessionUpdate => ({
  sessionUpdate: "agent_thought_chunk",
  content: { type: "text", text },
});

const update = (toolCallId: string, content: ToolCallContent[]) => ({
  sessionUpdate: "tool_call_update" as const,
  toolCallId,
  content,
});

export const diffContent = ({ path, before, after }: FileEdit): ToolCallContent => ({
  type: "diff",
  path,
  oldText: before,
  newText: after ?? "",
});

const MOST_RAW = 50_000;

function rawOutput(told: string): unknown {
  const result = withoutFence(told);
  if (result.length > MOST_RAW) return undefined;
  return parseJson(result) ?? result;
}

function usageOf({ contextUsed, contextLength, totals }: Extract<AgentEvent, { type: "usage" }>): SessionUpdate[] {
  if (contextUsed === null) return [];
  const cost = totals.costUsd === null ? {} : { cost: { amount: totals.costUsd, currency: "USD" } };
  return [{ sessionUpdate: "usage_update", used: contextUsed, size: contextLength, ...cost }];
}

function childWords({ phase, goal, text, call, status, taskCount, taskIndex }: SubagentEvent): string | null {
  const place = taskCount > 1 ? `[${taskIndex + 1}/${taskCount}] ` : "";
  if (phase === "start") return `🔀 ${place}${goal}`;
  if (phase === "tool" && call) return `· ${place}${toolTitle(call)}`;
  if (phase === "progress") return `· ${place}${text ?? ""}`;
  if (phase !== "complete") return null;
  return status === "completed" ? `✓ ${place}${goal}` : `✗ ${place}${goal}: ${status ?? ""} ${text ?? ""}`.trimEnd();
}
