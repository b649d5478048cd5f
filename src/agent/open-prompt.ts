// The system prompt of a conversation: built once, stored with the session, from then on taken from there byte for byte.
import { release, type, userInfo } from "node:os";
import { displayPath } from "../home/paths.ts";
import type { Target } from "../llm/wire.ts";
import type { Memory } from "../memory/open.ts";
import { buildSystemPromptParts } from "../prompt/build.ts";
import type { CalendarDay } from "../prompt/contract.ts";
import type { SessionStore } from "../sessions/store.ts";
import type { AgentWish } from "./open.ts";
import type { PromptSource } from "./options.ts";

interface PromptPlace {
  readonly wish: AgentWish;
  readonly store: SessionStore;
  readonly cwd: string;
  readonly toolNames: readonly string[];
  readonly memory: Pick<Memory, "snapshot" | "reload"> | null;
  /** Unix seconds. */
  readonly startedAt: number;
}

export function promptSource(place: PromptPlace): PromptSource {
  const { wish, store } = place;
  return {
    async system({ sessionId, target }) {
      const stored = await store.getPrompt(sessionId);
      const destination = { model: target.model, provider: target.provider };
      if (stored && isFor(stored.fingerprint, destination)) return stored.prompt;
      // A prompt that is built anew may know what was learned since; the stored one never changes.
      if (stored) await place.memory?.reload();
      const build = buildSystemPromptParts(inputs(place, target, sessionId));
      await store.setPrompt(sessionId, {
        prompt: build.full,
        stableChars: [...build.stable].length,
        fingerprint: destination,
      });
      return build.full;
    },
    ephemeral: () => wish.home.config().agent.system_prompt.trim() || undefined,
  };
}

/** A prompt that nobody stamped (an older program wrote it) is taken as it is. */
function isFor(fingerprint: unknown, destination: { model: string; provider: string }): boolean {
  if (typeof fingerprint !== "object" || fingerprint === null) return true;
  const stamped = fingerprint as { model?: unknown; provider?: unknown }; // our own record, read back
  return stamped.model === destination.model && stamped.provider === destination.provider;
}

function inputs(place: PromptPlace, target: Target, sessionId: string) {
  const { wish } = place;
  const { agent, timezone } = wish.home.config();
  const { paths } = wish.home;
  const startedOn = dayIn(place.startedAt * 1000, timezone);
  const today = dayIn(wish.clock.now(), timezone);
  return {
    soul: null,
    model: target.model,
    provider: target.provider,
    platform: wish.platform,
    toolNames: place.toolNames,
    toolUseEnforcement: agent.tool_use_enforcement as boolean | string | readonly unknown[], // as the settings schema says
    taskCompletionGuidance: agent.task_completion_guidance,
    parallelToolGuidance: agent.parallel_tool_call_guidance,
    hostName: `${type() === "Darwin" ? "macOS" : type() === "Windows_NT" ? "Windows" : type()} (${release()})`,
    userHome: wish.home.environment().HOME ?? userInfo().homedir,
    environmentHint: agent.environment_hint,
    profile: paths.profile,
    rootHome: displayPath(paths.root, wish.home.environment().HOME),
    profileHome: displayPath(paths.dir, wish.home.environment().HOME),
    cwd: place.cwd,
    systemMessage: null,
    memoryText: null,
    userText: null,
    ...place.memory?.snapshot(),
    startedOn,
    rebuiltOn: sameDay(startedOn, today) ? null : today,
    sessionId: wish.passSessionId ? sessionId : null,
  };
}

/** The calendar day in a zone; without one, or with one nobody knows, the machine's own. */
function dayIn(ms: number, zone: string): CalendarDay {
  const here = new Date(ms);
  const local = { year: here.getFullYear(), month: here.getMonth() + 1, day: here.getDate() };
  // Asking for a zone loads all of them, which takes longer than the rest of the prompt.
  if (zone === "") return local;
  try {
    const format = new Intl.DateTimeFormat("en-CA", {
      timeZone: zone,
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
    });
    const [year = 0, month = 1, day = 1] = format.format(ms).split("-").map(Number);
    return { year, month, day };
  } catch {
    return local; // not a zone; the settings check has warned about it
  }
}

const sameDay = (a: CalendarDay, b: CalendarDay) => a.year === b.year && a.month === b.month && a.day === b.day;
