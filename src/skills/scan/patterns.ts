// What scripts and commands in a skill do: carrying secrets out, hiding what they are, staying after they are gone.
import { anyOf, chain, expression, type Find, onLine, words } from "../../safety/threats/matchers.ts";
import { THREAT_PATTERNS } from "../../safety/threats/patterns.ts";

// One row of what the scan looks for. Sources are written for folded text: lower case, compatibility forms undone.

export type Severity = "critical" | "high" | "medium" | "low";

export interface SkillPattern {
  readonly id: string;
  readonly severity: Severity;
  readonly category: string;
  readonly find: Find;
}

type Row = readonly [id: string, severity: Severity, find: Find];

function rows(category: string, ...given: readonly Row[]): readonly SkillPattern[] {
  return given.map(([id, severity, find]) => ({ id, severity, category, find }));
}

/** A pattern the prompt's scan has too, by its name there. */
function shared(id: string): Find {
  const pattern = THREAT_PATTERNS.find((one) => one.id === id);
  if (!pattern) throw new Error(`no threat pattern is called ${id}`);
  return pattern.find;
}

// Only ASCII letters, digits and underscores make a word longer.
const START = "(?<![a-z0-9_])";
const END = "(?![a-z0-9_])";
/** A command's own name, not the tail of another one's. */
const COMMAND = "(?<![a-z0-9_.-])";
const SECRET = "(?:key|token|secret|password)";

export type FileKind = "document" | "page" | "python" | "javascript" | "shell" | "ruby" | "data" | "other" | "unknown";

/** The lines of one finding. */
export interface Lines {
  /** Folded, continued lines joined by a blank. */
  readonly folded: string;
  /** As they are in the file. */
  readonly raw: string;
  /** All lines of the file, as they are. */
  readonly file: readonly string[];
  /** Folders between the skill's own and the file. */
  readonly depth: number;
  /** What comes behind the match, folded. */
  readonly behind: string;
}

const HOME = "(?:~|\\$home|\\$\\{home\\})";
const SECRET_VARIABLE = "\\$\\{?[\\p{L}\\p{N}_]*(?:key|token|secret|password|credential|api)";
const homeDirectory = (name: string) => expression(`${HOME}/\\.${name}(?![a-z0-9_])`);
const secretArgument = (call: string) => expression(`${call}\\(\\s*["'][a-z0-9_]{0,64}?(?:${SECRET}|credential)`);

export const EXFILTRATION = rows(
  "exfiltration",
  ["env_exfil_curl", "critical", onLine(`${COMMAND}curl${END}`, SECRET_VARIABLE)],
  ["env_exfil_wget", "critical", onLine(`${COMMAND}wget${END}`, SECRET_VARIABLE)],
  ["env_exfil_fetch", "critical", onLine("fetch\\(", "\\$\\{?[\\p{L}\\p{N}_.]*(?:key|token|secret|password|api)")],
  ["env_exfil_httpx", "critical", onLine(`${START}httpx?\\.(?:get|post|put|patch)\\(`, SECRET)],
  ["env_exfil_requests", "critical", onLine(`${START}requests\\.(?:get|post|put|patch)\\(`, SECRET)],
  ["encoded_exfil", "high", onLine("base64", "(?<![a-z])env(?![a-z])|environ(?![a-z])")],
  ["ssh_dir_access", "high", homeDirectory("ssh")],
  ["aws_dir_access", "high", homeDirectory("aws")],
  ["gpg_dir_access", "high", homeDirectory("gnupg")],
  ["kube_dir_access", "high", homeDirectory("kube")],
  ["docker_dir_access", "high", homeDirectory("docker")],
  ["hermes_env_access", "critical", expression(`${HOME}/\\.hermes/\\.env`)],
  [
    "read_secrets_file",
    "critical",
    onLine(
      "(?<![a-z0-9_-])cat(?![a-z0-9_-])(?!\\s*>)",
      "\\.env(?![\\p{L}]|\\.(?:example|sample|template))|credentials|\\.netrc|\\.pgpass|\\.npmrc|\\.pypirc",
    ),
  ],
  ["dump_all_env", "high", expression(`${COMMAND}(?:printenv${END}|env[ \\t]*\\|)`)],
  [
    "python_os_environ",
    "high",
    expression(`os\\.environ${END}(?!\\.get\\(\\s*["'](?![a-z0-9_]{0,64}(?:${SECRET}|credential)))`),
  ],
  ["python_environ_get_secret", "critical", secretArgument("os\\.environ\\.get")],
  ["python_getenv_secret", "critical", secretArgument("os\\.getenv")],
  ["node_process_env", "high", expression("process\\.env\\[")],
  ["ruby_env_secret", "critical", expression(`(?<![a-z0-9_.])env\\[["']?[a-z0-9_]{0,64}?${SECRET}`)],
  ["dns_exfil", "critical", onLine(`${COMMAND}(?:dig|nslookup|host)(?=[ \\t])`, "\\$")],
  [
    "tmp_staging",
    "critical",
    chain(2048, ">{1,2}\\s*(?:/var)?/tmp/", "&&", `${COMMAND}(?:curl|wget|nc|python[0-9.]{0,4})${END}`),
  ],
);

