// The checkpoints of a conversation: what takes them is loaded with the first call that may change files.
import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import type { Environment } from "../sandbox/environment.ts";
import type { HookedCall, RunContext } from "../tools/toolset/context.ts";
import type { Checkpointer } from "./checkpointer.ts";

const MAY_CHANGE_FILES: ReadonlySet<string> = new Set(["write_file", "patch", "terminal", "execute_code"]);
/** Checkpoints are copies of this machine's files; these environments work on them. */
const HERE: ReadonlySet<string> = new Set(["local", "bubblewrap"]);

/** Whether files of this environment can be copied. */
export function keepsCheckpoints({ kind }: Pick<Environment, "kind">): boolean {
  return HERE.has(kind);
}

export interface CheckpointPort {
  before(call: HookedCall, run: RunContext): Promise<string | null>;
  settled(): Promise<void>;
}

/** Null where files are not this machine's own. */
export function openCheckpointPort(
  request: {
    readonly home: OpenHome;
    readonly clock: Clock;
    /** Whatever the settings say. */
    readonly checkpoints?: boolean | undefined;
  },
  environment: Environment,
): CheckpointPort | null {
  const { home, clock } = request;
  if (!keepsCheckpoints(environment)) return null;
  let checkpointer: Promise<Checkpointer> | null = null;
  return {
    async before(call, run) {
      if (!MAY_CHANGE_FILES.has(call.name) || !(request.checkpoints ?? home.config().checkpoints.enabled)) return null;
      checkpointer ??= import("./checkpointer.ts").then(
        ({ Checkpointer }) => new Checkpointer({ home, clock, environment }),
      );
      return (await checkpointer).before(call, run);
    },
    settled: async () => (await checkpointer)?.settled(),
  };
}
