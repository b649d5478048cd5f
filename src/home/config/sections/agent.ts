// How the agent thinks, remembers and learns.
import { choice, flag, list, notUsedYet, number, oneOf, orNull, record, section, text, whole } from "../field.ts";
import { effort } from "./model.ts";

const GATE = { aliases: { approve: "true", enabled: "true", disabled: "false" }, unclear: true };

export const agentSections = {
  agent: section("The turn loop and the prompt.", {
    max_turns: whole(90, "model calls per turn", { min: 1, env: "HERMES_MAX_ITERATIONS" }),
    gateway_timeout: notUsedYet(whole(1800, "seconds without a sign of life before a chat turn is stopped")),
    gateway_timeout_warning: notUsedYet(whole(900, "seconds without a sign of life before the chat is warned")),
    restart_drain_timeout: notUsedYet(
      whole(180, "seconds running turns get to end at a restart", {
        env: "HERMES_RESTART_DRAIN_TIMEOUT",
      }),
    ),
    api_max_retries: whole(3, "attempts per model request"),
    service_tier: text("", "`fast` or `priority`, where the provider sells it"),
    tool_use_enforcement: oneOf<boolean | string | unknown[]>(
      ["flag", "text", "items"],
      "auto",
      "remind the model to act through tools: auto, true, false, or a list of parts of model names",
    ),
    reasoning_effort: effort("how hard the model thinks; empty = the provider's default"),
    system_prompt: text("", "extra instructions, sent with every request, never stored", {
      env: "HERMES_EPHEMERAL_SYSTEM_PROMPT",
    }),
    prefill_messages_file: text("", "JSON file of example messages; relative to the home"),
    personalities: record("name -> text, or `{description, system_prompt, tone, style}`"),
    clarify_timeout: notUsedYet(whole(600, "seconds a chat waits for the answer to a question")),
    gateway_notify_interval: notUsedYet(whole(180, "seconds between progress notes in chats")),
    gateway_auto_continue_freshness: notUsedYet(
      whole(3600, "seconds within which an interrupted chat turn is resumed by itself"),
    ),
    image_input_mode: choice(
      ["auto", "native", "text"],
      "auto",
      "images go to the model as images or as a description",
    ),
    save_trajectories: flag(
      false,
      "each turn is added to trajectory_samples.jsonl (or failed_trajectories.jsonl) where the conversation stands",
    ),
    task_completion_guidance: flag(true, "the prompt asks to finish what was begun"),
    parallel_tool_call_guidance: flag(true, "the prompt asks for independent tool calls together"),
    environment_probe: flag(true, "look at the Python toolchain at start and tell the model"),
    environment_hint: text("", "added to what the prompt says about the machine", { env: "HERMES_ENVIRONMENT_HINT" }),
    coding_context: choice(["auto", "focus", "on", "off"], "auto", "instructions for work in a code repository", {
      aliases: { strict: "focus", lean: "focus", always: "on", never: "off" },
    }),
    coding_instructions: oneOf<string | string[]>(["text", "list"], "", "your own rules for code work"),
    disabled_toolsets: list([], "toolsets removed everywhere", { guard: true, single: true }),
  }),
  prefill_messages_file: text("", "JSON file of example messages; relative to the home", {
    env: "HERMES_PREFILL_MESSAGES_FILE",
  }),
  platform_hints: record("platform -> text, `{append}` or `{replace}`: what the prompt says about it"),
  context_file_max_chars: orNull(
    number(0, "characters of one project file in the prompt; null = by window", { min: 1 }),
  ),
  context_files: section("Project files that the prompt carries.", {
    agents_scope: choice(["cwd", "git_root"], "cwd", "where AGENTS.md is looked for"),
  }),
  context_references: section("References like @file in messages.", {
    remote: flag(false, "also in messages from chats"),
  }),
  compression: section("Summarising long conversations.", {
    enabled: flag(true, "conversations are summarised when they grow too long"),
    threshold: number(0.5, "share of the context window at which it happens", { min: 0, max: 1 }),
    target_ratio: number(0.2, "share of the threshold that recent messages may keep", { min: 0, max: 1 }),
    protect_last_n: whole(20, "newest messages that stay as they are"),
    protect_first_n: whole(3, "oldest messages that stay as they are"),
    hygiene_hard_message_limit: notUsedYet(
      whole(400, "messages at which a chat is summarised in any case", { min: 1 }),
    ),
    abort_on_summary_failure: flag(false, "stop the turn when the summary fails, instead of going on without"),
    model_thresholds: record("part of a model name -> threshold of its own; the longest part counts"),
  }),
  context: section("The context engine.", { engine: text("compressor", "which engine keeps conversations short") }),
  memory: section("What the agent keeps in mind.", {
    memory_enabled: flag(true, "the agent's own notes (MEMORY.md)"),
    user_profile_enabled: flag(true, "what it knows about you (USER.md)"),
    memory_char_limit: whole(2200, "characters of MEMORY.md", { min: 1 }),
    user_char_limit: whole(1375, "characters of USER.md", { min: 1 }),
    nudge_interval: whole(10, "your turns between two looks at what to remember; 0 = never", { min: 0 }),
    flush_min_turns: whole(6, "your turns before a conversation is worth a last look; 0 = never", { min: 0 }),
    flush_wait: whole(3, "seconds that leaving a conversation waits for the last look; 0 = it is never taken then", {
      min: 0,
    }),
    write_approval: flag(false, "ask before memory is written", GATE),
    provider: text("", "external memory provider; empty = none"),
  }),
  skills: section("Procedures the agent learns and follows.", {
    creation_nudge_interval: whole(10, "rounds of tool calls between two looks at what to make a skill of; 0 = never", {
      min: 0,
    }),
    external_dirs: list([], "more folders with skills", { single: true }),
    disabled: list([], "skills that are hidden", { single: true }),
    platform_disabled: record("platform -> skills hidden there"),
    config: record("skill -> its own settings"),
    template_vars: flag(true, "placeholders in skills are filled in"),
    inline_shell: flag(false, "commands inside skills run when a skill is loaded"),
    inline_shell_timeout: whole(10, "seconds for such a command", { min: 1 }),
    guard_agent_created: flag(false, "scan the skills the agent writes", { unclear: true }),
    write_approval: flag(false, "ask before a skill is written", GATE),
  }),
  curator: notUsedYet(
    section("Keeping the skill library tidy.", {
      enabled: flag(true, "the curator runs by itself"),
      interval_hours: whole(168, "hours between two runs"),
      min_idle_hours: number(2, "hours without activity before it runs"),
      stale_after_days: whole(30, "days without use until a skill counts as stale"),
      archive_after_days: whole(90, "days without use until a skill is archived"),
      consolidate: flag(false, "let a model merge skills that overlap"),
      prune_builtins: flag(false, "also tidy the skills that came with the program"),
      backup: section("Copies made before it changes anything.", {
        enabled: flag(true, "make them"),
        keep: whole(5, "how many to keep"),
      }),
    }),
  ),
  goals: notUsedYet(
    section("Standing goals.", { max_turns: whole(20, "turns the agent may take by itself for one goal") }),
  ),
};
