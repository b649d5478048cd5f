// Tool calls as hooks see them: before, after, and the text the model gets.
import { createHash } from "node:crypto";
import { isRecord } from "../../kit/json.ts";
import type { Ask } from "../../safety/questions.ts";
import type { HookedCall, HookedResult, RunContext } from "../../tools/toolset/context.ts";
import type { LoopEvents, ToolHooks } from "../options.ts";

export interface RuleApprovals {
  readonly interactive: boolean;
  ask(): Ask | null;
  isAllowed(key: string): boolean;
  allow(key: string, how: "session" | "always"): Promise<void>;
}

export function toolHooks(events: Pick<LoopEvents, "hears" | "tell">, rules: RuleApprovals): ToolHooks {
  return {
    async before(call, run) {
      if (!events.hears("pre_tool_call")) return null;
      const answers = await events.tell("pre_tool_call", factsOf(call, run));
      const directives = answers.filter(isRecord);
      const block = directives.find(({ action }) => action === "block");
      if (block) return textOf(block.message) ?? "Blocked by a hook.";
      for (const directive of directives.filter(({ action }) => action === "approve")) {
        const refusal = await askPerson(call, textOf(directive.message) ?? textOf(directive.rule) ?? "", rules);
        if (refusal !== null) return refusal;
      }
      return null;
    },
    async after(call, result, run) {
      if (events.hears("post_tool_call"))
        await events.tell("post_tool_call", { ...factsOf(call, run), ...resultFacts(result) });
    },
    async transform(call, result, run) {
      if (!events.hears("transform_tool_result")) return null;
      const answers = await events.tell("transform_tool_result", { ...factsOf(call, run), ...resultFacts(result) });
      return answers.find((answer) => typeof answer === "string") ?? null;
    },
  };
}

/** A rule of a plugin wants a person's word. Without one the answer is no. */
async function askPerson(call: HookedCall, rule: string, rules: RuleApprovals): Promise<string | null> {
  const key = `plugin_rule:${call.name}:${createHash("sha256").update(rule).digest("hex").slice(0, 12)}`;
  if (rules.isAllowed(key)) return null;
  const why = rule === "" ? "a plugin wants your word for it" : rule;
  const ask = rules.ask();
  if (!rules.interactive || !ask)
    return `${call.name} needs a person's approval (${why}), and nobody can be asked here.`;
  const { choice } = await ask({
    kind: "approval",
    command: `${call.name} ${JSON.stringify(call.args)}`.slice(0, 500),
    description: why,
    patternKey: key,
    allowAlways: true,
  });
  if (choice === "deny") return `The user did not approve this call (${why}).`;
  if (choice !== "once") await rules.allow(key, choice);
  return null;
}

function factsOf(call: HookedCall, run: RunContext): Readonly<Record<string, unknown>> {
  return {
    tool_name: call.name,
    args: call.args,
    task_id: run.taskId,
    session_id: run.sessionId,
    tool_call_id: call.id,
  };
}

function resultFacts({ text, ms, status }: HookedResult): Readonly<Record<string, unknown>> {
  const failed = status !== "ok";
  return {
    result: text,
    duration_ms: ms,
    status: status === "failed" ? "error" : status,
    ...(failed ? errorFacts(text) : { error_type: null, error_message: null }),
  };
}

function errorFacts(text: string): Readonly<Record<string, unknown>> {
  const known = /^\[TOOL_ERROR\] Tool execution failed: (\w+): /;
  try {
    const value: unknown = JSON.parse(text);
    const message = isRecord(value) && typeof value.error === "string" ? value.error : text;
    const type = isRecord(value) && typeof value.error_type === "string" ? value.error_type : known.exec(message)?.[1];
    return { error_type: type ?? "tool_error", error_message: message.slice(0, 2000) };
  } catch {
    return { error_type: "tool_error", error_message: text.slice(0, 2000) }; // a result in plain words
  }
}

const textOf = (value: unknown) => (typeof value === "string" && value.trim() !== "" ? value : null);