const RECURSIVE_RM = "rm\\s+(?:-[a-z-]{1,20}\\s+){0,3}(?:-[a-z]{0,10}r[a-z]{0,10}|--recursive)";

export const DESTRUCTIVE = rows(
  "destructive",
  [
    "destructive_root_rm",
    "critical",
    expression(`${COMMAND}${RECURSIVE_RM}\\s+(?:-[a-z-]{1,20}\\s+){0,3}["']?/(?![a-z0-9._])`),
  ],
  ["destructive_home_rm", "critical", onLine(`${COMMAND}(?:rmdir|${RECURSIVE_RM})(?=\\s)`, "\\$\\{?home(?![a-z0-9_])")],
  ["insecure_perms", "medium", expression(`${COMMAND}chmod\\s+(?:-[a-z]{1,4}\\s+)?0?777${END}`)],
  ["system_overwrite", "critical", expression(">[ \\t]*/etc/")],
  ["format_filesystem", "critical", expression("(?<![a-z0-9_-])mkfs(?![a-z0-9_-])")],
  ["disk_overwrite", "critical", chain(1024, `${COMMAND}dd[ \\t]`, "if=", "of=/dev/")],
  ["truncate_system", "critical", expression(`${COMMAND}truncate\\s+-s\\s*0\\s+/`)],
  ["python_rmtree", "high", expression("shutil\\.rmtree\\(\\s*[\"'/]")],
);

const WRITES = `${START}(?:update|modify|edit|write|change|append|overwrite|replace|add\\s+to|tee)${END}`;

/** A file on one line with a word of writing, before or behind it, or as the target of a redirection. */
function written(file: string): Find {
  // A ">" that begins a line is a quotation.
  const redirected = expression(`(?<=\\S[ \\t]{0,8})>{1,2}[ \\t]*["']?[^\\s>|"']{0,200}?(?:${file})`);
  return anyOf(onLine(WRITES, file), onLine(file, WRITES), redirected);
}

const AGENT_FILES = "agents\\.md|claude\\.md|\\.cursorrules|\\.clinerules";
const HERMES_FILES = "\\.hermes/(?:config\\.yaml|soul\\.md)";

