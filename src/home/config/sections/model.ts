// Which models answer, and what they may cost.
import {
  choice,
  type Field,
  flag,
  items,
  notUsedYet,
  number,
  optional,
  orNull,
  record,
  section,
  text,
  whole,
} from "../field.ts";

export const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh"] as const;

/** How hard a model thinks. */
export function effort(meaning: string): Field<"" | (typeof EFFORTS)[number]> {
  return choice(["", ...EFFORTS], "", meaning, { aliases: { max: "xhigh" } });
}

// A cap that cannot be read lets nothing through: whoever wrote it wanted a limit.
const LIMIT = { min: 0, unclear: 0 };
const cap = (meaning: string) =>
  section(meaning, {
    usd: orNull(number(0, "limit in US dollars; null = no limit", LIMIT)),
    tokens: orNull(number(0, "limit in tokens, input plus output; null = no limit", LIMIT)),
  });

const taskFields = (timeout: number) => ({
  provider: text("auto", "provider for this task; `auto` follows the main model"),
  model: text("", "model for this task; empty = the provider's default"),
  base_url: text("", "endpoint for this task, instead of the provider's"),
  api_key: text("", "key for this task, instead of the provider's", { secret: true }),
  timeout: whole(timeout, "timeout of one call in seconds"),
  extra_body: record("merged into the request body"),
  context_length: orNull(whole(0, "context window in tokens; null = ask the catalogue")),
  fallback_chain: items("fallbacks when this fails, in order: `{provider, model, base_url?, api_key?}`"),
});
const task = (timeout: number, meaning: string) => section(meaning, taskFields(timeout));

export const modelSections = {
  model: section("The main model. A plain string here means `model.default`.", {
    default: optional(
      text("", "model id, as the provider spells it", { env: "HERMES_INFERENCE_MODEL", envBelowConfig: true }),
    ),
    provider: optional(
      text("", "provider, e.g. openrouter, anthropic, openai-api, custom, or a name from `providers`", {
        env: "HERMES_INFERENCE_PROVIDER",
        envBelowConfig: true,
      }),
    ),
    base_url: optional(text("", "endpoint, for custom providers")),
    api_key: optional(text("", "key for this endpoint; better kept in `.env`", { secret: true })),
    api_mode: optional(text("", "wire: chat_completions, codex_responses or anthropic_messages; empty = by provider")),
    context_length: optional(whole(0, "context window in tokens, when the catalogue is wrong", { min: 1 })),
    max_tokens: optional(whole(0, "maximum tokens per answer", { min: 1 })),
    ollama_num_ctx: optional(whole(0, "context window to request from an Ollama server", { min: 1 })),
    supports_vision: optional(flag(false, "the model accepts images, regardless of the catalogue")),
    aliases: optional(record("short names for models, as `model_aliases`")),
  }),
  providers: record(
    "custom endpoints by name: `{api, name, api_key, key_env, default_model, models, transport, request_timeout_seconds, stale_timeout_seconds}`",
  ),
  fallback_providers: items(
    "tried in this order when the main model fails: `{provider, model, base_url?, api_key? or key_env?}`",
  ),
  credential_pool_strategies: record(
    "provider -> how to choose between multiple keys: fill_first, round_robin, random or least_used",
  ),
  provider_routing: record(
    "OpenRouter routing: `sort`, `only`, `ignore`, `order`, `require_parameters`, `data_collection`",
  ),
  model_aliases: record("short name -> model id, or `{model, provider, base_url}`"),
  budget: section("Spending limits; calls that would exceed them are not made.", {
    call: cap("One model call."),
    session: cap("One conversation, including its side calls."),
    job: cap("One scheduled run or one batch prompt."),
    day: cap("One calendar day."),
  }),
  prompt_caching: section("Prompt caching at the provider.", {
    cache_ttl: choice(["5m", "1h", "off"], "5m", "how long the provider keeps the prompt prefix", {
      on: "5m",
      aliases: { disabled: "off", none: "off", null: "off" },
    }),
  }),
  auxiliary: section("Side tasks, each with its own model.", {
    flush_memories: task(30, "Saves important facts before a conversation is compressed."),
    background_review: section("Reviews finished turns for memories and skills.", {
      ...taskFields(120),
      fallback_chain: notUsedYet(taskFields(120).fallback_chain),
      enabled: flag(true, "enable reviews"),
      max_iterations: whole(8, "maximum model calls per review", { min: 1 }),
    }),
    vision: section("Describes images for models that cannot see.", {
      ...taskFields(120),
      download_timeout: whole(30, "timeout for fetching an image in seconds"),
    }),
    web_extract: task(360, "Condenses long web pages."),
    compression: task(120, "Summarises long conversations."),
    skills_hub: notUsedYet(task(30, "Searches for skills.")),
    goal_judge: section("Judges whether a standing goal is reached.", {
      ...taskFields(60),
      max_tokens: whole(4096, "maximum tokens of a verdict; 0 = the default"),
    }),
    approval: task(30, "Judges commands when `approvals.mode` is smart."),
    mcp: task(30, "Answers sampling requests of MCP servers."),
    title_generation: task(30, "Names conversations."),
    triage_specifier: task(120, "Expands a rough idea on a board into a task."),
    kanban_decomposer: task(180, "Splits a card of a board into smaller ones."),
    profile_describer: notUsedYet(task(60, "Describes a profile.")),
    curator: notUsedYet(task(600, "Maintains the skill library.")),
  }),
  delegation: section("Sub-agents.", {
    model: text("", "model for sub-agents; empty = the parent's"),
    provider: text("", "provider for sub-agents; empty = the parent's"),
    base_url: text("", "endpoint for sub-agents"),
    api_key: text("", "key for sub-agents", { secret: true }),
    api_mode: text("", "wire for sub-agents"),
    reasoning_effort: effort("reasoning effort of sub-agents; empty = the parent's"),
    max_iterations: whole(50, "maximum model calls per sub-agent", { min: 1 }),
    fallback_providers: items("like `fallback_providers`, for sub-agents"),
    child_timeout_seconds: whole(600, "timeout of one sub-agent in seconds, at least 30; 0 = no limit"),
    max_concurrent_children: whole(3, "maximum concurrent sub-agents", { min: 1 }),
    max_spawn_depth: whole(1, "nesting depth of sub-agents, 1 to 3", { min: 1 }),
    orchestrator_enabled: flag(true, "allow sub-agents with the orchestrator role"),
    inherit_mcp_toolsets: flag(true, "give sub-agents the parent's MCP tools"),
    subagent_auto_approve: flag(false, "run dangerous commands of sub-agents without asking"),
  }),
};
