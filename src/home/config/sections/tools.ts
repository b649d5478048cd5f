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
    exact_failure: whole(exact, "the same call failing the same way, times in a row", { min: 1 }),
    same_tool_failure: whole(same, "one tool failing, times in a row", { min: 1 }),
    idempotent_no_progress: whole(idle, "the same read returning the same, times in a row", { min: 1 }),
  });

/** A service on the web; its address is only given for a server of one's own. */
const service = (meaning: string, env?: string) =>
  section(meaning, { base_url: text("", "its address, if it is another than usual", env ? { env } : {}) });

export const toolSections = {
  toolsets: list(["hermes-cli"], "toolsets that are on by default", GUARDS),
  platform_toolsets: record("platform -> list of toolsets, written by `hermes tools`", { guard: true, lists: true }),
  known_plugin_toolsets: record("platform -> plugin toolsets you have been asked about"),
  tools: section("How tools are offered to the model.", {
    tool_search: section("Rarely used tools are found by search instead of being listed.", {
      enabled: choice(["auto", "on", "off"], "auto", "auto = when the tool list is too large"),
      threshold_pct: number(5, "percent of the window the tool list may take in auto mode"),
      search_default_limit: whole(5, "tools one search returns"),
      max_search_limit: whole(20, "most tools one search may return"),
      listing: choice(["auto", "on", "off"], "auto", "name the hidden tools in the prompt"),
      listing_max_tokens: whole(4000, "tokens that list may take"),
    }),
    disabled_functions: list([], "single tools that are left out", GUARDS),
  }),
  terminal: section("Where commands run.", {
    backend: choice(
      ["local", "auto", "bubblewrap", "docker", "ssh", "modal", "daytona", "singularity"],
      "local",
      "the place commands run in; `auto` and `bubblewrap` = `local` with `terminal.sandbox` `auto` or `on`; modal, daytona and singularity are not there yet",
      { ...mirror("ENV"), ...GUARD },
    ),
    sandbox: choice(
      ["off", "auto", "on"],
      "off",
      "commands of the local backend run in a sandbox: `auto` = where bubblewrap works, `on` = always or not at all; a new home has `auto`",
      GUARD,
    ),
    sandbox_network: choiceOrList(
      ["on", "off"],
      "on",
      "network inside the sandbox: on, off, or the hosts that can be reached",
      HOSTS,
    ),
    sandbox_network_unattended: choiceOrList(
      ["on", "off"],
      "off",
      "the same for runs that nobody began by hand: schedules",
      HOSTS,
    ),
    cwd: text(".", "working directory; `.` = where hermes was started", mirror("CWD")),
    timeout: whole(180, "seconds one command may take", mirror("TIMEOUT")),
    lifetime_seconds: whole(300, "idle seconds until an environment is removed", mirror("LIFETIME_SECONDS")),
    env_passthrough: list(
      [],
      "variables that commands see although they stand in `.env` or a `key_env` names them; for docker and ssh, variables handed on",
    ),
    shell_init_files: list([], "files sourced before commands"),
    auto_source_bashrc: flag(true, "source ~/.bashrc when no init files are given"),
    persistent_shell: flag(true, "exports and functions live on between commands", mirror("PERSISTENT_SHELL")),
    credential_files: list([], "files below the home that environments may see"),
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
    docker_forward_env: list([], "docker: variables handed into the container"),
    docker_env: record("docker: variables set in the container", mirror("DOCKER_ENV")),
    docker_volumes: list([], "docker: mounts, as `-v` takes them"),
    docker_extra_args: list([], "docker: further arguments of `docker run`", GUARD),
    docker_network: text("", "docker: network; empty = docker's default", GUARD),
    docker_shm_size: text("1g", "docker: size of /dev/shm"),
    docker_orphan_reaper: flag(true, "docker: remove containers that a crash left behind"),
    docker_mount_cwd_to_workspace: flag(
      false,
      "docker: mount the working directory at /workspace",
      mirror("DOCKER_MOUNT_CWD_TO_WORKSPACE"),
    ),
    docker_run_as_host_user: flag(false, "docker: run with your user id", mirror("DOCKER_RUN_AS_HOST_USER")),
    container_cpu: number(1, "containers: CPU cores", mirror("CONTAINER_CPU")),
    container_memory: whole(5120, "containers: memory in MB", mirror("CONTAINER_MEMORY")),
    container_disk: whole(51200, "containers: disk in MB", mirror("CONTAINER_DISK")),
    container_persistent: flag(true, "containers: files live on between sessions", mirror("CONTAINER_PERSISTENT")),
  }),
  web: section("Web search and pages.", {
    backend: text("", "service for search and pages; empty = by the keys you have"),
    search_backend: text("", "service for search only"),
    extract_backend: text("", "service for pages only; `local` = Hermes fetches them itself"),
    summarize: flag(false, "a side model condenses long pages; otherwise the model gets their beginning and end"),
    searxng: service("Your SearXNG server.", "SEARXNG_URL"),
    firecrawl: service("Firecrawl.", "FIRECRAWL_API_URL"),
    parallel: service("Parallel."),
    tavily: service("Tavily."),
    exa: service("Exa."),
    brave: service("Brave Search."),
    ddgs: service("DuckDuckGo, without a key."),
  }),
  browser: section("The browser tool.", {
    inactivity_timeout: whole(120, "idle seconds until a browser is closed"),
    command_timeout: whole(30, "seconds one action may take"),
    record_sessions: flag(false, "record what the browser shows"),
    allow_private_urls: flag(false, "addresses of the local network are allowed"),
    engine: text("auto", "auto, the name or path of a program, browserbase, or what a plugin provides"),
    auto_local_for_private_urls: flag(
      true,
      "with a browser elsewhere: allowed private addresses are opened by one here",
    ),
    cdp_url: text("", "address of a running browser's debugging port"),
    dialog_policy: text("must_respond", "what happens to alert and confirm dialogs"),
    dialog_timeout_s: whole(300, "seconds until an unanswered dialog is dismissed"),
  }),
  checkpoints: section("Copies of your files before the agent changes them.", {
    enabled: flag(false, "make them", { unclear: true }),
    max_snapshots: whole(20, "snapshots kept per directory", { min: 1 }),
    max_total_size_mb: whole(500, "size of all snapshots in MB", { min: 1 }),
    max_file_size_mb: whole(10, "larger files are left out, in MB", { min: 1 }),
    auto_prune: flag(true, "old snapshots are removed by themselves"),
    retention_days: whole(7, "days a snapshot is kept"),
    delete_orphans: flag(true, "also remove snapshots of directories that are gone"),
    min_interval_hours: whole(24, "hours between two clean-ups"),
  }),
  file_read_max_chars: whole(100_000, "characters of one read_file result"),
  tool_output: section("How much of a tool's output the model sees.", {
    max_bytes: whole(50_000, "bytes of one result"),
    max_lines: whole(2000, "lines of one result"),
    max_line_length: whole(2000, "characters of one line"),
  }),
  tool_loop_guardrails: section("Noticing that the agent runs in circles.", {
    warnings_enabled: flag(true, "the model is told"),
    hard_stop_enabled: flag(false, "the turn is stopped", { unclear: true }),
    warn_after: steps(2, 3, 2, "When the model is told."),
    hard_stop_after: steps(5, 8, 5, "When the turn is stopped."),
  }),
  code_execution: section("Programs the agent writes for itself.", {
    mode: choice(["project", "strict"], "project", "run in the project directory, or in an empty one", GUARD),
  }),
  approvals: section("Who answers for dangerous commands.", {
    mode: choice(["manual", "smart", "off"], "manual", "you, a model first, or nobody", { on: "manual" }),
    timeout: whole(60, "seconds a run in the terminal (`chat -q`) waits for you; then the answer is no"),
    screen_timeout: whole(0, "seconds the screen waits for you; 0 = until you answer"),
    gateway_timeout: whole(300, "seconds a chat waits for you"),
    deny: list([], "patterns of commands that are always refused", GUARDS),
    foreign_text: choice(
      ["ask", "off"],
      "ask",
      "what changes the agent or sends data out is asked about after text from outside was read",
      GUARD,
    ),
    smart_policy: text("", "further rules for the approving model"),
    cron_mode: choice(["deny", "approve"], "deny", "dangerous commands in scheduled runs"),
    mcp_reload_confirm: flag(true, "ask before MCP servers are reloaded"),
    destructive_slash_confirm: flag(true, "ask before /new, /clear and /undo"),
  }),
  command_allowlist: list([], "kinds of dangerous commands you approved for good"),
  quick_commands: record("your own slash commands: name -> `{type: exec, command}` or `{type: alias, target}`"),
  hooks: record("event -> list of `{command, matcher, timeout}`", GUARD),
  hooks_auto_accept: flag(false, "new hooks run without being asked about", { env: "HERMES_ACCEPT_HOOKS" }),
  security: section("Checks that stand between text and action.", {
    redact_secrets: flag(true, "mask secrets in output, logs and stored text; read once at start", {
      env: "HERMES_REDACT_SECRETS",
    }),
    allow_private_urls: flag(false, "tools may open addresses of the local network", {
      env: "HERMES_ALLOW_PRIVATE_URLS",
    }),
    context_scan: choice(["block", "warn"], "block", "what a suspicious project file leads to"),
    website_blocklist: section("Sites that are never opened.", {
      enabled: flag(false, "the list is in force", GUARD),
      domains: list([], "`x.y` with all below it, or `*.x.y` for what is below it alone", GUARDS),
      shared_files: list([], "files with one such line each; relative to the home", GUARDS),
    }),
    acked_advisories: notUsedYet(list([], "security notices you have seen")),
  }),
  privacy: notUsedYet(
    section("What leaves the machine.", {
      redact_pii: flag(false, "user ids are hashed in the prompt", { unclear: true }),
    }),
  ),
  network: section("How the network is used.", { force_ipv4: flag(false, "never use IPv6") }),
  mcp_servers: record("MCP servers by name: `{command, args, env}` or `{url, headers}`"),
  plugins: section("Extensions.", {
    enabled: optional(list([], "plugins that are switched on")),
    disabled: list([], "plugins that are switched off", GUARDS),
    project_enabled: flag(false, "plugins of the current project may load", { env: "HERMES_ENABLE_PROJECT_PLUGINS" }),
    entries: record("plugin -> its settings, e.g. `allow_tool_override`"),
  }),
  cron: notUsedYet(
    section("Scheduled runs.", {
      wrap_response: flag(true, "deliveries carry a heading with the job's name"),
      max_parallel_jobs: orNull(
        whole(0, "jobs at the same time; null = no limit", { env: "HERMES_CRON_MAX_PARALLEL" }),
      ),
      missed_run: text("once", "what a run missed while the machine slept leads to"),
      script_timeout_seconds: whole(120, "seconds a job's script may take", { env: "HERMES_CRON_SCRIPT_TIMEOUT" }),
      model: text("", "model of scheduled runs; empty = the main one"),
      provider: text("", "provider of scheduled runs; empty = the main one"),
    }),
  ),
  kanban: notUsedYet(record("task board")),
  lsp: notUsedYet(record("language servers")),
  honcho: notUsedYet(record("Honcho memory")),
  model_catalog: record("`models_dev_url`: another address for the published list of models"),
  openrouter: record("OpenRouter"),
  bedrock: notUsedYet(record("Amazon Bedrock")),
  secrets: notUsedYet(record("external secret stores")),
  x_search: notUsedYet(record("X search")),
  custom_providers: optional(items("older form of `providers`; `hermes config migrate` converts it")),
};
