// What looks like a threat and is everyday work: a key sent to the service it belongs to, `sudo apt install`, a placeholder in an example.
// The everyday forms are taken out of the lines of a finding; where the pattern then finds nothing any more, the finding weighs less. Files
// of a kind nobody knows get no such trust. Written for folded text: lower case, continued lines joined.
import { anyOf, chain, expression, type Find, words } from "../../safety/threats/matchers.ts";
import type { FileKind, Lines, Severity } from "./patterns.ts";
import { sendsToItsService, staysInside } from "./secrets.ts";

/** What is left of the lines without the everyday form. */
type Form = (folded: string, lines: Lines) => string;

interface Everyday {
  readonly id: string;
  /** Null: every kind that is known. */
  readonly kinds: readonly FileKind[] | null;
  readonly then: Severity | "nothing";
  readonly form: Form;
}

const DOCUMENT: readonly FileKind[] = ["document"];
const TEXTS: readonly FileKind[] = ["document", "page"];
const PYTHON: readonly FileKind[] = ["python", "document"];
const JAVASCRIPT: readonly FileKind[] = ["javascript", "page", "document"];

/** Patterns of one language are for files that can hold it. */
export const LANGUAGES: readonly (readonly [ids: RegExp, kinds: readonly FileKind[]])[] = [
  [/^python_|^env_exfil_(?:httpx|requests)$/, ["python", "document", "shell", "data", "unknown"]],
  [/^ruby_/, ["ruby", "document", "shell", "data", "unknown"]],
  [/^node_|^child_process_import$/, ["javascript", "page", "document", "shell", "data", "unknown"]],
  [/^md_|^html_comment_injection$|^hidden_div$/, ["document", "page", "data", "unknown"]],
];

const out = (source: string): Form => {
  const pattern = new RegExp(source, "gu");
  return (folded) => folded.replaceAll(pattern, " ");
};
/** Nothing is left where the narrower look finds nothing. */
const unless =
  (narrow: Find): Form =>
  (folded) =>
    narrow(folded) ? folded : "";
const unlessSaid = (source: string) => unless(expression(source));
/** Nothing is left where the lines say this too. */
const besides = (source: string): Form => {
  const pattern = new RegExp(source, "u");
  return (folded) => (pattern.test(folded) ? "" : folded);
};
const both =
  (one: Form, other: Form): Form =>
  (folded, lines) =>
    one(folded, lines) === "" && other(folded, lines) === "" ? "" : folded;

const HOME = "(?:~|\\$home|\\$\\{home\\})";
const SECRET_WORD = "(?:key|token|secret|password|credential)";
const NO_SECRET_NAME = `(?![a-z0-9_]{0,80}${SECRET_WORD})[a-z0-9_]{1,80}`;
const READS =
  "(?<![a-z])(?:cat|less|more|head|tail|cp|scp|rsync|tar|zip|base64|curl|copy|paste|upload|send|list|ls|print|show|read|open|find|grep)(?![a-z-])";
const WRITES_SHELL =
  ">{1,2}|(?<![a-z])(?:tee|echo|append|add|cp|mv|sed|write|edit|update|modify|overwrite|replace)(?![a-z-])";
const WARNING =
  "(?<![a-z])(?:never|do not|don['’]t|avoid|forbids?|forbidden|blocks?|refuse|reject|disallow|not allowed|does not work)(?![a-z])";
const ADDRESSED =
  "(?<![a-z])(?:instructions?|prompts?|rules?|guidelines|obey|assistant|agents?|model|tell|secretly|in secret|you (?:must|should|will|are)|reply|respond|ignore|send|execute)(?![a-z])";

// Installers that their makers publish for this use; the name ends where the host or the path does.
const INSTALLERS = [
  "astral\\.sh/uv|bun\\.sh|bun\\.com|sh\\.rustup\\.rs|get\\.pnpm\\.io|get\\.docker\\.com|get\\.helm\\.sh|get\\.k3s\\.io|get\\.sdkman\\.io",
  "get\\.volta\\.sh|deno\\.land|fnm\\.vercel\\.app|install\\.python-poetry\\.org|pdm-project\\.org|pixi\\.sh|pyenv\\.run|mise\\.run",
  "starship\\.rs|ollama\\.com|fly\\.io|tailscale\\.com|nixos\\.org|install\\.determinate\\.systems|claude\\.ai/install\\.sh|dot\\.net",
  "raw\\.githubusercontent\\.com/(?:homebrew/install|nvm-sh/nvm|helm/helm|pyenv/pyenv-installer|rancher/k3d|aquasecurity/trivy)",
].join("|");
const DOWNLOAD = "(?<![a-z0-9_.-])(?:curl|wget|irm|iwr|invoke-webrequest|invoke-restmethod)(?=\\s)";

