// One prompt to the agent of this home: a turn like those of every other door, with nobody there to be asked.
import { z } from "zod";
import { headUnits } from "../../kit/code-points.ts";
import { newSessionId } from "../../sessions/session-id.ts";
import { AnswerReader } from "../api/answer.ts";
import type { ApiSettings } from "../api/settings.ts";
import { Turns } from "../api/turns.ts";
import { id, wholeNumber } from "./arguments.ts";
import { type McpParts, type ServerTool, type ToolCall, ToolError, tool } from "./contract.ts";
import type { Conversations } from "./conversations.ts";

const LONGEST_PROMPT = 200_000;
const USUAL_MS = 600_000;
const LONGEST_MS = 3_600_000;
const SHORTEST_MS = 1_000;
const LONGEST_LINE = 200;
/** Interrupt reasons: control signals that no model reads. */
const CLIENT_GONE = "MCP client disconnected or cancelled";
const OUT_OF_TIME = "MCP call timed out";

interface Given {
  readonly prompt: string;
  readonly session_id?: string | undefined;
  readonly timeout_ms: number;
}

export class Asks {
  readonly #parts: McpParts;
  readonly #conversations: Conversations;
  readonly #turns: Turns;

  constructor(parts: McpParts, conversations: Conversations, limits: Pick<ApiSettings, "maxTurns" | "busySeconds">) {
    this.#parts = parts;
    this.#conversations = conversations;
    this.#turns = new Turns(parts, limits, "mcp");
  }

  get tools(): readonly ServerTool[] {
    return [
      tool({
        name: "ask",
        title: "Ask the agent",
        description:
          "One prompt to this Hermes agent, with its memory, skills and tools; resolves to its answer. Give session_id back to continue. Nobody can approve anything meanwhile: what would need approval is refused.",
        acts: true,
        args: z.object({
          prompt: z.string().min(1).max(LONGEST_PROMPT).describe("what the agent should do or answer"),
          session_id: id("continue this conversation; absent: a new one").optional(),
          timeout_ms: wholeNumber("the turn is stopped after this long", {
            from: SHORTEST_MS,
            to: LONGEST_MS,
            usual: USUAL_MS,
          }),
        }),
        run: (args, call) => this.#ask(args, call),
      }),
    ];
  }

  /** Interrupts what runs and closes every agent. */
  close(): Promise<void> {
    return this.#turns.close();
  }

  async #ask({ prompt, session_id: named, timeout_ms: ms }: Given, call: ToolCall): Promise<object> {
    if (prompt.trim() === "") throw new ToolError("empty_prompt", "prompt is empty; say what the agent should do");
    const sessionId = await this.#session(named, call);
    const stop = new AbortController();
    const leave = () => stop.abort(CLIENT_GONE);
    if (call.signal.aborted) leave();
    call.signal.addEventListener("abort", leave, { once: true });
    const late = setTimeout(() => stop.abort(OUT_OF_TIME), ms);
    try {
      const turn = await this.#turns.begin({ sessionId, isNamed: true, input: { text: prompt }, signal: stop.signal });
      const answer = new AnswerReader();
      for await (const event of turn.events) {
        answer.take(event);
        if (event.type === "tool_start") call.progress(this.#line(`${event.call.name} ${event.call.preview}`));
      }
      const { outcome, text, incomplete } = answer.ending;
      const why = stop.signal.reason === OUT_OF_TIME ? `stopped after ${ms} ms` : incomplete?.error;
      return {
        ...{ session_id: outcome.sessionId, text, completed: outcome.completed },
        ...(why ? { error: why } : {}),
      };
    } finally {
      clearTimeout(late);
      call.signal.removeEventListener("abort", leave);
    }
  }

  async #session(named: string | undefined, { admission }: ToolCall): Promise<string> {
    if (named === undefined) return newSessionId(this.#parts.clock);
    if (!admission.isKnown)
      throw new ToolError(
        "key_needed",
        "without a key no conversation can be continued: set API_SERVER_KEY and send it as Bearer token",
      );
    const { session, shown } = await this.#conversations.find(named);
    return session?.id ?? shown.session_id;
  }

  #line(text: string): string {
    return headUnits(this.#parts.home.redact(text.replace(/\s+/g, " ")), LONGEST_LINE);
  }
}
