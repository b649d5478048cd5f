// Rules of sub-directories in a conversation: found when a call reaches them, sent once, and again when the conversation lost them.
import type { OpenHome } from "../home/open.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import type { HintsPort } from "./contract.ts";
import { SubdirectoryHints } from "./hints.ts";
import { readingPorts } from "./reading-ports.ts";

interface HintsOptions {
  readonly home: OpenHome;
  /** The session's working directory. */
  readonly cwd: string;
  /** Of the project files that the system prompt carries now. */
  knownHashes(): readonly string[];
}

export async function openHints({ home, cwd, knownHashes }: HintsOptions): Promise<HintsPort> {
  const { userHome, files, isDenied, scan, trusted } = await readingPorts(home);
  let warnings: string[] = [];
  let seen: readonly HistoryMessage[] | null = null;
  const tracker = new SubdirectoryHints({
    ...{ cwd, userHome, hermesHome: home.paths.dir, files, isDenied, scan, trusted },
    reaction: home.config().security.context_scan,
    get knownHashes() {
      return knownHashes();
    },
    onWarning: (warning) => void warnings.push(warning),
  });
  return {
    async check({ name, args }, { cwd: from, history }) {
      // A resume, a compression and /undo all show as a history that does not go on from the last one.
      if (seen === null || !continues(history, seen)) await tracker.rebuild(history);
      seen = history;
      const text = await tracker.check(name, args, from);
      const taken = warnings;
      warnings = [];
      return { text, warnings: taken };
    },
  };
}

function continues(now: readonly HistoryMessage[], before: readonly HistoryMessage[]): boolean {
  return now === before || before.every((message, index) => now[index] === message);
}
