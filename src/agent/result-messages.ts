// Finished calls as messages: sized together, fenced where the text is foreign, with the hints of the folders they touched.

import {
  type ContentPart,
  type HistoryMessage,
  type ThreatAdvice,
  type ToolCall,
  type ToolMessage,
  textOf,
} from "../llm/messages.ts";
import { disarm, fenced } from "../prompt/fence.ts";
import { withHints } from "../prompt/hints.ts";
import type { HookedCall, RunContext } from "../tools/toolset/context.ts";
import type { SessionTools } from "../tools/toolset/session-tools.ts";
import type { Assembly } from "./assembly.ts";
import type { AgentEventBody } from "./events.ts";
import type { ForeignText, Outside } from "./foreign-text.ts";
import { stubResult } from "./repair.ts";
import type { Entry } from "./transcript.ts";

/** A finished call before it becomes a message: the size of all results together is looked at first. */
export interface Finished {
  readonly call: ToolCall;
  /** The text is from outside. */
  readonly outside?: Outside;
  /** Who fenced text comes from when it is not the tool itself: a script's output may be what a page said. */
  readonly source?: string;
  readonly content: string | readonly ContentPart[];
  readonly appendix: string;
  readonly summary?: string;
  /** The call as it ran, and where the terminal was: hints depend on both. */
  readonly ran?: { readonly call: HookedCall; readonly cwd: string };
  /** Not run, or given up: a line of the runtime, not tool output. */
  readonly stub?: true;
}

interface ResultPorts {
  readonly tools: SessionTools;
  readonly assembly: Pick<Assembly, "hints" | "log">;
  readonly run: RunContext;
  readonly history: () => readonly HistoryMessage[];
  readonly foreign: ForeignText;
  readonly emit: (event: AgentEventBody) => void;
}

/** One by one, so that what is discovered comes in the order of the calls. */
export async function resultMessages(finished: readonly Finished[], ports: ResultPorts): Promise<readonly Entry[]> {
  const { tools, run } = ports;
  const sized = finished.flatMap((one) =>
    typeof one.content === "string" ? [{ callId: one.call.id, name: one.call.function.name, text: one.content }] : [],
  );
  const texts = await tools.limitBatch(sized, run.sessionId);
  await ports.foreign.add(
    finished.flatMap(({ call, outside }) => (outside ? [{ call: call.id, from: outside.from }] : [])),
  );
  let next = 0;
  const entries: Entry[] = [];
  for (const one of finished) {
    const content = typeof one.content === "string" ? (texts[next++] ?? one.content) : one.content;
    entries.push(one.stub ? { message: stubResult(one.call, textOf(content)) } : await entryOf(one, content, ports));
  }
  return entries;
}

async function entryOf(one: Finished, content: Finished["content"], ports: ResultPorts): Promise<Entry> {
  const hints = await hintsFor(one, ports);
  const source = one.source ?? one.call.function.name;
  const threats = one.outside ? await adviceOn(source, textOf(content), ports) : null;
  const message = (shown: Finished["content"]) => ({
    ...toolMessage(one, one.outside && !one.outside.isFramed ? fenced(source, shown) : shown, {
      tools: ports.tools,
      hints,
    }),
    ...(threats && { threats }),
  });
  return { message: message(content), ...(one.summary === undefined ? {} : { stored: message(one.summary) }) };
}

/** The user hears of what looks like an attack; the model has it fenced already. */
async function adviceOn(source: string, text: string, { emit }: ResultPorts): Promise<ThreatAdvice | null> {
  const { adviseOn, describeAdvice } = await import("../prompt/threat-advice.ts");
  const advice = await adviseOn(text);
  if (advice?.risk === "high") emit({ type: "status", kind: "warn", message: describeAdvice(source, advice) });
  return advice;
}

async function hintsFor({ ran }: Finished, { assembly, emit, history }: ResultPorts): Promise<string | null> {
  if (!ran || !assembly.hints) return null;
  try {
    const found = await (await assembly.hints()).check(ran.call, { cwd: ran.cwd, history: history() });
    for (const message of found?.warnings ?? []) emit({ type: "status", kind: "warn", message });
    // Rules of a project are as foreign as tool output: they cannot speak in the user's name either.
    return found?.text ? disarm(found.text) : null;
  } catch (error) {
    assembly.log.warn("hook hints failed and is ignored", error);
    return null;
  }
}

function toolMessage(
  one: Finished,
  content: string | readonly ContentPart[],
  { tools, hints }: { readonly tools: SessionTools; readonly hints: string | null },
): ToolMessage {
  // Servers match a result to its call by the name the model wrote, also when that was a bridge.
  const name = one.call.function.name;
  const origin = one.outside?.origin ?? tools.textOrigin(one.source ?? name);
  return {
    role: "tool",
    name,
    tool_name: name,
    content: withHints(one.appendix === "" ? content : append(content, one.appendix), hints),
    tool_call_id: one.call.id,
    ...(origin === undefined ? {} : { text_origin: origin }),
  };
}

function append(content: string | readonly ContentPart[], text: string): string | readonly ContentPart[] {
  return typeof content === "string" ? `${content}\n\n${text}` : [...content, { type: "text", text }];
}
