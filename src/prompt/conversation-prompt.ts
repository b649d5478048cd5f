// Everything a conversation is told beside its messages: the stored prompt, and what is laid over it when a request is made.
import type { ToolDefinition } from "../llm/wire.ts";
import type { SessionStore } from "../sessions/store.ts";
import type { PromptSource, SystemPrompt } from "./contract.ts";
import { DayNotes } from "./day-notes.ts";
import { buildPrompt, type PromptPlace } from "./open.ts";
import { chooseEphemeral } from "./overlay.ts";
import { PrefillOnce } from "./prefill-once.ts";
import { SessionPrompts } from "./session-prompts.ts";
import { retargetPrompt } from "./stored-prompt.ts";

export interface ConversationPrompt extends PromptSource {
  /** Of the project files in the prompt in force. */
  contextHashes(): readonly string[];
}

export function promptSource(
  place: PromptPlace,
  kept: { readonly store: SessionStore; readonly tools: { readonly definitions: readonly ToolDefinition[] } },
): ConversationPrompt {
  const { home, clock, overlay } = place.wish;
  const days = new DayNotes({ home, clock, store: kept.store, startedAt: place.startedAt });
  const prompts = new SessionPrompts({ place, ...kept, build: buildPrompt, onBuilt: (id) => days.tell(id) });
  const prefill = new PrefillOnce(home, kept.store);
  let prefillWarning: string | null = null;
  return {
    async system(question) {
      prefillWarning = (await prefill.load()) ?? prefillWarning;
      const system = await prompts.system(question);
      const changed = await prefill.hasChanged(question.sessionId, question.hasHistory);
      return changed ? { cause: "ephemeral", ...system } : system;
    },
    rebuild: (question) => prompts.rebuild(question),
    retarget,
    takeWarnings() {
      const told = [...prompts.takeWarnings(), ...(prefillWarning === null ? [] : [prefillWarning])];
      prefillWarning = null;
      return told;
    },
    contextHashes: () => prompts.contextHashes,
    ephemeral: () => chooseEphemeral(overlay?.(), home.config().agent.system_prompt),
    get prefill() {
      return prefill.messages;
    },
    async recall(text, run, input) {
      const note = await days.take(run.sessionId);
      const recalled =
        (await place.recall?.(text, run, input).catch((error) => {
          run.log.warn("recall failed; the message is sent without it", error);
          return [];
        })) ?? [];
      return note === null ? recalled : [...recalled, note];
    },
  };
}

/** The same prompt for a model that stands in: its lines about the model change, nothing else, and nothing of it is stored. */
function retarget(system: SystemPrompt, to: { readonly model: string; readonly provider: string }): SystemPrompt {
  const text = retargetPrompt(system.text, to);
  const { layout } = system;
  if (!layout || layout.blocks.length === 0) return { text, ...(layout ? { layout } : {}) };
  const last = layout.blocks.length - 1;
  const blocks = layout.blocks.map((block, at) =>
    at === last ? { ...block, length: block.length + text.length - system.text.length } : block,
  );
  return { text, layout: { ...layout, blocks } };
}
