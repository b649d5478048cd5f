// What the agent can do, where it does it, and what stops it.
import {
  choice,
  choiceOrList,
  flag,
  items,
  list,
  notUsedYet,
  number,
  optional,
  orNull,
  record,
  section,
  text,
  whole,
} from "../field.ts";

const image = "nikolaik/python-nodejs:python3.11-nodejs20";

/** A terminal setting also lives in a variable that tools of the Python original read; the file wins over it. */
const mirror = (name: string) => ({ env: `TERMINAL_${name}`, envBelowConfig: true });

const GUARD = { guard: true };
const GUARDS = { guard: true, single: true };
const HOSTS = { guard: true, hosts: true };

const steps = (exact: number, same: number, idle: number, meaning: string) =>
  section(meaning, {
    exact_failure: whole(exact, "times in a row the same call fails the same way", { min: 1 }),
    same_tool_failure: whole(same, "times in a row one tool fails", { min: 1 }),
    idempotent_no_progress: whole(idle, "times in a row the same read returns the same result", { min: 1 }),
  });

/** A service on the web; its address is only given for a server of one's own. */
const service = (meaning: string, env?: string) =>
  section(meaning, { base_url: text("", "its URL, if not the default", env ? { env } : {}) });

export const toolSections = {
  toolsets: list(["hermes-cli"], "toolsets enabled by default", GUARDS),
  platform_toolsets: record("platform -> list of toolsets, managed by `hermes tools`", { guard: true, lists: true }),
  known_plugin_toolsets: record("platform -> plugin toolsets you have decided on"),
  tools: section("How tools are offered to the model.", {
    tool_search: section("Rarely used tools are found through search instead of being listed.", {
      enabled: choice(["auto", "on", "off"], "auto", "auto = when the tool list is too large"),
      threshold_pct: number(5, "maximum share of the context window for the tool list in auto mode, in percent"),
      search_default_limit: whole(5, "tools returned per search"),
      max_search_limit: whole(20, "maximum tools returned per search"),
      listing: choice(["auto", "on", "off"], "auto", "list the names of hidden tools in the prompt"),
      listing_max_tokens: whole(4000, "maximum tokens for that list"),
    }),
    disabled_functions: list([], "individual tools to disable", GUARDS),
  }),
  terminal: section("Where commands run.", {
    backend: choice(
      ["local", "auto", "bubblewrap", "docker", "ssh", "modal", "daytona", "singularity"],
      "local",
      "where commands run; `auto` and `bubblewrap` = `local` with `terminal.sandbox` `auto` or `on`; modal, daytona and singularity are not available yet",
      { ...mirror("ENV"), ...GUARD },
    ),
    sandbox: choice(
      ["off", "auto", "on"],
      "off",
      "sandbox for the local backend: `auto` = if bubblewrap works, `on` = required; new homes have `auto`",
      GUARD,
    ),
    sandbox_network: choiceOrList(
      ["on", "off"],
      "on",
      "network access in the sandbox: on, off, or a list of allowed hosts",
      HOSTS,
    ),
    sandbox_network_unattended: choiceOrList(["on", "off"], "off", "the same for unattended runs (schedules)", HOSTS),
    cwd: text(".", "working directory; `.` = where hermes was started", mirror("CWD")),
    timeout: whole(180, "timeout of one command in seconds", mirror("TIMEOUT")),
    lifetime_seconds: whole(300, "idle seconds before an environment is removed", mirror("LIFETIME_SECONDS")),
    env_passthrough: list(
      [],
      "variables passed to commands even if they are in `.env` or named by a `key_env`; for docker and ssh, variables to pass on",
    ),
    shell_init_files: list([], "files to source before commands"),
    auto_source_bashrc: flag(true, "source ~/.bashrc when no init files are given"),
    persistent_shell: flag(true, "keep exports and functions between commands", mirror("PERSISTENT_SHELL")),
    credential_files: list([], "files in the home that environments may read"),
    sandbox_dir: optional(text("", "where environments keep their files", mirror("SANDBOX_DIR"))),
    ssh_host: text("", "ssh: host", { ...mirror("SSH_HOST"), ...GUARD }),
    ssh_user: text("", "ssh: user", { ...mirror("SSH_USER"), ...GUARD }),
    ssh_port: whole(22, "ssh: port", { ...mirror("SSH_PORT"), ...GUARD }),
    ssh_key: text("", "ssh: path of the private key", mirror("SSH_KEY")),
    modal_mode: notUsedYet(text("auto", "modal: direct, managed or auto", mirror("MODAL_MODE"))),
    docker_image: text(image, "docker: image", mirror("DOCKER_IMAGE")),
    singularity_image: notUsedYet(text(`docker://${image}`, "singularity: image", mirror("SINGULARITY_IMAGE"))),
    modal_image: notUsedYet(text(image, "modal: image", mirror("MODAL_IMAGE"))),
    daytona_image: notUsedYet(text(image, "daytona: image", mirror("DAYTONA_IMAGE"))),
    docker_forward_env: list([], "docker: variables passed into the container"),
    docker_env: record("docker: variables set in the container", mirror("DOCKER_ENV")),
    docker_volumes: list([], "docker: mounts, in `-v` syntax"),
    docker_extra_args: list([], "docker: additional arguments for `docker run`", GUARD),
    docker_network: text("", "docker: network; empty = docker's default", GUARD),
    docker_shm_size: text("1g", "docker: size of /dev/shm"),
    docker_orphan_reaper: flag(true, "docker: remove containers left behind by a crash"),
    docker_mount_cwd_to_workspace: flag(
      false,
      "docker: mount the working directory at /workspace",
      mirror("DOCKER_MOUNT_CWD_TO_WORKSPACE"),
    ),
    docker_run_as_host_user: flag(false, "docker: run with your user id", mirror("DOCKER_RUN_AS_HOST_USER")),
    container_cpu: number(1, "containers: CPU cores", mirror("CONTAINER_CPU")),
    container_memory: whole(5120, "containers: memory in MB", mirror("CONTAINER_MEMORY")),
    container_disk: whole(51200, "containers: disk in MB", mirror("CONTAINER_DISK")),
    container_persistent: flag(true, "containers: keep files between sessions", mirror("CONTAINER_PERSISTENT")),
  }),
  web: section("Web search and pages.", {
    backend: text("", "service for search and pages; empty = chosen by your keys"),
    search_backend: text("", "service for search only"),
    extract_backend: text("", "service for pages only; `local` = Hermes fetches them itself"),
    summarize: flag(false, "condense long pages with a side model; otherwise the model gets their beginning and end"),
    searxng: service("Your SearXNG server.", "SEARXNG_URL"),
    firecrawl: service("Firecrawl.", "FIRECRAWL_API_URL"),
    parallel: service("Parallel."),
    tavily: service("Tavily."),
    exa: service("Exa."),
    brave: service("Brave Search."),
    ddgs: service("DuckDuckGo, without a key."),
  }),
  browser: section("The browser tool.", {
    inactivity_timeout: whole(120, "idle seconds before the browser is closed"),
    command_timeout: whole(30, "timeout of one action in seconds"),
    record_sessions: flag(false, "record what the browser shows"),
    allow_private_urls: flag(false, "allow local network addresses"),
    engine: text("auto", "auto, a program name or path, browserbase, or a plugin's engine"),
    auto_local_for_private_urls: flag(
      true,
      "with a browser elsewhere: allowed private addresses are opened by one here",
    ),
    cdp_url: text("", "URL of a running browser's debugging port"),
    dialog_policy: text("must_respond", "how to handle alert and confirm dialogs"),
    dialog_timeout_s: whole(300, "seconds before an unanswered dialog is dismissed"),
  }),
  checkpoints: section("File checkpoints, saved before the agent changes files.", {
    enabled: flag(false, "make them", { unclear: true }),
    max_snapshots: whole(20, "snapshots to keep per directory", { min: 1 }),
    max_total_size_mb: whole(500, "maximum size of all snapshots in MB", { min: 1 }),
    max_file_size_mb: whole(10, "skip files larger than this, in MB", { min: 1 }),
    auto_prune: flag(true, "remove old snapshots automatically"),
    retention_days: whole(7, "days to keep snapshots"),
    delete_orphans: flag(true, "also remove snapshots of directories that are gone"),
    min_interval_hours: whole(24, "hours between clean-ups"),
  }),
  file_read_max_chars: whole(100_000, "maximum characters of one read_file result"),
  tool_output: section("How much of a tool's output the model sees.", {
    max_bytes: whole(50_000, "maximum bytes of one result"),
    max_lines: whole(2000, "maximum lines of one result"),
    max_line_length: whole(2000, "maximum characters of one line"),
  }),
  tool_loop_guardrails: section("Detecting loops.", {
    warnings_enabled: flag(true, "warn the model"),
    hard_stop_enabled: flag(false, "stop the turn", { unclear: true }),
    warn_after: steps(2, 3, 2, "Thresholds for warning the model."),
    hard_stop_after: steps(5, 8, 5, "Thresholds for stopping the turn."),
  }),
  code_execution: section("Scripts the agent writes and runs (execute_code).", {
    mode: choice(["project", "strict"], "project", "run in the project directory, or in an empty one", GUARD),
  }),
  approvals: section("Approval of dangerous commands.", {
    mode: choice(["manual", "smart", "off"], "manual", "who approves: you, a model first, or nobody", { on: "manual" }),
    timeout: whole(60, "seconds `chat -q` waits for your answer; then the answer is no"),
    screen_timeout: whole(0, "seconds the screen waits for your answer; 0 = forever"),
    gateway_timeout: whole(300, "seconds a chat waits for your answer"),
    deny: list([], "patterns of commands that are always refused", GUARDS),
    foreign_text: choice(
      ["ask", "off"],
      "ask",
      "after reading external text, ask before changing the agent itself or sending data out",
      GUARD,
    ),
    smart_policy: text("", "additional rules for the approving model"),
    cron_mode: choice(["deny", "approve"], "deny", "how to handle dangerous commands in scheduled runs"),
    mcp_reload_confirm: flag(true, "ask before reconnecting MCP servers"),
    destructive_slash_confirm: flag(true, "ask before /new, /clear and /undo"),
  }),
  command_allowlist: list([], "kinds of dangerous commands you always allow"),
  quick_commands: record("your own slash commands: name -> `{type: exec, command}` or `{type: alias, target}`"),
  hooks: record("event -> list of `{command, matcher, timeout}`", GUARD),
  hooks_auto_accept: flag(false, "run new hooks without asking", { env: "HERMES_ACCEPT_HOOKS" }),
  security: section("Safety checks.", {
    redact_secrets: flag(true, "mask secrets in output, logs and stored text; read once at start", {
      env: "HERMES_REDACT_SECRETS",
    }),
    allow_private_urls: flag(false, "allow tools to open local network addresses", {
      env: "HERMES_ALLOW_PRIVATE_URLS",
    }),
    context_scan: choice(["block", "warn"], "block", "how to handle suspicious project files"),
    website_blocklist: section("Blocked websites.", {
      enabled: flag(false, "enable the blocklist", GUARD),
      domains: list([], "`x.y` with its subdomains, or `*.x.y` for subdomains only", GUARDS),
      shared_files: list([], "files with one entry per line; relative to the home", GUARDS),
    }),
    acked_advisories: notUsedYet(list([], "security notices you have acknowledged")),
  }),
  privacy: section("Privacy.", {
    redact_pii: flag(false, "hash user ids in the prompt", { unclear: true }),
  }),
  network: section("Network options.", { force_ipv4: flag(false, "never use IPv6") }),
  mcp_servers: record("MCP servers by name: `{command, args, env}` or `{url, headers}`"),
  plugins: section("Extensions.", {
    enabled: optional(list([], "enabled plugins")),
    disabled: list([], "disabled plugins", GUARDS),
    project_enabled: flag(false, "allow plugins of the current project", { env: "HERMES_ENABLE_PROJECT_PLUGINS" }),
    entries: record("plugin -> its settings, e.g. `allow_tool_override`"),
  }),
  cron: section("Scheduled jobs.", {
    tick_seconds: number(60, "how often to look for jobs that are due, in seconds"),
    wrap_response: flag(true, "add the job name above a delivered answer and how to stop the job below it"),
    max_parallel_jobs: orNull(
      whole(0, "jobs that run at the same time; null = 8", { env: "HERMES_CRON_MAX_PARALLEL" }),
    ),
    missed_run: choice(
      ["once", "skip"],
      "once",
      "what to do about runs missed while nothing was scheduling: run the job once, or not at all",
    ),
    script_timeout_seconds: whole(120, "timeout of a job's script in seconds", { env: "HERMES_CRON_SCRIPT_TIMEOUT" }),
    model: text("", "model for scheduled runs; empty = the main model"),
    provider: text("", "provider for scheduled runs; empty = the main provider"),
  }),
  kanban: section("Boards of cards.", {
    dispatch_in_gateway: flag(true, "the gateway starts workers for cards that are ready", {
      env: "HERMES_KANBAN_DISPATCH_IN_GATEWAY",
    }),
    dispatch_interval_seconds: number(
      60,
      "look at the boards at least this often, in seconds; changes are noticed at once",
      {
        min: 1,
      },
    ),
    failure_limit: whole(2, "failures in a row after which a card is blocked; its own `--max-retries` wins", {
      min: 1,
    }),
    max_in_progress: {
      ...orNull(whole(0, "cards of a board that run at the same time; null = no limit", { min: 1 })),
      fallback: 4,
    },
    max_in_progress_per_profile: orNull(
      whole(0, "cards of a board that run at the same time for one profile; null = no limit", { min: 1 }),
    ),
    dispatch_stale_timeout_seconds: whole(
      14_400,
      "stop a worker that runs this long and gave no sign of life for an hour, in seconds; 0 = never",
      { min: 0 },
    ),
    worker_log_rotate_bytes: whole(2_097_152, "start another log of a worker when it is larger than this", { min: 0 }),
    worker_log_backup_count: whole(1, "older logs of a worker that are kept", { min: 0 }),
    default_assignee: text(
      "",
      "profile that works on cards without an assignee, empty = nobody; and on parts of a split card whose profile is not known, empty = the default profile",
    ),
    orchestrator_profile: text(
      "",
      "who gets a card that was split, when its parts are done; empty = the default profile",
    ),
    auto_decompose: optional(
      flag(true, "split cards in triage into smaller ones on its own; not set = as soon as there is a second profile"),
    ),
    auto_decompose_per_tick: whole(3, "cards that are split on its own at a time", { min: 1 }),
    auto_subscribe_on_create: flag(true, "a card that is created in a chat reports there what becomes of it"),
  }),
  lsp: notUsedYet(record("language servers")),
  honcho: notUsedYet(record("Honcho memory")),
  model_catalog: record("`models_dev_url`: another URL for the published model list"),
  openrouter: record("OpenRouter"),
  bedrock: notUsedYet(record("Amazon Bedrock")),
  secrets: notUsedYet(record("external secret stores")),
  x_search: notUsedYet(record("X search")),
  custom_providers: optional(items("older form of `providers`; `hermes config migrate` converts it")),
};
