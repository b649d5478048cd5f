// What a program that embeds Hermes gets: `import { openAgent } from "hermes-ts"`. Declarations alone, as this file is also the package's
// `dist/library.d.ts`: it imports nothing.

/**
 * Opens a home and begins a conversation in it, or goes on with an earlier one. Settings, memory, skills and safety rules are those of the
 * home, as in every other door. Rejects with an `Error` whose message says what is wrong and how to fix it.
 */
export declare function openAgent(options?: OpenOptions): Promise<HermesAgent>;

export interface OpenOptions {
  /** The Hermes home; default `HERMES_HOME`, else `~/.hermes`. It is made if it is not there. */
  readonly home?: string;
  readonly profile?: string;
  /** Where commands begin and files are looked for; default the folder of the process. */
  readonly cwd?: string;
  /** A conversation to go on with, by id or title; `true` = the most recent one of an embedding program, if there is one. */
  readonly resume?: string | true;
  /** Default: as the home is set up. */
  readonly model?: string;
  readonly provider?: string;
  /** Replaces the toolsets of the settings. Your own tools are there in any case. */
  readonly toolsets?: readonly string[];
  /** Laid over the system prompt of every request; stored nowhere. */
  readonly instructions?: string;
  /** Functions of your program that the agent may call. */
  readonly tools?: readonly AgentTool[];
  /** Model calls of one turn; default `agent.max_turns`. */
  readonly maxTurns?: number;
  /** No SOUL.md, project files and memory: an agent that knows only what it is told. */
  readonly ignoreRules?: boolean;
  /**
   * Answers what the agent asks: whether a dangerous command may run, what was meant. Resolves to the chosen word or the text; null, or a
   * word that was not offered, means no. `signal` ends when the answer is no longer wanted. Without it nobody is asked, and what would
   * need a yes is refused.
   */
  onQuestion?(question: AgentQuestion, signal: AbortSignal): Promise<string | null> | string | null;
}

export interface AgentTool {
  /** Letters, digits, `_` and `-`, at most 64; not the name of a tool that is there already. */
  readonly name: string;
  /** When to use it, and what it gives back: the model reads this. */
  readonly description: string;
  /** JSON Schema of an object; default: no arguments. */
  readonly parameters?: Readonly<Record<string, unknown>>;
  /**
   * Its results hold no text that a stranger may have written. Default false: results are fenced as text from outside, and what is
   * dangerous is asked about from then on.
   */
  readonly trusted?: boolean;
  /** Text for the model; anything else is handed over as JSON. What it throws becomes a result that the model reads. */
  run(args: Readonly<Record<string, unknown>>, context: ToolRunContext): unknown;
}

export interface ToolRunContext {
  /** The turn was interrupted. */
  readonly signal: AbortSignal;
  readonly sessionId: string;
}

export type AgentQuestion =
  | {
      readonly kind: "approval";
      readonly command: string;
      /** Why it is asked. */
      readonly reason: string;
      readonly note: string | null;
      readonly choices: readonly ("once" | "session" | "always" | "deny")[];
    }
  | {
      readonly kind: "confirm";
      readonly reason: string;
      readonly note: string;
      readonly choices: readonly ("once" | "always" | "cancel")[];
    }
  | { readonly kind: "clarify"; readonly text: string; readonly choices: readonly string[] | null }
  /** A password or a key. The answer goes where it is needed and never to the model. */
  | { readonly kind: "secret"; readonly text: string };

/**
 * One conversation. One turn at a time: `send` and `ask` while a turn runs reject. `await using` closes it.
 */
export interface HermesAgent extends AsyncDisposable {
  /** Changes when a long conversation is shortened: it goes on under a new id. */
  readonly sessionId: string;
  readonly model: string;
  /** Names of the tools of this conversation, your own included. */
  readonly toolNames: readonly string[];
  /** What a person should see once: that no model is configured, settings that are ignored. */
  readonly notes: readonly string[];
  /** One turn, as it happens. The last event is `done`. Leaving the loop early interrupts the turn. */
  send(input: AgentInput, options?: SendOptions): AsyncIterable<AgentStreamEvent>;
  /** The same for those who want nothing but the answer. It resolves for failed turns too: see `Answer`. */
  ask(input: AgentInput, options?: SendOptions): Promise<Answer>;
  /** Says something to the running turn without stopping it. False when none runs. */
  steer(text: string): boolean;
  /** Ends the running turn; its `done` comes all the same. */
  interrupt(reason?: string): void;
  /** Waits for what the agent learns behind a turn. */
  settled(): Promise<void>;
  /** Ends the conversation, what runs for it, and the home. Idempotent. */
  close(): Promise<void>;
}

/** Text, or text with pictures: paths of image files. */
export type AgentInput = string | { readonly text: string; readonly images?: readonly string[] };

export interface SendOptions {
  readonly signal?: AbortSignal;
}

export type AgentStreamEvent =
  /** A piece of the answer, or of what the agent says between two tools. */
  | { readonly type: "text"; readonly delta: string }
  | { readonly type: "thinking"; readonly delta: string }
  /** A whole message; `isFinal` = it is the answer. Follows its pieces, if it came in pieces. */
  | { readonly type: "message"; readonly text: string; readonly isFinal: boolean }
  | {
      readonly type: "tool_start";
      readonly id: string;
      readonly name: string;
      readonly args: Readonly<Record<string, unknown>>;
      /** One line for a display. */
      readonly preview: string;
    }
  | {
      readonly type: "tool_end";
      readonly id: string;
      readonly name: string;
      readonly failed: boolean;
      readonly seconds: number;
      readonly result: string;
      /** What it changed in files, as a unified diff. */
      readonly diff: string | null;
    }
  /** Something worth a line: a retry, another model, a warning. */
  | { readonly type: "status"; readonly message: string }
  | { readonly type: "done"; readonly answer: Answer };

/** How a turn ended. */
export interface Answer {
  /** The answer; of a turn that failed, a sentence that says why. Empty only after an interrupt. */
  readonly text: string;
  readonly completed: boolean;
  readonly failed: boolean;
  readonly interrupted: boolean;
  /** For logs; null when nothing went wrong. */
  readonly error: string | null;
  readonly sessionId: string;
  readonly model: string;
  /** Model calls of the turn. */
  readonly apiCalls: number;
  /** Of the conversation so far. */
  readonly usage: { readonly inputTokens: number; readonly outputTokens: number; readonly costUsd: number | null };
}