const SUDO = [
  "(?:-e\\s+)?(?:apt|apt-get|dnf|yum|pacman|zypper|apk|snap|brew|port|gem|npm|npx|pip3?|systemctl|service|journalctl|lsof|ss|netstat|docker)",
  "mkdir|chown|nginx|certbot|ufw|xcode-select|softwareupdate|ldconfig|usermod\\s+-ag\\s+(?:docker|plugdev|dialout|kvm|video|audio)",
  "(?:tail|less|head|cat)\\s[^\\n|;&]{0,40}/var/log/|tee\\s+/etc/(?:nginx|apt|systemd|docker|caddy)/",
].join("|");

const PLACEHOLDER =
  "your|example|placeholder|change|replace|insert|dummy|sample|goes|here|xxxx|todo|fake|redacted|lorem|(?<![a-z])[a-z]{1,40}[-_][a-z]{1,40}[-_][a-z]{1,40}(?![a-z0-9+/=_-]{0,120}[0-9])";

const ROWS: readonly (readonly [
  ids: string,
  kinds: readonly FileKind[] | null,
  then: Severity | "nothing",
  form: Form,
])[] = [
  // Keys and variables
  ["env_exfil_curl env_exfil_wget env_exfil_fetch", null, "medium", sendsToItsService],
  [
    "env_exfil_fetch",
    JAVASCRIPT,
    "nothing",
    out(
      "\\$\\{[\\p{L}\\p{N}_.]{0,60}(?:url|base|host|endpoint|root|origin|prefix|version)[\\p{L}\\p{N}_.]{0,60}\\}|(?<=fetch\\(\\s{0,9}`)\\$\\{[\\w.]+\\}(?=/)",
    ),
  ],
  [
    "env_exfil_httpx env_exfil_requests",
    PYTHON,
    "nothing",
    out(
      "(?:[a-z_]{0,60}_)?tokens(?![a-z])|tokeniz[a-z]+|keys?\\(\\)|keywords?|(?:primary|foreign|sort|public|partition)_?key|(?:page|next|csrf)_?token|keyboard",
    ),
  ],
  [
    "env_exfil_httpx env_exfil_requests",
    PYTHON,
    "medium",
    out(
      "[\"'](?:authorization|[a-z-]{0,20}(?:api-?key|token))[\"']\\s*:\\s*(?:f?[\"'](?:bearer |token |basic )?\\{?[\\w.]{1,60}\\}?[\"']|[\\w.]{1,60})|auth\\s*=\\s*\\(?[\\w., \"']{1,80}\\)?|params\\s*=\\s*\\{\\s*[\"'](?:key|api_?key|access_token|token|appid)[\"']\\s*:\\s*[\\w.]{1,60}",
    ),
  ],
  ["python_environ_get_secret python_getenv_secret python_os_environ", PYTHON, "medium", staysInside],
  [
    "python_os_environ",
    PYTHON,
    "low",
    out(
      [
        `os\\.environ\\[\\s*["']${NO_SECRET_NAME}["']\\s*\\]`,
        "os\\.environ\\[[^\\]\\n]{1,60}\\]\\s*=(?!=)",
        "del\\s+os\\.environ\\[|os\\.environ\\.(?:setdefault|pop|update|clear)\\(",
        "(?<!for\\s{1,4})(?<![\\w.])[\\w.\"']{1,80}\\s+(?:not\\s+)?in\\s+os\\.environ(?![.\\w[])",
        "^\\s*#[^\\n]*",
      ].join("|"),
    ),
  ],
  ["node_process_env", JAVASCRIPT, "low", out("process\\.env\\[\\s*[\"'`][a-z0-9_]+[\"'`]\\s*\\]")],
  [
    "node_process_env",
    JAVASCRIPT,
    "medium",
    (folded) =>
      /console\.|fetch|write|send|stringify|post\(|push\(/u.test(folded)
        ? folded
        : folded.replaceAll(/(?:=|return|\?\?|\|\||&&|[(:!,])\s*process\.env\[\s*[\w.$]{1,60}\s*\]/gu, " "),
  ],
  ["ruby_env_secret", ["data"], "low", out("<%=\\s*env(?:\\[|\\.fetch\\()[^%\\n]{1,80}%>")],
  ["ruby_env_secret", DOCUMENT, "nothing", (folded, { raw }) => (/\bENV\[/.test(raw) ? folded : "")],
  [
    "ruby_env_secret",
    ["ruby", "document"],
    "medium",
    both(
      besides("[\\w)]\\s*(?:=|:|=>)\\s*env\\["),
      unlessSaid("(?<![a-z])(?:puts|print|p|write|system|post|send|net::|uri)(?![a-z])"),
    ),
  ],
  [
    "dump_all_env",
    null,
    "low",
    out(
      `printenv[ \\t]+${NO_SECRET_NAME}(?![a-z0-9_])|env[ \\t]*\\|[ \\t]*[ef]?grep[ \\t]+(?:-[a-z]+[ \\t]+)*["']?\\^?(?![^\\s|;&]*(?:${SECRET_WORD}|api|aws))[^\\s|;&]+`,
    ),
  ],
  ["dump_all_env", DOCUMENT, "nothing", out("(?<=\\|[ \\t]{0,40}`?)env(?=`?[ \\t]{0,40}\\|)")],
  ["dump_all_env", DOCUMENT, "medium", out("(?:kubectl|docker)\\s[^\\n|;]{0,120}\\senv[ \\t]*\\|")],
  [
    "hermes_env_access",
    DOCUMENT,
    "medium",
    both(
      besides(`(?:add|put|set|store|save|keep|goes|belongs|in|into|to)\\s[^\\n]{0,120}${HOME}/\\.hermes/\\.env`),
      unlessSaid(
        "(?<![a-z])(?:open|cat|less|more|head|tail|read|paste|print|show|display|output|send|upload|grep|include|copy)(?![a-z])",
      ),
    ),
  ],
  [
    "ssh_dir_access",
    null,
    "low",
    out(
      `${HOME}/\\.ssh/(?:config|known_hosts|[\\w.-]{1,40}\\.pub)(?![\\w.-])|(?:identityfile|ssh-add|-i|-f)\\s+["']?${HOME}/\\.ssh/[\\w.-]{1,40}|(?:mkdir|chmod)\\s[^\\n;&|]{0,20}${HOME}/\\.ssh[\\w./-]*`,
    ),
  ],
  ["aws_dir_access", null, "low", out(`${HOME}/\\.aws/config(?![\\w.-])`)],
  ["kube_dir_access", null, "low", out(`(?:kubeconfig|--kubeconfig)[ =]["']?${HOME}/\\.kube/config`)],
  ["aws_dir_access gpg_dir_access kube_dir_access docker_dir_access", DOCUMENT, "medium", unlessSaid(READS)],
  [
    "dns_exfil",
    null,
    "low",
    out("(?:dig|nslookup|host)[ \\t][^\\n$]{0,120}\\$\\{?[a-z0-9_]+\\}?(?![.\\w`(-])|(?<=[a-z] )host(?=[ \\t])"),
  ],
  ["tmp_staging", null, "medium", out(">{1,2}\\s*(?:/var)?/tmp/[^\\s&|;]{1,80}\\s*&&\\s*python[0-9.]{0,4}(?=\\s)")],
  // What is said
  [
    "context_exfil",
    null,
    "nothing",
    unless(
      anyOf(
        words(
          "include|output|print|send|share|post|upload ... whole|full|entire|complete ..3 conversation|conversations|chat_history|previous_messages",
        ),
        words("include|output|print|send|share|post|upload ..3 whole|full|entire|complete context"),
        words(
          "output|print|send|share|post|upload the|this|our|all conversation|conversations|chat_history|previous_messages",
        ),
        chain(
          512,
          "(?<![a-z])(?:send|share|post|upload|forward|e?mail)(?![a-z])",
          "conversations?|chat history|previous messages|context",
          "https?://|webhook|[\\w.]@[\\w-]+\\.[a-z]",
        ),
      ),
    ),
  ],
  [
    "send_to_url",
    DOCUMENT,
    "medium",
    out(
      "(?:send|post|make)(?:\\s+[\\w-]+){0,4}?\\s+(?:request|query|call|get|post|put|message)s?\\s+(?:to|at)\\s+https?://|(?<![\\w])post\\s+to\\s+https?://",
    ),
  ],
  ["md_link_exfil md_image_exfil", null, "low", out("\\]\\(\\s*\\$\\{?[\\w.]{1,40}\\}?\\s*\\)|\\$(?![a-z_{(])")],
  ["role_hijack", null, "nothing", unless(words("you are ..2 now *"))],
  [
    "role_hijack",
    null,
    "nothing",
    out(
      "you are(?: all)? now (?:ready|done|able|in|inside|on|at|using|connected|logged|signed|running|set|free|finished|authenticated|good|working|up)(?![a-z])",
    ),
  ],
  [
    "role_pretend",
    DOCUMENT,
    "medium",
    out(
      "pretend (?:that )?(?:you are|to be) (?:new|an? (?:new |first-time |real |sceptical |skeptical )?(?:user|reader|reviewer|customer|beginner|visitor|newcomer|tester|developer))(?![a-z])",
    ),
  ],
  [
    "deception_hide",
    null,
    "nothing",
    unlessSaid(
      "do\\s+not\\s+(?:(?:ever|directly|explicitly|openly|please|even|also|under any circumstances?|at any point)\\s+){0,3}tell(?![a-z])",
    ),
  ],
  [
    "deception_hide",
    DOCUMENT,
    "medium",
    out(
      "do\\s+not\\s+tell\\s+the\\s+users?(?:\\s+to\\s|\\s[^\\n.;]{0,80}(?<![a-z])(?:until|unless|before you|without having)(?![a-z]))",
    ),
  ],
  [
    "conceal_from_user",
    null,
    "nothing",
    out("(?:never|not|don['’]t)\\s[^\\n.;]{0,120}without\\s+(?:telling|informing)\\s+the\\s+user"),
  ],
  [
    "conceal_from_user",
    DOCUMENT,
    "medium",
    out(
      "(?:not|never)\\s+mention\\s+(?:(?:the|any|our|such)\\s+)?(?:internal|technical|competitors?|code\\s+names?|prices?|implementation)(?![a-z])",
    ),
  ],
  [
    "translate_execute",
    null,
    "nothing",
    unlessSaid(
      "into\\s+(?:an?\\s+|the\\s+)?(?:bash|shell|sh|zsh|powershell|python|sql|javascript|commands?|code|scripts?)(?![a-z])[^\\n]{0,200}and\\s+(?:execute|run|eval)(?:\\s+(?:it|them|that|this|what|the\\s+(?:result|output|command|script|code)))?(?:[\\s.,;!]|$)(?!the\\s+tests?)",
    ),
  ],
  ["sys_prompt_override", DOCUMENT, "medium", unless(words("system ..1 prompt ..1 override"))],
  ["html_comment_injection", TEXTS, "low", unlessSaid(`<!--[^>]{0,1000}?${ADDRESSED}`)],
  [
    "hidden_div",
    TEXTS,
    "low",
    (folded, { behind }) =>
      new RegExp(ADDRESSED, "u").test(/^[^>]{0,400}>([^<]{0,600})/u.exec(behind)?.[1] ?? "") ? folded : "",
  ],
  [
    "jailbreak_dev_mode",
    null,
    "nothing",
    besides(
      "(?<![a-z])(?:devices?|android|phone|chrome|chromium|extensions?|browser|usb|settings|windows|ios|iphone|xcode|discord|tablet|emulator|headset)(?![a-z])",
    ),
  ],
  [
    "prompt_injection_ignore",
    DOCUMENT,
    "high",
    out("[\"“'‘][^\"”'’\\n]{0,20}ignore[^\"”'’\\n]{0,60}instructions[^\"”'’\\n]{0,20}[\"”'’]"),
  ],
  // What is done
  ["destructive_root_rm", DOCUMENT, "high", besides(WARNING)],
  [
    "destructive_home_rm",
    null,
    "medium",
    out(
      "\\$\\{?home\\}?[\"']?/(?:[\\w.-]{1,40}/){0,4}[\\w.-]{0,40}(?:cache|tmp|temp|build|dist|node_modules|logs?|trash|venv)[\\w./-]*",
    ),
  ],
  ["system_overwrite", null, "high", out(">[ \\t]*/etc/(?:nginx|apt|systemd/system|docker|caddy|logrotate\\.d)/")],
  ["disk_overwrite", null, "nothing", out("of=/dev/(?:null|stdout|stderr)(?![a-z0-9])")],
  [
    "python_rmtree",
    PYTHON,
    "low",
    out("shutil\\.rmtree\\(\\s*[\"'](?:(?![/~])(?![^\"'\\n]*\\.\\.)|/tmp/(?=[a-z0-9]))[^\"'\\n]{1,80}[\"']"),
  ],
  ["ssh_backdoor", DOCUMENT, "medium", both(besides("ssh-copy-id|permissions|chmod|sshd"), unlessSaid(WRITES_SHELL))],
  [
    "agent_config_mod",
    DOCUMENT,
    "medium",
    unlessSaid(
      "(?:update|modify|edit|write|append|overwrite|replace|add|insert|change)(?:\\s+(?!(?:before|after|until|when|while|and|then|or|if|that|code|you)\\s)[\\w'’/-]+){0,8}\\s+[`\"']?[\\w./~-]*(?:agents\\.md|claude\\.md|\\.cursorrules|\\.clinerules)|(?:agents\\.md|claude\\.md|\\.cursorrules|\\.clinerules)[`\"']?\\s+(?:is|are|be|must be|should be|gets)\\s+(?:updated|modified|edited|written|changed|appended|replaced)|>{1,2}[ \\t]*[\"']?[^\\s>|\"']{0,200}?(?:agents\\.md|claude\\.md|\\.cursorrules|\\.clinerules)|tee\\s|sed\\s+-i",
    ),
  ],
  [
    "agent_config_mod",
    DOCUMENT,
    "high",
    both(
      besides(
        "(?<![a-z])(?:ask|approv[a-z]+|confirm[a-z]*|propos[a-z]+|suggest[a-z]*)(?![a-z])|(?:never|do not|don['’]t)\\s+(?:update|modify|edit|write|append|overwrite|replace|add|insert|change)",
      ),
      unlessSaid("(?<=\\S[ \\t]{0,8})>{1,2}[ \\t]|tee\\s|sed\\s+-i"),
    ),
  ],
  ["other_agent_config", DOCUMENT, "medium", unlessSaid(WRITES_SHELL)],
  [
    "reverse_shell",
    null,
    "medium",
    both(besides("socat"), unlessSaid("(?<![a-z0-9_.-])(?:nc|ncat)\\s|exec:|system:|-listen:|pty")),
  ],
  ["python_socket_connect", PYTHON, "low", out("connect\\(\\(\\s*[\"'](?:127\\.0\\.0\\.1|localhost|::1)[\"']")],
  [
    "tunnel_service",
    DOCUMENT,
    "medium",
    unlessSaid("(?:ngrok|cloudflared|localtunnel|serveo)[\\w.]{0,60}\\s+(?:http|tcp|tls|start|tunnel|--|[0-9])"),
  ],
  ["bind_all_interfaces", null, "low", out("https?://0\\.0\\.0\\.0:[0-9]+")],
  ["bind_all_interfaces", DOCUMENT, "medium", () => ""],
  [
    "echo_pipe_exec curl_pipe_python",
    null,
    "nothing",
    out(
      "\\|\\s*(?:python[0-9.]{0,4}\\s+(?:-u\\s+)?(?:-m\\s+[a-z]|-c\\s|[\\w./-]{1,80}\\.py(?![a-z]))|node\\s+(?:-[ep]\\s|[\\w./-]{1,80}\\.[cm]?js(?![a-z]))|(?:perl|ruby)\\s+-[a-z])",
    ),
  ],
  [
    "base64_decode_pipe",
    null,
    "low",
    out(
      "base64\\s+(?:-d|--decode)(?![a-z])[^\\n|]{0,200}\\|\\s*(?:jq|less|head|tail|grep|hexdump|xxd|od|file|wc|openssl|python[0-9.]{0,4}\\s+-m\\s+json\\.tool)(?![\\w-])",
    ),
  ],
  ["eval_string", null, "nothing", out("(?<!(?:window|globalthis|self|this|top))[.$]eval\\(")],
  ["eval_string exec_string", DOCUMENT, "low", besides(WARNING)],
  [
    "python_os_system python_os_popen",
    PYTHON,
    "medium",
    out("os\\.(?:system|popen)\\(\\s*f?[\"'][^\"'\\n]{0,200}[\"']"),
  ],
  [
    "node_child_process",
    JAVASCRIPT,
    "medium",
    out("child_process(?:[\"']\\))?\\.(?:exec|spawn|fork)[a-z]{0,8}\\(\\s*[\"'`][^\"'`$\\n]{0,200}[\"'`]"),
  ],
  ["node_child_process", DOCUMENT, "medium", () => ""],
  ["child_process_import", JAVASCRIPT, "medium", () => ""],
  ["setuid_setgid", DOCUMENT, "medium", unlessSaid("set[ug]id\\s*\\(|cap_set")],
  ["system_passwd_access", DOCUMENT, "high", out("(?<!\\.\\./)(?:\\.\\./){2,}etc/(?:passwd|shadow)")],
  ["system_passwd_access", DOCUMENT, "medium", both(unlessSaid(READS), unlessSaid("/etc/shadow"))],
  [
    "proc_access",
    null,
    "low",
    out("/proc/(?:self|[0-9]{1,7})/(?:status|stat|statm|fd(?!/)|cgroup|mountinfo|limits|io|comm|exe|net)(?![a-z])"),
  ],
  [
    // Relative to the file itself, and inside the skill.
    "path_traversal_deep",
    JAVASCRIPT,
    "low",
    (folded, { depth }) =>
      folded.replaceAll(
        /(?:\]\(|(?:from|require\(|import\(?|src=|href=)\s*["'])((?:\.\.\/){1,20})(?![^\s"')]{0,200}\.\.)[\w@./#-]{1,200}/gu,
        (path, up: string) => (up.length / 3 <= depth ? " " : path),
      ),
  ],
  // What is fetched and installed
  [
    "curl_pipe_shell wget_pipe_shell curl_pipe_python download_substitution download_then_run powershell_download",
    null,
    "medium",
    out(`${DOWNLOAD}[^\\n|;&$\`]{0,80}?https://(?:${INSTALLERS})(?=[/\\s"'\`)?]|$)[^\\s|"'\`);]{0,120}`),
  ],
  ["curl_pipe_shell curl_pipe_python", DOCUMENT, "low", out(`${DOWNLOAD}\\s+(?:\\.\\.\\.|…)`)],
  [
    "sudo_usage",
    null,
    "medium",
    out(
      `sudo\\s+(?:${SUDO})(?![a-z0-9_-])|sudo\\s+(?:tail|less|head|cat)\\s[^\\n|;&]{0,40}/var/log/|sudo\\s+tee\\s+/etc/(?:nginx|apt|systemd|docker|caddy)/`,
    ),
  ],
  [
    "sudo_usage",
    DOCUMENT,
    "low",
    out("(?:without|requires?|needs?|no|avoid|passwordless)\\s+`?sudo`?(?=[\\s,.;:)]|$)|`sudo`"),
  ],
  // Keys in examples
  [
    "hardcoded_secret",
    null,
    "nothing",
    out(
      `(?:api[\\s_-]?key|token|secret|password)["']?\\s*[=:]\\s*["'\`](?=[a-z0-9+/=_-]{0,120}(?:${PLACEHOLDER}))[a-z0-9+/=_-]{20,}`,
    ),
  ],
  [
    "embedded_private_key",
    null,
    "low",
    out(
      "-----begin (?:[a-z0-9]{1,12} ){0,3}private key-----(?=(?:\\\\n|\\s)*(?:\\.\\.\\.|…|<|\\[|your|xxx)|[\"'`)\\]|/])",
    ),
  ],
  [
    "github_token_leaked openai_key_leaked anthropic_key_leaked aws_access_key_leaked gitlab_token_leaked",
    null,
    "nothing",
    out(
      "(?:ghp_|github_pat_|sk-(?:proj-|ant-)?|akia|glpat-)(?:([a-z0-9_-])\\1{7}|your|example|[a-z0-9]{0,16}example)[a-z0-9_-]*",
    ),
  ],
];

export const EVERYDAY: ReadonlyMap<string, readonly Everyday[]> = Map.groupBy(
  ROWS.flatMap(([ids, kinds, then, form]) => ids.split(" ").map((id): Everyday => ({ id, kinds, then, form }))),
  ({ id }) => id,
);
