// What a door says when it opens a conversation.
import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import type { SessionStore } from "../sessions/store.ts";
import type { ToolContext } from "../tools/toolset/context.ts";
import type { StartWish } from "./start-wish.ts";

/** What a door wants to talk with, and how. */
export interface AgentWish {
  readonly home: OpenHome;
  readonly clock: Clock;
  store(): Promise<SessionStore>;
  readonly cwd: string;
  readonly platform: string;
  /** Stored with the session: where it came from. */
  readonly source: string;
  /** Somebody can be asked. */
  readonly interactive: boolean;
  readonly model?: string | undefined;
  readonly provider?: string | undefined;
  /** Replaces the configured toolsets. */
  readonly toolsets?: readonly string[] | undefined;
  /** Skills that are active for the whole conversation. */
  readonly skills?: readonly string[] | undefined;
  /** A skill that cannot be loaded is noted instead of refused. */
  readonly withoutMissingSkills?: boolean | undefined;
  readonly resume?: ResumeWish | undefined;
  readonly restoreCwd?: boolean | undefined;
  readonly yolo?: boolean | undefined;
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
  /** A conversation that has just begun is given a title. */
  readonly titles?: boolean | undefined;
  /** No person opens it: what it is handed by whoever does. */
  readonly start?: StartWish | undefined;
  /** What the door lays over the prompt, in place of `agent.system_prompt`; asked for every request, never stored. */
  overlay?(): string | undefined;
  /** What the door offers to tools: the schedule, the way to chats. */
  readonly ports?: Pick<ToolContext, "cron" | "deliver"> | undefined;
  /** The text of a page, fenced as untrusted, for `@url:`. Absent: it is fetched as the web tools do it. */
  readPage?(url: string): Promise<string>;
}

/** An id, a title or an id's prefix; `null` = the most recent conversation. */
export interface ResumeWish {
  readonly name: string | null;
}