export const PERSISTENCE = rows(
  "persistence",
  ["persistence_cron", "medium", expression(`${COMMAND}crontab${END}`)],
  [
    "shell_rc_mod",
    "medium",
    expression("(?<![a-z0-9_)\\]])\\.(?:bashrc|zshrc|profile|bash_profile|bash_login|zprofile|zlogin)(?![a-z0-9_])"),
  ],
  ["ssh_keygen", "medium", expression("ssh-keygen")],
  [
    "systemd_service",
    "medium",
    anyOf(onLine("systemd", "service"), expression("systemctl\\s+(?:-{1,2}[a-z-]{1,20}\\s+){0,3}(?:enable|start)")),
  ],
  ["init_script", "medium", expression("/etc/init\\.d/")],
  ["macos_launchd", "medium", expression("launchctl\\s+load|launch(?:agents|daemons)")],
  ["git_config_global", "medium", expression("git\\s+config\\s+--global")],
  ["ssh_backdoor", "critical", expression("authorized_keys")],
  ["sudoers_mod", "critical", expression("/etc/sudoers|(?<![a-z])visudo(?![a-z])")],
  ["agent_config_mod", "critical", written(AGENT_FILES)],
  ["hermes_config_mod", "critical", written(HERMES_FILES)],
  ["agent_config_mention", "medium", expression(`${AGENT_FILES}|${HERMES_FILES}`)],
  ["other_agent_config", "high", expression("\\.claude/settings|\\.codex/config")],
);

export const NETWORK = rows(
  "network",
  [
    "reverse_shell",
    "critical",
    expression(`${COMMAND}(?:(?:nc|ncat)\\s+(?:-[a-z]{1,8}\\s+){0,3}-[a-z]{0,6}[lp]|socat${END})`),
  ],
  ["bash_reverse_shell", "critical", expression("/dev/(?:tcp|udp)/")],
  ["python_socket_oneliner", "critical", expression("python[0-9.]{0,4}\\s+-c\\s+[\"']import\\s+socket")],
  ["tunnel_service", "high", expression(`${START}(?:ngrok|localtunnel|serveo|cloudflared)${END}`)],
  ["bind_all_interfaces", "high", expression("0\\.0\\.0\\.0:[0-9]|inaddr_any")],
  ["python_socket_connect", "high", expression(`${START}(?:socket|sock|s)\\.connect\\(\\(`)],
  ["exfil_service", "high", expression("webhook\\.site|requestbin\\.com|pipedream\\.net|hookbin\\.com")],
  ["hardcoded_ip_port", "medium", expression("(?<![0-9.])(?:[0-9]{1,3}\\.){3}[0-9]{1,3}:[0-9]{2,5}")],
  ["paste_service", "medium", expression("pastebin\\.com|hastebin\\.com|ghostbin\\.")],
);

const SHELL = `\\|\\s*(?:sudo\\s+)?(?:ba|z|da)?sh${END}`;
const PYTHON = "\\|\\s*(?:sudo\\s+)?python[0-9.]{0,4}(?![a-z0-9_])";

export const OBFUSCATION = rows(
  "obfuscation",
  [
    "echo_pipe_exec",
    "critical",
    onLine(`${COMMAND}echo(?=\\s)`, `${SHELL}|${PYTHON}|\\|\\s*(?:sudo\\s+)?(?:perl|ruby|node)${END}`),
  ],
  ["base64_decode_pipe", "high", expression("base64\\s+(?:-d|--decode)(?![a-z])[^\\n|]{0,200}\\|")],
  ["eval_string", "high", expression(`${START}eval\\(\\s*["']`)],
  ["exec_string", "high", expression(`(?<![a-z0-9_.])exec\\(\\s*["']`)],
  ["python_compile_exec", "high", expression(`${START}compile\\([^\\n)]{0,200}["']exec["']`)],
  ["python_getattr_builtins", "high", expression("getattr\\(\\s*__builtins__")],
  ["python_import_os", "high", expression("__import__\\(\\s*[\"']os[\"']")],
  ["chr_building", "high", expression("chr\\(\\s*[0-9]{1,7}\\s*\\)\\s*\\+\\s*chr\\(\\s*[0-9]")],
  ["hex_encoded_string", "medium", expression("(?:\\\\x[0-9a-f]{2}){3}")],
  ["unicode_escape_chain", "medium", expression("(?:\\\\u[0-9a-f]{4}){3}")],
  ["python_codecs_decode", "medium", expression("codecs\\.decode\\(\\s*[\"']")],
  ["js_char_code", "medium", expression("string\\.fromcharcode|charcodeat")],
  ["js_base64", "medium", expression(`${START}(?:atob|btoa)\\(`)],
  ["string_reversal", "low", expression("\\[::-1\\]")],
);

