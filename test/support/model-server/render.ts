// One scripted answer in the words of each wire: as a list of stream events, and as one JSON object.
import type { Answer, ScriptedCall, ScriptedUsage, WireName } from "./script.ts";

export interface Rendered {
  /** Complete SSE blocks, in order. */
  readonly events: readonly string[];
  /** How many of the last events only say that the answer is over. */
  readonly closing: number;
  readonly whole: unknown;
}

export function render(
  wire: WireName,
  model: string,
  answer: Answer,
  usage: ScriptedUsage | null,
  serial: number,
): Rendered {
  if (wire === "anthropic") return renderAnthropic(model, answer, usage, serial);
  if (wire === "responses") return renderResponses(model, answer, usage, serial);
  return renderChat(model, answer, usage, serial);
}

const argumentsOf = (call: ScriptedCall) =>
  typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments);

function pieces(text: string, size: number): string[] {
  const points = [...text];
  const out: string[] = [];
  for (let i = 0; i < points.length; i += size) out.push(points.slice(i, i + size).join(""));
  return out;
}

const finishOf = (answer: Answer) => answer.finish ?? (answer.toolCalls?.length ? "tool_calls" : "stop");

function renderChat(model: string, answer: Answer, usage: ScriptedUsage | null, serial: number): Rendered {
  const base = { id: `chatcmpl-${serial}`, object: "chat.completion.chunk", created: 1_700_000_000, model };
  const chunk = (delta: object, finish: string | null = null) =>
    `data: ${JSON.stringify({ ...base, choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  const calls = (answer.toolCalls ?? []).map((call, index) => ({
    index,
    id: call.id ?? `call_${serial}_${index}`,
    type: "function",
    function: { name: call.name, arguments: argumentsOf(call) },
  }));
  const wireUsage = usage && {
    prompt_tokens: usage.input + (usage.cacheRead ?? 0) + (usage.cacheWrite ?? 0),
    completion_tokens: usage.output,
    total_tokens: usage.input + (usage.cacheRead ?? 0) + (usage.cacheWrite ?? 0) + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cacheRead ?? 0 },
    completion_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
    ...(usage.cost === undefined ? {} : { cost: usage.cost }),
  };
  const size = answer.chunk ?? 5;
  const body = [
    chunk({ role: "assistant", content: "" }),
    ...pieces(answer.thinking ?? "", size).map((delta) => chunk({ reasoning_content: delta })),
    ...pieces(answer.text ?? "", size).map((delta) => chunk({ content: delta })),
    ...calls.flatMap((call) => [
      chunk({ tool_calls: [{ ...call, function: { name: call.function.name, arguments: "" } }] }),
      ...pieces(call.function.arguments, 12).map((part) =>
        chunk({ tool_calls: [{ index: call.index, function: { arguments: part } }] }),
      ),
    ]),
  ];
  const closing = [
    chunk({}, finishOf(answer)),
    ...(wireUsage ? [`data: ${JSON.stringify({ ...base, choices: [], usage: wireUsage })}\n\n`] : []),
    "data: [DONE]\n\n",
  ];
  const message = {
    role: "assistant",
    content: answer.text ?? null,
    ...(answer.thinking ? { reasoning_content: answer.thinking } : {}),
    ...(calls.length > 0 ? { tool_calls: calls.map(({ index: _, ...call }) => call) } : {}),
  };
  return {
    events: [...body, ...closing],
    closing: closing.length,
    whole: {
      ...base,
      object: "chat.completion",
      choices: [{ index: 0, message, finish_reason: finishOf(answer) }],
      ...(wireUsage ? { usage: wireUsage } : {}),
    },
  };
}

const ANTHROPIC_STOP: Record<string, string> = {
  stop: "end_turn",
  tool_calls: "tool_use",
  length: "max_tokens",
  content_filter: "refusal",
  incomplete: "pause_turn",
};

function renderAnthropic(model: string, answer: Answer, usage: ScriptedUsage | null, serial: number): Rendered {
  const event = (type: string, data: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;
  const inputUsage = {
    input_tokens: usage?.input ?? 0,
    cache_read_input_tokens: usage?.cacheRead ?? 0,
    cache_creation_input_tokens: usage?.cacheWrite ?? 0,
    output_tokens: 1,
  };
  const size = answer.chunk ?? 5;
  const blocks: {
    content: Record<string, unknown>;
    start: Record<string, unknown>;
    deltas: Record<string, unknown>[];
  }[] = [];
  if (answer.thinking) {
    const signature = `sig-${serial}`;
    blocks.push({
      content: { type: "thinking", thinking: answer.thinking, signature },
      start: { type: "thinking", thinking: "", signature: "" },
      deltas: [
        ...pieces(answer.thinking, size).map((thinking) => ({ type: "thinking_delta", thinking })),
        { type: "signature_delta", signature },
      ],
    });
  }
  if (answer.text) {
    blocks.push({
      content: { type: "text", text: answer.text },
      start: { type: "text", text: "" },
      deltas: pieces(answer.text, size).map((text) => ({ type: "text_delta", text })),
    });
  }
  (answer.toolCalls ?? []).forEach((call, index) => {
    const id = call.id ?? `toolu_${serial}_${index}`;
    const json = argumentsOf(call);
    let input: unknown = {};
    try {
      input = JSON.parse(json);
    } catch {
      input = {}; // a broken call has no whole form; only its stream shows the damage
    }
    blocks.push({
      content: { type: "tool_use", id, name: call.name, input },
      start: { type: "tool_use", id, name: call.name, input: {} },
      deltas: pieces(json, 12).map((partial_json) => ({ type: "input_json_delta", partial_json })),
    });
  });
  const envelope = { id: `msg_${serial}`, type: "message", role: "assistant", model, stop_sequence: null };
  const stop = ANTHROPIC_STOP[finishOf(answer)];
  const body = [
    event("message_start", { message: { ...envelope, content: [], stop_reason: null, usage: inputUsage } }),
    ...blocks.flatMap((block, index) => [
      event("content_block_start", { index, content_block: block.start }),
      ...block.deltas.map((delta) => event("content_block_delta", { index, delta })),
      event("content_block_stop", { index }),
    ]),
  ];
  const closing = [
    event("message_delta", {
      delta: { stop_reason: stop, stop_sequence: null },
      usage: { output_tokens: usage?.output ?? 0 },
    }),
    event("message_stop", {}),
  ];
  return {
    events: [...body, ...closing],
    closing: closing.length,
    whole: {
      ...envelope,
      content: blocks.map((block) => block.content),
      stop_reason: stop,
      usage: { ...inputUsage, output_tokens: usage?.output ?? 0 },
    },
  };
}

function renderResponses(model: string, answer: Answer, usage: ScriptedUsage | null, serial: number): Rendered {
  let sequence = 0;
  const event = (type: string, data: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence++, ...data })}\n\n`;
  const size = answer.chunk ?? 5;
  const items: Record<string, unknown>[] = [];
  const body: string[] = [];
  const envelope = { id: `resp_${serial}`, object: "response", created_at: 1_700_000_000, model };
  body.push(event("response.created", { response: { ...envelope, status: "in_progress", output: [] } }));
  const add = (item: Record<string, unknown>, open: Record<string, unknown>, between: (index: number) => string[]) => {
    const index = items.length;
    items.push(item);
    body.push(event("response.output_item.added", { output_index: index, item: open }));
    body.push(...between(index));
    body.push(event("response.output_item.done", { output_index: index, item }));
  };
  if (answer.thinking) {
    const id = `rs_${serial}`;
    const summary = [{ type: "summary_text", text: answer.thinking }];
    add(
      { type: "reasoning", id, summary, encrypted_content: `enc-${serial}` },
      { type: "reasoning", id, summary: [] },
      (output_index) => {
        const place = { item_id: id, output_index, summary_index: 0 };
        return [
          event("response.reasoning_summary_part.added", { ...place, part: { type: "summary_text", text: "" } }),
          ...pieces(answer.thinking ?? "", size).map((delta) =>
            event("response.reasoning_summary_text.delta", { ...place, delta }),
          ),
          event("response.reasoning_summary_text.done", { ...place, text: answer.thinking }),
          event("response.reasoning_summary_part.done", { ...place, part: summary[0] }),
        ];
      },
    );
  }
  if (answer.text) {
    const id = `msg_${serial}`;
    const content = [{ type: "output_text", text: answer.text, annotations: [] }];
    add(
      { type: "message", id, role: "assistant", status: "completed", content },
      { type: "message", id, role: "assistant", status: "in_progress", content: [] },
      (output_index) => {
        const place = { item_id: id, output_index, content_index: 0 };
        return [
          event("response.content_part.added", { ...place, part: { type: "output_text", text: "", annotations: [] } }),
          ...pieces(answer.text ?? "", size).map((delta) => event("response.output_text.delta", { ...place, delta })),
          event("response.output_text.done", { ...place, text: answer.text }),
          event("response.content_part.done", { ...place, part: content[0] }),
        ];
      },
    );
  }
  (answer.toolCalls ?? []).forEach((call, index) => {
    const id = `fc_${serial}_${index}`;
    const item = {
      type: "function_call",
      id,
      call_id: call.id ?? `call_${serial}_${index}`,
      name: call.name,
      arguments: argumentsOf(call),
      status: "completed",
    };
    add(item, { ...item, arguments: "", status: "in_progress" }, (output_index) => [
      ...pieces(item.arguments, 12).map((delta) =>
        event("response.function_call_arguments.delta", { item_id: id, output_index, delta }),
      ),
      event("response.function_call_arguments.done", {
        item_id: id,
        output_index,
        name: call.name,
        arguments: item.arguments,
      }),
    ]);
  });
  const finish = finishOf(answer);
  const incomplete = finish === "length" ? "max_output_tokens" : finish === "content_filter" ? "content_filter" : null;
  const whole = {
    ...envelope,
    status: incomplete || finish === "incomplete" ? "incomplete" : "completed",
    incomplete_details: incomplete ? { reason: incomplete } : null,
    output: items,
    ...(usage
      ? {
          usage: {
            input_tokens: usage.input + (usage.cacheRead ?? 0),
            input_tokens_details: { cached_tokens: usage.cacheRead ?? 0 },
            output_tokens: usage.output,
            output_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
            total_tokens: usage.input + (usage.cacheRead ?? 0) + usage.output,
          },
        }
      : {}),
  };
  const terminal = whole.status === "completed" ? "response.completed" : "response.incomplete";
  return { events: [...body, event(terminal, { response: whole })], closing: 1, whole };
}
