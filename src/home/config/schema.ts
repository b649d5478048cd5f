// The one schema of config.yaml: keys, types, defaults, meaning. It feeds defaults, validation, `config show/set`,
// did-you-mean and the generated reference. Unknown keys are kept; sections owned by later rooms are kept verbatim.
import { z } from "zod";

const section = <Shape extends z.ZodRawShape>(shape: Shape) => z.looseObject(shape).prefault({} as never); // every key has a default
const text = (fallback: string, meaning: string) => z.string().default(fallback).describe(meaning);
const whole = (fallback: number, meaning: string) => z.int().default(fallback).describe(meaning);
const real = (fallback: number, meaning: string) => z.number().default(fallback).describe(meaning);
const flag = (fallback: boolean, meaning: string) => z.boolean().default(fallback).describe(meaning);
const list = (meaning: string, fallback: string[] = []) => z.array(z.string()).default(fallback).describe(meaning);
const record = (meaning: string) => z.record(z.string(), z.unknown()).default({}).describe(meaning);
const choice = <const Values extends readonly [string, ...string[]]>(
  values: Values,
  fallback: Values[number],
  meaning: string,
) =>
  z
    .enum(values)
    .default(fallback as never)
    .describe(meaning); // zod wants the narrowed member
const cap = (meaning: string) =>
  z
    .object({ usd: z.number().nullable().default(null), tokens: z.number().nullable().default(null) })
    .prefault({})
    .describe(meaning);

const auxiliaryTask = (timeout: number) =>
  section({
    provider: text("auto", "provider of this task; auto = follow the main model"),
    model: text("", "model of this task"),
    base_url: text("", "endpoint of this task"),
    api_key: text("", "key of this task"),
    timeout: whole(timeout, "seconds"),
    extra_body: record("merged into the request body"),
    context_length: z.int().nullable().default(null),
    fallback_chain: z.array(z.unknown()).default([]),
  });