export const EXECUTION = rows(
  "execution",
  ["python_os_system", "high", expression("os\\.system\\(")],
  ["python_os_popen", "high", expression("os\\.popen\\(")],
  ["node_child_process", "high", expression("child_process(?:[\"']\\))?\\.(?:exec|spawn|fork)[a-z]{0,8}\\(")],
  ["java_runtime_exec", "high", expression("runtime\\.getruntime\\(\\)\\.exec\\(")],
  ["python_subprocess", "medium", expression("subprocess\\.(?:run|call|popen|check_output)\\(")],
  ["backtick_subshell", "medium", expression("`[^`\\n]{0,200}\\$\\([^`)\\n]{0,200}\\)[^`\\n]{0,200}`")],
);

const PATH = /[^\s"'`()<>[\]{}|;&,=]+/gu;

/** A path with so many parts `..`, wherever they stand in it. */
function climbs(least: number, most: number): Find {
  return (text) => {
    if (!text.includes("..")) return null;
    for (const { 0: path, index } of text.matchAll(PATH)) {
      const count = path.includes("..") ? path.split(/[/\\]/).filter((part) => part === "..").length : 0;
      if (count >= least && count <= most) return { index, end: index + path.length };
    }
    return null;
  };
}

export const TRAVERSAL = rows(
  "traversal",
  ["system_passwd_access", "critical", expression("/etc/(?:passwd|shadow)(?![a-z])")],
  ["path_traversal_deep", "high", climbs(3, Infinity)],
  ["proc_access", "high", expression("/proc/(?:self|[0-9]{1,7}/)")],
  ["path_traversal", "medium", climbs(2, 2)],
  ["dev_shm", "medium", expression("/dev/shm/")],
);

export const MINING = rows(
  "mining",
  ["crypto_mining", "critical", expression(`stratum\\+tcp|${START}(?:xmrig|monero|coinhive|cryptonight)${END}`)],
  ["mining_indicators", "medium", anyOf(expression("hash[ -]?rate"), onLine("nonce", "difficulty"))],
);

// A package name or a quote on the same line; a bare `npm install` takes what the lock file says.
const ARGUMENT = "[a-z0-9@\"'.\\[]";

export const SUPPLY_CHAIN = rows(
  "supply_chain",
  ["curl_pipe_shell", "critical", onLine(`${COMMAND}curl(?=\\s)`, SHELL)],
  ["wget_pipe_shell", "critical", onLine(`${COMMAND}wget(?=\\s)`, `-[a-z]{0,4}o\\s*-[^\\n]{0,300}?${SHELL}`)],
  ["curl_pipe_python", "critical", onLine(`${COMMAND}curl(?=\\s)`, PYTHON)],
  ["pep723_inline_deps", "medium", expression("#[ \\t]*dependencies[ \\t]*=[ \\t]*\\[")],
  [
    "unpinned_pip_install",
    "medium",
    expression(
      `${START}pip3?[ \\t]+install[ \\t]+(?!(?:-[a-z-]{1,20}[ \\t]+){0,3}(?:-r|--requirement)(?![a-z]))(?![^\\n]{0,300}==)(?:-{1,2}[a-z-]{1,20}[ \\t]+){0,3}${ARGUMENT}`,
    ),
  ],
  [
    "unpinned_npm_install",
    "medium",
    expression(
      `${START}npm[ \\t]+(?:install|i)[ \\t]+(?![^\\n]{0,300}@[0-9])(?:-{1,2}[a-z-]{1,20}[ \\t]+){0,3}${ARGUMENT}`,
    ),
  ],
  ["uv_run", "medium", expression(`${COMMAND}uv\\s+run${END}`)],
  ["remote_fetch", "medium", expression(`(?:fetch\\(\\s*|${COMMAND}(?:curl|wget)[ \\t]+)["'\`]https?://`)],
  ["git_clone", "medium", expression("git\\s+clone(?![a-z])")],
  ["docker_pull", "medium", expression("docker\\s+pull(?![a-z])")],
);

export const PRIVILEGES = rows(
  "privilege_escalation",
  ["setuid_setgid", "critical", expression(`${START}(?:cap_)?set[ug]id${END}`)],
  ["nopasswd_sudo", "critical", expression("nopasswd")],
  [
    "suid_bit",
    "critical",
    expression(
      `${COMMAND}chmod\\s+(?:-[a-z]{1,8}\\s+){0,2}(?:[ugoa]{0,4}\\+[rwxt]{0,4}s[rwxt]{0,4}|[2-7][0-7]{3})${END}`,
    ),
  ],
  ["sudo_usage", "high", expression(`${START}sudo${END}`)],
  ["allowed_tools_field", "low", expression("(?:^|(?<=\\n))allowed-tools:")],
);

export const CREDENTIALS = rows(
  "credential_exposure",
  ["hardcoded_secret", "critical", shared("hardcoded_secret")],
  ["embedded_private_key", "critical", expression("-----begin (?:[a-z0-9]{1,12} ){0,3}private key-----")],
  ["github_token_leaked", "critical", expression("(?<![a-z0-9])(?:ghp_[a-z0-9]{36}|github_pat_[a-z0-9_]{80})")],
  ["openai_key_leaked", "critical", expression("(?<![a-z0-9])sk-(?:proj-)?[a-z0-9]{20}")],
  ["anthropic_key_leaked", "critical", expression("(?<![a-z0-9])sk-ant-[a-z0-9_-]{90}")],
  ["aws_access_key_leaked", "critical", expression("(?<![a-z0-9])akia[a-z0-9]{16}")],
  ["gitlab_token_leaked", "critical", expression("(?<![a-z0-9])glpat-[a-z0-9_-]{20}")],
);

// Other ways to the same ends: what is downloaded and run without a pipe, shells in other languages, rarer hiding places of keys.

const DOWNLOAD = "(?:curl|wget)(?=\\s)";
const POWERSHELL_GET = `${START}(?:iwr|irm|invoke-webrequest|invoke-restmethod|downloadstring)${END}`;
const POWERSHELL_RUN = `${START}(?:iex|invoke-expression)${END}`;

export const EVASION = rows(
  "evasion",
  [
    "download_substitution",
    "critical",
    expression(`(?:<\\(|-c\\s{0,4}["']?\\$\\(|eval\\s{1,4}["']?\\$\\()\\s{0,4}${DOWNLOAD}`),
  ],
  [
    "download_then_run",
    "high",
    onLine(`${COMMAND}${DOWNLOAD}`, `(?:&&|;)\\s{0,4}(?:(?:ba|z|da)?sh|python[0-9.]{0,4}|chmod\\s+\\+x)(?=\\s)`),
  ],
  [
    "powershell_download",
    "critical",
    anyOf(onLine(POWERSHELL_RUN, POWERSHELL_GET), onLine(POWERSHELL_GET, POWERSHELL_RUN)),
  ],
  ["powershell_encoded", "critical", expression("powershell[^\\n]{0,80}\\s-e(?:nc|ncodedcommand)?\\s+[a-z0-9+/=]{8}")],
  [
    "secret_file_upload",
    "critical",
    onLine(`${COMMAND}curl(?=\\s)`, "@[^\\s]{0,200}(?:\\.env(?![a-z])|credentials|\\.netrc|id_rsa|id_ed25519)"),
  ],
  ["config_credentials", "high", expression("(?:~|\\$home|\\$\\{home\\})/\\.config/(?:gh|gcloud|op)(?![a-z0-9_])")],
  ["keychain_access", "high", expression("security\\s+find-(?:generic|internet)-password")],
  ["fifo_shell", "critical", onLine("mkfifo", `${COMMAND}(?:nc|ncat|telnet)(?=\\s)`)],
  ["socket_open", "high", expression(`${START}(?:tcpsocket\\.(?:new|open)|fsockopen)\\(`)],
  ["ssh_remote_forward", "high", expression(`${COMMAND}ssh\\s+(?:-[a-z]{1,8}\\s+){0,3}-[a-z]{0,6}r\\s*[0-9]{1,5}:`)],
  [
    "child_process_import",
    "high",
    expression("(?:from|require\\(|import\\()\\s{0,4}[\"'](?:node:)?child_process[\"']"),
  ],
  ["tilde_rm", "critical", expression(`${COMMAND}rm\\s+-[a-z]{0,6}r[a-z]{0,6}\\s+["']?~(?:/\\*?)?["']?(?=\\s|$)`)],
  ["find_root_delete", "critical", expression(`${COMMAND}find\\s+/\\s[^\\n]{0,200}-delete`)],
  ["fork_bomb", "critical", expression(":\\(\\)\\s{0,3}\\{\\s{0,3}:\\|:&")],
  ["cron_file", "high", expression("/etc/cron\\.[a-z]{1,8}/")],
  ["windows_autostart", "high", expression("schtasks\\s+/create|currentversion\\\\run")],
  [
    "conceal_from_user",
    "critical",
    anyOf(words("not|never mention|reveal|disclose ... to the user"), words("without telling|informing the user")),
  ],
  ["forget_instructions", "high", words("forget everything|all ... told|instructions|rules|before")],
);

// What is said to the model: orders in disguise, and talk that carries things out.

export const INJECTION = rows(
  "injection",
  ["prompt_injection_ignore", "critical", words("ignore ... previous|all|above|prior instructions")],
  ["role_hijack", "high", words("you are ... now *")],
  ["deception_hide", "critical", shared("deception_hide")],
  ["disregard_rules", "critical", shared("disregard_rules")],
  ["bypass_restrictions", "critical", shared("bypass_restrictions")],
  ["remove_filters", "critical", shared("remove_filters")],
  ["sys_prompt_override", "critical", words("system ... prompt ... override")],
  ["role_pretend", "high", shared("role_pretend")],
  ["leak_system_prompt", "high", shared("leak_system_prompt")],
  ["fake_update", "high", shared("fake_update")],
  ["conditional_deception", "high", words("when|if no_one|nobody is watching|looking")],
  ["translate_execute", "critical", shared("translate_execute")],
  ["html_comment_injection", "high", shared("html_comment_injection")],
  ["hidden_div", "high", shared("hidden_div")],
  ["jailbreak_dan", "critical", anyOf(words("dan mode"), words("do anything now"))],
  ["jailbreak_dev_mode", "critical", words("developer mode ... enabled")],
  ["hypothetical_bypass", "high", words("hypothetical scenario ... ignore|bypass|override")],
  ["educational_pretext", "medium", words("for educational purposes only")],
  [
    "fake_policy",
    "medium",
    anyOf(words("new ... policy"), words("updated ... guidelines"), words("revised ... instructions")),
  ],
);

export const TALK = rows(
  "exfiltration",
  ["md_image_exfil", "high", expression("!\\[[^\\]\\n]{0,200}\\]\\([^)\\n]{0,500}\\$")],
  ["md_link_exfil", "high", expression("(?<!!)\\[[^\\]\\n]{0,200}\\]\\([^)\\n]{0,500}\\$")],
  [
    "context_exfil",
    "high",
    words("include|output|print|send|share ... conversation|conversations|chat_history|previous_messages|context"),
  ],
  ["send_to_url", "high", shared("send_to_url")],
);
