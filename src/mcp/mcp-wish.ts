// What a conversation says about MCP servers: which it wants, and who pays for what they ask of a model.
import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import type { AuxPlace } from "../llm/auxiliary/contract.ts";
import type { ModelGate } from "../llm/gate.ts";
import type { Usage } from "../llm/usage.ts";
import type { Target } from "../llm/wire.ts";
import { chooseServers } from "../tools/toolset/toolsets.ts";

export interface McpWish {
  readonly home: OpenHome;
  readonly clock: Clock;
  readonly cwd: string;
  readonly platform: string;
  readonly toolsets?: readonly string[] | undefined;
  readonly yolo?: boolean | undefined;
}

export interface McpPayer {
  sessionId(): string;
  readonly gate: ModelGate;
  readonly jobId?: string | undefined;
  /** The conversation's model, as it is now. */
  main(): Target;
  resolve(place: AuxPlace): Promise<Target>;
  /** What an answer took. */
  used(usage: Usage): void;
}

/** Names of the servers this conversation may use. */
export function wantedServers({ home, platform, toolsets }: McpWish): string[] {
  return chooseServers({ platform, config: home.config(), ...(toolsets ? { toolsets } : {}) });
}
