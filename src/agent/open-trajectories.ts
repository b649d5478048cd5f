import type { ToolDefinition } from "../llm/wire.ts";
import type { ConversationFollower } from "./options.ts";
import type { AgentWish } from "./wish.ts";

export interface Trajectories {
  /** Follows the conversation too, beside whoever follows it already. */
  beside(follower: ConversationFollower | undefined): ConversationFollower;
  settled(): Promise<void>;
}

/** Null unless the settings want them. Sub-agents and runs of other programs are not conversations of the user. */
export async function openTrajectories(
  { home, clock, start, cwd }: AgentWish,
  definitions: () => readonly ToolDefinition[],
): Promise<Trajectories | null> {
  if (!home.config().agent.save_trajectories || start) return null;
  const { TrajectoryFiles } = await import("./trajectory-files.ts");
  const onTrouble = (error: unknown) => home.log.warn(`the trajectory could not be kept in ${cwd}`, error);
  const files = new TrajectoryFiles({ dir: cwd, clock, definitions, onTrouble, redact: home.redact.forKeeping });
  return {
    beside: (follower) => ({
      ...follower,
      turnEnded(turn) {
        follower?.turnEnded?.(turn);
        files.turnEnded(turn.outcome);
      },
    }),
    settled: () => files.settled(),
  };
}
