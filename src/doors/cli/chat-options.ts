// The options of `hermes` and `hermes chat`.
import { type Command, InvalidArgumentError } from "commander";
import { EFFORTS } from "../../home/config/sections/effort.ts";

export interface ChatOptions {
  readonly oneshot?: string;
  readonly query?: string;
  readonly quiet?: boolean;
  readonly image?: readonly string[];
  readonly model?: string;
  readonly provider?: string;
  readonly toolsets?: string;
  readonly skills?: readonly string[];
  readonly resume?: string;
  /** True when given without a name. */
  readonly continue?: string | true;
  readonly restoreCwd: boolean;
  readonly yolo?: boolean;
  readonly acceptHooks?: boolean;
  readonly maxTurns?: number;
  readonly passSessionId?: boolean;
  readonly ignoreUserConfig?: boolean;
  readonly ignoreRules?: boolean;
  readonly safeMode?: boolean;
  readonly source?: string;
  readonly verbose?: boolean;
  readonly reasoning?: string;
  readonly json?: boolean;
  readonly usageFile?: string;
  readonly learn?: boolean;
  readonly checkpoints?: boolean;
}

export function addChatOptions(command: Command): Command {
  return command
    .option("-V, --version", "print the version")
    .option("-p, --profile <name>", "use another profile (its own home, sessions, memory)")
    .option("-z, --oneshot <prompt>", "answer one prompt; stdout is the answer and nothing else (- reads stdin)")
    .option("-q, --query <text>", "one turn, then exit (- reads stdin)")
    .option("-Q, --quiet", "with -q: only the answer on stdout")
    .option("--json", "with -z or -q: one JSON object on stdout")
    .option("--image <path>", "attach an image to the query (repeatable)", collect)
    .option("-m, --model <id>", "model of this run; provider:model or an alias")
    .option("--provider <name>", "provider of this run")
    .option("-t, --toolsets <names>", "tools of this run, comma separated (all = everything)")
    .option("-s, --skills <names>", "skills for the whole conversation, comma separated (repeatable)", collect)
    .option("-r, --resume <id or title>", "go on with a conversation")
    .option("-c, --continue [title]", "go on with the latest conversation, or the one with this title")
    .option("--no-restore-cwd", "when resuming, stay in this folder")
    .option("--yolo", "run dangerous commands without asking")
    .option("--checkpoints", "keep copies of files before the agent changes them; /rollback goes back")
    .option("--accept-hooks", "shell hooks you were not asked about yet may run, this time")
    .option("--max-turns <n>", "model calls per turn", positiveInteger)
    .option("--reasoning <level>", `reasoning effort of this run: ${EFFORTS.join(" ")}`, reasoningLevel)
    .option("--pass-session-id", "tell the model the session's id")
    .option("--ignore-user-config", "defaults instead of config.yaml (.env is still read)")
    .option("--ignore-rules", "no AGENTS.md, SOUL.md, memory or preloaded skills")
    .option("--safe-mode", "both of the above, and no plugins, servers or hooks")
    .option("--source <name>", "source stored with the session")
    .option("--usage-file <path>", "with -z: write tokens and cost of the conversation as JSON")
    .option("--learn", "with -z or -q: wait for a review of the conversation that is due")
    .option("-v, --verbose", "debug log on screen")
    .option("--tui", "accepted; there is one screen")
    .option("--cli", "accepted; there is one screen");
}

const collect = (value: string, earlier: readonly string[] = []) => [...earlier, value];

function positiveInteger(value: string): number {
  if (/^[1-9]\d*$/.test(value)) return Number(value);
  throw new InvalidArgumentError("It must be a whole number of 1 or more.");
}

function reasoningLevel(value: string): string {
  if ((EFFORTS as readonly string[]).includes(value)) return value;
  throw new InvalidArgumentError(`It must be one of ${EFFORTS.join(", ")}.`);
}