export const configSchema = z.looseObject({
  model: z
    .union([
      z.string(),
      z.looseObject({
        default: z.string().optional(),
        provider: z.string().optional(),
        base_url: z.string().optional(),
        api_key: z.string().optional(),
        api_mode: z.string().optional(),
        context_length: z.int().positive().optional(),
        max_tokens: z.int().positive().optional(),
        ollama_num_ctx: z.int().positive().optional(),
        supports_vision: z.boolean().optional(),
        aliases: z.record(z.string(), z.unknown()).optional(),
      }),
    ])
    .default("")
    .describe("model id, or a mapping with default, provider, base_url, api_key, api_mode, context_length, max_tokens"),
  providers: record(
    "custom endpoints by name: {api, name, api_key, key_env, default_model, models, transport, request_timeout_seconds}",
  ),
  fallback_providers: z
    .array(z.unknown())
    .default([])
    .describe("{provider, model, base_url?, api_key? or key_env?}, tried in order"),
  credential_pool_strategies: record("provider -> fill_first | round_robin | random | least_used"),
  provider_routing: record("OpenRouter: sort only ignore order require_parameters data_collection"),
  model_aliases: record("alias -> model, or {model, provider, base_url}"),
  toolsets: list("default toolsets", ["hermes-cli"]),
  platform_toolsets: record("platform -> list of toolsets, written by hermes tools"),
  known_plugin_toolsets: record("platform -> plugin toolsets already seen"),
  agent: section({
    max_turns: whole(90, "model calls per turn"),
    gateway_timeout: whole(1800, "seconds without activity before a chat turn is stopped"),
    gateway_timeout_warning: whole(900, "seconds without activity before a warning"),
    restart_drain_timeout: whole(180, "seconds to let running turns end at a restart"),
    api_max_retries: whole(3, "attempts per model request"),
    service_tier: text("", "fast or priority"),
    tool_use_enforcement: z
      .union([z.boolean(), z.string(), z.array(z.unknown())])
      .default("auto")
      .describe("auto, true, false or a list of model name parts"),
    reasoning_effort: text("", "none minimal low medium high xhigh; empty = provider default"),
    system_prompt: text("", "extra instructions, sent with every request, never stored"),
    prefill_messages_file: text("", "JSON file with few-shot messages"),
    personalities: record("name -> text, or {description, system_prompt, tone, style}"),
    clarify_timeout: whole(600, "seconds a chat waits for an answer"),
    gateway_notify_interval: whole(180, "seconds between progress notes in chats"),
    gateway_auto_continue_freshness: whole(3600, "seconds"),
    image_input_mode: choice(["auto", "native", "text"], "auto", "how images reach the model"),
    task_completion_guidance: flag(true, "prompt block"),
    parallel_tool_call_guidance: flag(true, "prompt block"),
    environment_probe: flag(true, "look at the Python toolchain at start"),
    environment_hint: text("", "appended to the environment block of the prompt"),
    coding_context: z.union([z.string(), z.boolean()]).default("auto").describe("auto, focus, on or off"),
    coding_instructions: z
      .union([z.string(), z.array(z.string())])
      .default("")
      .describe("operator instructions for code work"),
    disabled_toolsets: list("removed everywhere"),
  }),
  prefill_messages_file: text("", "JSON file with few-shot messages"),
  platform_hints: record("platform -> text or {append} or {replace}"),
  context_file_max_chars: z.int().positive().nullable().default(null).describe("limit of one context file"),
  context_files: section({ agents_scope: choice(["cwd", "git_root"], "cwd", "where AGENTS.md is looked for") }),
  context_references: section({ remote: flag(false, "@-references in remote chats") }),
  budget: section({
    call: cap("caps of one model call"),
    session: cap("caps of one conversation with its side calls"),
    job: cap("caps of one scheduled run or batch prompt"),
    day: cap("caps of one calendar day"),
  }),
  tools: section({
    tool_search: section({
      enabled: z
        .union([z.boolean(), z.enum(["auto", "on", "off"])])
        .default("auto")
        .describe("hide rarely used tools behind search"),
      threshold_pct: real(5, "percent of the window that tool schemas may take"),
      search_default_limit: whole(5, ""),
      max_search_limit: whole(20, ""),
      listing: z.union([z.boolean(), z.enum(["auto", "on", "off"])]).default("auto"),
      listing_max_tokens: whole(4000, ""),
    }),
    disabled_functions: list("single tools to leave out"),
  }),
  terminal: section({
    backend: choice(
      ["local", "auto", "bubblewrap", "docker", "ssh", "modal", "daytona", "singularity"],
      "local",
      "where commands run",
    ),
    sandbox_network: z
      .union([z.boolean(), z.enum(["on", "off"])])
      .default("on")
      .describe("network inside bubblewrap"),
    cwd: text(".", "working directory; . = where hermes was started"),
    timeout: whole(180, "seconds per command"),
    lifetime_seconds: whole(300, "idle seconds before an environment is removed"),
    env_passthrough: list("variables handed to commands in addition"),
    shell_init_files: list("files sourced before commands"),
    auto_source_bashrc: flag(true, ""),
    persistent_shell: flag(true, "exports and functions live on between commands"),
    credential_files: list("files below the home that environments may see"),
    ssh_host: text("", ""),
    ssh_user: text("", ""),
    ssh_port: whole(22, ""),
    ssh_key: text("", ""),
    modal_mode: text("auto", ""),
    docker_image: text("nikolaik/python-nodejs:python3.11-nodejs20", ""),
    singularity_image: text("docker://nikolaik/python-nodejs:python3.11-nodejs20", ""),
    modal_image: text("nikolaik/python-nodejs:python3.11-nodejs20", ""),
    daytona_image: text("nikolaik/python-nodejs:python3.11-nodejs20", ""),
    docker_forward_env: list(""),
    docker_env: record(""),
    docker_volumes: list(""),
    docker_extra_args: list(""),
    docker_network: text("", ""),
    docker_shm_size: text("1g", ""),
    docker_orphan_reaper: flag(true, ""),
    docker_mount_cwd_to_workspace: flag(false, ""),
    docker_run_as_host_user: flag(false, ""),
    container_cpu: real(1, ""),
    container_memory: whole(5120, "MB"),
    container_disk: whole(51200, "MB"),
    container_persistent: flag(true, ""),
  }),
  web: section({ backend: text("", ""), search_backend: text("", ""), extract_backend: text("", "") }),
  browser: section({
    inactivity_timeout: whole(120, "seconds"),
    command_timeout: whole(30, "seconds"),
    record_sessions: flag(false, ""),
    allow_private_urls: flag(false, ""),
    engine: text("auto", ""),
    auto_local_for_private_urls: flag(true, ""),
    cdp_url: text("", ""),
    dialog_policy: text("must_respond", ""),
    dialog_timeout_s: whole(300, ""),
  }),
  checkpoints: section({
    enabled: flag(false, "snapshot files before the agent changes them"),
    max_snapshots: whole(20, ""),
    max_total_size_mb: whole(500, ""),
    max_file_size_mb: whole(10, ""),
    auto_prune: flag(true, ""),
    retention_days: whole(7, ""),
    delete_orphans: flag(true, ""),
    min_interval_hours: whole(24, ""),
  }),
  file_read_max_chars: whole(100_000, "characters of one read_file result"),
  tool_output: section({ max_bytes: whole(50_000, ""), max_lines: whole(2000, ""), max_line_length: whole(2000, "") }),
  tool_loop_guardrails: section({
    warnings_enabled: flag(true, ""),
    hard_stop_enabled: flag(false, ""),
    warn_after: section({
      exact_failure: whole(2, ""),
      same_tool_failure: whole(3, ""),
      idempotent_no_progress: whole(2, ""),
    }),
    hard_stop_after: section({
      exact_failure: whole(5, ""),
      same_tool_failure: whole(8, ""),
      idempotent_no_progress: whole(5, ""),
    }),
  }),
  compression: section({
    enabled: flag(true, "summarise long conversations"),
    threshold: real(0.5, "share of the window that starts it"),
    target_ratio: real(0.2, ""),
    protect_last_n: whole(20, ""),
    protect_first_n: whole(3, ""),
    hygiene_hard_message_limit: whole(400, ""),
    abort_on_summary_failure: flag(false, ""),
    model_thresholds: record(""),
  }),
  context: section({ engine: text("compressor", "context engine") }),
  prompt_caching: section({
    cache_ttl: z
      .union([z.boolean(), z.enum(["5m", "1h", "off"])])
      .default("5m")
      .describe("5m, 1h or off"),
  }),
  auxiliary: section({
    flush_memories: auxiliaryTask(30),
    background_review: auxiliaryTask(120),
    vision: auxiliaryTask(120),
    web_extract: auxiliaryTask(360),
    compression: auxiliaryTask(120),
    skills_hub: auxiliaryTask(30),
    approval: auxiliaryTask(30),
    mcp: auxiliaryTask(30),
    title_generation: auxiliaryTask(30),
    triage_specifier: auxiliaryTask(120),
    kanban_decomposer: auxiliaryTask(180),
    profile_describer: auxiliaryTask(60),
    curator: auxiliaryTask(600),
  }),
  memory: section({
    memory_enabled: flag(true, "the agent's own notes"),
    user_profile_enabled: flag(true, "what it knows about you"),
    memory_char_limit: whole(2200, "characters"),
    user_char_limit: whole(1375, "characters"),
    nudge_interval: whole(10, "user turns between memory reviews; 0 = never"),
    flush_min_turns: whole(6, "user turns before a flush is worth a call"),
    write_approval: flag(false, "ask before memory is written"),
    provider: text("", "external memory provider"),
  }),
  delegation: section({
    model: text("", ""),
    provider: text("", ""),
    base_url: text("", ""),
    api_key: text("", ""),
    api_mode: text("", ""),
    reasoning_effort: text("", ""),
    max_iterations: whole(50, "model calls of one sub-agent"),
    fallback_providers: z.array(z.unknown()).default([]),
    child_timeout_seconds: whole(600, ""),
    max_concurrent_children: whole(3, ""),
    max_spawn_depth: whole(1, ""),
    orchestrator_enabled: flag(true, ""),
    inherit_mcp_toolsets: flag(true, ""),
    subagent_auto_approve: flag(false, ""),
  }),
  goals: section({ max_turns: whole(20, "") }),
  skills: section({
    creation_nudge_interval: whole(10, "tool iterations between skill reviews; 0 = never"),
    external_dirs: list("more skill folders"),
    disabled: list("skills to hide"),
    platform_disabled: record("platform -> skills to hide"),
    config: record("settings of skills"),
    template_vars: flag(true, ""),
    inline_shell: flag(false, ""),
    inline_shell_timeout: whole(10, "seconds"),
    guard_agent_created: flag(false, "scan skills the agent writes"),
    write_approval: flag(false, ""),
  }),
  curator: section({
    enabled: flag(true, ""),
    interval_hours: whole(168, ""),
    min_idle_hours: whole(2, ""),
    stale_after_days: whole(30, ""),
    archive_after_days: whole(90, ""),
    consolidate: flag(false, ""),
    prune_builtins: flag(false, ""),
    backup: section({ enabled: flag(true, ""), keep: whole(5, "") }),
  }),
  approvals: section({
    mode: choice(["manual", "smart", "off"], "manual", "who answers for dangerous commands"),
    timeout: whole(60, "seconds the terminal waits"),
    gateway_timeout: whole(300, "seconds a chat waits"),
    deny: list("globs of commands that are always refused"),
    smart_policy: text("", "extra rules for the approving model"),
    cron_mode: choice(["deny", "approve"], "deny", "dangerous commands in scheduled runs"),
    mcp_reload_confirm: flag(true, ""),
    destructive_slash_confirm: flag(true, "ask before /new, /clear, /undo"),
  }),
  command_allowlist: list("danger categories or command globs approved for good"),
  quick_commands: record("name -> {type: exec, command} or {type: alias, target}"),
  hooks: record("event -> [{command, matcher, timeout}]"),
  hooks_auto_accept: flag(false, ""),
  security: section({
    redact_secrets: flag(true, "mask secrets in output, logs and stored text"),
    allow_private_urls: flag(false, ""),
    context_scan: choice(["block", "warn"], "block", "what a suspicious context file leads to"),
    website_blocklist: record("enabled, domains, shared_files"),
    acked_advisories: list(""),
  }),
  privacy: section({ redact_pii: flag(false, "hash user ids in the prompt") }),
  display: section({
    interface: choice(["cli", "tui"], "cli", "kept for the original; both are the one screen"),
    compact: flag(false, "small banner"),
    personality: text("kawaii", "spinner faces"),
    skin: text("default", "colours"),
    language: text("en", "language of messages"),
    streaming: flag(true, "show text as it arrives"),
    show_reasoning: flag(false, "show the model's thinking"),
    final_response_markdown: choice(["strip", "render", "raw"], "strip", "how answers are shown"),
    tool_progress: choice(["off", "new", "all", "verbose", "log"], "all", "how much of the tool feed is shown"),
    tool_progress_command: flag(false, ""),
    tool_preview_length: whole(0, "0 = no cut"),
    platforms: record("per platform overrides"),
    interim_assistant_messages: flag(true, ""),
    inline_diffs: flag(true, "show a diff after file edits"),
    file_mutation_verifier: flag(true, "say when a claimed edit did not land"),
    busy_input_mode: choice(["interrupt", "queue", "steer"], "interrupt", "what Enter does while the agent works"),
    resume_display: choice(["full", "minimal"], "full", ""),
    resume_exchanges: whole(10, ""),
    resume_max_user_chars: whole(300, ""),
    resume_max_assistant_chars: whole(200, ""),
    resume_max_assistant_lines: whole(3, ""),
    resume_skip_tool_only: flag(true, ""),
    persistent_output: flag(true, ""),
    persistent_output_max_lines: whole(200, ""),
    user_message_preview: section({ first_lines: whole(2, ""), last_lines: whole(2, "") }),
    bell_on_complete: flag(false, ""),
    timestamps: flag(false, ""),
    show_cost: flag(false, "cost in the status line"),
    runtime_footer: section({ enabled: flag(false, ""), fields: list("", ["model", "context_pct", "cwd"]) }),
    tui_auto_resume_recent: flag(false, ""),
    tui_status_indicator: text("kaomoji", ""),
    copy_shortcut: text("auto", ""),
    ephemeral_system_ttl: whole(0, ""),
    memory_notifications: choice(["off", "on", "verbose"], "on", ""),
    background_process_notifications: text("all", ""),
    busy_ack_enabled: flag(true, ""),
    busy_ack_detail: flag(true, ""),
    cleanup_progress: flag(false, ""),
  }),
  session_reset: section({
    mode: choice(["both", "idle", "daily", "none"], "both", ""),
    idle_minutes: whole(1440, ""),
    at_hour: whole(4, ""),
    notify: flag(true, ""),
    notify_exclude_platforms: list("", ["api_server", "webhook"]),
  }),
  streaming: section({
    enabled: flag(false, ""),
    transport: text("edit", ""),
    edit_interval: real(0.8, ""),
    buffer_threshold: whole(24, ""),
    cursor: text(" ▉", ""),
    fresh_final_after_seconds: whole(60, ""),
  }),
  platforms: record("chat platforms"),
  group_sessions_per_user: flag(true, ""),
  thread_sessions_per_user: flag(false, ""),
  session_store_max_age_days: whole(90, ""),
  unauthorized_dm_behavior: text("", ""),
  sessions: section({
    auto_prune: flag(false, "delete old ended sessions"),
    retention_days: whole(90, ""),
    vacuum_after_prune: flag(true, ""),
    min_interval_hours: whole(24, ""),
    write_json_snapshots: flag(false, ""),
  }),
  database: section({ journal_mode: choice(["auto", "wal", "delete"], "auto", "SQLite journal") }),
  logging: section({
    level: text("INFO", "DEBUG INFO WARNING ERROR"),
    max_size_mb: whole(5, ""),
    backup_count: whole(3, ""),
  }),
  timezone: text("", "IANA name; empty = local"),
  paste_collapse_threshold: whole(5, "newlines; 0 = never"),
  paste_collapse_threshold_fallback: whole(5, ""),
  paste_collapse_char_threshold: whole(2000, "characters; 0 = never"),
  onboarding: section({ seen: record("hints already shown") }),
  updates: section({ pre_update_backup: flag(false, ""), backup_keep: whole(5, "") }),
  worktree: flag(false, "work in a git worktree"),
  clarify: section({ timeout: whole(120, "seconds the terminal waits for an answer") }),
  plugins: section({
    enabled: list("").optional(),
    disabled: list(""),
    project_enabled: flag(false, ""),
    entries: record(""),
  }),
  mcp_servers: record("MCP servers by name"),
  cron: section({
    wrap_response: flag(true, ""),
    max_parallel_jobs: z.int().nullable().default(null),
    missed_run: text("once", ""),
    script_timeout_seconds: whole(120, ""),
    model: text("", ""),
    provider: text("", ""),
  }),
  code_execution: section({ mode: choice(["project", "strict"], "project", "") }),
  gateway: section({
    max_concurrent_turns: whole(8, ""),
    strict: flag(false, ""),
    media_delivery_allow_dirs: list(""),
    trust_recent_files: flag(true, ""),
    trust_recent_files_seconds: whole(600, ""),
  }),
  network: section({ force_ipv4: flag(false, "") }),
  voice: record(""),
});

/** The configuration as the program uses it: defaults filled in, normalised, environment expanded. */
export type Config = z.infer<typeof configSchema>;

/** Exactly the built-in defaults. */
export function defaultConfig(): Config {
  return configSchema.parse({});
}
