// A conversation that no person opened: a child agent, a prompt in the background, one prompt of a batch.
import type { ModelGate, Task } from "../llm/gate.ts";
import type { RunOrigin } from "../tools/toolset/context.ts";
import type { ModelChoice } from "./options.ts";

/** What such a conversation is handed instead of choosing it itself. */
export interface StartWish {
  readonly origin: RunOrigin;
  readonly sessionId?: string;
  /** Whose task it does; its row points there. */
  readonly delegatedFrom?: string;
  /** Who pays for its model calls; default `main`. */
  readonly task?: Task;
  readonly jobId?: string;
  readonly taskId?: string;
  readonly model?: ModelChoice;
  readonly gate?: ModelGate;
  /** Nothing but these tools, whatever the toolsets say. */
  readonly only?: ReadonlySet<string>;
  /** It sees the skills of the home, though it reads none of its other files. */
  readonly skills?: boolean;
  /** It is told the rules of sub-directories it reaches; absent: as if a person had opened it. */
  readonly hints?: boolean;
  readonly systemMessage?: string;
  /** How many agents stand above it; children of depth 1 were started by a person's conversation. */
  readonly depth?: number;
  /** The id its parent knows it by. */
  readonly subagentId?: string;
}
