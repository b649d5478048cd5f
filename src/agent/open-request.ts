// What a door says when it opens a conversation.
import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import type { ModelGate, Task } from "../llm/gate.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import type { ShowCommand } from "../sandbox/environment.ts";
import type { SessionStore } from "../sessions/store.ts";
import type { SkillVariables } from "../skills/variables.ts";
import type { DeliverPort, EditorFiles, RunContext, RunOrigin, Sender, ToolContext } from "../tools/toolset/context.ts";
import type { ForeignTools } from "../tools/toolset/session-tools.ts";
import type { WorkMode } from "../tools/toolset/work-mode.ts";
import type { ModelChoice } from "./assembly.ts";

/** What a door wants to talk with, and how. */
export interface OpenRequest {
  readonly home: OpenHome;
  readonly clock: Clock;
  store(): Promise<SessionStore>;
  readonly cwd: string;
  readonly platform: string;
  /** Stored with the session: where it came from. */
  readonly source: string;
  /** A user is there to answer questions. */
  readonly interactive: boolean;
  /** A screen shows the question until it is answered: nobody has to be quick. */
  readonly attended?: boolean | undefined;
  /** What a user types here to connect a model; absent: the command of the shell. */
  readonly connectWith?: string | undefined;
  readonly model?: string | undefined;
  readonly provider?: string | undefined;
  /** Where the model is asked, instead of its provider's own address. A key goes only to the host it is for. */
  readonly baseUrl?: string | undefined;
  /** Replaces the configured toolsets. */
  readonly toolsets?: readonly string[] | undefined;
  /** Tools that come with the door, whatever the toolsets say; a name that is taken is refused. */
  readonly ownTools?: readonly ForeignTools[] | undefined;
  /** Skills that are active for the whole conversation. */
  readonly skills?: readonly string[] | undefined;
  /** A skill that cannot be loaded is noted instead of refused. */
  readonly withoutMissingSkills?: boolean | undefined;
  readonly resume?: ResumeRequest | undefined;
  /** The id of a conversation that begins; absent: a new one. */
  readonly sessionId?: string | undefined;
  /** The conversation so far, as its client keeps it, instead of what the store holds. Never changed, not stored again. */
  readonly history?: readonly HistoryMessage[] | undefined;
  /** It begins with all that was sent and answered before. Otherwise the client may have changed it, which is announced at the gate. */
  readonly historyGoesOn?: boolean | undefined;
  /** The address of the chat it is held in; stays the same when `/new` begins another session there. */
  readonly sessionKey?: string | undefined;
  readonly chat?: RunContext["chat"] | undefined;
  /** Who speaks, where a door serves more than one person. */
  readonly sender?: Sender | undefined;
  /** Sends messages to other chats. */
  readonly deliver?: DeliverPort | undefined;
  /** Who set it off; default: a person who is there. */
  readonly origin?: RunOrigin | undefined;
  /** The run of a scheduled job: what its model calls are booked on. */
  readonly jobId?: string | undefined;
  /** What that run may spend; the smaller of this and `budget.job` counts. */
  readonly jobBudget?: { readonly usd: number | null; readonly tokens: number | null } | undefined;
  readonly restoreCwd?: boolean | undefined;
  /** `cwd` was chosen for this conversation: `terminal.cwd` of the settings does not count. */
  readonly cwdIsChosen?: boolean | undefined;
  readonly yolo?: boolean | undefined;
  /** Whose work mode counts here; absent: the conversation has one of its own. */
  readonly workMode?: (() => WorkMode) | undefined;
  /** MCP servers of this conversation alone, by name, as `mcp_servers` of the settings would have them. */
  readonly mcpServers?: Readonly<Record<string, unknown>> | undefined;
  /** Who looks at edits before they are made; absent: nobody does. */
  readonly reviewEdits?: ToolContext["reviewEdits"];
  /** The editor it is held in shows commands in terminals of its own. */
  readonly showCommand?: ShowCommand | undefined;
  /** Files as the editor holds them in which the conversation is held. */
  readonly editorFiles?: EditorFiles | undefined;
  /** Shell hooks nobody was asked about may run. */
  readonly acceptHooks?: boolean | undefined;
  readonly maxTurns?: number | undefined;
  readonly reasoning?: string | undefined;
  readonly passSessionId?: boolean | undefined;
  /** Copies of files before they are changed, whatever the settings say. */
  readonly checkpoints?: boolean | undefined;
  /** False: a review that falls due waits for a run with time for it. */
  readonly learn?: boolean | undefined;
  /** No SOUL.md, project files, memory or skills that are active from the start. */
  readonly ignoreRules?: boolean | undefined;
  /** SOUL.md speaks all the same, and skills that are active from the start: the agent is itself, whatever folder it is in. */
  readonly soulIdentity?: boolean | undefined;
  /** A conversation that has just begun is given a title. */
  readonly titles?: boolean | undefined;
  /** No person opens it: what it is handed by whoever does. */
  readonly start?: StartRequest | undefined;
  /** What the door lays over the prompt, in place of `agent.system_prompt`; asked for every request, never stored. */
  overlay?(): string | undefined;
  /** The text of a page, fenced as untrusted, for `@url:`. Absent: it is fetched as the web tools do it. */
  readPage?(url: string): Promise<string>;
}

/** Nobody began it by hand, nor what it was delegated from: a schedule, a program that called, the dispatcher of a board. */
export const isUnattended = ({ origin, start }: Pick<OpenRequest, "origin" | "start">) =>
  [origin, start?.origin].some((one) => one === "cron" || one === "webhook" || one === "kanban");

/** An id, a title or an id's prefix; `null` = the most recent conversation. */
export interface ResumeRequest {
  readonly name: string | null;
}

// A conversation that no person opened: a child agent, a prompt in the background, one prompt of a batch.

/** What such a conversation is handed instead of choosing it itself. */
export interface StartRequest {
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
  /** What skills handed on in the conversation it works for. */
  readonly variables?: SkillVariables;
  /** It gets the rules of sub-directories it reaches; absent: as if a person had opened it. */
  readonly hints?: boolean;
  readonly systemMessage?: string;
  /** How many agents stand above it; children of depth 1 were started by a person's conversation. */
  readonly depth?: number;
  /** What its parent has read from outside, which its task may stem from. */
  readonly foreign?: readonly string[];
  /** The id its parent knows it by. */
  readonly subagentId?: string;
}
