// The prompt a conversation would begin with, built by the same steps and sent nowhere: no session, no network, no key.
import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import { contextLengthOf } from "../llm/catalogue/context-length.ts";
import { ProviderError } from "../llm/providers/provider-error.ts";
import { modelSettings } from "../llm/providers/settings.ts";
import type { Target, ToolDefinition } from "../llm/wire.ts";
import { openMemory } from "../memory/open.ts";
import { type BuiltPrompt, buildPrompt, type PromptPlace } from "../prompt/open.ts";
import { configuredBackend } from "../prompt/probes/prompt-backend.ts";
import type { Environment } from "../sandbox/environment.ts";
import { focusToolsets } from "./focus-toolsets.ts";
import { toolHashes } from "./frozen-tools.ts";
import { chooseTarget } from "./open-model.ts";
import { registerPluginTools } from "./open-plugins.ts";
import { openAgentSkills } from "./open-skills.ts";
import { hashedChoice, openTools } from "./open-tools.ts";
import type { AgentWish } from "./wish.ts";

export interface InspectWish {
  readonly home: OpenHome;
  readonly clock: Clock;
  readonly cwd: string;
  readonly platform: string;
  readonly model?: string | undefined;
  readonly provider?: string | undefined;
  readonly contextLength?: number | undefined;
  /** A model that was chosen already, instead of all of these. */
  readonly target?: InspectedPrompt["target"] | undefined;
  /** Instead of the tools this platform would get. */
  readonly toolNames?: readonly string[] | undefined;
  readonly systemMessage?: string | undefined;
  readonly ignoreRules?: boolean | undefined;
}

export interface InspectedPrompt {
  readonly build: BuiltPrompt;
  readonly target: Pick<Target, "model" | "provider" | "contextLength" | "windowAssumed">;
  /** What is not sure about it. */
  readonly notes: readonly string[];
  readonly definitions: readonly ToolDefinition[];
  readonly toolsets: readonly string[];
}

export async function inspectPrompt(wish: InspectWish): Promise<InspectedPrompt> {
  const { home, clock, cwd, platform } = wish;
  const target = wish.target ?? (await targetToLookAt(wish));
  const config = home.config();
  const memory = wish.ignoreRules ? null : await openMemory({ ...home, clock, log: home.log.child("memory") });
  const without = memory?.enabled ? [] : ["memory"];
  const asked: AgentWish = {
    ...{ home, clock, cwd, platform, source: "cli", interactive: true, ignoreRules: wish.ignoreRules },
    store: () => Promise.reject(new Error("looking at a prompt opens no store")),
  };
  await registerPluginTools(asked);
  const toolPlace = {
    ...{ environment: nowhere(cwd), contextLength: target.contextLength, without },
    toolsets: await focusToolsets(asked, cwd, null),
    only: wish.toolNames && new Set(wish.toolNames),
  };
  const tools = await openTools(asked, toolPlace);
  const { toolNames = [...tools.names].sort() } = wish;
  const { definitions } = tools;
  const place: PromptPlace = {
    wish: asked,
    cwd,
    backend: async () => configuredBackend(config.terminal, cwd),
    toolNames,
    toolsets: tools.toolsets,
    ...toolHashes(tools, config, hashedChoice(asked, toolPlace)),
    memory,
    skills: await openAgentSkills(home, clock),
    startedAt: clock.now() / 1000,
    systemMessage: wish.systemMessage ?? null,
  };
  const build = await buildPrompt(place, target, "");
  const notes = target.windowAssumed ? [assumedWindow(target)] : [];
  return { build, target, notes, definitions, toolsets: tools.toolsets };
}

const assumedWindow = ({ model, contextLength }: InspectedPrompt["target"]) =>
  `Nobody says how large the window of ${model || "the model"} is: ${contextLength.toLocaleString("en-US")} tokens are assumed, and project files are cut as for an unknown window. Say it with model.context_length.`;

/** The model the user would talk to; one that has no key yet, or is only named here, can be looked at as well. */
async function targetToLookAt(wish: InspectWish): Promise<InspectedPrompt["target"]> {
  const { home } = wish;
  const settings = modelSettings(home.config());
  const chosen = await chooseOffline(wish);
  const named = wish.model !== undefined || wish.provider !== undefined;
  const usable = chosen && (!named || chosen.provider !== "demo" || wish.provider === "demo");
  const model = usable ? chosen.model : (wish.model ?? settings.default ?? "");
  const provider = usable ? chosen.provider : (wish.provider ?? settings.provider ?? "");
  if (wish.contextLength !== undefined) return { model, provider, contextLength: wish.contextLength };
  if (usable) return { model, provider, contextLength: chosen.contextLength, windowAssumed: chosen.windowAssumed };
  const window = await contextLengthOf({ provider, model, baseUrl: "", configured: settings.contextLength });
  const assumed = window.source === "default" ? ({ windowAssumed: true } as const) : {};
  return { model, provider, contextLength: window.tokens, ...assumed };
}

async function chooseOffline({ home, model, provider }: InspectWish): Promise<Target | null> {
  try {
    return (await chooseTarget(home, { model, provider }, { offline: true })).target;
  } catch (error) {
    if (error instanceof ProviderError) return null;
    throw error;
  }
}

/** Tools are listed, never called. */
function nowhere(cwd: string): Environment {
  const refuse = () => Promise.reject(new Error("looking at a prompt runs no commands"));
  return {
    ...{ kind: "none", cwd, tempDir: cwd, home: cwd, isolated: true },
    execute: refuse,
    spawn: refuse,
    setCwd: () => undefined,
    cleanup: async () => undefined,
  };
}
