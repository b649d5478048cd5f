import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../kit/clock.ts";
import { type AssistantMessage, type HistoryMessage, type ToolMessage, textOf } from "../llm/messages.ts";
import type { ToolDefinition } from "../llm/wire.ts";
import type { ConversationFollower } from "./assembly.ts";
import type { TurnOutcome } from "./events.ts";
import type { OpenRequest } from "./open-request.ts";

export interface Trajectories {
  /** Follows the conversation too, together with whoever follows it already. */
  addTo(follower: ConversationFollower | undefined): ConversationFollower;
  settled(): Promise<void>;
}

/** Null unless the settings want them. Sub-agents and runs of other programs are not conversations of the user. */
export async function openTrajectories(
  { home, clock, start, cwd }: OpenRequest,
  definitions: () => readonly ToolDefinition[],
): Promise<Trajectories | null> {
  if (!home.config().agent.save_trajectories || start) return null;
  const onTrouble = (error: unknown) => home.log.warn(`the trajectory could not be kept in ${cwd}`, error);
  const files = new TrajectoryFiles({ dir: cwd, clock, definitions, onTrouble, redact: home.redact.forKeeping });
  return {
    addTo: (follower) => ({
      ...follower,
      turnEnded(turn) {
        follower?.turnEnded?.(turn);
        files.turnEnded(turn.outcome);
      },
    }),
    settled: () => files.settled(),
  };
}

// A conversation as training data: who said what, with thoughts, calls and results in the tags that such data uses.

interface TrajectoryEntry {
  readonly from: "system" | "human" | "gpt" | "tool";
  readonly value: string;
}

/** One line of a trajectory file. */
export interface TrajectoryLine {
  readonly conversations: readonly TrajectoryEntry[];
  readonly timestamp: string;
  readonly model: string;
  readonly completed: boolean;
}

/** `messages` as they are stored; the first user message is replaced by `userQuery`. */
export function toTrajectory(
  messages: readonly HistoryMessage[],
  userQuery: string,
  tools: readonly ToolDefinition[] = [],
): readonly TrajectoryEntry[] {
  const entries: TrajectoryEntry[] = [
    { from: "system", value: systemText(tools) },
    { from: "human", value: userQuery },
  ];
  const rest = messages[0]?.role === "user" ? messages.slice(1) : messages;
  let responses: string[] = [];
  const flush = () => {
    if (responses.length > 0) entries.push({ from: "tool", value: responses.join("\n") });
    responses = [];
  };
  for (const message of rest) {
    if (message.role === "tool") {
      responses.push(responseText(message, rest));
      continue;
    }
    flush();
    if (message.role === "user") entries.push({ from: "human", value: textOf(message.content) });
    else entries.push({ from: "gpt", value: answerText(message) });
  }
  flush();
  return entries;
}

/** Whether the model showed its reasoning anywhere. */
export function hasReasoning(messages: readonly HistoryMessage[]): boolean {
  return messages.some(
    (message) => message.role === "assistant" && (reasoningOf(message) !== "" || /<think>/.test(visibleText(message))),
  );
}

function systemText(tools: readonly ToolDefinition[]): string {
  const schemas = tools.map(({ function: { name, description, parameters } }) => ({ name, description, parameters }));
  return `You answer with the help of tools. Their signatures stand between <tools> and </tools>. To call one, write a JSON object with its name and arguments between <tool_call> and </tool_call>; the result comes back between <tool_response> and </tool_response>.\n<tools>\n${JSON.stringify(schemas)}\n</tools>`;
}

function answerText(message: AssistantMessage): string {
  const reasoning = reasoningOf(message);
  const thought = reasoning === "" ? "" : `<think>\n${reasoning}\n</think>\n`;
  const text = visibleText(message);
  const calls = (message.tool_calls ?? []).map(
    ({ function: call }) =>
      `<tool_call>\n${JSON.stringify({ name: call.name, arguments: parsed(call.arguments) ?? {} })}\n</tool_call>\n`,
  );
  const said = calls.length > 0 && text.trim() !== "" ? `${text}\n` : text;
  const value = `${thought}${said}${calls.join("")}`;
  return (value.includes("<think>") ? value : `<think>\n</think>\n${value}`).trimEnd();
}

function reasoningOf({ reasoning, reasoning_content }: AssistantMessage): string {
  return (reasoning ?? reasoning_content ?? "").trim();
}

/** Models that were taught another tag mean the same by it. */
function visibleText(message: AssistantMessage): string {
  return (message.content ?? "").replace(/<(\/?)REASONING_SCRATCHPAD>/g, "<$1think>");
}

function responseText(message: ToolMessage, all: readonly HistoryMessage[]): string {
  const text = textOf(message.content);
  const content = /^\s*[[{]/.test(text) ? (parsed(text) ?? text) : text;
  const name = message.name ?? message.tool_name ?? nameOfCall(message.tool_call_id, all);
  return `<tool_response>\n${JSON.stringify({ tool_call_id: message.tool_call_id, name, content })}\n</tool_response>`;
}

function nameOfCall(id: string, all: readonly HistoryMessage[]): string {
  const calls = all.flatMap((message) => (message.role === "assistant" ? (message.tool_calls ?? []) : []));
  return calls.find((call) => call.id === id)?.function.name ?? "unknown";
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch {
    return undefined; // kept as text, or left empty
  }
}

// Keeps what a conversation did as training data, for those who want it: one line per turn, the whole talk up to there.

interface TrajectoryOptions {
  /** The folder of the files. */
  readonly dir: string;
  readonly clock: Clock;
  /** The tool list as it is sent. */
  definitions(): readonly ToolDefinition[];
  /** Masks secrets for what is kept. */
  redact(text: string): string;
  onTrouble(error: unknown): void;
}

export class TrajectoryFiles {
  readonly #options: TrajectoryOptions;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: TrajectoryOptions) {
    this.#options = options;
  }

  /** Nothing waits for it, and no turn fails for it. */
  turnEnded(outcome: TurnOutcome): void {
    this.#writing = this.#writing.then(() => this.#write(outcome)).catch(this.#options.onTrouble);
  }

  /** A turn without a finished answer goes into a file of its own. */
  async #write({ messages, model, completed }: TurnOutcome): Promise<void> {
    const { dir, clock, definitions, redact } = this.#options;
    const first = messages.find(({ role }) => role === "user");
    if (!first) return;
    const said = toTrajectory(messages, textOf(first.content), definitions());
    const line: TrajectoryLine = {
      conversations: said.map(({ from, value }) => ({ from, value: redact(value) })),
      timestamp: new Date(clock.now()).toISOString(),
      model,
      completed,
    };
    const path = join(dir, completed ? "trajectory_samples.jsonl" : "failed_trajectories.jsonl");
    await appendFile(path, `${JSON.stringify(line)}\n`, { mode: 0o600 });
  }

  settled(): Promise<void> {
    return this.#writing;
  }
}
