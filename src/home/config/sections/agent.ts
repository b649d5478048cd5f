// How the agent thinks, remembers and learns.
import { choice, flag, list, notUsedYet, number, oneOf, orNull, record, section, text, whole } from "../field.ts";
import { effort } from "./model.ts";

const GATE = { aliases: { approve: "true", enabled: "true", disabled: "false" }, unclear: true };

export const agentSections = {
  agent: section("The turn loop and the prompt.", {
    max_turns: whole(90, "maximum model calls per turn", { min: 1, env: "HERMES_MAX_ITERATIONS" }),
    gateway_timeout: whole(1800, "seconds of inactivity before a chat turn is stopped"),
    gateway_timeout_warning: whole(900, "seconds of inactivity before the chat is warned"),
    restart_drain_timeout: whole(180, "seconds running turns get to finish on restart", {
      env: "HERMES_RESTART_DRAIN_TIMEOUT",
    }),
    api_max_retries: whole(3, "attempts per model request"),
    service_tier: text("", "`fast` or `priority`, if the provider offers it"),
    tool_use_enforcement: oneOf<boolean | string | unknown[]>(
      ["flag", "text", "items"],
      "auto",
      "remind the model to use tools: auto, true, false, or a list of model name substrings",
    ),
    reasoning_effort: effort("reasoning effort; empty = the provider's default"),
    system_prompt: text("", "extra instructions, sent with every request, never stored", {
      env: "HERMES_EPHEMERAL_SYSTEM_PROMPT",
    }),
    prefill_messages_file: text("", "JSON file of example messages; relative to the home"),
    personalities: record("name -> text, or `{description, system_prompt, tone, style}`"),
    clarify_timeout: whole(600, "seconds a chat waits for the answer to a question"),
    gateway_notify_interval: whole(180, "seconds between progress notes in chats"),
    gateway_auto_continue_freshness: whole(
      3600,
      "seconds within which an interrupted chat turn is resumed automatically",
    ),
    image_input_mode: choice(
      ["auto", "native", "text"],
      "auto",
      "send images to the model as images or as a text description",
    ),
    save_trajectories: flag(
      false,
      "append each turn to trajectory_samples.jsonl (or failed_trajectories.jsonl) in the working directory",
    ),
    task_completion_guidance: flag(true, "tell the model to finish what it started"),
    parallel_tool_call_guidance: flag(true, "tell the model to make independent tool calls in parallel"),
    environment_probe: flag(true, "detect the Python toolchain at start and tell the model"),
    environment_hint: text("", "extra text about the machine in the system prompt", { env: "HERMES_ENVIRONMENT_HINT" }),
    coding_context: choice(["auto", "focus", "on", "off"], "auto", "instructions for work in a code repository", {
      aliases: { strict: "focus", lean: "focus", always: "on", never: "off" },
    }),
    coding_instructions: oneOf<string | string[]>(["text", "list"], "", "your own rules for code work"),
    disabled_toolsets: list([], "toolsets disabled everywhere", { guard: true, single: true }),
  }),
  prefill_messages_file: text("", "JSON file of example messages; relative to the home", {
    env: "HERMES_PREFILL_MESSAGES_FILE",
  }),
  platform_hints: record("platform -> text, `{append}` or `{replace}`: prompt text about the platform"),
  context_file_max_chars: orNull(
    number(0, "maximum characters of one project file in the prompt; null = by context window", { min: 1 }),
  ),
  context_files: section("Project files in the system prompt.", {
    agents_scope: choice(["cwd", "git_root"], "cwd", "where to look for AGENTS.md"),
  }),
  context_references: section("References like @file in messages.", {
    remote: flag(false, "also expand them in chat messages"),
  }),
  compression: section("Summarising long conversations.", {
    enabled: flag(true, "summarise conversations when they grow too long"),
    threshold: number(0.5, "share of the context window that triggers it", { min: 0, max: 1 }),
    target_ratio: number(0.2, "share of the threshold kept for recent messages", { min: 0, max: 1 }),
    protect_last_n: whole(20, "newest messages kept verbatim"),
    protect_first_n: whole(3, "oldest messages kept verbatim"),
    hygiene_hard_message_limit: whole(400, "number of messages at which a chat is always summarised", { min: 1 }),
    abort_on_summary_failure: flag(false, "stop the turn when the summary fails, instead of continuing without one"),
    model_thresholds: record("model name substring -> its own threshold; the longest match wins"),
  }),
  context: section("The context engine.", { engine: text("compressor", "which engine keeps conversations short") }),
  memory: section("What the agent remembers.", {
    memory_enabled: flag(true, "the agent's own notes (MEMORY.md)"),
    user_profile_enabled: flag(true, "what it knows about you (USER.md)"),
    memory_char_limit: whole(2200, "maximum characters of MEMORY.md", { min: 1 }),
    user_char_limit: whole(1375, "maximum characters of USER.md", { min: 1 }),
    nudge_interval: whole(10, "your turns between memory reviews; 0 = never", { min: 0 }),
    flush_min_turns: whole(6, "minimum turns before a conversation gets a final review; 0 = never", { min: 0 }),
    flush_wait: whole(3, "seconds to wait for the final review when you quit; 0 = skip it", {
      min: 0,
    }),
    write_approval: flag(false, "ask before writing memory", GATE),
    provider: text("", "external memory provider; empty = none"),
  }),
  skills: section("Procedures the agent learns and follows.", {
    creation_nudge_interval: whole(10, "tool call rounds between skill reviews; 0 = never", {
      min: 0,
    }),
    external_dirs: list([], "additional skill folders", { single: true }),
    disabled: list([], "disabled skills", { single: true }),
    platform_disabled: record("platform -> skills disabled there"),
    config: record("skill -> its own settings"),
    template_vars: flag(true, "fill in placeholders in skills"),
    inline_shell: flag(false, "run the commands inside a skill when it is loaded"),
    inline_shell_timeout: whole(10, "timeout of such a command in seconds", { min: 1 }),
    guard_agent_created: flag(false, "scan the skills the agent writes", { unclear: true }),
    write_approval: flag(false, "ask before writing a skill", GATE),
  }),
  curator: notUsedYet(
    section("Automatic maintenance of the skill library.", {
      enabled: flag(true, "run the curator automatically"),
      interval_hours: whole(168, "hours between runs"),
      min_idle_hours: number(2, "idle hours before it runs"),
      stale_after_days: whole(30, "unused days before a skill is marked stale"),
      archive_after_days: whole(90, "unused days before a skill is archived"),
      consolidate: flag(false, "let a model merge skills that overlap"),
      prune_builtins: flag(false, "also maintain bundled skills"),
      backup: section("Backups made before it changes anything.", {
        enabled: flag(true, "make them"),
        keep: whole(5, "backups to keep"),
      }),
    }),
  ),
  goals: section("Standing goals.", {
    max_turns: whole(20, "maximum turns for one goal; `/goal --max N` sets another for one", { min: 1 }),
    // As with every cap: one that cannot be read lets nothing through.
    max_usd: orNull(number(0, "limit for one goal in US dollars; null = no limit", { min: 0, unclear: 0 })),
  }),
};
