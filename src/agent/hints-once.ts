import type { OpenHome } from "../home/open.ts";
import type { HintsPort } from "../prompt/contract.ts";
import type { ConversationPrompt } from "../prompt/session-prompts.ts";

/** Whoever never calls a tool never loads what discovers. */
export function hintsOnce(home: OpenHome, cwd: string, prompt: ConversationPrompt): () => Promise<HintsPort> {
  let opened: Promise<HintsPort> | null = null;
  return () => {
    opened ??= import("../prompt/subdirectory-hints.ts").then(({ openHints }) =>
      openHints({ home, cwd, knownHashes: () => prompt.contextHashes() }),
    );
    return opened;
  };
}
