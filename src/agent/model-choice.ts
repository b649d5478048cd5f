// How the model is asked, as the home's settings and variables say.
import type { Target } from "../llm/wire.ts";
import type { Limits, ModelChoice } from "./options.ts";
import type { AgentWish } from "./wish.ts";

export function modelChoice({ home, reasoning }: AgentWish, target: Target): ModelChoice {
  const config = home.config();
  return {
    target,
    cacheTtl: config.prompt_caching.cache_ttl,
    ...(config.agent.service_tier ? { serviceTier: config.agent.service_tier } : {}),
    ...(config.model.max_tokens ? { maxTokens: config.model.max_tokens } : {}),
    liveness: {
      totalSeconds: seconds(home.env("HERMES_API_TIMEOUT")),
      staleSeconds: seconds(home.env("HERMES_STREAM_STALE_TIMEOUT")),
      wholeStaleSeconds: seconds(home.env("HERMES_API_CALL_STALE_TIMEOUT")),
    },
    ...reasoningOf(reasoning ?? config.agent.reasoning_effort),
  };
}

/** How often and how long, beside what the wish itself says. */
export function loopLimits({ home, maxTurns }: AgentWish): Limits {
  const { agent, delegation } = home.config();
  return {
    maxIterations: maxTurns ?? agent.max_turns,
    apiMaxRetries: agent.api_max_retries,
    ...streamRetriesOf(home.env("HERMES_STREAM_RETRIES")),
    maxConcurrentChildren: Math.max(1, delegation.max_concurrent_children),
  };
}

/** An effort in words as a request carries it; empty = the provider's default. */
export function reasoningOf(effort: string): Pick<ModelChoice, "reasoning"> {
  if (effort === "") return {};
  if (effort === "none") return { reasoning: { enabled: false } };
  return { reasoning: { enabled: true, effort: effort as "medium" } }; // checked by the option parser and the settings schema
}

/** What a conversation asks for: OpenRouter's models think only when they are asked to. Side calls ask for nothing. */
export function reasoningFor({ reasoning, target }: ModelChoice): ModelChoice["reasoning"] {
  return (
    reasoning ?? (target.profile.reasoningStyle === "openrouter" ? { enabled: true, effort: "medium" } : undefined)
  );
}

/** A positive number of seconds from a variable; anything else is not said. */
function seconds(text: string | undefined): number | undefined {
  const value = Number(text);
  return value > 0 ? value : undefined;
}

function streamRetriesOf(text: string | undefined): Pick<Limits, "streamRetries"> {
  return /^\d{1,2}$/.test(text?.trim() ?? "") ? { streamRetries: Number(text) } : {};
}
