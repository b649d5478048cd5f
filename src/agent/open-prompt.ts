// The system prompt of a conversation: built once, stored with the session, from then on taken from there byte for byte.
import { release, tmpdir, type, userInfo } from "node:os";
import { installRoot } from "../home/product.ts";
import type { Target } from "../llm/wire.ts";
import type { Memory } from "../memory/open.ts";
import { buildSystemPromptParts } from "../prompt/build.ts";
import { calendarDay, sameDay } from "../prompt/calendar.ts";
import type { PromptBuild } from "../prompt/contract.ts";
import { fingerprintChanges } from "../prompt/fingerprint.ts";
import { gatherPromptInputs } from "../prompt/gather.ts";
import type { SessionStore } from "../sessions/store.ts";
import type { AgentSkills } from "../skills/open.ts";
import type { AgentWish } from "./open.ts";
import { promptPorts } from "./open-prompt-ports.ts";
import type { PromptSource } from "./options.ts";

export interface PromptPlace {
  readonly wish: AgentWish;
  readonly cwd: string;
  readonly toolNames: readonly string[];
  readonly toolsets: readonly string[];
  readonly memory: Pick<Memory, "snapshot" | "reload"> | null;
  readonly skills: AgentSkills | null;
  /** Unix seconds. */
  readonly startedAt: number;
}

export function promptSource(place: PromptPlace, store: SessionStore): PromptSource {
  const { wish } = place;
  let warnings: readonly string[] = [];
  return {
    async system({ sessionId, target }) {
      const stored = await store.getPrompt(sessionId);
      const wanted = { model: target.model, provider: target.provider, platform: wish.platform, cwd: place.cwd };
      if (stored && fingerprintChanges(stored.fingerprint, wanted).length === 0) return stored.prompt;
      // A prompt that is built anew may know what was learned since; the stored one never changes.
      if (stored) await place.memory?.reload();
      const build = await buildPrompt(place, target, sessionId);
      warnings = build.warnings;
      await store.setPrompt(sessionId, {
        prompt: build.full,
        stableChars: [...build.stable].length,
        fingerprint: build.fingerprint,
      });
      return build.full;
    },
    takeWarnings() {
      const told = warnings;
      warnings = [];
      return told;
    },
    ephemeral: () => wish.home.config().agent.system_prompt.trim() || undefined,
  };
}

/** The one way a prompt is built, for conversations and for whoever wants to look at it. */
export async function buildPrompt(place: PromptPlace, target: Target, sessionId: string): Promise<PromptBuild> {
  const { wish } = place;
  const { home } = wish;
  const settings = home.config();
  const startedOn = calendarDay(place.startedAt * 1000, settings.timezone);
  const today = calendarDay(wish.clock.now(), settings.timezone);
  const inputs = await gatherPromptInputs(
    {
      known: {
        model: target.model,
        provider: target.provider,
        platform: wish.platform,
        toolNames: place.toolNames,
        userHome: home.environment().HOME ?? userInfo().homedir,
        profile: home.paths.profile,
        rootHome: home.display(home.paths.root),
        profileHome: home.display(home.paths.dir),
        cwd: place.cwd,
        systemMessage: null,
        memoryText: null,
        userText: null,
        ...place.memory?.snapshot(),
        startedOn,
        rebuiltOn: sameDay(startedOn, today) ? null : today,
        sessionId: wish.passSessionId ? sessionId : null,
      },
      settings,
      installRoot: installRoot(),
      tempDir: tmpdir(),
      soulPath: home.paths.soulFile,
      contextLength: target.contextLength,
      skipContextFiles: wish.ignoreRules === true,
      loadSoulIdentity: false,
      host: { platform: process.platform, type: type(), release: release(), env: (name) => home.env(name) },
    },
    await promptPorts(place),
  );
  return buildSystemPromptParts(inputs);
}
